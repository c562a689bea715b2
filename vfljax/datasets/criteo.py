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
            by each process: ours is ``ctr_forms.crc``, so columns are other columns, alike in law.

Sun et al. 2022 give all columns to one party.

Get it from Criteo AI Lab or Kaggle (criteo-display-ad-challenge).
"""

from __future__ import annotations

import math

import numpy as np

from vfljax.datasets import ctr, ctr_forms
from vfljax.datasets.options import limited
from vfljax.errors import UserError

NUMBERS = tuple(f"I{j}" for j in range(1, 14))
CATEGORIES = tuple(f"C{j}" for j in range(1, 27))
# and the buckets that buckets=0 means
FORMS = {"codes": 10_000, "hashed": 8192, "unique": 0, "frequent": 0}
LEAST = 10  # rows of a frequent word
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
) -> ctr_forms.ClickPlan:
    """Read Criteo; every fault of the file is one clear line.

    ``folder`` is the file, or holds it (``file`` names it where there are several). ``buckets``: 0
    is 10,000 for "codes" and 8,192 for "hashed". ``numbers``: "log", sign(x) log(1 + |x|), or "raw";
    missing ones are 0; "codes" and "unique" alone have numbers. After ``offset`` rows the first
    ``rows`` (0: all) are read; with ``balanced`` they are counted after rows of a repeated label are
    dropped, 50/50 to one row. Of the rows read, ``positive_ratio`` leaves out random ones of label 0,
    by a fixed draw, until that share of the rest are clicks (0: none is left out): Sun et al. 2022,
    Appendix G.
    """
    selection = ctr.RowSelection(rows, offset, balanced)
    plan = ctr_forms.plan_of(LAYOUT, FORMS, folder, file, form, buckets, selection)
    if (crosses or counts) and form != "hashed":
        what = f"crosses and counts are of form='hashed', not {form!r}"
        raise UserError(what, remedy="leave them out")
    if numbers != "log" and form not in ("codes", "unique"):
        what = f"is given for form={form!r}, which has no numbers"
        raise UserError(what, field="data.options.numbers", value=numbers, remedy="leave it out")
    if crosses and plan.buckets & (plan.buckets - 1):
        what = "must be a power of two: XORs stay below no other."
        raise UserError(what, field="data.options.buckets", value=plan.buckets)
    if positive_ratio and balanced:
        raise UserError(
            field="data.options.positive_ratio",
            value=positive_ratio,
            remedy="balanced=True makes it 1/2; leave one out",
        )
    if positive_ratio:
        selection = ctr.down_sampled(plan.path, LAYOUT, selection, positive_ratio)
        plan = plan._replace(selection=selection)
    if form == "hashed":
        return ctr_forms.hashed(plan, crosses, counts)
    words = dict.fromkeys(CATEGORIES, str)
    if form == "frequent":
        words = {**dict.fromkeys(NUMBERS, word), **words}
        return ctr_forms.columned(plan, ctr_forms.numbered(plan, words, LEAST), np.int32)
    codes = [ctr_forms.bucketed(name, plan.buckets) for name in CATEGORIES]
    codes = ctr_forms.numbered(plan, words) if form == "unique" else codes
    scaled = [ctr_forms.number(name, numbers) for name in NUMBERS]
    return ctr_forms.columned(plan, [*scaled, *codes], np.float32)


criteo = ctr_forms.loader(planned)


def word(value: str) -> str:
    """What form "frequent" makes of an integer.

    >>> [word(value) for value in ("", "-1", "2", "3", "1000")]
    ['NULL', '-3', '0', '1', '47']
    """
    if not value:
        return "NULL"
    number = int(value)
    return str(int(math.log(number) ** 2)) if number > 2 else str(number - 2)
