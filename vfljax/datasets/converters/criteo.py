"""Criteo display advertising (Kaggle 2014): 45.8 million rows, 13 integers, 26 categories, 1 = click.

It is read from ``train.txt`` (tab-separated, no header: label, I1-I13, C1-C26) or from a CSV with the header
``Id,Label,I1,...,C26``, plain or gzip. There is no published test part (Kaggle's has no labels). The forms:

    codes   [R, 39] float32: 13 numbers and 26 hashed codes, 0..buckets - 1 in each column
    unique  likewise, with a code for each distinct value of the rows read, in sorted order; the missing
            (empty) value has one too: Sun et al. 2022, Appendix. They scale numbers linearly to [0, 1]
            over all rows: ``numbers="raw"``, ``scaling="minmax"``, ``scaling_rows="all"``
    frequent  [R, 39] int32: GAFM, Appendix E.1, by the code that it names (torchfm). Integers become
            words (above 2: floor(ln(x)^2), else x - 2; "NULL" if missing). In each field, a word of at
            least 10 rows has its own code, in sorted order; all other words share the last code
    hashed  [R, buckets] uint8: Fu et al. 2022, with 8,192 buckets. Each of a row's 39 texts ``field=value``
            is hashed to a bucket, and a feature is 1 if its bucket was hit. Parties own the first and the
            last buckets. Their released file has the number of hits (``counts``), hashes the 741 pairs
            too, by the XORs of their hashes (``crosses``), and keeps the first 100,000 rows (``rows``) whose
            label differs from the last kept row's (``balanced``: labels are 0, 1, 0, 1, ...). Their hash is
            Python's own, which each process seeds anew. Ours is ``clicks.crc``, so the columns are other ones
            with the same distribution.

Sun et al. 2022 give all columns to one party. Get it from Criteo AI Lab or Kaggle
(criteo-display-ad-challenge).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator

import numpy as np

from vfljax.datasets.converters import clicks
from vfljax.datasets.converters.clicks import ClickFile
from vfljax.datasets.core import Block, Column, Conversion
from vfljax.datasets.options import limited
from vfljax.errors import UserError

NUMBERS = tuple(f"I{j}" for j in range(1, 14))
CATEGORIES = tuple(f"C{j}" for j in range(1, 27))
SOURCE = "the folder or file of Criteo's train.txt (2014) or Kaggle's CSV form of it"
LEAST = 10  # a frequent word occurs in at least so many rows
CELLS = 1 << 22  # the most features, rows times buckets, of a block of the form "hashed"


@limited(
    form=("codes", "unique", "frequent", "hashed"),
    buckets=(2, clicks.MAX_BUCKETS),
    numbers=("log", "raw"),
)
def criteo(
    folder: str,
    *,
    form: str = "codes",
    buckets: int = 10_000,
    numbers: str = "log",
    crosses: bool = False,
    counts: bool = False,
    rows: int = 0,
    balanced: bool = False,
    positive_ratio: float = 0.0,
    file: str = "",
) -> Conversion:
    """Reads Criteo.

    Args:
      folder: the file, or the folder that holds it.
      form: one of the forms above.
      buckets: number of buckets of a hash, of "codes" and "hashed".
      numbers: "log", sign(x) log(1 + |x|), or "raw", of "codes" and "unique"; missing numbers are 0.
      crosses, counts: of form "hashed", as described above.
      rows: the first rows are read; 0 reads all.
      balanced: rows that repeat the last kept row's label are left out before rows are counted.
      positive_ratio: a random sample of the rows of label 0, of a fixed seed, is left out, so that this share
        of the remaining rows are clicks; 0 leaves none out (Sun et al. 2022, Appendix G).
      file: the file's name, if the folder holds several.
    """
    if (crosses or counts) and form != "hashed":
        what = "has no crosses and no counts"
        remedy = "leave them out, or give form='hashed'"
        raise UserError(what, field="data.options.form", value=form, remedy=remedy)
    if crosses and buckets & (buckets - 1):
        remedy = "give a power of two, below which XORs of hashes stay"
        raise UserError(field="data.options.buckets", value=buckets, remedy=remedy)
    path = clicks.path_of(folder, SOURCE, file)
    source = ClickFile(path, "Label", (*NUMBERS, *CATEGORIES), rows, balanced)
    if positive_ratio:
        source = clicks.keep_positive_ratio(source, positive_ratio)
    if form == "hashed":
        blocks = _hashed(source, buckets, crosses, counts)
        return Conversion("criteo", 2, blocks, {"classes": clicks.CLASSES})
    if form == "frequent":
        words = {**dict.fromkeys(NUMBERS, word), **dict.fromkeys(CATEGORIES, str)}
        encoders, dtype = clicks.sorted_codes(source, words, LEAST), np.int32
    else:
        scale = functools.partial(_scaled, numbers)
        codes = (
            clicks.hashed_codes(CATEGORIES, buckets)
            if form == "codes"
            else clicks.sorted_codes(source, dict.fromkeys(CATEGORIES, str))
        )
        encoders, dtype = {**{Column(name): scale for name in NUMBERS}, **codes}, np.float32
    about = {"columns": tuple(encoders), "classes": clicks.CLASSES}
    return Conversion("criteo", 2, clicks.blocks(source, encoders, dtype), about)


def word(value: str) -> str:
    """Returns the word that form "frequent" makes of an integer.

    >>> [word(value) for value in ("", "-1", "2", "3", "1000")]
    ['NULL', '-3', '0', '1', '47']
    """
    if not value:
        return "NULL"
    number = int(value)
    return str(int(math.log(number) ** 2)) if number > 2 else str(number - 2)


def _scaled(numbers: str, values: list[str]) -> np.ndarray:
    x = np.array([int(value or 0) for value in values], np.float64)
    return np.sign(x) * np.log1p(np.abs(x)) if numbers == "log" else x


def _hashed(source: ClickFile, buckets: int, crosses: bool, counts: bool) -> Iterator[Block]:
    """Yields features [r, buckets] uint8: 1 for each bucket that the hash of a field (with ``crosses`` also the
    XOR of two hashes) falls into, or with ``counts`` the number of hits, at most 255."""

    def bucket(field: str, values: list[str]) -> np.ndarray:
        return clicks.crc(field, values) % buckets

    encoders = {Column(f): functools.partial(bucket, f) for f in source.fields}
    pairs = np.triu_indices(len(source.fields), 1)
    step = max(1, CELLS // buckets)
    for hashes, labels, *_ in clicks.blocks(source, encoders, np.int64):
        for first in range(0, len(hashes), step):
            hits = hashes[first : first + step]
            if crosses:
                hits = np.concatenate([hits, hits[:, pairs[0]] ^ hits[:, pairs[1]]], axis=1)
            cells = hits + np.arange(len(hits))[:, None] * buckets
            features = np.bincount(cells.ravel(), minlength=len(hits) * buckets)
            features = np.minimum(features, 255 if counts else 1).astype(np.uint8)
            yield Block(features.reshape(-1, buckets), labels[first : first + step])
