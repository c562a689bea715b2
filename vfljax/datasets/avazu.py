"""Avazu click-through (Kaggle 2014): 40.4 million rows, 22 categories, 1 = click.

Reads ``train.csv`` with the header ``id,click,hour,C1,banner_pos,...,C21``, plain or gzip. There is no
published test part (Kaggle's has no labels). Every field is a category, as in Sun et al. 2022 (their
Appendix), who give all columns to one party; ``id`` is not read.

    codes   [R, 22] int32: hashed codes, 0..buckets - 1 in each column; 0 is the empty value
    unique  a code for each distinct value of the rows read, in sorted order; the empty value has one too

Get it from Kaggle (avazu-ctr-prediction).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from vfljax.datasets import ctr, ctr_forms
from vfljax.datasets.core import Column
from vfljax.datasets.options import limited

FIELDS = (
    *("hour", "C1", "banner_pos", "site_id", "site_domain", "site_category"),
    *("app_id", "app_domain", "app_category", "device_id", "device_ip", "device_model"),
    *("device_type", "device_conn_type", "C14", "C15", "C16", "C17", "C18", "C19", "C20", "C21"),
)
FORMS = {"codes": 10_000, "unique": 0}  # the number of buckets that buckets=0 means


def _times(values: list[str]) -> Any:
    """Returns the times that texts YYMMDDHH name, and NaT for any other text."""
    texts = pd.Series(values, dtype="str")
    right = texts.str.fullmatch("[0-9]{8}")  # pandas would read shorter texts too
    return pd.to_datetime(texts.where(right), format="%y%m%d%H", errors="coerce")


HOUR, DAY = Column("hour_of_day", "code", "", 24), Column("day_of_week", "code", "", 7)
PARTS = (
    ctr_forms.Coding(HOUR, "hour", lambda values: _times(values).dt.hour),
    ctr_forms.Coding(DAY, "hour", lambda values: _times(values).dt.weekday),
)
LAYOUT = ctr.ClickLayout(
    "avazu",
    "click",
    FIELDS,
    ignored="id",
    headless=False,
    valid={"hour": (lambda v: _times(v.to_pylist()).notna(), "a time YYMMDDHH")},
    source="the folder or file of Avazu's train.csv (Kaggle 2014)",
)


@limited(form=tuple(FORMS), buckets=(0, ctr_forms.EXACT), hour=("category", "parts"))
def planned(
    folder: str,
    *,
    form: str = "codes",
    buckets: int = 0,
    hour: str = "category",
    rows: int = 0,
    offset: int = 0,
    balanced: bool = False,
    file: str = "",
) -> ctr_forms.ClickPlan:
    """Plans how Avazu is read.

    Args:
      folder: the file, or the folder that holds it.
      form: "codes" or "unique", as described above.
      buckets: number of codes of a column of form "codes"; 0 is 10,000.
      hour: "category" takes each hour of the ten days as a value; "parts" replaces the field by two columns,
        ``hour_of_day`` (0-23) and ``day_of_week`` (0 = Monday).
      rows, offset, balanced, file: as of ``criteo.planned``.
    """
    selection = ctr.RowSelection(rows, offset, balanced)
    plan, buckets = ctr_forms.plan_of(LAYOUT, FORMS, folder, file, form, buckets, selection)
    parts, names = (PARTS, FIELDS[1:]) if hour == "parts" else ((), FIELDS)
    codes = ctr_forms.coded(plan, names, buckets)
    return plan._replace(codings=(*parts, *codes), dtype=np.int32)


avazu = ctr_forms.loader(planned)
