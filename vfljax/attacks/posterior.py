"""The posterior under label DP (ours): the noisy label that crossed the wire, weighed with the columns.

    s_ic = log p_c(x_i) + epsilon 1[y~_i = c]

Without model splitting the direct attack reads the label y~ on which the federation trained, exactly.
Randomized response reports c with e^epsilon times the probability of any other class if c is the label,
so that s_i is, up to a constant, the log posterior of the label given y~ and the columns x. The best guess
from y~ alone is y~ itself; the columns indicate where it was flipped.

p is a linear softmax of the attacker's own columns. It needs no label: y~ is seen of every row, and p is
fitted to it through the mechanism, by the likelihood

    P(y~_i | x_i) = (1 + (e^epsilon - 1) p_{y~_i}(x_i)) / (e^epsilon + C - 1)

(loss correction: Patrini et al. "Making Deep Neural Networks Robust to Label Noise", CVPR 2017, section 4.)
epsilon is a public parameter of the mechanism (``vfljax.defenses.label_dp``). At 0 all scores are equal; at
infinity, which no knob takes, the attack is ``direct``. For RRWithPrior, which responds among a row's
likeliest classes only, the odds are the same within those. Under BlockRR they are at most e^epsilon: a report
of its Delta says less than is assumed here.

Under VLP a vector Z of one bit a class takes the place of y~ (``vfljax.defenses.vlp``). A received entry is
the sigmoid of a logit less Z_c, whose sign names Z_c in every epoch (``signal="signs"``). If c is the label, Z
has a probability proportional to e^(epsilon Z_c), so that

    s_ic = log p_c(x_i) + epsilon Z_ic,   with p fitted by the likelihood sum_c p_c(x_i) e^(epsilon Z_ic)

With model splitting and two classes (``signal="direction"``) a row's gradient is p - y~ times the slope of the
top model, so that its sign along the direction that the gradients share, the top right singular vector of
their unit rows, estimates y~. Which sign is which class is left open: known rows, or the figures, name them.
Under VLP rows whose two bits are equal have a gradient that says nothing of y, across that direction.
``signal="opposed"`` names no class of them: of all rows it takes those of largest |cosine|, a share of

    P(Z_0 != Z_1) = (e^epsilon + 1) / (e^(epsilon/2) + 1)^2

The labels that p is fitted to include the row's own y~. On UCI Spambase under label DP and GradPerturb,
fitting p on other rows only, in two halves or ten parts, read no more: the AUC was equal or up to .08 less.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from vfljax import errors
from vfljax.attacks import core
from vfljax.attacks.core import Attack, AttackRow, Bottoms, Knobs
from vfljax.attacks.direct import direct
from vfljax.attacks.probe import standardized
from vfljax.attacks.ranks import midranks
from vfljax.attacks.similarity import unit
from vfljax.attacks.spectral import directions
from vfljax.types import MALICIOUS, NO_SPLIT, SPLIT, Array, Known, PyTree, Scores, View

# what names y~, or Z, and where
SIGNALS = {
    **dict.fromkeys(("entries", "signs"), (NO_SPLIT,)),
    **dict.fromkeys(("direction", "opposed"), (SPLIT, MALICIOUS)),
}
COLUMNS = {"values": standardized, "ranks": midranks}


def along(g: Array) -> Array:
    """Scores [N, 2]: plus and minus the cosine of each gradient of g [N, D] with the direction that all share,
    NaN for rows of zeros."""
    rows = unit(g)
    cosine = core.multiply(rows, directions(rows, 1))
    return jnp.where(cosine != 0, jnp.concatenate([cosine, -cosine], axis=1), jnp.nan)


def opposed(g: Array, epsilon: Array) -> Array:
    """The scores ``along`` of g [N, D], NaN for rows that are likely to have two equal bits under VLP."""
    scores = along(g)
    cosine = jnp.abs(scores[:, 0])
    flipped = jnp.exp(-epsilon / 2)
    share = (1 + flipped**2) / (1 + flipped) ** 2
    return jnp.where((cosine >= jnp.nanquantile(cosine, 1 - share))[:, None], scores, jnp.nan)


def posterior(
    bottoms: Bottoms,
    num_classes: int,
    *,
    signal: str = "entries",
    columns: str = "values",
    epoch: int | str = "mean",
    steps: int = 500,
) -> Attack:
    """Score each row by the log posterior of its label, given the noisy one and its columns.

    Knobs: ``epsilon``, that of the mechanism, and AdamW's ``learning_rate`` and ``weight_decay``.

    Args:
      signal: what names y~, the "entries" of gradients without model splitting, or of two classes with it
        the "direction". Under VLP they are "signs", of the entries, and "opposed", of the direction.
      columns: "values" to read the columns standardized, or "ranks", which are better for skewed columns.
      epoch: whose gradients name y~, a recorded one's number or "mean" of all. Before the federation has
        learned, the most negative entry is that of y~; later gradients also depend on noise it has memorized.
      steps: optimizer steps, each on all rows.

    Returns:
      An attack whose scores [N, C] are NaN for rows never sent. A row of which the gradients name no
      class is scored by its columns.

    Raises:
      ValueError: where the columns are codes or token ids, for an unknown option, and for a direction of more
        than two classes.
    """
    errors.check_choice("signal", signal, SIGNALS)
    errors.check_choice("columns", columns, COLUMNS)
    if NO_SPLIT not in SIGNALS[signal] and num_classes > 2:
        raise ValueError(f"signal={signal!r} is for two classes: choose 'entries' or 'signs'.")
    core.check_numeric(bottoms, "leave this attack out of config.attacks")
    core.check_whole("steps", steps, 1)
    first = direct(bottoms, num_classes, rule="most_negative", epoch=epoch)

    def named(key: Array, view: View, known: Known, epsilon: Array) -> Array:
        """[C, N] float32: 1 for y~, or for the classes whose bit is 1; rows as in ``core.logits_by_column``."""
        g, sent = core.received(view, epoch)
        if signal == "signs":
            # without a top model every party receives the same gradient: colluders average theirs
            entries = jnp.mean(core.by_party(g, num_classes), axis=1)
            return jnp.float32(sent[:, None] & (entries < 0)).T
        if signal == "entries":
            guesses = first.run(key, view, known, {}).train
        else:
            g = jnp.where(sent[:, None], g, 0.0)
            guesses = along(g) if signal == "direction" else opposed(g, epsilon)
        guessed = jnp.all(jnp.isfinite(guesses), axis=-1)
        noisy = jnp.where(guessed, jnp.argmax(guesses, axis=-1), -1)
        return jax.nn.one_hot(noisy, num_classes, axis=0)  # -1 is no class: a row of zeros

    def run(key: Array, view: View, known: Known, knobs: Knobs) -> Scores:
        bonus = knobs["epsilon"] * named(key, view, known, knobs["epsilon"])
        x = core.columns_of(view.features)
        # rows along the last axis, as in ``core.logits_by_column``
        x = COLUMNS[columns](x, jnp.ones(len(x), bool)).T

        def log_p(params: PyTree) -> Array:
            weights, bias = params
            return jax.nn.log_softmax(core.multiply(weights.T, x) + bias[:, None], axis=0)

        def loss(params: PyTree) -> Array:
            # minus the log likelihood, up to a constant; 0 for rows without a noisy label
            return -jnp.mean(jax.nn.logsumexp(log_p(params) + bonus, axis=0))

        start = (jnp.zeros((len(x), num_classes)), jnp.zeros(num_classes))
        params = core.minimize(loss, start, core.adamw(knobs), steps)
        return core.scored((log_p(params) + bonus).T, core.received(view, epoch)[1])

    return Attack(
        run,
        SIGNALS[signal],
        {"epsilon": 1.0, **core.ADAMW},
        steps=steps,
        reads=("columns", "gradients"),
        one_epoch=True,
        **core.reads_epoch(epoch, adaptive=True),
    )


ROW = AttackRow(posterior, cost=core.SOLVE)
