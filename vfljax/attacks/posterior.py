"""The posterior under label DP (ours): the noisy label that crossed the wire, weighed with the columns.

    s_ic = log p_c(x_i) + epsilon 1[y~_i = c]

Without model splitting the direct attack reads the label y~ on which the federation trained, exactly.
Randomized response reports c with e^epsilon times the probability of any other class if c is the label,
so that s_i is, up to a constant, the log posterior of the label given y~ and the columns x. The best guess
from y~ alone is y~ itself; the columns indicate where it was flipped.

p is a linear softmax of the attacker's own columns. It needs no label: y~ is seen of every row, and p is
fitted to it through the mechanism, by the likelihood

    P(y~_i | x_i) = (1 + (e^epsilon - 1) p_{y~_i}(x_i)) / (e^epsilon + C - 1)

(loss correction: Patrini et al. "Making Deep Neural Networks Robust to Label Noise", CVPR 2017, section 4),
with a ridge on the weights and the steps of ``softmax``. Of the ridges 1, 3 and 10, 3 read most on Spambase and
breast cancer taken together. In place of these steps, rule 1 took 500 of AdamW, whose early end was its only
penalty: its knobs ``learning_rate`` and ``weight_decay`` are gone. Of more than ``softmax.MOST_ROWS`` rows p is
fitted to as many: on default of credit, with 24,000 rows, the AUC at epsilon .5 to 4 then moved by -.001 to
+.002 on average over three draws, and by .004 at most.
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

Where the federation also adds noise of a known law to gradients (``vfljax.defenses.noise``), a row's gradient
names y~ the less surely the smaller it is beside the noise. With tau_i the noise's standard deviation in the
row's average, the entries are read as -m at y~ and m / (C - 1) elsewhere, and a gradient along the direction as
m or -m, plus N(0, tau_i^2). m is fitted by the second moment: the mean square less the noise's. Then

    r_ic = softmax over c of the log-density of what was received of row i given y~_i = c
    s_ic = log p_c(x_i) + log(1 + (e^epsilon - 1) r_ic)

and p is fitted by the likelihood sum_c p_c(x_i) (1 + (e^epsilon - 1) r_ic). Without noise r is 1 at y~.

Of labels that are numbers (ours), n_i is y - f and what the attacker sent, which without a top model is the
noisy label (``direct`` with ``own``), or with one a row's gradient along the shared direction. n is brought to
variance 1, m(x) is a ridge regression of n on the columns, and the score is a mean, E[theta | n_i], of theta
normal about what m(x) says. With Laplace noise of scale b and r = n - m(x)

    theta ~ N(m(x), tau^2),   tau^2 = the variance of r less 2 b^2
    log f(r) = tau^2 / 2 b^2 - log 2 b + log(e^A + e^B),   A, B = -+ r / b + log Phi(+- r / tau - tau / b)
    s_i = m(x_i) - tau^2 (log f)'(r_i) = m(x_i) + tau^2 / b tanh((A - B) / 2)

because f is the convolution of both densities, and the slope of the normal one is -delta / tau^2 of itself. Of
labels whose standard deviation is ``spread`` times their range, b^2 = 1 / (2 + (epsilon spread)^2). A user's
range may be far wider than the labels are: the spread is the likeliest of ``SPREADS``, by f.

Where n takes few values, v_1 < .. < v_d, it is taken for randomized response on bins. Of optimal bins a number
is in that of the nearest value, so that with I_j between the middles of neighbors,

    P(n = v_j | theta) = (1 + (e^epsilon - 1) 1[theta in I_j]) / (e^epsilon + d - 1)
    theta ~ N(mu(x), t^2),   mu = mean of v + (m(x) - mean of v) (e^epsilon + d - 1) / (e^epsilon - 1)

and t is the likeliest of ``SPREADS`` of v_d - v_1. In a federation with a top model, or if others' outputs are
in n, it takes many values, and the law of Laplace noise is an approximation. No label is needed.

The labels that p is fitted to include the row's own y~. On UCI Spambase under label DP and GradPerturb,
fitting p on other rows only, in two halves or ten parts, read no more: the AUC was equal or up to .08 less.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import log_ndtr, ndtr

from vfljax import errors
from vfljax.attacks import core, softmax
from vfljax.attacks.core import Attack, AttackRow, Bottoms, Knobs
from vfljax.attacks.direct import most_negative, residuals
from vfljax.attacks.probe import standardized
from vfljax.attacks.ranks import midranks
from vfljax.attacks.similarity import unit
from vfljax.attacks.spectral import directions
from vfljax.types import MALICIOUS, NO_SPLIT, SPLIT, Array, Known, Scores, View

# what names y~, or Z, and where
SIGNALS = {
    **dict.fromkeys(("entries", "signs"), (NO_SPLIT,)),
    **dict.fromkeys(("direction", "opposed"), (SPLIT, MALICIOUS)),
}
BITS = ("signs", "opposed")  # the signals of VLP, which name Z
COLUMNS = {"values": standardized, "ranks": midranks}


@core.once
def own_columns(features: tuple[Array, ...], scaling: str) -> Array:
    """The colluders' columns [N, W], scaled by a name in ``COLUMNS``."""
    x = core.columns_of(features)
    return COLUMNS[scaling](x, jnp.ones(len(x), bool))


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


def _called(guesses: Array) -> Array:
    """1 at the largest of a row's scores ``guesses`` [N, C] and 0 elsewhere; zeros where they are NaN."""
    guessed = jnp.all(jnp.isfinite(guesses), axis=-1)
    return jax.nn.one_hot(jnp.where(guessed, jnp.argmax(guesses, axis=-1), -1), guesses.shape[1])


def posterior(
    bottoms: Bottoms,
    num_classes: int,
    *,
    signal: str = "entries",
    columns: str = "values",
    epoch: int | str = "mean",
    steps: int = 60,
    own: bool = True,
) -> Attack:
    """Score each row by the log posterior of its label, given the noisy one and its columns.

    Knobs: ``epsilon``, that of the mechanism, ``ridge``, the penalty of p's weights, and for y~ the ``noise``,
    the standard deviation of what another defense adds to each entry of a gradient: sqrt(2) times the scale of
    Laplace noise.

    Args:
      signal: what names y~, the "entries" of gradients without model splitting, or of two classes or numbers
        with it the "direction". Under VLP they are "signs", of the entries, and "opposed", of the direction.
      columns: "values" to read the columns standardized, or "ranks", which are better for skewed columns.
      epoch: whose gradients name y~, a recorded one's number or "mean" of all. Before the federation has
        learned, the most negative entry is that of y~; later gradients also depend on noise it has memorized.
      steps: of ``softmax.fitted``, each on all rows.
      own: of numbers without a top model, whether what the attackers sent is added to y - f. Of trees it is
        paths, no part of f, which is 0 in the first round.

    Returns:
      An attack whose scores [N, C] are NaN for rows never sent. A row of which the gradients name no
      class is scored by its columns.

    Raises:
      ValueError: where the columns are codes or token ids, for an unknown option, for a direction of more than
        two classes, of classes for ``own`` = False, and of numbers for a signal of VLP and for votes, which
        have no size.
    """
    errors.check_choice("signal", signal, SIGNALS)
    errors.check_choice("columns", columns, COLUMNS)
    if NO_SPLIT not in SIGNALS[signal] and num_classes > 2:
        raise ValueError(f"signal={signal!r} is for two classes: choose 'entries' or 'signs'.")
    core.check_numeric(bottoms, "leave this attack out of config.attacks")
    core.check_whole("steps", steps, 1)
    core.check_epoch(epoch)
    if num_classes == 1:
        return _of_numbers(signal, columns, epoch, steps, own)
    if not own:
        raise ValueError("own=False is of labels that are numbers: leave it out.")

    def bits(g: Array, sent: Array, epsilon: Array) -> Array:
        """[N, C] float32: 1 for the classes whose bit is 1."""
        if signal == "signs":
            # without a top model every party receives the same gradient: colluders average theirs
            entries = jnp.mean(core.by_party(g, num_classes), axis=1)
            return jnp.float32(sent[:, None] & (entries < 0))
        return _called(opposed(g, epsilon))

    def responses(g: Array, tau: Array) -> Array:
        """log r [N, C] with noise of the standard deviation ``tau`` [N, 1] in each entry of g; -inf at every
        class of rows of which g names none."""
        if signal == "entries":
            parts = core.by_party(g, num_classes)
            tau = tau / parts.shape[1] ** 0.5
            evidence = -jnp.mean(parts, axis=1)
            guesses = most_negative(-evidence)
            contrast = num_classes / (num_classes - 1)
        else:
            guesses = along(g)
            line = core.multiply(g, directions(unit(g), 1))
            evidence = jnp.concatenate([line, -line], axis=1)
            contrast = 1.0
        # the mean square of an entry is m^2 / (C - 1) + tau^2, and along the direction m^2 + tau^2
        rows = jnp.maximum(jnp.sum(jnp.any(evidence != 0, axis=1)), 1)
        square = jnp.sum(evidence**2) / (num_classes * rows) - jnp.mean(tau**2)
        m = jnp.sqrt((num_classes - 1) * jnp.maximum(square, 0.0))
        weight = contrast * m / jnp.maximum(tau**2, 1e-30)
        # largest class first: of large products, rounded ones would be subtracted
        below = evidence - jnp.max(evidence, axis=1, keepdims=True)
        soft = jax.nn.log_softmax(jnp.maximum(weight * below, -1e4), axis=1)
        soft = jnp.where(jnp.any(evidence != 0, axis=1, keepdims=True), soft, -jnp.inf)
        return jnp.where(tau > 0, soft, jnp.log(_called(guesses)))

    def run(key: Array, view: View, known: Known, knobs: Knobs) -> Scores:
        del key, known
        epsilon = knobs["epsilon"]
        g, sent = core.received(view, epoch)
        g = jnp.where(sent[:, None], g, 0.0)
        if signal in BITS:
            bonus = epsilon * bits(g, sent, epsilon)
        else:
            averaged = view.sums.count[:, None] if epoch == "mean" else 1
            tau = knobs["noise"] / jnp.sqrt(jnp.maximum(averaged, 1.0))
            log_r = responses(g, jnp.broadcast_to(tau, (len(g), 1)))
            # log(1 + (e^epsilon - 1) r), also for an epsilon whose exponential overflows
            bonus = jnp.logaddexp(0.0, epsilon + jnp.log1p(-jnp.exp(-epsilon)) + log_r)
        # rows along the last axis, as ``softmax`` reads them
        x, bonus = own_columns(view.features, columns).T, bonus.T
        likelihood = jnp.exp(bonus - jnp.max(bonus, axis=0, keepdims=True))
        rows = softmax.some_rows(x.shape[1])
        weights = jnp.ones(len(rows))
        model = softmax.fitted(x[:, rows], likelihood[:, rows], weights, knobs["ridge"], steps)
        log_p = jax.nn.log_softmax(model.logits(x), axis=0)
        return core.scored((log_p + bonus).T, sent)

    return Attack(
        run,
        SIGNALS[signal],
        {"epsilon": 1.0, "ridge": 3.0, **({} if signal in BITS else {"noise": 0.0})},
        steps=steps,
        reads=("columns", "gradients"),
        **core.reads_epoch(epoch, adaptive=True),
    )


SPREADS = tuple(float(s) for s in np.geomspace(0.5, 0.01, 12))
"""The standard deviations of labels, in units of their range, of which the likeliest is taken."""
MOST_VALUES = 64  # of ``vfljax.defenses.rr_on_bins``


def laplace_mean(r: Array, tau: Array, b: Array) -> tuple[Array, Array]:
    """log f(r) [N], and E[delta | r] [N], of ``r`` [N] = delta + Laplace noise of scale ``b`` [] with delta ~
    N(0, ``tau^2``)."""
    b = jnp.maximum(b, tau / 30)  # beyond, float32 loses the difference of both sides
    above = -r / b + log_ndtr(r / tau - tau / b)
    below = r / b + log_ndtr(-r / tau - tau / b)
    log_f = tau**2 / (2 * b**2) - jnp.log(2 * b) + jnp.logaddexp(above, below)
    return log_f, tau**2 / b * jnp.tanh((above - below) / 2)


def bins_mean(mean: Array, low: Array, high: Array, t: Array, odds: Array) -> tuple[Array, Array]:
    """The log-likelihood [N] of rows' bins but for a constant, and E[theta | bin] [N], of theta ~ N(``mean``
    [N], ``t^2``), whose bin ends at ``low`` and ``high`` [N] and is reported ``odds`` = e^epsilon - 1 times
    likelier than any other, and 1."""
    a, b = (low - mean) / t, (high - mean) / t
    within = jnp.where(a > 0, ndtr(-a) - ndtr(-b), ndtr(b) - ndtr(a))
    slope = jnp.exp(-(a**2) / 2) - jnp.exp(-(b**2) / 2)
    seen = 1 + odds * within
    return jnp.log(seen), mean + odds * t * slope / math.sqrt(2 * math.pi) / seen


class Values(NamedTuple):
    """The values that numbers take, if these are few."""

    few: Array  # [] bool
    count: Array  # [], d
    middle: Array  # [], the mean of the values
    width: Array  # [], the largest less the least
    low: Array  # [N], the ends of the interval of each number; infinite at the outer ones
    high: Array  # [N]


def values_of(n: Array, sent: Array) -> Values:
    """The values of the numbers ``n`` [N] of the rows ``sent`` [N] bool, which float32 may blur."""
    rows = jnp.sum(sent)
    order = jnp.argsort(jnp.where(sent, n, jnp.inf))
    real = sent[order]
    sorted_n = jnp.where(real, n[order], jnp.max(jnp.where(sent, n, -jnp.inf)))
    width = sorted_n[-1] - sorted_n[0]
    gaps = jnp.diff(sorted_n)
    new = gaps > 1e-4 * width
    blur = jnp.sum(jnp.where(new, 0.0, gaps))
    count = 1 + jnp.sum(new)
    few = (count > 1) & (count <= jnp.minimum(MOST_VALUES, rows / 4)) & (blur < 0.01 * width)
    edges = jnp.where(new, (sorted_n[1:] + sorted_n[:-1]) / 2, jnp.inf)
    # an end is the nearest edge on either side in the sorted order
    none = jnp.full(1, jnp.inf)
    low = jax.lax.cummax(jnp.concatenate([-none, jnp.where(new, edges, -jnp.inf)]))
    high = jax.lax.cummin(jnp.concatenate([edges, none]), reverse=True)
    middle = (jnp.sum(jnp.where(new, sorted_n[1:], 0.0)) + sorted_n[0]) / count
    back = jnp.argsort(order)
    return Values(few, count, middle, width, low[back], high[back])


def _of_numbers(signal: str, columns: str, epoch: int | str, steps: int, own: bool) -> Attack:
    """``posterior`` of labels that are numbers."""
    if signal in BITS or epoch == "votes":
        raise ValueError(
            f"signal={signal!r}, epoch={epoch!r}: of numbers the signal is 'entries' or 'direction', and the "
            "epoch a number or 'mean'."
        )

    def noisy_labels(view: View) -> tuple[Array, Array]:
        """n [N] without its unit, and which rows were sent."""
        if signal == "entries":
            return residuals(view, epoch, own)
        g, sent = core.received(view, epoch)
        g = jnp.where(sent[:, None], g, 0.0)
        return core.multiply(g, directions(unit(g), 1))[:, 0], sent

    def run(key: Array, view: View, known: Known, knobs: Knobs) -> Scores:
        del key, known
        n, sent = noisy_labels(view)
        n, weights = jnp.where(sent, n, 0.0), sent.astype(jnp.float32)
        count = jnp.maximum(jnp.sum(weights), 1.0)

        def variance(a: Array) -> Array:
            return jnp.sum(weights * (a - jnp.sum(weights * a) / count) ** 2) / count

        scale = jnp.sqrt(variance(n))
        n = (n - jnp.sum(weights * n) / count) / jnp.where(scale > 0, scale, 1.0)
        x = own_columns(view.features, columns).T
        rows = softmax.some_rows(x.shape[1])
        model = softmax.least_squares(
            x[:, rows], n[None, rows], weights[rows], knobs["ridge"], steps
        )
        mean = model.logits(x)[0]
        r, epsilon = n - mean, knobs["epsilon"]
        left = variance(r)
        values = values_of(n, sent)
        odds = jnp.expm1(jnp.minimum(epsilon, 80.0))  # which float32 holds
        about = (mean - values.middle) * (odds + values.count) / jnp.maximum(odds, 1e-6)

        def of_laplace(spread: Array) -> tuple[Array, Array]:
            noise = 1 / (2 + (epsilon * spread) ** 2)
            tau = jnp.sqrt(jnp.maximum(left - 2 * noise, 1e-3))
            log_f, away = laplace_mean(r, tau, jnp.sqrt(noise))
            return jnp.sum(weights * log_f), mean + away

        def of_bins(spread: Array) -> tuple[Array, Array]:
            t = spread * jnp.where(values.width > 0, values.width, 1.0)
            seen, theta = bins_mean(values.middle + about, values.low, values.high, t, odds)
            return jnp.sum(weights * seen), theta

        def likeliest(law: Callable[[Array], tuple[Array, Array]]) -> Array:
            likelihood, theta = jax.lax.map(law, jnp.array(SPREADS))
            return theta[jnp.argmax(likelihood)]

        score = jnp.where(values.few & (odds > 0), likeliest(of_bins), likeliest(of_laplace))
        return core.scored(score[:, None], sent)

    in_entries = signal == "entries"
    reads = (
        "columns",
        "gradients",
        *["embeddings"] * (in_entries and own),
        *["order"] * in_entries,
    )
    knobs = {"epsilon": 1.0, "ridge": 3.0}
    of_epoch = core.reads_epoch(epoch, adaptive=True)
    return Attack(run, SIGNALS[signal], knobs, steps=steps, reads=reads, **of_epoch)


ROW = AttackRow(posterior, widest=core.WIDEST, rule=2, cost=core.SOLVE, not_for_numbers="")
