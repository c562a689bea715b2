"""Small files in the published forms of Criteo and Avazu, made by the tests themselves."""

import numpy as np

from vfljax.datasets.converters.avazu import FIELDS
from vfljax.datasets.converters.criteo import CATEGORIES, NUMBERS


def criteo_rows(count, seed=0, values=40):
    """Rows of text as the set's: label, 13 integers (some negative, some missing), 26 categories."""
    rng = np.random.default_rng(seed)
    rows = []
    for r in range(count):
        numbers = ["" if rng.random() < 0.3 else str(rng.integers(-2, 3000)) for _ in NUMBERS]
        words = [
            "" if rng.random() < 0.1 else f"{rng.integers(values) * 2654435761 % 2**32:08x}"
            for _ in CATEGORIES
        ]
        rows.append([str(int(r == 0 or rng.random() < 0.3)), *numbers, *words])
    rows[-1][0] = "0"
    return rows


def tsv(rows):
    return "".join("\t".join(row) + "\n" for row in rows).encode()


def csv(rows, header=("Id", "Label", *NUMBERS, *CATEGORIES)):
    lines = [",".join(header), *(",".join([str(10**7 + i), *row]) for i, row in enumerate(rows))]
    return "".join(line + "\n" for line in lines).encode()


def avazu_rows(count, seed=0):
    """Rows of text as the set's: click, hour, 21 further categories, some missing."""
    rng = np.random.default_rng(seed)
    rows = []
    for r in range(count):
        hour = f"1410{rng.integers(21, 31)}{rng.integers(24):02d}"
        words = [f"{rng.integers(30) * 2654435761 % 2**32:08x}" for _ in FIELDS[1:]]
        words[5] = "" if r % 3 else words[5]
        rows.append([str(int(r == 0 or rng.random() < 0.2)), hour, *words])
    rows[-1][0] = "0"
    return rows


def avazu_csv(rows):
    return csv(rows, ("id", "click", *FIELDS))
