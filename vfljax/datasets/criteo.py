"""Criteo display advertising (Kaggle 2014): 45.8 million rows, 13 integers, 26 categories, 1 = click.

Reads ``train.txt`` (tab-separated, no header: label, I1-I13, C1-C26) and the CSV with the header
``Id,Label,I1,...,C26``, plain or gzip. There is no published test part (Kaggle's has no labels).

    codes   [R, 39] float32: 13 numbers and 26 hashed codes, 0..buckets - 1 in each column
    unique  likewise, with a code for each distinct value of the rows read, in sorted order; the missing
            (empty) value has one too: Sun et al. 2022, Appendix. They scale numbers linearly to [0, 1]
            over all rows: ``numbers="raw"``, ``scaling="minmax"``, ``scaling_rows="all"``
    frequent  [R, 39] int32: GAFM, Appendix E.1, by the code that it names (torchfm). Integers become
            words (above 2: floor(ln(x)^2), else x - 2; "NULL" if missing). In each field, a word of at
            least 10 rows has its own code, in sorted order; all other words share the last code
    hashed  [R, 8192] uint8: Fu et al. 2022. Each of a row's 39 texts ``field=value`` is hashed to one of
            8,192 buckets, and a feature is 1 if its bucket was hit. Parties own the first and the last
            4,096. Their released file has the number of hits (``counts``), hashes the 741 pairs too, by
            the XORs of their hashes (``crosses``), and keeps the first 100,000 rows (``rows``) whose label
            differs from the last kept row's (``balanced``: labels are 0, 1, 0, 1, ...). Their hash is
            Python's own, which each process seeds anew. Ours is ``ctr_forms.crc``, so the columns are
            other ones with the same distribution.

Sun et al. 2022 give all columns to one party. Get it from Criteo AI Lab or Kaggle
(criteo-display-ad-challenge).
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from vfljax.datasets import ctr, ctr_forms
from vfljax.datasets.core import Column
from vfljax.datasets.ctr_forms import ClickPlan, Coding
from vfljax.datasets.options import limited
from vfljax.errors import UserError

NUMBERS = tuple(f"I{j}" for j in range(1, 14))
CATEGORIES = tuple(f"C{j}" for j in range(1, 27))
# the number of buckets that buckets=0 means
FORMS = {"codes": 10_000, "hashed": 8192, "unique": 0, "frequent": 0}
LEAST = 10  # a frequent word occurs in at least so many rows
COUNTED = 1 << 22  # the most features, rows times buckets, that are made at a time
LAYOUT = ctr.ClickLayout(
    "criteo",
    "Label",
    (*NUMBERS, *CATEGORIES),
    ignored="Id",
    headless=True,
    valid=dict.fromkeys(NUMBERS, ctr.INTEGER),
    source="the folder or file of Criteo's train.txt (2014) or Kaggle's CSV form of it",
)


@limited(form=tuple(FORMS), buckets=(0, ctr_forms.EXACT), numbers=("log", "raw"))
def planned(
    folder: str,
    *,
    form: str = "codes",
    buckets: int = 0,
    numbers: str = "log",
    crosses: bool = False,
    counts: bool = False,
    rows: int = 0,
    offset: int = 0,
    balanced: bool = False,
    positive_ratio: float = 0.0,
    file: str = "",
) -> ClickPlan:
    """Plans how Criteo is read.

    Args:
      folder: the file, or the folder that holds it.
      form: one of the forms above.
      buckets: number of buckets of a hash; 0 is 10,000 for "codes" and 8,192 for "hashed".
      numbers: "log", sign(x) log(1 + |x|), or "raw", of "codes" and "unique"; missing numbers are 0.
      crosses, counts: of form "hashed", as described above.
      rows, offset, balanced: ``offset`` rows are skipped, and then ``rows`` rows (0: all) are read. If
        ``balanced``, rows that repeat the last kept row's label are dropped first: labels are 0, 1, 0, ...
      positive_ratio: a random sample of the rows of label 0, of a fixed seed, is left out, so that this share
        of the remaining rows are clicks; 0 leaves none out (Sun et al. 2022, Appendix G).
      file: the file's name, if the folder holds several.
    """
    selection = ctr.RowSelection(rows, offset, balanced)
    plan, buckets = ctr_forms.plan_of(LAYOUT, FORMS, folder, file, form, buckets, selection)
    if (crosses or counts) and form != "hashed":
        what = f"crosses and counts are of form='hashed', not {form!r}"
        raise UserError(what, remedy="leave them out")
    if numbers != "log" and form not in ("codes", "unique"):
        what = f"is given for form={form!r}, which has no numbers"
        raise UserError(what, field="data.options.numbers", value=numbers, remedy="leave it out")
    if crosses and buckets & (buckets - 1):
        what = "must be a power of two: XORs stay below no other."
        raise UserError(what, field="data.options.buckets", value=buckets)
    if positive_ratio and balanced:
        remedy = "balanced=True makes it 1/2; leave one out"
        raise UserError(field="data.options.positive_ratio", value=positive_ratio, remedy=remedy)
    if positive_ratio:
        plan = plan._replace(selection=_down_sampled(plan, positive_ratio))
    if form == "hashed":
        return _hashed(plan, buckets, crosses, counts)
    if form == "frequent":
        words = {**dict.fromkeys(NUMBERS, word), **dict.fromkeys(CATEGORIES, str)}
        return plan._replace(codings=ctr_forms.numbered(plan, words, LEAST), dtype=np.int32)
    codes = ctr_forms.coded(plan, CATEGORIES, buckets)
    scale = functools.partial(_scaled, numbers)
    return plan._replace(codings=[*(Coding(Column(name), name, scale) for name in NUMBERS), *codes])


criteo = ctr_forms.loader(planned)


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


def _hashed(plan: ClickPlan, buckets: int, crosses: bool, counts: bool) -> ClickPlan:
    """Returns the plan with features [r, buckets] uint8: 1 for each bucket that the hash of a field (with
    ``crosses`` also the XOR of two hashes) falls into, or with ``counts`` the number of hits, at most 255."""

    def encode(name: str, values: list[str]) -> np.ndarray:
        return ctr_forms.crc(name, values) % buckets

    def wide(hashes: np.ndarray) -> np.ndarray:
        if crosses:
            first, second = np.triu_indices(hashes.shape[1], 1)
            hashes = np.concatenate([hashes, hashes[:, first] ^ hashes[:, second]], axis=1)
        flat = hashes + np.arange(len(hashes))[:, None] * buckets
        out = np.bincount(flat.ravel(), minlength=len(hashes) * buckets)
        return np.minimum(out, 255 if counts else 1).astype(np.uint8).reshape(-1, buckets)

    names = plan.layout.fields
    codings = [Coding(Column(name), name, functools.partial(encode, name)) for name in names]
    at_once = max(1, min(512, COUNTED // buckets))
    return plan._replace(codings=codings, dtype=np.int64, finish=wide, rows_at_once=at_once)


def _down_sampled(plan: ClickPlan, ratio: float) -> ctr.RowSelection:
    """Returns the selection with so many rows of label 0 that clicks are the share ``ratio`` of its rows. It
    takes a pass through the file. Raises UserError if that needs more such rows than there are, or none."""
    chunks = ctr.read(plan.path, LAYOUT, plan.selection)
    counts: Any = sum(np.bincount(chunk.labels, minlength=2) for chunk in chunks)
    negative, positive = counts.tolist()
    kept = round(positive * (1 - ratio) / ratio)
    if not 0 < kept <= negative:
        rows = negative + positive
        remedy = "give a larger one, for only others are left out"
        raise UserError(
            f"cannot be had of {plan.path}: {positive / rows:.2%} of the {rows:,} rows read are clicks",
            field="data.options.positive_ratio",
            value=ratio,
            remedy=remedy if kept and negative else "read more rows",
        )
    return plan.selection._replace(negatives=(kept, negative))
