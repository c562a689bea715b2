"""Jittable metrics on logits or scores [n, C] and labels [n]; scikit-learn is their test oracle."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from vfljax.types import Array


def accuracy(scores: Array, labels: Array, weights: Array | None = None) -> Array:
    """Weighted share of rows whose largest score (first on ties) is the label."""
    return topk(scores, labels, 1, weights)


def topk(scores: Array, labels: Array, k: int, weights: Array | None = None) -> Array:
    """Weighted share of rows whose label is among the k largest scores (ties: lower class first)."""
    own = jnp.take_along_axis(scores, labels[:, None], axis=1)
    classes = jnp.arange(scores.shape[1])[None, :]
    ahead = (scores > own) | ((scores == own) & (classes < labels[:, None]))
    # NaN compares false with everything: a row without finite scores is wrong, not right
    hit = (jnp.sum(ahead, axis=1) < k) & jnp.all(jnp.isfinite(scores), axis=1)
    return _mean(hit.astype(jnp.float32), weights)


def balanced_accuracy(scores: Array, labels: Array, weights: Array | None = None) -> Array:
    """Mean over the classes present of the accuracy within the class."""
    weights = jnp.ones(labels.shape, jnp.float32) if weights is None else weights
    finite = jnp.all(jnp.isfinite(scores), axis=1)
    hit = ((jnp.argmax(scores, axis=1) == labels) & finite).astype(jnp.float32)
    members = jax.nn.one_hot(labels, scores.shape[1]) * weights[:, None]  # [n, C]
    count = members.sum(0)
    recall = (members * hit[:, None]).sum(0) / jnp.maximum(count, 1e-12)
    present = (count > 0).astype(jnp.float32)
    return jnp.sum(recall * present) / jnp.maximum(present.sum(), 1.0)


def cross_entropy(logits: Array, labels: Array) -> Array:
    """Mean negative log likelihood of the labels."""
    log_p = jax.nn.log_softmax(logits)
    return -jnp.mean(jnp.take_along_axis(log_p, labels[:, None], axis=1))


def auc(scores: Array, labels: Array, weights: Array | None = None) -> Array:
    """Area under the ROC curve of ``scores`` [n] for ``labels`` [n] in {0, 1}; exact with ties.

    ``weights`` [n] in {0, 1} leaves rows out. NaN when one class is absent (as scikit-learn
    since 1.9). Mann-Whitney by ranks: counts in float32 are exact up to 2**24 rows.
    """
    weights = jnp.ones(labels.shape, jnp.float32) if weights is None else weights
    positive = weights * (labels == 1)
    negative = weights * (labels != 1)
    scores = jnp.where(weights > 0, scores, 0.0)  # a row left out may hold anything
    order = jnp.argsort(scores)
    ordered = scores[order]
    below = jnp.concatenate([jnp.zeros(1), jnp.cumsum(negative[order])])
    left = jnp.searchsorted(ordered, scores, side="left")
    right = jnp.searchsorted(ordered, scores, side="right")
    wins = (below[left] + below[right]) / 2  # ties count half
    pairs = positive.sum() * negative.sum()
    # divide before summing: pairs can exceed float32's whole numbers
    value = jnp.sum(positive * (wins / jnp.maximum(negative.sum(), 1))) / positive.sum()
    return jnp.where((pairs > 0) & jnp.all(jnp.isfinite(scores)), value, jnp.nan)


def leak(scores: Array, labels: Array, weights: Array | None = None) -> Array:
    """The one scale attacks are judged on: leak AUC max(a, 1-a) of s_1 - s_0 for two classes,
    balanced top-1 accuracy for more (chance: 1/2 and 1/C). Rows without a guess (NaN) tie in the
    middle of the AUC and are wrong in the accuracy."""
    if scores.shape[1] == 2:
        difference = scores[:, 1] - scores[:, 0]
        a = auc(jnp.where(jnp.isfinite(difference), difference, 0.0), labels, weights)
        return jnp.maximum(a, 1 - a)
    return balanced_accuracy(scores, labels, weights)


def _mean(values: Array, weights: Array | None) -> Array:
    if weights is None:
        return jnp.mean(values)
    return jnp.sum(values * weights) / jnp.maximum(jnp.sum(weights), 1e-12)
