"""Reads columns of dates as days since the first one of the training rows."""

from __future__ import annotations

import datetime
import re

import numpy as np
import pandas as pd

from vfljax.datasets.core import SourceColumn
from vfljax.datasets.source_columns import Feature, Place, Series, Texts
from vfljax.datasets.table_errors import csv_option, quoted
from vfljax.errors import Field, UserError, options_in

DAY = 86_400_000_000  # microseconds
MONTH = "(jan|feb|mar|apr|may|june?|july?|aug|sept?|oct|nov|dec)[a-z]*"
DATE = re.compile(
    rf"(\d{{1,4}}[-/.]\d{{1,2}}[-/.]\d{{1,4}}|(\d{{1,2}}[ .-]+)?{MONTH}[ .-]+(\d{{1,2}},? +)?\d{{2,4}})"
    r"([T ,]+\d{1,2}:\d{2}.*)?",
    re.IGNORECASE,
)
ZONE = re.compile(r":\d{2}.*(Z|[+-]\d{2}(:?\d{2})?)", re.IGNORECASE)
FORMATS = tuple(  # of dates; ISO 8601 is tried before them
    f"{day} {clock}".strip()
    for day in (
        *(
            f"{d}{s}{y}".replace(",", s)
            for s in "/-."
            for y in ("%Y", "%y")
            for d in ("%d,%m", "%m,%d")
        ),
        *("%Y.%m.%d", "%d %b %Y", "%d-%b-%Y", "%d-%b-%y", "%d %B %Y", "%b %d, %Y", "%B %d, %Y"),
    )
    for clock in ("", "%H:%M", "%H:%M:%S", "%H:%M:%S.%f", "%I:%M %p", "%I:%M:%S %p")
)


def date_column(ticks: np.ndarray, name: str, place: Place) -> Feature | None:
    """Returns a column of microseconds since 1970 [R], NaN where missing, as days since the first date of
    the training rows."""
    missing = np.isnan(ticks)
    if missing.all():
        return None
    training = ~place.test & ~missing
    first = float(ticks[training if training.any() else ~missing].min())
    moment, *ends = (
        datetime.datetime(1970, 1, 1) + datetime.timedelta(microseconds=float(tick))
        for tick in (first, ticks[~missing].min(), ticks[~missing].max())
    )
    note = f"days since {str(moment).removesuffix(' 00:00:00')}"
    for end in ends:
        if end.year in (datetime.MINYEAR, datetime.MAXYEAR):
            note += f"; {end.date()} may stand for none (na_values=)"
    days = (ticks - first) / DAY
    rounded = days.astype(np.float32)
    if len(pd.unique(days)) > 1.01 * len(pd.unique(rounded)):
        note += "; different times are equal as float32"
    return Feature(SourceColumn(name, "date", int(missing.sum()), note=note), numbers=rounded)


def microseconds(column: Series) -> np.ndarray:
    """Returns [R] float64, NaN where missing; a time in a zone is taken in UTC."""
    times = column.dt.tz_convert(None) if column.dt.tz is not None else column
    ticks = times.astype("datetime64[us]").to_numpy().astype(np.int64).astype(float)
    return np.where(times.isna(), np.nan, ticks)


def ticks_of(texts: Texts, name: str, place: Place) -> np.ndarray:
    """Reads dates that are texts, as microseconds since 1970 [R]; raises UserError if formats differ."""
    values = pd.Series(texts.values, dtype=object)
    zoned = np.asarray([ZONE.search(value) is not None for value in values])
    mixed = bool(zoned.any() and not zoned.all())
    readings: dict[bytes, tuple[str, np.ndarray]] = {}  # of each result, the first format
    for form in () if mixed else ("ISO8601", *FORMATS):
        if not _read_as(form, values[:1]).isna().any():
            times = _read_as(form, values)
            if not times.isna().any():
                ticks = microseconds(times)
                readings.setdefault(ticks.tobytes(), (form, ticks))
                if form == "ISO8601":
                    break
    if not readings:
        raise _no_date(texts, values, zoned if mixed else None, name, place)
    if len(readings) > 1:
        remedy: list[str | Field] = ["write all as 2020-01-31"]
        for form, _ in readings.values():
            if place.text is None:
                remedy += [f" or read them by pandas.to_datetime(format={form!r})"]
            else:
                remedy += [" or give ", *csv_option(parse_dates=[name], date_format=form)]
        remedy += options_in(", or name it in {drop}= or {categorical}=")
        what = f"holds dates ({quoted(values[0])}) that can be read in several ways"
        raise place.fault(name, what, remedy, texts.row(0))
    ((_, ticks),) = readings.values()
    return np.append(ticks, np.nan)[texts.codes]


def _read_as(form: str, values: Series) -> Series:
    """Returns texts as times in UTC, NaT for one that is not of this format or is no day."""
    return pd.to_datetime(values, format=form, errors="coerce", utc=True)


def _no_date(
    texts: Texts, values: Series, zoned: np.ndarray | None, name: str, place: Place
) -> UserError:
    """Returns the error of dates that no one format reads. It quotes a value that the format of most values
    does not read, or that has a zone, or none, unlike most.

    Args:
      texts, values: the dates, and their distinct texts.
      zoned: which of ``values`` have a zone, if only some have; else None.
      name, place: the column.
    """
    if zoned is None:
        unread = [_read_as(form, values).isna().to_numpy() for form in ("ISO8601", *FORMATS)]
        odd = min(unread, key=np.count_nonzero)
        known = np.flatnonzero(~odd)
        why = "is no day of the calendar, or is written in another way"
    else:
        odd = zoned if 2 * zoned.sum() <= len(zoned) else ~zoned
        known = np.flatnonzero(~odd)
        why = f"has {'a' if odd is zoned else 'no'} time zone"
    code = int(np.argmax(odd))
    others = f", unlike {quoted(values[known[0]])} of row {_row_of(texts, known[0], place)}"
    what = f"has {quoted(values[code])}, which {why}{others if len(known) else ''}"
    remedy = (
        "write all as 2020-01-31, name it in {na_values}= if it stands for a missing date, or name the column "
        "in {drop}= or {categorical}="
    )
    return place.fault(name, what, remedy, texts.row(code))


def _row_of(texts: Texts, code: int, place: Place) -> int:
    """Returns the number of the first row with a value, in its file."""
    return int(place.rows[texts.row(code)])
