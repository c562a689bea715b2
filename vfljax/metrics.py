"""Metrics of class scores and labels, to be used inside compiled programs.

Unless said otherwise ``scores`` are float [n, C], the larger the likelier the class; ``labels`` are int
[n] in 0..C-1; and ``weights`` [n] are 0 or 1 and leave rows out, all of them 1 by default. The results
are scalars. scikit-learn is the tests' oracle.
"""

from __future__ import annotations

import chex
import jax
import jax.numpy as jnp
import optax

Array = jax.Array


def accuracy(scores: Array, labels: Array, weights: Array | None = None) -> Array:
    """The share of rows whose largest score is the label's; the first of equal ones counts."""
    return topk(scores, labels, 1, weights)


def topk(scores: Array, labels: Array, k: int, weights: Array | None = None) -> Array:
    """The share of rows whose label is among the ``k`` largest scores.

    Of equal scores the lower class comes first. A row without finite scores is wrong.
    """
    _check(scores, labels, weights)
    of_label = jnp.take_along_axis(scores, labels[:, None], axis=1)
    classes = jnp.arange(scores.shape[1])[None, :]
    ahead = (scores > of_label) | ((scores == of_label) & (classes < labels[:, None]))
    # NaN compares false with everything: a row without finite scores is wrong, not right
    hit = (jnp.sum(ahead, axis=1) < k) & jnp.all(jnp.isfinite(scores), axis=1)
    return _mean(hit.astype(jnp.float32), weights)


def balanced_accuracy(scores: Array, labels: Array, weights: Array | None = None) -> Array:
    """The mean, over the classes that some row has, of the accuracy within the class."""
    _check(scores, labels, weights)
    return _mean_recall(_guess(scores), labels, scores.shape[1], weights)


def f1(scores: Array, labels: Array, weights: Array | None = None) -> Array:
    """The F1 score of class 1 for two classes; for more, its mean over the classes that some row has.

    A row without finite scores predicts nothing: it is a miss for its class and a false positive for
    none. The score is 0 where the class is neither present nor predicted, as scikit-learn's.
    """
    _check(scores, labels, weights)
    classes = scores.shape[1]
    weights = _ones(labels, weights)
    members = jax.nn.one_hot(labels, classes) * weights[:, None]  # [n, C]
    guessed = jax.nn.one_hot(_guess(scores), classes)  # all zero without a guess
    count = members.sum(0)
    predicted = (guessed * weights[:, None]).sum(0)
    # 2 / (1 / precision + 1 / recall), without either's zero denominators
    value = 2 * (members * guessed).sum(0) / jnp.maximum(count + predicted, 1e-12)
    if classes == 2:
        return value[1]
    present = (count > 0).astype(jnp.float32)
    return jnp.sum(value * present) / jnp.maximum(present.sum(), 1.0)


def cross_entropy(logits: Array, labels: Array) -> Array:
    """The mean negative log likelihood of the labels under ``softmax(logits)``, in nats."""
    _check(logits, labels)
    log_p = jax.nn.log_softmax(logits)
    return -jnp.mean(jnp.take_along_axis(log_p, labels[:, None], axis=1))


def auc(
    scores: Array, labels: Array, weights: Array | None = None, turned: Array | bool = False
) -> Array:
    """The area under the ROC curve of ``scores`` [n] for ``labels`` [n] in {0, 1}, exact with ties.

    It is that of minus the scores where ``turned`` [] bool. It is NaN where one class is absent, as
    scikit-learn's since 1.9, and where a score is not finite; a row that is left out may hold anything. It is
    computed from ranks (Mann-Whitney), with counts in float32, which are exact up to 2**24 rows. What it
    sorts depends on the scores alone: the AUCs of one program share one sort, which is most of their cost.
    """
    _check(scores, labels, weights, rank=1)
    weights = _ones(labels, weights)
    positive = weights * (labels == 1)
    negative = weights * (labels != 1)
    finite = jnp.isfinite(scores)
    order, ordered = _in_order(scores)
    left, right = _run_of(ordered, order)
    below = jnp.concatenate([jnp.zeros(1), jnp.cumsum(negative[order])])
    wins = (below[left] + below[right]) / 2  # ties count half
    wins = jnp.where(jnp.asarray(turned), negative.sum() - wins, wins)
    pairs = positive.sum() * negative.sum()
    # divide before summing: pairs can exceed float32's whole numbers
    value = jnp.sum(positive * (wins / jnp.maximum(negative.sum(), 1))) / positive.sum()
    # a row left out may hold anything
    return jnp.where((pairs > 0) & jnp.all(finite | (weights == 0)), value, jnp.nan)


def leak(scores: Array, labels: Array, weights: Array | None = None) -> Array:
    """The one scale on which attacks are judged.

    For two classes it is the leak AUC: max(a, 1 - a), with a the AUC of s_1 - s_0. For more it is the
    balanced top-1 accuracy. Chance is 1/2 and 1/C. Rows without a guess (NaN) tie in the middle of the
    AUC, and are wrong in the accuracy.
    """
    _check(scores, labels, weights)
    if scores.shape[1] == 2:
        a = auc(_difference(scores), labels, weights)
        return jnp.maximum(a, 1 - a)
    return balanced_accuracy(scores, labels, weights)


def leak_turned(scores: Array, labels: Array, chosen: Array, reported: Array) -> Array:
    """``leak`` on some rows, in the direction that was better on others.

    For two classes the AUC on the rows of weight ``reported`` [n] is turned where the AUC on those of
    weight ``chosen`` [n] is below 1/2, so that the reported rows' labels do not choose the direction.
    For more classes there is no direction.
    """
    _check(scores, labels, chosen)
    _check(scores, labels, reported)
    if scores.shape[1] > 2:
        return balanced_accuracy(scores, labels, reported)
    difference = _difference(scores)
    a = auc(difference, labels, reported)
    return jnp.where(auc(difference, labels, chosen) < 0.5, 1 - a, a)


def leak_error(scores: Array, labels: Array, weights: Array | None = None) -> Array:
    """The standard deviation of ``leak`` over draws of the rows, a class each.

    Of two classes the variance is DeLong's (1988), var(V of class 1) / n_1 + var(V of class 0) / n_0 with V the
    share of the other class that a row is ahead of; NaN where one is absent. Of more it is that of C binomials,
    the sum over classes of p_c (1 - p_c) / n_c divided by C^2.
    """
    _check(scores, labels, weights)
    weights = _ones(labels, weights)
    if scores.shape[1] > 2:
        hit = (_guess(scores) == labels).astype(jnp.float32)
        members = jax.nn.one_hot(labels, scores.shape[1]) * weights[:, None]
        count = jnp.maximum(members.sum(0), 1e-12)
        recall = (members * hit[:, None]).sum(0) / count
        present = (members.sum(0) > 0).astype(jnp.float32)
        return jnp.sqrt(jnp.sum(present * recall * (1 - recall) / count)) / present.sum()
    order, ordered = _in_order(_difference(scores))
    left, right = _run_of(ordered, order)

    def variance(of: Array, others: Array) -> Array:
        below = jnp.concatenate([jnp.zeros(1), jnp.cumsum(others[order])])
        ahead = 0.5 * (below[left] + below[right]) / jnp.maximum(others.sum(), 1)
        mean = _mean(ahead, of)
        return _mean((ahead - mean) ** 2, of) / jnp.maximum(of.sum() - 1, 1)

    one, other = weights * (labels == 1), weights * (labels != 1)
    pairs = one.sum() * other.sum()
    return jnp.where(pairs > 0, jnp.sqrt(variance(one, other) + variance(other, one)), jnp.nan)


PREFERRED = 1e-5  # what an agreeing name counts for where several namings are right equally often


def names(scores: Array, labels: Array, weights: Array | None = None) -> Array:
    """The one-to-one naming of the scored classes, [C] int32, that the labels of these rows suggest.

    Entry c is the true class that column c of the scores stands for. It is the naming of the largest
    ``leak``: for two classes the direction in which the AUC is at least 1/2, for more the assignment of
    largest balanced accuracy (Hungarian algorithm). Where several are as good it changes as few names as
    it can; without rows it changes none.
    """
    _check(scores, labels, weights)
    classes = scores.shape[1]
    unchanged = jnp.arange(classes, dtype=jnp.int32)
    if classes == 2:
        turned = auc(_difference(scores), labels, weights) < 0.5
        return jnp.where(turned, unchanged[::-1], unchanged)
    called = jax.nn.one_hot(_guess(scores), classes)  # all zero without a guess
    members = jax.nn.one_hot(labels, classes)
    members = members if weights is None else members * weights[:, None]
    share = members / jnp.maximum(members.sum(0), 1.0)[None, :]
    # the default product keeps only some ten bits of each factor on accelerators
    recall = jnp.matmul(share.T, called, precision="highest")  # [class, column]
    gain = recall + PREFERRED * jnp.eye(classes)
    true, column = optax.assignment.hungarian_algorithm(-gain)
    return unchanged.at[column].set(true.astype(jnp.int32))


def leak_named(scores: Array, names: Array, labels: Array, weights: Array | None = None) -> Array:
    """``leak`` where the columns of the scores stand for the classes ``names`` [C] int32.

    For two classes the AUC is not turned: the names say which way the scores point. With names
    0, 1, ..., C - 1 and more than two classes it is ``leak``.
    """
    _check(scores, labels, weights)
    chex.assert_shape(names, scores.shape[1:])
    chex.assert_type(names, int)
    if scores.shape[1] == 2:
        return auc(_difference(scores), labels, weights, names[0] != 0)
    named = jnp.zeros_like(scores).at[:, names].set(scores)
    return balanced_accuracy(named, labels, weights)


def auc_by_batch(
    scores: Array, labels: Array, batch: Array, num_batches: int, weights: Array | None = None
) -> Array:
    """The ``auc`` of each batch's rows alone, [num_batches], by one sort for all of them.

    ``scores`` and ``labels`` are those of ``auc``. ``batch`` [n] int32 numbers each row's batch; rows of
    other numbers than 0..num_batches-1 are left out. It is NaN where a batch lacks a class or holds a
    score that is not finite.
    """
    _check(scores, labels, weights, rank=1)
    chex.assert_equal_shape([batch, labels])
    chex.assert_type(batch, int)
    weights = _ones(labels, weights)
    order, _ = _in_order(scores)
    order = order[jnp.argsort(batch[order])]  # stable: by score within a batch
    scores, labels, batch, weights = (x[order] for x in (scores, labels, batch, weights))
    finite = jnp.isfinite(scores) | (weights == 0)  # a row left out may hold anything
    scores = jnp.where(jnp.isfinite(scores), scores, 0.0)
    positive = weights * (labels == 1)
    negative = weights * (labels != 1)
    opens = _changes(batch)  # a batch
    below, before = _below(negative, opens | _changes(scores)), _earlier(negative, opens)

    def total(values: Array) -> Array:
        return jax.ops.segment_sum(values, batch, num_batches)

    positives, negatives = total(positive), total(negative)
    wins = (below - before) / jnp.maximum(negatives[batch], 1)
    value = total(positive * wins) / positives
    broken = total((~finite).astype(jnp.float32))
    return jnp.where((positives * negatives > 0) & (broken == 0), value, jnp.nan)


def leak_under(
    scores: Array, labels: Array, weights: Array | None = None, flip: bool = True
) -> Array:
    """``leak`` of the same scores under each of many label vectors, [R].

    ``labels`` [R, n] are, for a null band, permutations of the true ones. Without ``flip`` the AUC of two
    classes stays as it is, below 1/2 too. What depends on the scores alone is computed once; the rest is
    one product. For two classes, with c the rows' midranks as shares of all rows less 1/2, and P and N
    the sizes of the classes:

        AUC = 1/2 + (P + N) / (P N) * sum over rows of (label - P / (P + N)) c
    """
    chex.assert_rank([scores, labels], 2)
    chex.assert_shape(labels, (None, scores.shape[0]))
    chex.assert_type([scores, labels], [float, int])
    if weights is not None:
        chex.assert_shape(weights, scores.shape[:1])
    weights = jnp.ones(scores.shape[0], jnp.float32) if weights is None else weights
    if scores.shape[1] > 2:
        guess, classes = _guess(scores), scores.shape[1]
        return jax.vmap(lambda row: _mean_recall(guess, row, classes, weights))(labels)
    order, ordered = _in_order(_difference(scores))
    count = weights.sum()
    ranks = _below(weights[order], _changes(ordered)) / count - 0.5
    ranks = jnp.zeros_like(ranks).at[order].set(ranks)
    positive = (labels == 1).astype(jnp.float32)  # [R, n]
    # the default product keeps only some ten bits of each factor on accelerators
    positives = jnp.matmul(positive, weights, precision="highest")
    negatives = count - positives
    # ranks and labels both centered: the sum stays small whichever class is rare, and float32 exact
    centered = positive - (positives / count)[:, None]
    shared = jnp.matmul(centered, weights * ranks, precision="highest")
    a = 0.5 + shared / positives * (count / negatives)
    a = jnp.maximum(a, 1 - a) if flip else a
    return jnp.where(positives * negatives > 0, a, jnp.nan)


def _check(scores: Array, labels: Array, weights: Array | None = None, rank: int = 2) -> None:
    """Assert scores [n, C], or [n] of ``rank`` 1, labels [n] int and weights [n]."""
    chex.assert_rank([scores, labels], [rank, 1])
    chex.assert_equal_shape_prefix([scores, labels], 1)
    chex.assert_type([scores, labels], [float, int])
    if weights is not None:
        chex.assert_shape(weights, labels.shape)


def _ones(labels: Array, weights: Array | None) -> Array:
    return jnp.ones(labels.shape, jnp.float32) if weights is None else weights


def _guess(scores: Array) -> Array:
    """Each row's class of largest score [n], -1 without finite scores."""
    return jnp.where(jnp.all(jnp.isfinite(scores), axis=1), jnp.argmax(scores, axis=1), -1)


def _difference(scores: Array) -> Array:
    """s_1 - s_0 [n], 0 for a row without a guess."""
    difference = scores[:, 1] - scores[:, 0]
    return jnp.where(jnp.isfinite(difference), difference, 0.0)


def _mean_recall(guess: Array, labels: Array, classes: int, weights: Array | None) -> Array:
    weights = _ones(labels, weights)
    hit = (guess == labels).astype(jnp.float32)
    members = jax.nn.one_hot(labels, classes) * weights[:, None]  # [n, C]
    count = members.sum(0)
    recall = (members * hit[:, None]).sum(0) / jnp.maximum(count, 1e-12)
    present = (count > 0).astype(jnp.float32)
    return jnp.sum(recall * present) / jnp.maximum(present.sum(), 1.0)


def _changes(ordered: Array) -> Array:
    """Which of the sorted values [n] begin a run of equal ones, [n] bool."""
    return jnp.concatenate([jnp.ones(1, bool), ordered[1:] != ordered[:-1]])


def _in_order(scores: Array) -> tuple[Array, Array]:
    """What sorts scores [n], and the sorted ones; one that is not finite reads 0. Equal ones stay in turn."""
    scores = jnp.where(jnp.isfinite(scores), scores, 0.0)
    order = jnp.argsort(scores)
    return order, scores[order]


def _run_of(ordered: Array, order: Array) -> tuple[Array, Array]:
    """How many scores [n] are smaller than each, and how many are not larger, of what ``_in_order`` gives."""
    places, first = jnp.arange(len(order)), _changes(ordered)
    left = jax.lax.cummax(jnp.where(first, places, 0))
    last = jnp.roll(first, -1)
    right = jax.lax.cummin(jnp.where(last, places + 1, len(order)), reverse=True)
    each = jnp.zeros_like(order)
    return each.at[order].set(left), each.at[order].set(right)


def _earlier(mass: Array, first: Array) -> Array:
    """The mass [n] before each row's run; ``first`` [n] marks where runs begin."""
    places = jnp.arange(mass.shape[0])
    total = jnp.concatenate([jnp.zeros(1), jnp.cumsum(mass)])
    return total[jax.lax.cummax(jnp.where(first, places, 0))]


def _below(mass: Array, first: Array) -> Array:
    """The mass [n] before each row's run of ties, plus half of the mass in the run."""
    later = jnp.sum(mass) - _earlier(mass[::-1], jnp.roll(first, -1)[::-1])[::-1]
    return (_earlier(mass, first) + later) / 2


def _mean(values: Array, weights: Array | None) -> Array:
    if weights is None:
        return jnp.mean(values)
    return jnp.sum(values * weights) / jnp.maximum(jnp.sum(weights), 1e-12)
