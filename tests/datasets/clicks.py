"""Small files in the published forms of Criteo and Avazu, made by the tests themselves."""

import gzip
import zlib
from typing import Any, NamedTuple

import numpy as np

from vfljax.datasets import avazu, criteo, ctr_forms
from vfljax.datasets.avazu import FIELDS
from vfljax.datasets.criteo import CATEGORIES, NUMBERS


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
    """Rows of text as the set's: click, hour, 21 further categories."""
    rng = np.random.default_rng(seed)
    rows = []
    for r in range(count):
        hour = f"1410{rng.integers(21, 31)}{rng.integers(24):02d}"
        words = [f"{rng.integers(30) * 2654435761 % 2**32:08x}" for _ in FIELDS[1:]]
        rows.append([str(int(r == 0 or rng.random() < 0.2)), hour, *words])
    rows[-1][0] = "0"
    return rows


def avazu_csv(rows):
    return csv(rows, ("id", "click", *FIELDS))


def zipped(data):
    return gzip.compress(data, mtime=0)


def coded(name, text, buckets):
    """A category's code by hash."""
    return 1 + zlib.crc32(f"{name}={text}".encode()) % (buckets - 1) if text else 0


def unique(rows, first=1):
    """Categories from column ``first`` on, as places in sorted order."""
    words = [sorted({row[j] for row in rows}) for j in range(first, len(rows[0]))]
    return [[w.index(text) for w, text in zip(words, row[first:], strict=True)] for row in rows]


class Set(NamedTuple):
    """One of the two, small."""

    module: Any
    load: Any
    rows: list
    files: dict  # name -> bytes, all of the same rows
    forms: tuple  # options

    def stream(self, path, size, **options):
        return ctr_forms.stream(self.module.planned(path, **options), size)


CRITEO_ROWS, AVAZU_ROWS = criteo_rows(60), avazu_rows(60)
SETS = {
    "criteo": Set(
        criteo,
        criteo.criteo,
        CRITEO_ROWS,
        {
            "train.txt": tsv(CRITEO_ROWS),
            "head.txt.gz": zipped(tsv(CRITEO_ROWS)),
            "train.csv": csv(CRITEO_ROWS),
            "spread.csv.gz": zipped(csv(CRITEO_ROWS).replace(b"\n", b"\r\n")),
        },
        (
            {},
            {"numbers": "raw"},
            {"form": "unique"},
            {"form": "hashed", "buckets": 256},
            {"form": "frequent"},
            {"form": "unique", "positive_ratio": 0.5},
            {"form": "hashed", "buckets": 256, "crosses": True, "counts": True, "balanced": True},
        ),
    ),
    "avazu": Set(
        avazu,
        avazu.avazu,
        AVAZU_ROWS,
        {"train.csv": avazu_csv(AVAZU_ROWS), "train.csv.gz": zipped(avazu_csv(AVAZU_ROWS))},
        ({}, {"form": "unique"}, {"hour": "parts"}, {"form": "unique", "hour": "parts"}),
    ),
}
