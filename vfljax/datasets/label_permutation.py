"""Permutes labels, as a control of what an attack reads: from the columns, or through the federation (ours).

If every label is permuted, the columns are independent of the labels. The local-only baseline is then at
chance, and any label that an attack still reads has reached the attacker through the federation.

If labels are permuted among rows of equal scores of the passive parties' columns, these columns predict the
labels as well as before, as far as the scores go, and nothing else does: neither finer structure of these
columns nor the label party's. What an attack then reads beyond the local-only baseline has reached the
attacker through the federation.

Labels are permuted before splits, training and attacks, which take the permuted labels for the true ones. A
permutation keeps the number of rows of each class, and it is the same for all seeds.

arXiv 2603.18680 reassigns labels to show what attacks owe to the alignment of columns and labels; we know its
abstract alone, and not its rule.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from vfljax.datasets.core import Dataset, PartyColumns
from vfljax.datasets.numbers import FOLDS, out_of_fold
from vfljax.datasets.strata import stratified
from vfljax.errors import UserError

SALT = 15485863


def permute_labels(dataset: Dataset, share: float, groups: np.ndarray | None = None) -> Dataset:
    """Permutes the labels of a random share of the rows among these rows.

    The published test part is permuted apart from the rest, so that each keeps its classes' counts. The rows
    of a smaller share are among those of a larger share. About one permuted row in C keeps its label by
    chance, and more do if some classes are more frequent than others.

    Args:
      dataset: of any kind.
      share: in [0, 1].
      groups: [R] whole numbers; labels are permuted within each. None: among all rows.

    Returns:
      The data set with other labels.
    """
    if share == 0:
        return dataset
    labels = np.array(dataset.labels)
    test = np.zeros(len(labels), bool) if dataset.test is None else dataset.test
    for number, part in enumerate((~test, test)):
        random = np.random.default_rng([SALT, number])
        rows = random.permutation(np.flatnonzero(part))
        chosen = rows[: round(share * len(rows))]
        drawn = random.permutation(chosen)
        if groups is not None:
            # the rows of a group, in their own order and in a random one
            chosen = chosen[np.argsort(groups[chosen], kind="stable")]
            drawn = drawn[np.argsort(groups[drawn], kind="stable")]
        labels[chosen] = labels[drawn]
    return dataset._replace(labels=labels)


def equal_scores(dataset: Dataset, columns: Sequence[PartyColumns], count: int) -> np.ndarray:
    """Returns groups [R] of rows whose columns predict the labels alike.

    The probabilities are those of a logistic regression on the rows of other folds (``numbers.out_of_fold``).
    The rows of each likeliest class are divided into ``count`` groups of equally many rows, in the order of
    that class's probability. Labels that are numbers are predicted by ridge regression, and all rows are
    divided in the order of the predicted numbers.

    Args:
      dataset: whose labels are read.
      columns: of the parties whose scores they are.
      count: groups a class.

    Raises:
      UserError: if a class has fewer rows than there are folds.
    """
    drawn = stratified(dataset)
    rarest = int(np.bincount(drawn.labels, minlength=drawn.num_classes).min())
    if rarest < FOLDS:
        what = f"needs {FOLDS} rows of each class, and the rarest has {rarest}"
        raise UserError(what, field="data.permute_groups", value=count, remedy="choose 0")
    chances = out_of_fold(columns, dataset.labels)
    likeliest, groups = chances.argmax(1), np.zeros(len(chances), int)
    for label in range(dataset.num_classes):
        rows = np.flatnonzero(likeliest == label)
        rows = rows[np.argsort(chances[rows, label], kind="stable")]
        groups[rows] = label * count + np.arange(len(rows)) * count // max(len(rows), 1)
    return groups
