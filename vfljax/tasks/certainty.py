"""Figures of an attack's most certain rows, as in membership inference: averages over all rows hide them."""

import jax
import jax.numpy as jnp
import numpy as np

from vfljax import metrics
from vfljax.types import Array

CURVE_SHARES = np.logspace(-3, 0, 25)  # the shares at which curves are stored
RATES = {
    "tpr_at_1e-3": 0,
    "tpr_at_1e-2": 8,
    "tpr_at_1e-1": 16,
}  # column -> place in ``CURVE_SHARES``
LEAST, FEWEST, WRONG = 10, 100, 0.01  # least rows beyond thresholds, least read rows, wrong share


def certainty(
    scores: Array, labels: Array, weights: Array, positive: Array | int = 1
) -> dict[str, Array]:
    """Returns figures of the rows of which an attack is most certain.

    Two classes: ``roc`` [25], the true positive rates of the positive class at the false positive rates
    ``CURVE_SHARES``, and its values at ``RATES``; ``recall`` [2] if the highest ranks are named positive, as
    many as are of that class. More classes: ``precision`` [25] within the shares ``CURVE_SHARES`` of rows whose
    first score exceeds the second the most (an ROC needs scores that compare between classes); ``read_99``, the
    largest share, of at least 100 rows, with precision .99; ``recall`` [C], NaN for an absent class. Within
    runs of equal scores, curves are interpolated; where fewer than 10 rows (of the other class, if there are
    two) are beyond a threshold, they are NaN. ``right`` [n] is 1 for a row that is named rightly, else 0, and
    NaN for a row without weight.

    Args:
      scores, labels, weights: [n, C], [n] and [n].
      positive: [] of two classes, the positive one.
    """
    two, classes, first = scores.shape[1] == 2, scores.shape[1], jnp.argmax(scores, axis=1)
    second = jnp.max(jnp.where(jax.nn.one_hot(first, classes) > 0, -jnp.inf, scores), axis=1)
    apart = jnp.max(scores, axis=1) - second
    apart = jnp.where(jnp.isfinite(apart), apart, -1.0)
    right = labels == positive if two else (apart >= 0) & (first == labels)
    toward = jnp.where(jnp.asarray(positive) == 1, 1.0, -1.0) * metrics.difference(scores)
    ranks = starts, low, high = metrics.ranked(toward if two else apart)
    below = metrics.cumulated(ranks, jnp.stack([weights * ~right, weights * right]))
    until = (below[:, -1:] - below[:, starts])[:, ::-1]  # at the end of a run of ties
    misses, hits = jnp.pad(until, ((0, 0), (1, 0)))
    steps = misses if two else misses + hits
    places = jnp.floor((1 + 1e-6) * CURVE_SHARES * steps[-1])  # 1e-6: float32 may round down
    reached = jnp.interp(places, steps, hits) / (hits[-1] if two else places)
    curve = jnp.where(places >= LEAST, jnp.minimum(reached, 1.0), jnp.nan)
    ahead = jnp.sum(below[:, low] + below[:, high], axis=0) / 2
    named = weights * ((ahead > misses[-1]) == right if two else right)
    members = jax.nn.one_hot(labels, classes)
    recall = {"recall": named @ members / (weights @ members), "right": named / weights}
    if two:
        return {"roc": curve, **{name: curve[at] for name, at in RATES.items()}, **recall}
    enough = (steps >= FEWEST) & (misses <= WRONG * steps + 1e-3)
    read = jnp.where(steps[-1] >= FEWEST, jnp.max(jnp.where(enough, steps, 0.0)), jnp.nan)
    return {"precision": curve, "read_99": read / steps[-1], **recall}
