"""Permutes the labels of a share of the rows: a control in which there is nothing to learn (ours).

If every label is permuted, the columns are independent of the labels. The local-only baseline is then at
chance, and any label that an attack still reads has reached the attacker through the federation. Labels are
permuted before splits, training and attacks, which take the permuted labels for the true ones. A permutation
keeps the number of rows of each class, and it is the same for all seeds.
"""

from __future__ import annotations

import numpy as np

from vfljax.datasets.core import Dataset

SALT = 15485863


def permute_labels(dataset: Dataset, share: float) -> Dataset:
    """Permutes the labels of a random share of the rows among these rows.

    The published test part is permuted apart from the rest, so that each keeps its classes' counts. The rows
    of a smaller share are among those of a larger share. About one permuted row in C keeps its label by
    chance, and more do if some classes are more frequent than others.

    Args:
      dataset: of any kind.
      share: in [0, 1].

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
        labels[chosen] = labels[random.permutation(chosen)]
    return dataset._replace(labels=labels)
