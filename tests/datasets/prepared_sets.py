"""Small data sets of every kind, to be written in the prepared form."""

import numpy as np

from vfljax.datasets.core import Column, Dataset, Ragged, SourceColumn, Vocabulary

RNG = np.random.default_rng(0)
LABELS = np.arange(20, dtype=np.int32) % 2
OFFSETS = np.concatenate([[0], np.cumsum(RNG.integers(0, 4, 20))]).astype(np.int64)
SETS = {
    "table": Dataset(
        "mine",
        np.asfortranarray(RNG.normal(size=(20, 3)).astype(np.float32)),
        LABELS,
        2,
        columns=(Column("a"), Column("größe", "category", "\u2028x\n"), Column("c", "code", "", 9)),
        classes=("no", "yes"),
        notes=("one note",),
        sources=(SourceColumn("a", "number", 2), SourceColumn("b", "category", 0, 3, 1, "x")),
    ),
    "image": Dataset("pixels", RNG.integers(0, 255, (20, 4, 5, 3), np.uint8), LABELS, 3, "image"),
    "patches": Dataset(
        "bhi",
        RNG.integers(0, 255, (20, 2, 4, 4, 3), np.uint8),
        LABELS,
        2,
        "patches",
        groups=np.arange(20, dtype=np.int32) // 3,
    ),
    "text": Dataset(
        "reviews",
        Ragged(RNG.integers(0, 50, OFFSETS[-1], np.int32), OFFSETS),
        LABELS,
        2,
        "text",
        test=np.arange(20) >= 10,
        tokens=Vocabulary(50, 0, 1, 2),
        length=16,
    ),
}


def same(a, b):
    """Equal in every field, arrays by value and type."""
    for field, x, y in zip(Dataset._fields, a, b, strict=True):
        if isinstance(x, Ragged):
            assert isinstance(y, Ragged)
        elif not isinstance(x, np.ndarray):
            assert x == y, field
            continue
        for u, v in zip(*((z if isinstance(z, Ragged) else (z,)) for z in (x, y)), strict=True):
            assert u.dtype == v.dtype
            np.testing.assert_array_equal(u, v, err_msg=field)
