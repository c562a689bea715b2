"""The spectral attack: classes differ along the embeddings' direction of largest variance (Sun et al. 2022).

    s_i = <z_i - mean z, v>,   v the top right singular vector of the centered batch

Reference: Sun, Yang, Yao, Wang. "Label Leakage and Protection from Forward Embedding in Vertical Federated
Learning", 2022, section 5, algorithm 1 (appendix D), appendices E and G; spectral signatures: Tran, Li,
Madry 2018.

The sign of v is arbitrary. "signed" scores (algorithm 1) are cut into two clusters, by exact 2-means on the
line, and turned so that the smaller cluster is the positive class: the attacker is supposed to know that
this is the rarer one. As the s_i sum to 0, the smaller cluster also has the larger mean |s|, so that for
signed scores the paper's heuristic for balanced data decides the same. For "absolute" scores, |s_i| (section
5), it does not: ``heuristic="minority"`` calls the smaller cluster positive, "larger" that of larger |s|.

More than two classes: k-means with C clusters in the span of the C - 1 top directions, over the whole
epoch. A cluster is named by the majority of its known rows; matching by size (appendix E) is chance on
balanced classes. ``oracle=True`` names clusters by all labels, which is an upper bound.

Labels that are numbers (ours): the gradients of a squared loss are a shared direction times the residual, so
that the score is the row's part along the top direction of the whole epoch, whose sign is arbitrary.

Deviations:

* A batch's scores are in units of its largest entry, less the cut between its clusters.
* A batch of zeros scores 0.
* Of clusters of equal size either may be called positive.
* ``signal`` a layer's name looks at the trained model's activations after training, in evaluation mode
  (published: during training).
"""

from __future__ import annotations

import chex
import jax
import jax.numpy as jnp

from vfljax import errors
from vfljax.attacks import core
from vfljax.attacks.core import Attack, AttackRow, Bottoms, Knobs
from vfljax.types import KINDS, SPLIT, Array, Known, Scores, View

SIGNALS = ("embeddings", "gradients")
RESTARTS, ROUNDS = 8, 30  # of k-means
SQUARINGS = 12  # of the covariance, for its top direction


def centered(x: Array, weights: Array) -> Array:
    """Rows x [n, D] less their mean over the rows of weight 1, in units of their largest entry.

    ``weights`` [n] are 0 or 1; rows of weight 0 play no part and are 0 in the result.
    """
    _check_rows(x, weights)
    count = jnp.maximum(jnp.sum(weights), 1.0)
    x = jnp.where(weights[:, None] > 0, x, 0.0)
    largest = jnp.max(jnp.abs(x))
    x = x / jnp.where(largest > 0, largest, 1.0)
    return (x - jnp.sum(x, axis=0, keepdims=True) / count) * weights[:, None]


def _check_rows(x: Array, weights: Array) -> None:
    chex.assert_rank([x, weights], [2, 1])
    chex.assert_equal_shape_prefix([x, weights], 1)
    chex.assert_type([x, weights], float)


def directions(x: Array, count: int) -> Array:
    """The ``count`` top right singular vectors [D, count] of centered rows x [n, D], strongest first.

    They are found by squaring the covariance, whose 2**SQUARINGS-th power is nearly of rank one, and by
    deflation. That takes matrix products only, which are cheap under vmap on any backend. Directions whose
    variances are within .1 % of each other are not separated. Rows of zeros have directions 0.
    """
    chex.assert_rank(x, 2)
    chex.assert_type(x, float)

    def scaled(power: Array) -> Array:
        largest = jnp.max(jnp.abs(power))
        return power / jnp.where(largest > 0, largest, 1.0)

    def top(covariance: Array) -> Array:
        power = jax.lax.fori_loop(
            0, SQUARINGS, lambda _, p: scaled(core.multiply(p, p)), scaled(covariance)
        )
        # every column is a multiple of the direction
        return core.unit(power[:, jnp.argmax(jnp.diagonal(power))])

    def deflate(rest: Array, _: None) -> tuple[Array, Array]:
        v = top(core.multiply(rest.T, rest))
        return rest - core.multiply(rest, v)[:, None] * v[None, :], v

    _, vectors = jax.lax.scan(deflate, x, None, length=count)
    return vectors.T


def threshold(s: Array, weights: Array) -> Array:
    """The cut of numbers s [n] into two clusters of least squared distance to their means (2-means).

    The cut is a scalar halfway between the two neighbors it parts. ``weights`` [n] are 0 or 1 and leave
    numbers out.
    """
    chex.assert_rank([s, weights], 1)
    chex.assert_equal_shape([s, weights])
    n = jnp.sum(weights)
    values = jnp.sort(jnp.where(weights > 0, s, jnp.inf))
    finite = jnp.where(jnp.isfinite(values), values, 0.0)
    below = jnp.arange(1, len(s) + 1, dtype=jnp.float32)
    total, left = jnp.sum(finite), jnp.cumsum(finite)
    above = jnp.maximum(n - below, 1.0)
    # between-cluster variance up to a constant: maximal where the within-cluster one is least
    gain = left**2 / below + (total - left) ** 2 / above
    i = jnp.argmax(jnp.where(below < n, gain, -jnp.inf))
    return (values[i] + jnp.where(i + 1 < n, values[jnp.minimum(i + 1, len(s) - 1)], values[i])) / 2


def two_clusters(x: Array, weights: Array, absolute: bool, minority: bool) -> Array:
    """Scores [n] of rows x [n, D], above 0 for the cluster called positive.

    ``weights`` [n] are 0 or 1 and leave rows out. With ``absolute`` the scores are absolute values, and
    ``minority`` then calls the smaller cluster positive instead of the one with larger values.
    """
    x = centered(x, weights)
    s = core.multiply(x, directions(x, 1))[:, 0]
    s = jnp.abs(s) if absolute else s
    s = s - threshold(s, weights)
    positive = jnp.sum(weights * (s > 0))
    turn = (2 * positive > jnp.sum(weights)) & (minority or not absolute)
    return jnp.where(turn, -s, s)


def k_means(key: Array, x: Array, weights: Array, count: int) -> Array:
    """The cluster [n] int32 of each row of x [n, D] by k-means with ``count`` clusters.

    It is the best of ``RESTARTS`` runs of ``ROUNDS`` of Lloyd's rounds from k-means++ starts. ``weights``
    [n] are 0 or 1; rows of weight 0 get the cluster of the nearest center and move none.
    """
    _check_rows(x, weights)

    def squares(centers: Array) -> Array:
        apart = x[:, None, :] - centers[None, :, :]
        return jnp.sum(apart * apart, axis=-1)

    def start(key: Array) -> Array:
        first, *rest = jax.random.split(key, count)
        place = jax.random.choice(first, len(x), p=weights / jnp.sum(weights))
        centers = jnp.broadcast_to(x[place][None, :], (count, x.shape[1]))
        for c, draw in enumerate(rest, start=1):
            nearest = jnp.min(squares(centers), axis=1) * weights
            # where every row is a center already any row serves
            chance = jnp.where(jnp.sum(nearest) > 0, nearest, weights)
            centers = centers.at[c].set(x[jax.random.choice(draw, len(x), p=chance / chance.sum())])
        return centers

    def lloyd(centers: Array, _: None) -> tuple[Array, None]:
        members = jax.nn.one_hot(jnp.argmin(squares(centers), axis=1), count) * weights[:, None]
        size = jnp.sum(members, axis=0)[:, None]
        return jnp.where(
            size > 0, core.multiply(members.T, x) / jnp.maximum(size, 1.0), centers
        ), None

    def attempt(key: Array) -> tuple[Array, Array]:
        centers, _ = jax.lax.scan(lloyd, start(key), None, length=ROUNDS)
        near = squares(centers)
        return jnp.sum(jnp.min(near, axis=1) * weights), jnp.argmin(near, axis=1)

    inertia, clusters = jax.lax.map(attempt, jax.random.split(key, RESTARTS))
    return clusters[jnp.argmin(inertia)]


def named(clusters: Array, known: Known, sent: Array, num_classes: int) -> Array:
    """Scores [n, C]: the share of each class among the known rows of a row's cluster [n].

    Only rows ``sent`` [n] bool count. Clusters without a known row score all classes 0.
    """
    chex.assert_rank([clusters, sent], 1)
    chex.assert_equal_shape([clusters, sent])
    chex.assert_type(clusters, int)
    labels = core.labels_by_row(known, len(clusters))
    ballots = jax.nn.one_hot(labels, num_classes) * sent[:, None]  # -1 is no class: a row of zeros
    votes = jax.ops.segment_sum(ballots, clusters, num_classes)
    return (votes / jnp.maximum(jnp.sum(votes, axis=1, keepdims=True), 1.0))[clusters]


def spectral(
    bottoms: Bottoms,
    num_classes: int,
    *,
    signal: str = "embeddings",
    scores: str = "signed",
    heuristic: str = "minority",
    whole: bool = False,
    epoch: int | str = -1,
    oracle: bool = False,
) -> Attack:
    """Cluster rows along their directions of largest variance.

    Args:
      signal: what is clustered: what was sent ("embeddings"), received ("gradients"), or computed, by a
        layer's name such as "party0.hidden.0" or "top.hidden.0". It is a diagnostic where the layer is
        not the attacker's, and layers are looked at in the honest federation with splitting only.
      scores: "signed" or "absolute", for two classes.
      heuristic: "minority" or "larger": which cluster is positive, for two classes.
      whole: whether the rows of an epoch are clustered at once instead of batch by batch, for two
        classes. With more classes they always are.
      epoch: which embeddings or gradients are read, see ``core.received``.
      oracle: whether clusters are named by all labels, for more than two classes.

    Returns:
      An attack whose scores are NaN for rows never sent. For two classes the scores [N, 2] are above 0 for
      the class called; for more, scores [N, C] are the classes' shares among the cluster's known rows. Of
      numbers they are [N, 1], in units of the largest entry.
    """
    del bottoms
    core.check_epoch(epoch)
    errors.check_choice("scores", scores, ("signed", "absolute"))
    errors.check_choice("heuristic", heuristic, ("minority", "larger"))
    if not isinstance(signal, str) or (signal not in SIGNALS and "." not in signal):
        raise ValueError(
            f"signal={signal!r} is unknown: choose one of {', '.join(SIGNALS)} or a layer such as "
            "'party0.hidden.0'."
        )
    if isinstance(epoch, str) and (signal != "gradients" or (num_classes > 1 and not whole)):
        raise ValueError(
            f"epoch={epoch!r} has no mini-batches and no embeddings: choose a number, or "
            "signal='gradients' with whole=True."
        )
    if num_classes != 2 and (scores, heuristic, whole) != ("signed", "minority", False):
        instead = "are clustered by k-means" if num_classes > 2 else "have one direction"
        raise ValueError(
            f"scores={scores!r}, heuristic={heuristic!r}, whole={whole!r} are for two classes; with "
            f"{num_classes} classes the epoch's rows {instead}: leave them out."
        )
    if oracle and num_classes <= 2:
        raise ValueError(
            f"oracle=True names more than two clusters by all labels: C is {num_classes} here."
        )

    def run(key: Array, view: View, known: Known, knobs: Knobs) -> Scores:
        del knobs
        x, sent = core.received(view, epoch)
        if signal != "gradients":
            embeddings = view.embeddings[core.place_of(view, epoch)]
            x = embeddings if signal == "embeddings" else view.diagnostics[signal]
        if num_classes == 1:
            z = centered(x, sent.astype(jnp.float32))
            return core.scored(core.multiply(z, directions(z, 1)), sent)
        if num_classes > 2:
            z = centered(x, sent.astype(jnp.float32))
            z = core.multiply(z, directions(z, min(num_classes - 1, z.shape[1])))
            clusters = k_means(key, z, sent.astype(jnp.float32), num_classes)
            return core.scored(named(clusters, known, sent, num_classes), sent)

        def cluster(x: Array, weights: Array) -> Array:
            return two_clusters(x, weights, scores == "absolute", heuristic == "minority")

        if whole:
            s = cluster(x, sent.astype(jnp.float32))
        else:
            by_batch = core.batches_at(view, core.place_of(view, epoch))
            parts = jax.vmap(cluster)(by_batch.gather(x), by_batch.sent.astype(jnp.float32))
            s = by_batch.scatter(parts, len(x))
        return core.scored(jnp.stack([-s, s], axis=-1), sent)

    batches = ("order",) if num_classes == 2 and not whole else ()
    return Attack(
        run,
        KINDS if signal in SIGNALS else (SPLIT,),
        knobs=core.KNOWN if num_classes > 2 and not oracle else {},
        baselines=("untrained",) if signal == "embeddings" and not oracle else (),
        oracle=oracle,
        reads=((signal,) if signal in SIGNALS else ()) + batches,
        diagnostic="" if signal in SIGNALS else signal,
        **core.reads_epoch(epoch),
    )


ROW = AttackRow(spectral, widest=core.WIDEST, not_for_numbers="")
