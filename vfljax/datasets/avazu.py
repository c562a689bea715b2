"""Avazu click-through (Kaggle 2014): 40.4 million rows, 22 categories, 1 = click.

Reads ``train.csv`` with the header ``id,click,hour,C1,banner_pos,...,C21``, plain or gzip. There is no
published test part (Kaggle's has no labels). Every field is a category, as in Sun et al. 2022 (their
Appendix); ``id`` is not read.

    codes   [R, 22] int32: codes by hash, each in a table of ``buckets``
    unique  one code a value, in sorted order over the rows read, the empty value's among them

Sun et al. 2022 give all columns to one party.

Get it from Kaggle (avazu-ctr-prediction).
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator
from typing import Any

import numpy as np

from vfljax.datasets import ctr, ctr_forms, lines
from vfljax.datasets.columns import Column
from vfljax.datasets.core import Dataset
from vfljax.errors import UserError

FIELDS = (
    *("hour", "C1", "banner_pos", "site_id", "site_domain", "site_category"),
    *("app_id", "app_domain", "app_category", "device_id", "device_ip", "device_model"),
    *("device_type", "device_conn_type", "C14", "C15", "C16", "C17", "C18", "C19", "C20", "C21"),
)
FORMS = {"codes": 10_000, "unique": 0}  # and the buckets that buckets=0 means


def avazu(
    folder: str,
    *,
    form: str = "codes",
    buckets: int = 0,
    hour: str = "category",
    rows: int = 0,
    offset: int = 0,
    balanced: bool = False,
    file: str = "",
) -> Dataset:
    """Read Avazu; every fault of the file is one clear line.

    ``folder`` is the file, or holds it (``file`` names it where there are several). ``buckets``: 0
    is 10,000. ``hour``: "category", each hour of the ten days its own value; or "parts", two columns
    ``hour_of_day`` (0-23) and ``day_of_week`` (0 = Monday) in its place. After ``offset`` rows the
    first ``rows`` (0: all) are read; with ``balanced`` they are counted after rows of a repeated label
    are dropped, 50/50 to one row.
    """
    options = {"form": form, "buckets": buckets, "hour": hour, "rows": rows, "offset": offset}
    return ctr_forms.load(_plan(folder, **options, balanced=balanced, file=file))


def prepare(folder: str, out: str, **options: Any) -> Dataset:
    """``avazu``'s rows in the new prepared folder ``out``, in the memory of a block (8 MB of text),
    for form "unique" and of the vocabularies. Takes ``avazu``'s options."""
    given = {**(avazu.__kwdefaults__ or {}), **options}
    return ctr_forms.prepare(lambda: _plan(folder, **given), out)


def stream(
    folder: str, size: int = ctr.SIZE, **options: Any
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """(features, labels) block after block of ``size`` bytes of text. Takes ``avazu``'s options."""
    plan = _plan(folder, **{**(avazu.__kwdefaults__ or {}), **options})
    return ctr_forms.stream(plan, size)


def _time(value: str) -> datetime.datetime | None:
    """Of YYMMDDHH."""
    try:
        right = re.fullmatch("[0-9]{8}", value)
        return datetime.datetime.strptime(value, "%y%m%d%H") if right else None
    except ValueError:
        return None


def _part(name: str, size: int, of: Any) -> tuple[Column, str, ctr_forms.Encoder]:
    column = Column(name, "code", "", size)
    return column, "hour", lambda values: np.array([of(_time(value)) for value in values])


PARTS = [
    _part("hour_of_day", 24, lambda time: time.hour),
    _part("day_of_week", 7, lambda time: time.weekday()),
]


def _plan(folder: str, **options: Any) -> ctr_forms.Plan:
    form = ctr_forms.choice("form", options["form"], tuple(FORMS))
    buckets = ctr_forms.count("buckets", options["buckets"], 0, ctr_forms.EXACT) or FORMS[form]
    parts = ctr_forms.choice("hour", options["hour"], ("category", "parts")) == "parts"
    wanted = ctr.Rows(
        ctr_forms.count("rows", options["rows"]),
        ctr_forms.count("offset", options["offset"]),
        ctr_forms.flag("balanced", options["balanced"]),
    )
    if form == "unique" and buckets:
        raise UserError("config.data.options.buckets: form='unique' has none; leave it out.")
    if form == "codes" and buckets < 2:
        raise UserError(f"config.data.options.buckets={buckets}: give at least 2.")
    layout = ctr.Layout(
        "avazu",
        "click",
        FIELDS,
        ignored="id",
        headless=False,
        valid={"hour": (_time, "a time YYMMDDHH")},
        source="Avazu's train.csv (Kaggle 2014)",
    )
    path = lines.find(folder, ctr_forms.file(options["file"]), layout.source)
    names = FIELDS[1:] if parts else FIELDS
    if form == "unique":
        known = ctr_forms.vocabularies(ctr.read(path, layout, wanted), dict.fromkeys(names, str))
        codes = [ctr_forms.numbered(name, known[name]) for name in names]
    else:
        codes = [ctr_forms.bucketed(name, buckets) for name in names]
    made = ctr_forms.columned([*(PARTS if parts else []), *codes], np.int32)
    return ctr_forms.Plan(path, layout, wanted, made, options)
