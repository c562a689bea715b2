"""Metrics of scores and labels, to be used inside compiled programs.

``scores`` are float; a larger score means a likelier class. ``labels`` are int in 0..C-1. ``weights`` are 0
or 1, 1 by default, and rows of weight 0 are left out. The results are scalars unless their docstring gives a
shape. The tests compare them with scikit-learn's.
"""

from __future__ import annotations

import chex
import jax
import jax.numpy as jnp
import optax

Array = jax.Array
PREFERRED = 1e-5  # bonus of each unchanged name, which decides between equally good namings


def accuracy(scores: Array, labels: Array, weights: Array | None = None) -> Array:
    """The share of rows whose largest score is the label's; of equal scores the first counts.

    Args:
      scores, labels, weights: [n, C], [n] and [n].
    """
    return topk(scores, labels, 1, weights)


def topk(scores: Array, labels: Array, k: int, weights: Array | None = None) -> Array:
    """The share of rows whose label is among the ``k`` largest scores.

    Of equal scores the lower class comes first. A row with a score that is not finite is wrong.

    Args:
      scores, labels, weights: [n, C], [n] and [n].
      k: a whole number.
    """
    _check(scores, labels, weights)
    of_label = jnp.take_along_axis(scores, labels[:, None], axis=1)
    classes = jnp.arange(scores.shape[1])[None, :]
    ahead = (scores > of_label) | ((scores == of_label) & (classes < labels[:, None]))
    # NaN compares false with everything, so that without this condition a row of NaN would be right
    hit = (jnp.sum(ahead, axis=1) < k) & jnp.all(jnp.isfinite(scores), axis=1)
    return _mean(hit.astype(jnp.float32), weights)


def balanced_accuracy(scores: Array, labels: Array, weights: Array | None = None) -> Array:
    """The mean, over the classes that some row has, of the accuracy within the class.

    Args:
      scores, labels, weights: [n, C], [n] and [n].
    """
    weights = _check(scores, labels, weights)
    return _over_present(*_recall(_guess(scores), labels, scores.shape[1], weights))


def f1(scores: Array, labels: Array, weights: Array | None = None) -> Array:
    """The F1 score of class 1 for two classes; for more, its mean over the classes that some row has.

    A row with a score that is not finite predicts no class: it is a miss for its own class and a false
    positive for none. As in scikit-learn, the score of a class that is neither present nor predicted is 0.

    Args:
      scores, labels, weights: [n, C], [n] and [n].
    """
    weights = _check(scores, labels, weights)
    classes = scores.shape[1]
    members = jax.nn.one_hot(labels, classes) * weights[:, None]  # [n, C]
    guessed = jax.nn.one_hot(_guess(scores), classes)  # all zero without a guess
    count, predicted = members.sum(0), (guessed * weights[:, None]).sum(0)
    # 2 / (1 / precision + 1 / recall), without dividing by a precision or recall of 0
    value = 2 * (members * guessed).sum(0) / jnp.maximum(count + predicted, 1e-12)
    return value[1] if classes == 2 else _over_present(value, count)


def cross_entropy(logits: Array, labels: Array) -> Array:
    """The mean negative log likelihood of the labels under ``softmax(logits)``, in nats.

    Args:
      logits, labels: [n, C] and [n].
    """
    _check(logits, labels)
    return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], axis=1))


def auc(
    scores: Array, labels: Array, weights: Array | None = None, turned: Array | bool = False
) -> Array:
    """The area under the ROC curve of two classes, exact with ties.

    It is NaN if a class is absent, as in scikit-learn since 1.9, or if the score of a row that counts is not
    finite. It is computed from ranks (Mann-Whitney), whose float32 counts are exact up to 2**24 rows. Most of
    its cost is a sort that depends on the scores alone, so that AUCs of equal scores in a program share it.

    Args:
      scores, labels, weights: [n] each, the scores of class 1.
      turned: [] bool, whether the scores are negated.
    """
    weights = _check(scores, labels, weights, rank=1)
    positive, negative = weights * (labels == 1), weights * (labels != 1)
    wins = _ahead(ranked(scores), negative)
    wins = jnp.where(jnp.asarray(turned), negative.sum() - wins, wins)
    # divide before summing: the number of pairs can exceed 2**24, to which float32 counts exactly
    value = jnp.sum(positive * (wins / jnp.maximum(negative.sum(), 1))) / positive.sum()
    finite = jnp.all(jnp.isfinite(scores) | (weights == 0))
    return jnp.where((positive.sum() * negative.sum() > 0) & finite, value, jnp.nan)


def concordance(
    scores: Array, labels: Array, weights: Array | None = None, turned: Array | bool = False
) -> Array:
    """The share of pairs of rows with different labels whose order the scores name; equal scores count half.

    It is Harrell's C without censoring, and (D + 1) / 2 of Somers' D of the scores given the labels. For two
    label values it is ``auc``, to the bit. It is NaN if all labels are equal, or if the score of a row that
    counts is not finite. Counts are exact up to 2**24 rows. They take O(n log n): the rows below each row in
    label are those before a place of the order of labels, and a wavelet matrix (Claude, Navarro and Ordonez,
    "The wavelet matrix", Information Systems 2015) counts which of these have smaller scores.

    Args:
      scores, labels, weights: [n] each; labels are float.
      turned: [] bool, whether the scores are negated.
    """
    chex.assert_rank([scores, labels], 1)
    chex.assert_equal_shape([scores, labels])
    chex.assert_type([scores, labels], float)
    weights = jnp.ones(labels.shape, jnp.float32) if weights is None else weights
    # rows of weight 0 come after all others, so that they are below none
    keys = sortable(jnp.where(weights > 0, labels, jnp.inf))
    order = jnp.argsort(keys)
    below = jnp.searchsorted(keys[order], keys, side="left").astype(jnp.int32)
    below = jnp.where(weights > 0, below, 0)
    _, smaller, until = ranked(scores)
    counts = _smaller_before(smaller[order], below, jnp.stack([smaller, until]))
    wins = (counts[0] + counts[1]) / 2
    wins = jnp.where(jnp.asarray(turned), below - wins, wins)
    most = jnp.maximum(jnp.max(below), 1).astype(
        jnp.float32
    )  # divided by before summing, as in ``auc``
    value = jnp.sum(weights * (wins / most)) / jnp.sum(weights * (below / most))
    finite = jnp.all(jnp.isfinite(scores) | (weights == 0))
    value = jnp.where((jnp.max(below) > 0) & finite, value, jnp.nan)
    high = jnp.max(jnp.where(weights > 0, labels, -jnp.inf))
    low = jnp.min(jnp.where(weights > 0, labels, jnp.inf))
    two = jnp.all((weights == 0) | (labels == low) | (labels == high))
    # sums in another order are rounded differently
    return jnp.where(two, auc(scores, (labels == high).astype(jnp.int32), weights, turned), value)


def _smaller_before(values: Array, ends: Array, limits: Array) -> Array:
    """How many of the first ``ends`` [n] of the whole numbers ``values`` [n], from 0 to n, are smaller than
    ``limits`` [k, n], as float32 [k, n]."""
    bits = len(values).bit_length()

    def level(number: Array, carry: tuple[Array, Array, Array, Array]) -> tuple[Array, ...]:
        values, starts, ends, counts = carry
        shift = bits - 1 - number
        ones = (values >> shift) & 1
        before = jnp.concatenate([jnp.zeros(1, jnp.int32), jnp.cumsum(1 - ones)])  # zeros before
        zeros = before[-1]
        places = jnp.arange(len(values))
        # a stable partition by the bit, zeros first
        to = jnp.where(ones == 1, zeros + places - before[:-1], before[:-1])
        values = jnp.zeros_like(values).at[to].set(values)
        low, high = before[starts], before[ends]
        up = ((limits >> shift) & 1) == 1
        counts = counts + jnp.where(up, high - low, 0)
        starts, ends = (
            jnp.where(up, zeros + at - of, of) for at, of in ((starts, low), (ends, high))
        )
        return values, starts, ends, counts

    ends = jnp.broadcast_to(ends, limits.shape)
    carry = values.astype(jnp.int32), jnp.zeros_like(ends), ends, jnp.zeros_like(ends)
    return jax.lax.fori_loop(0, bits, level, carry)[3].astype(jnp.float32)


def names(scores: Array, labels: Array, weights: Array | None = None) -> Array:
    """The one-to-one naming of the columns of the scores, [C] int32, that fits the labels of these rows best.

    Entry c is the true class that column c of the scores stands for. This is the naming of the largest
    ``leak``: for two classes the direction in which the AUC is at least 1/2, for more the assignment of
    largest balanced accuracy (Hungarian algorithm). Of equally good namings it is the one that changes the
    fewest names; without rows it changes none.

    Args:
      scores, labels, weights: [n, C], [n] and [n].
    """
    weights = _check(scores, labels, weights)
    classes = scores.shape[1]
    unchanged = jnp.arange(classes, dtype=jnp.int32)
    if classes == 2:
        a = auc(difference(scores), labels, weights)
        return jnp.where(a < 0.5, unchanged[::-1], unchanged)
    called = jax.nn.one_hot(_guess(scores), classes)  # all zero without a guess
    members = jax.nn.one_hot(labels, classes) * weights[:, None]
    share = members / jnp.maximum(members.sum(0), 1.0)[None, :]
    # the default product keeps only some ten bits of each factor on accelerators
    recall = jnp.matmul(share.T, called, precision="highest")  # [class, column]
    true, column = optax.assignment.hungarian_algorithm(-recall - PREFERRED * jnp.eye(classes))
    return unchanged.at[column].set(true.astype(jnp.int32))


def leak(scores: Array, names: Array, labels: Array, weights: Array | None = None) -> Array:
    """The scale on which attacks on classes are judged: scores whose columns stand for classes by ``names``.

    For two classes it is the AUC of s_1 - s_0 in the direction that the names give, so that a wrong direction
    reads less than 1/2. For more it is the balanced top-1 accuracy. Chance is 1/2 and 1/C. A row without a
    guess (NaN) counts as s_1 - s_0 = 0 in the AUC, and as wrong in the accuracy.

    Args:
      scores, labels, weights: [n, C], [n] and [n].
      names: [C] int32, the class that each column stands for; 0, 1, ..., C - 1 changes nothing.
    """
    _check(scores, labels, weights)
    chex.assert_shape(names, scores.shape[1:])
    chex.assert_type(names, int)
    if scores.shape[1] == 2:
        return auc(difference(scores), labels, weights, names[0] != 0)
    named = jnp.zeros_like(scores).at[:, names].set(scores)
    return balanced_accuracy(named, labels, weights)


def _check(scores: Array, labels: Array, weights: Array | None = None, rank: int = 2) -> Array:
    """Asserts float scores [n, C], or [n] for ``rank`` 1, and int labels [n]; returns the weights [n]."""
    chex.assert_rank([scores, labels], [rank, 1])
    chex.assert_equal_shape_prefix([scores, labels], 1)
    chex.assert_type([scores, labels], [float, int])
    weights = jnp.ones(labels.shape, jnp.float32) if weights is None else weights
    chex.assert_shape(weights, labels.shape)
    return weights


def _guess(scores: Array) -> Array:
    """Each row's class of largest score [n]; -1 for a row with a score that is not finite."""
    return jnp.where(jnp.all(jnp.isfinite(scores), axis=1), jnp.argmax(scores, axis=1), -1)


def difference(scores: Array) -> Array:
    """s_1 - s_0 [n], or 0 where that is not finite."""
    difference = scores[:, 1] - scores[:, 0]
    return jnp.where(jnp.isfinite(difference), difference, 0.0)


def _recall(guess: Array, labels: Array, classes: int, weights: Array) -> tuple[Array, Array]:
    """The accuracy within each class, and the number of its rows, both [C]."""
    members = jax.nn.one_hot(labels, classes) * weights[:, None]  # [n, C]
    count = members.sum(0)
    hit = (guess == labels).astype(jnp.float32)
    return (members * hit[:, None]).sum(0) / jnp.maximum(count, 1e-12), count


def _over_present(values: Array, count: Array) -> Array:
    """The mean of values [C] over the classes whose ``count`` [C] is positive."""
    present = (count > 0).astype(jnp.float32)
    return jnp.sum(values * present) / jnp.maximum(present.sum(), 1.0)


def _changes(ordered: Array) -> Array:
    """Whether each of the sorted values [n] begins a run of equal values, [n] bool."""
    return jnp.concatenate([jnp.ones(1, bool), ordered[1:] != ordered[:-1]])


def sortable(x: Array) -> Array:
    """int32 in the order of float32 x, 0 and -0 as equal: on CPU, XLA sorts them in a fifth of the time."""
    return _turned(jax.lax.bitcast_convert_type(jnp.where(x == 0, 0.0, x), jnp.int32))


def from_sortable(bits: Array) -> Array:
    """The inverse of ``sortable``."""
    return jax.lax.bitcast_convert_type(_turned(bits), jnp.float32)


def _turned(bits: Array) -> Array:
    """The bits of float32 as integers in the numbers' order, or the other way round."""
    return jnp.where(bits < 0, bits ^ 0x7FFFFFFF, bits)


def ranked(scores: Array) -> tuple[Array, Array, Array]:
    """Of scores [n], of which NaN is 0: where the run of equal scores begins at each place of their sorted
    order, and for each score how many are smaller, and how many are not larger.

    The order itself is not computed: on CPU, sorting places beside the scores takes ten times as long.
    """
    numbers = sortable(jnp.where(jnp.isfinite(scores), scores, 0.0))
    ordered = jnp.sort(numbers)
    below, until = (jnp.searchsorted(ordered, numbers, side=side) for side in ("left", "right"))
    places = jnp.arange(len(ordered))
    return jax.lax.cummax(jnp.where(_changes(ordered), places, 0)), below, until


def cumulated(ranks: tuple[Array, Array, Array], mass: Array) -> Array:
    """The sums [..., n + 1] of ``mass`` [..., n] over the rows that lie below each place of the sorted order,
    right at the places where runs of equal scores begin and end; ``ranks`` is of ``ranked``."""
    _, below, _ = ranks
    sums = jnp.cumsum(jnp.zeros_like(mass).at[..., below].add(mass), axis=-1)
    return jnp.concatenate([jnp.zeros((*mass.shape[:-1], 1)), sums], axis=-1)


def _ahead(ranks: tuple[Array, Array, Array], mass: Array) -> Array:
    """The sum of ``mass`` over the rows that each row ranks above, [n], given ``ranked``; ties count half."""
    _, left, right = ranks
    below = cumulated(ranks, mass)
    return (below[left] + below[right]) / 2


def _mean(values: Array, weights: Array | None) -> Array:
    if weights is None:
        return jnp.mean(values)
    return jnp.sum(values * weights) / jnp.maximum(jnp.sum(weights), 1e-12)
