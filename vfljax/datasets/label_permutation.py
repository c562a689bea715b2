"""Labels permuted over a share of the rows: the control for what columns tell of labels (ours).

Where every label is permuted, columns tell nothing of it. Staying away is at chance then, and what an
attack still reads has reached the attacker through the federation. Labels are permuted in the data, before
anybody splits, trains or attacks: the permuted ones are the true ones of everything that follows, and
attacks are scored against what the federation was trained on.

A permutation keeps the number of rows of each class. It belongs to the data and not to a seed, as the
labels do: seeds differ in their splits and initial weights.
"""

from __future__ import annotations

import numpy as np

from vfljax.datasets.core import Dataset

SALT = 15485863


def permute_labels(dataset: Dataset, share: float) -> Dataset:
    """The data set with the labels of a random ``share`` of its rows permuted among these rows.

    The published test part is permuted apart from the rest, so that each keeps its classes' counts. The rows
    of a smaller share are among those of a larger one. About one row in C keeps its label by chance,
    more where a class is frequent.

    | share | labels                                         |
    |-------|------------------------------------------------|
    | 0     | the data set itself                            |
    | 1     | independent of the columns, up to their counts |
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
