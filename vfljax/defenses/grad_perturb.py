"""GradPerturb: the cut gradients of all other labels, added with Laplace weights (Yang et al. 2022).

    g~_j = g_j + sum_c u_jc g_j^(c),   u_jc ~ Lap(2/eps) i.i.d.
    g~_j = g_j + u_j (g_j^(1-y) - g_j^(y)),   u_j ~ Lap(1/eps)       two classes

with g_j^(c) the gradient of row j if its label were c. The cross entropy is linear in its targets, so
that g~ is the gradient of the targets

    t_j = e_y + u_j   (two classes: e_y + u_j (e_0 - e_1), of the same law)

and no further backward pass is needed. Entries of t may be negative, and from three classes on its rows do
not sum to 1.

    draw   "row"   (ours, default) u is drawn once a row, for the whole training
           "step"  (released) u is drawn anew at every step
    reach  "all"   (default) all parties train on t, the top model and the label party's bottom too
           "cut"   (released) they train on e_y; the gradients that passive parties receive are those
                   of t

Reference: Yang, Sun, Yao, Xie, Wang. "Differentially Private Label Protection in Split Learning",
2022 (TPSL); as the defense GradPerturb in VFLAIR's released code.

Guarantee: with draw="row" and reach="all" training is eps-label-differentially private: e_y changes
by 2 in L1 (one number by 1 with two classes), and all that happens is computed from t. Later slots
and the label party's teacher see the class of largest t; metrics alone see the true labels. No other
form has a guarantee: "step" spends eps in every epoch and averages away, and with "cut" later
gradients come from a top model that has learned the true labels. Float32 cuts the tails of the noise
off, at a probability of 1e-7.

Edge cases
    epsilon = inf   u = 0, the one-hot labels
    sum_c t_jc < 0  possible from three classes on: the row's loss has no lower bound then, and a
                    network that can memorize such rows may diverge
    class weights   the weighted mean is over noisy weights, and no longer linear in t

Deviation: VFLAIR's code draws as many weights as the cut is wide where classes are meant, and another
release takes the difference of the classes' batch means for g^(1-y) - g^(y), which is not eps-DP.
Neither is offered.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np

from vfljax import errors, keys
from vfljax.defenses import core
from vfljax.defenses.rows import LEARNS, DefenseRow, Knower, Strengths, private_remarks
from vfljax.types import Array, Context, CutLayer, HostArray

SMALLEST = 1e-6  # epsilon: the noise stays in float32's range


class Perturbed(NamedTuple):
    """What the label party keeps."""

    key: Array  # of the draws that are made once a row
    labels: Array  # [N] int32: what later slots and the teacher may see


def weights(draws: Array, epsilon: Array | float) -> Array:
    """u [B, C] from i.i.d. Lap(1) ``draws`` [B, C]; ``epsilon`` > 0 is a scalar.

    Each entry is Lap(2/eps). With two classes a row is (u, -u) with one u ~ Lap(1/eps), made from the first
    column. At epsilon = infinity all are 0.
    """
    chex.assert_rank([draws, epsilon], [2, 0])
    if draws.shape[1] == 2:
        return draws[:, :1] / epsilon * jnp.array([[1.0, -1.0]])
    return draws * (2.0 / epsilon)


def row_draws(key: Array, index: Array, num_classes: int) -> Array:
    """Lap(1) draws [B, C] of the rows ``index`` [B]: each row's depend on the key and its index alone."""
    chex.assert_rank(index, 1)
    chex.assert_type(index, int)
    return jax.vmap(lambda i: jax.random.laplace(keys.fold(key, i), (num_classes,)))(index)


def grad_perturb(epsilon: Array | float, *, draw: str = "row", reach: str = "all") -> core.Defense:
    """GradPerturb with ``epsilon`` > 0.

    Reduces to no defense at infinity. With reach="all" it makes its targets from labels, and must be
    listed before other defenses on targets. Raises ``ValueError`` for an epsilon out of range and for
    an unknown option.
    """
    errors.check("epsilon", epsilon, SMALLEST, jnp.inf, infinite=True)
    errors.check_choice("draw", draw, ("row", "step"))
    errors.check_choice("reach", reach, ("all", "cut"))

    def drawn(state: Perturbed, context: Context, num_classes: int) -> Array:
        if draw == "step":
            shape = (len(context.index), num_classes)
            return weights(jax.random.laplace(keys.fold(context.key, "u"), shape), epsilon)
        return weights(row_draws(state.key, context.index, num_classes), epsilon)

    def noisy_labels(key: Array, labels: Array, num_classes: int) -> Array:
        """The class of largest t [N] of all training rows."""
        u = weights(row_draws(key, jnp.arange(len(labels)), num_classes), epsilon)
        return jnp.argmax(jax.nn.one_hot(labels, num_classes) + u, axis=-1).astype(jnp.int32)

    def init(key: Array, data: core.TrainingData) -> Perturbed:
        if not private(draw, reach):
            return Perturbed(key, data.labels)
        return Perturbed(key, noisy_labels(key, data.labels, data.num_classes))

    if reach == "cut":
        # targets stay, but not by the default slot: ``chain`` must take this for a defense on targets, and
        # refuse it beside a loss that reads none
        return core.Defense(
            init=init, targets=lambda *slot: slot, loss=functools.partial(_on_the_cut, drawn)
        )

    def targets(
        targets: Array, context: Context, state: Perturbed
    ) -> tuple[Array, Context, Perturbed]:
        classes = targets.shape[-1]
        one_hot = jax.nn.one_hot(context.labels, classes, dtype=targets.dtype)
        context_after = context._replace(labels=state.labels[context.index])
        perturbed = one_hot + drawn(state, context, classes)
        return perturbed, context_after if private(draw, reach) else context, state

    def teach(key: Array, labels: Array, num_classes: int) -> tuple[Array, Array]:
        return noisy_labels(key, labels, num_classes), jnp.ones(labels.shape, jnp.float32)

    public = core.Defense(init=init, targets=targets, replaces=True)
    if not private(draw, reach):
        return public
    return public._replace(teach=teach, labels=lambda state, labels: state.labels)


def private(draw: str, reach: str) -> bool:
    """Whether a form is eps-DP for the whole training."""
    return draw == "row" and reach == "all"


def _on_the_cut(
    drawn: Callable[[Perturbed, Context, int], Array], loss_fn: core.LossFn
) -> core.LossFn:
    """The loss slot of reach="cut": the loss of the clean targets, plus a term of value 0. The term
    turns the gradient of the passive parties' embeddings, and no other, into that of the noisy targets.

    ``drawn(state, context, num_classes)`` gives u [B, C] of a batch.
    """

    def defended(active, f, embeddings, targets, context, scoped):
        def value_of(f: Array, targets: Array) -> Array:
            fixed = jax.lax.stop_gradient((active, embeddings))
            return loss_fn(fixed[0], f, fixed[1], targets, context, scoped)[0]

        noisy = targets + drawn(scoped.state, context, targets.shape[-1])
        by_f = jax.grad(value_of)
        where = jax.lax.stop_gradient(f)
        difference = by_f(where, noisy) - by_f(where, targets)
        value, aux = loss_fn(active, f, embeddings, targets, context, scoped)
        for z, part in zip(embeddings, _parts(difference, context.cut_layer)):
            value += core.with_gradient(z, jax.lax.stop_gradient(part))
        return value, aux

    return defended


def _parts(gradient: Array, cut_layer: CutLayer) -> list[Array]:
    """The gradient of each bottom's embedding from that of the aggregated cut [B, D]."""
    if cut_layer.split and cut_layer.aggregation == "concatenate":
        return jnp.split(gradient, np.cumsum(cut_layer.widths)[:-1].tolist(), axis=-1)
    mean = cut_layer.split and cut_layer.aggregation == "mean"
    return [gradient / (len(cut_layer.widths) if mean else 1)] * len(cut_layer.widths)


def best_guess(epsilon: float, prior: HostArray) -> float:
    """Probability that the best guess from one row of t is right; ``prior`` [C] holds the classes'
    shares, and ``epsilon`` is concrete.

    It is the integral of max_y prior_y p(t | y). For three classes or more ``best_guess_of_entries`` computes
    it. For two the likelihood ratio is monotone in t_1, and the best guess compares t_1 with a threshold.
    """
    prior = np.asarray(prior, float)
    if len(prior) == 2:
        with np.errstate(divide="ignore"):
            odds = float(np.log(prior[0]) - np.log(prior[1]))
        if abs(odds) >= epsilon:
            return float(prior.max())
        below, above = (epsilon - odds) / 2, (epsilon + odds) / 2  # eps times its distances to 1, 0
        return float(1 - 0.5 * prior[1] * math.exp(-below) - 0.5 * prior[0] * math.exp(-above))
    return best_guess_of_entries(epsilon, prior)


def best_guess_of_entries(epsilon: float, prior: Array | HostArray) -> float:
    """Probability that the best guess of a label from e_y + u is right, u_c ~ Lap(2/epsilon) i.i.d., of two
    classes or more; ``prior`` [C] holds the classes' shares, and ``epsilon`` is concrete.

    With v_c = p(t_c | y = c) / p(t_c | y != c), which lies in [e^(-eps/2), e^(eps/2)], it is E max_c
    prior_c v_c over t = u, the noise without a label. That is an integral over one number.
    """
    prior = np.asarray(prior, float)
    if epsilon > 100:  # wrong with a probability of about C e^-50
        return 1.0
    # E max = lowest + the integral of 1 - prod_c P(prior_c v_c <= x) over x, by the midpoints of a
    # grid in log x that holds every jump
    logs = np.log(prior[prior > 0])
    jumps = np.concatenate([logs - epsilon / 2, logs + epsilon / 2])
    grid = np.unique(np.concatenate([jumps, np.linspace(jumps.min(), jumps.max(), 10_001)]))
    v = (grid[1:, None] + grid[:-1, None]) / 2 - logs[None]
    above = np.where(v < epsilon / 2, 0.5 * np.exp(np.minimum(-epsilon / 4 - v / 2, 0.0)), 0.0)
    with np.errstate(divide="ignore"):
        exceeded = -np.expm1(np.sum(np.log1p(-np.where(v < -epsilon / 2, 1.0, above)), axis=1))
    return float(min(1.0, np.exp(grid[0]) + np.sum(exceeded * np.diff(np.exp(grid)))))


ROW = DefenseRow(
    factory=grad_perturb,
    example={"epsilon": 2.0},
    known_by={
        # the largest target is the best guess from one draw (label-only), while predictions are near
        # uniform; draws at every step average out; and so do those of rows with equal columns
        "no_split": (
            *(Knower("direct", "most_negative"), Knower("direct", "mean"), Knower("fusion")),
            *(Knower("posterior"), Knower("two_stage", "mean")),
            *(Knower("probe"), Knower("joint")),
        ),
        "split": (
            *(Knower("mean", "mean"), Knower("probe"), Knower("passive"), Knower("joint")),
            *(Knower("spectral"), Knower("posterior", "direction")),
        ),
    },
    neutral={"epsilon": math.inf},
    strengths=Strengths("epsilon", (8.0, 4.0, 2.0, 1.0, 0.5)),
    remarks=private_remarks(
        lambda options: private(options.get("draw", "row"), options.get("reach", "all")),
        # from the noisy targets alone
        lambda epsilon, options, prior: f"{best_guess(epsilon, prior):.3f}",
        f"GradPerturb's noise, drawn once a row and trained on by everybody, {LEARNS}",
    ),
)
