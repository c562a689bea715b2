"""Rows that an attack reads with certainty: figures of membership inference, which means over all rows hide."""

import jax
import jax.numpy as jnp

from vfljax import metrics
from vfljax.store.attacks import SHARES
from vfljax.types import Array

RATES = {"tpr_at_1e-3": 0, "tpr_at_1e-2": 8, "tpr_at_1e-1": 16}  # columns, and places in ``SHARES``
LEAST, FEWEST, WRONG = 10, 100, 0.01  # rows beyond a threshold, rows read, and of these wrongly


def certainty(scores: Array, labels: Array, parts: list[tuple]) -> dict[str, Array]:
    """Returns figures of the rows of which an attack is most certain, the mean over parts of the rows.

    Two classes: ``roc`` [25], the true positive rates of class 1 at the false positive rates ``SHARES``, and
    ``RATES`` of it; ``recall`` [2] where as many rows are named 1 as there are, as leak AUC too is of ranks.
    More: ``precision`` [25] of the ``SHARES`` of the rows whose largest score most exceeds the second (an ROC
    needs scores that compare between classes); ``read_99``, the largest share, of at least 100 rows, of
    precision .99; ``recall`` [C], NaN of an absent class. Curves are lines between equal scores, and NaN where
    fewer than 10 rows of class 0, or of all, are beyond the thresholds. ``right`` [n]: 1 of a row that is named
    rightly, NaN of one without weight.

    Args:
      scores, labels: [n, C] and [n].
      parts: weights [n], and whether class 1 is read where class 0 scores most []; one of more classes.
    """
    two, classes, first = scores.shape[1] == 2, scores.shape[1], jnp.argmax(scores, axis=1)
    second = jnp.max(jnp.where(jax.nn.one_hot(first, classes) > 0, -jnp.inf, scores), axis=1)
    apart = jnp.max(scores, axis=1) - second
    apart = jnp.where(jnp.isfinite(apart), apart, -1.0)
    right = labels == 1 if two else (apart >= 0) & (first == labels)
    order, low, high = metrics.ranked(metrics.difference(scores) if two else apart)
    curve = beyond = scored = named = jnp.zeros(())
    for weights, backward in parts:
        below = jnp.stack([weights * ~right, weights * right])
        below = jnp.pad(jnp.cumsum(below[:, order], axis=1), ((0, 0), (1, 0)))
        above = (below[:, -1:] - below[:, low[order]])[:, ::-1]
        until = jnp.where(backward, below[:, high[order]], above)  # each run of equal rows ends
        misses, hits = jnp.pad(until, ((0, 0), (1, 0)))
        steps = misses if two else misses + hits
        places = jnp.floor((1 + 1e-6) * SHARES * steps[-1])  # float32 rounds
        reached = jnp.interp(places, steps, hits) / (hits[-1] if two else places)
        curve, beyond = curve + reached / len(parts), beyond + places
        ahead = jnp.sum(below[:, low] + below[:, high], axis=0) / 2
        ahead = jnp.where(backward, misses[-1] + hits[-1] - ahead, ahead)
        named += weights * ((ahead > misses[-1]) == right if two else right)
        scored += weights
    curve = jnp.where(beyond >= LEAST, jnp.minimum(curve, 1.0), jnp.nan)
    members = jax.nn.one_hot(labels, classes)
    recall = {"recall": named @ members / (scored @ members), "right": named / scored}
    if two:
        return {"roc": curve, **{name: curve[at] for name, at in RATES.items()}, **recall}
    enough = (steps >= FEWEST) & (misses <= WRONG * steps + 1e-3)
    read = jnp.where(steps[-1] >= FEWEST, jnp.max(jnp.where(enough, steps, 0.0)), jnp.nan)
    return {"precision": curve, "read_99": read / steps[-1], **recall}
