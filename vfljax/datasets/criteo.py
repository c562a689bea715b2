"""Criteo display advertising (Kaggle 2014): 45.8 million rows, 13 integers, 26 categories, 1 = click.

Reads ``train.txt`` (tab-separated, no header: label, I1-I13, C1-C26) and the CSV with the header
``Id,Label,I1,...,C26``, plain or gzip. There is no published test part (Kaggle's has no labels).

    codes   [R, 39] float32: 13 numbers and 26 codes by hash, each in a table of ``buckets``
    unique  the same with one code a value, in sorted order over the rows read, the missing (empty)
            value's among them: Sun et al. 2022, Appendix. They scale numbers linearly to [0, 1]
            over all rows: ``numbers="raw"``, ``scaling="minmax"``, ``scaling_rows="all"``
    frequent  [R, 39] int32: GAFM, Appendix E.1, by the code it names (torchfm). Integers become
            words (above 2: floor(ln(x)^2), else x - 2; "NULL" where missing). Of each field, words
            that 10 rows or more have get a code each, in sorted order; all others share the last
    hashed  [R, 8192] uint8: Fu et al. 2022. Which of 8,192 buckets the hashes of the row's 39 texts
            ``field=value`` fall into; parties own the first and the last 4,096. Their released file
            counts how many fall into each (``counts``), with the XORs of all 741 pairs of hashes
            (``crosses``), of the first 100,000 rows (``rows``) whose label differs from the last kept
            row's (``balanced``: labels are 0, 1, 0, 1, ...). Their hash is Python's own, seeded anew
            by each process: ours is ``hashing``'s, so columns are other columns, alike in law.

Sun et al. 2022 give all columns to one party.

Get it from Criteo AI Lab or Kaggle (criteo-display-ad-challenge).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from vfljax.datasets import ctr, ctr_forms, lines
from vfljax.datasets.core import Dataset
from vfljax.errors import UserError

NUMBERS = tuple(f"I{j}" for j in range(1, 14))
CATEGORIES = tuple(f"C{j}" for j in range(1, 27))
# and the buckets that buckets=0 means
FORMS = {"codes": 10_000, "hashed": 8192, "unique": 0, "frequent": 0}
LEAST = 10  # rows of a frequent word
LAYOUT = ctr.Layout(
    "criteo",
    "Label",
    (*NUMBERS, *CATEGORIES),
    ignored="Id",
    headless=True,
    valid=dict.fromkeys(NUMBERS, (ctr.integer, "an integer or empty")),
    source="Criteo's train.txt (display advertising, 2014) or Kaggle's CSV form of it",
)


def criteo(
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
) -> Dataset:
    """Read Criteo; every fault of the file is one clear line.

    ``folder`` is the file, or holds it (``file`` names it where there are several). ``buckets``: 0
    is 10,000 for "codes" and 8,192 for "hashed". ``numbers``: "log", sign(x) log(1 + |x|), or "raw";
    missing ones are 0; "codes" and "unique" alone have numbers. After ``offset`` rows the first
    ``rows`` (0: all) are read; with ``balanced`` they are counted after rows of a repeated label are
    dropped, 50/50 to one row. Of the rows read, ``positive_ratio`` leaves out random ones of label 0,
    by a fixed draw, until that share of the rest are clicks (0: none is left out): Sun et al. 2022,
    Appendix G.
    """
    options = {"form": form, "buckets": buckets, "numbers": numbers, "crosses": crosses}
    options |= {"counts": counts, "rows": rows, "offset": offset, "balanced": balanced}
    options |= {"positive_ratio": positive_ratio}
    return ctr_forms.load(_plan(folder, **options, file=file))


def prepare(folder: str, out: str, **options: Any) -> Dataset:
    """``criteo``'s rows in the new prepared folder ``out``, in the memory of a block (8 MB of text),
    for "unique" and "frequent" also of the vocabularies. Takes ``criteo``'s options."""
    given = {**(criteo.__kwdefaults__ or {}), **options}
    return ctr_forms.prepare(lambda: _plan(folder, **given), out)


def stream(
    folder: str, size: int = ctr.SIZE, **options: Any
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """(features, labels) block after block of ``size`` bytes of text. Takes ``criteo``'s options."""
    plan = _plan(folder, **{**(criteo.__kwdefaults__ or {}), **options})
    return ctr_forms.stream(plan, size)


def _plan(folder: str, **options: Any) -> ctr_forms.Plan:
    form = ctr_forms.choice("form", options["form"], tuple(FORMS))
    buckets = ctr_forms.count("buckets", options["buckets"], 0, ctr_forms.EXACT) or FORMS[form]
    scale = ctr_forms.choice("numbers", options["numbers"], ("log", "raw"))
    crosses, counts, balanced = (
        ctr_forms.flag(name, options[name]) for name in ("crosses", "counts", "balanced")
    )
    wanted = ctr.Rows(
        ctr_forms.count("rows", options["rows"]),
        ctr_forms.count("offset", options["offset"]),
        balanced,
    )
    if (crosses or counts) and form != "hashed":
        raise UserError(
            f"config.data.options: crosses and counts are of form='hashed', not {form!r}: leave them out."
        )
    if scale != "log" and form not in ("codes", "unique"):
        raise UserError(
            f"config.data.options.numbers={scale!r}: form={form!r} has no numbers; leave it out."
        )
    if not FORMS[form] and buckets:
        raise UserError(f"config.data.options.buckets: form={form!r} has none; leave it out.")
    if crosses and buckets & (buckets - 1):
        raise UserError(
            f"config.data.options.buckets={buckets}: with crosses it must be a power of two, for only "
            "then do XORs of hashes stay below it."
        )
    if FORMS[form] and buckets < 2:
        raise UserError(f"config.data.options.buckets={buckets}: give at least 2.")
    ratio = ctr_forms.share("positive_ratio", options["positive_ratio"])
    if ratio and balanced:
        raise UserError(
            f"config.data.options.positive_ratio={ratio:g}: balanced=True makes it 1/2; leave one out."
        )
    path = lines.find(folder, ctr_forms.file(options["file"]), LAYOUT.source)
    if ratio:
        wanted = ctr.down_sampled(path, LAYOUT, wanted, ratio)
    if form == "hashed":
        made = ctr_forms.hashed(LAYOUT.fields, buckets, crosses, counts)
    elif form == "frequent":
        rewrites = {**dict.fromkeys(NUMBERS, word), **dict.fromkeys(CATEGORIES, str)}
        known = ctr_forms.vocabularies(ctr.read(path, LAYOUT, wanted), rewrites, LEAST)
        codes = [ctr_forms.numbered(name, known[name], rewrites[name], True) for name in rewrites]
        made = ctr_forms.columned(codes, np.int32)
    else:
        if form == "unique":
            rewrites = dict.fromkeys(CATEGORIES, str)
            known = ctr_forms.vocabularies(ctr.read(path, LAYOUT, wanted), rewrites)
            codes = [ctr_forms.numbered(name, known[name]) for name in CATEGORIES]
        else:
            codes = [ctr_forms.bucketed(name, buckets) for name in CATEGORIES]
        numbers = [ctr_forms.number(name, scale) for name in NUMBERS]
        made = ctr_forms.columned([*numbers, *codes], np.float32)
    return ctr_forms.Plan(path, LAYOUT, wanted, made, options)


def word(value: str) -> str:
    """What form "frequent" makes of an integer.

    >>> [word(value) for value in ("", "-1", "2", "3", "1000")]
    ['NULL', '-3', '0', '1', '47']
    """
    if not value:
        return "NULL"
    number = int(value)
    return str(int(math.log(number) ** 2)) if number > 2 else str(number - 2)
