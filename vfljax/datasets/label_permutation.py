"""Labels permuted over a share of the rows: a control without anything to learn (ours).

If every label is permuted, the columns are independent of the labels. The local-only baseline is then at
chance, and what an attack still reads has reached the attacker through the federation. Labels are permuted in
the data, before splits, training and attacks: the permuted labels are the true ones of what follows. A
permutation keeps the number of rows of each class. It belongs to the data and not to a seed, as labels do.
"""

from __future__ import annotations

import numpy as np

from vfljax.datasets.core import Dataset

SALT = 15485863


def permute_labels(dataset: Dataset, share: float) -> Dataset:
    """Permutes the labels of a random share of the rows among these rows.

    The published test part is permuted apart from the rest, so that each keeps its classes' counts. The rows
    of a smaller share are among those of a larger one. About one row in C keeps its label by chance,
    more where a class is frequent.

    Args:
      dataset: of any kind.
      share: in [0, 1].

    Returns:
      The data set with other labels.
    """
    if not 0 <= share <= 1:
        raise ValueError(f"share={share}: choose one in [0, 1]")
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
