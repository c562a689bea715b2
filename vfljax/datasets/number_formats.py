"""Reads numbers, dates and times from texts, in the notations that options name."""

from __future__ import annotations

import datetime
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute

from vfljax.datasets.table_errors import Place, fault, shown

pc: Any = pyarrow.compute  # its functions are made when imported: no type checker knows them

Series = Any  # of pandas, whose annotations do not tell what an operation on one returns
TEXT = pd.ArrowDtype(pa.large_string())  # can hold more than 2 GiB of texts
SHARE = "^.*%$"
SIGNS = "$\u20ac\u00a3\u00a5\u2212"  # currencies and U+2212, a minus sign: no option reads these
# 1,000 or 1 000.5, 0,5, 5%, $1.00; plain numbers too
DIGITS = "(\\d{1,3}([.,' \u00a0\u202f]\\d{3})+([.,]\\d+)?|\\d*[.,]?\\d+)"
NOTED = f"^[-+{SIGNS}]{{0,2}} ?[-+{SIGNS}]?{DIGITS} ?[%{SIGNS}]?$"
MONTH = (
    "(jan(uary)?|feb(ruary)?|mar(ch)?|apr(il)?|may|june?|july?|aug(ust)?|sept?(ember)?|oct(ober)?"
    "|nov(ember)?|dec(ember)?)"
)
CLOCK = r"\d{1,2}:\d{2}(:\d{2}([.,]\d+)?)?( ?[ap]m)?"
DAY = rf"(\d{{1,4}}[-/.]\d{{1,2}}[-/.]\d{{1,4}}|(\d{{1,4}}[ .-]+)?{MONTH}[ .-]+(\d{{1,2}},? +)?\d{{2,4}})"
WEEKDAY = "((mon|tue|wed|thu|fri|sat|sun)[a-z]*,? +)?"
# 2020-01-31, 31.1.20, 31 Jan 2020, Fri, Jan 31, 2020; a time may follow, or stand alone
DATE = rf"^(?i:({WEEKDAY}{DAY}([T ,]+\d{{1,2}}:\d{{2}}.*)?|{CLOCK}))$"
DAYS = "%Y-%m-%d %Y/%m/%d %Y.%m.%d %d.%m.%Y %d.%m.%y %d/%m/%Y %m/%d/%Y %d/%m/%y %m/%d/%y %d-%m-%Y %m-%d-%Y"
NAMED = "%d %b %Y", "%d %B %Y", "%d-%b-%Y", "%d-%b-%y", "%b %d, %Y", "%B %d, %Y", "%b %d %Y"
CLOCKS = "%H:%M", "%H:%M:%S", "%H:%M:%S.%f", "%I:%M %p", "%I:%M:%S %p"
FORMATS = (  # of datetime.strptime; ISO 8601 is tried first
    *(f"{day} {time}".strip() for time in ("", *CLOCKS) for day in (*DAYS.split(), *NAMED)),
    *CLOCKS,
)
ISO = "ISO 8601"
SEVERAL = 3  # fewer numbers or dates among words may well be names of categories
MICROSECONDS = 86_400_000_000  # of a day
EPOCH, TICK = datetime.datetime(1970, 1, 1), datetime.timedelta(microseconds=1)


class Since(NamedTuple):
    """What a column's days count from: the first date or time of the training rows."""

    form: str  # the format of the dates or times
    dated: bool  # whether they are dates, and not times of a day or durations
    first: float  # microseconds since 1970 or midnight, or of a duration


class Notation(NamedTuple):
    """How numbers are written: thousands="," reads 1,000.5, decimal="," reads 0,5, and percent=True reads 5%
    as .05. ``date_format`` is a format of ``strptime`` for dates that may be read in several ways."""

    decimal: str = "."
    thousands: str = ""
    percent: bool = False
    date_format: str = ""


WAYS = (
    *({"thousands": mark} for mark in ",.' "),
    *({"decimal": mark} for mark in ",."),
    *({"thousands": mark, "decimal": point} for mark, point in (".,", " ,", "',", ",.")),
    *({"percent": True, **more} for more in ({}, {"decimal": ","}, {"decimal": "."})),
)


def is_number(text: str) -> bool:
    """Returns True if ``text`` is a finite decimal number in the default notation."""
    return re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", text, re.ASCII) is not None


def matches(texts: Series, pattern: str) -> np.ndarray:
    """Returns which texts a pattern matches, [R] bool.

    Args:
      texts: [R]; a missing text does not match.
      pattern: a regular expression of RE2 that begins with ^.
    """
    return texts.str.match(pattern, na=False).to_numpy(bool)


def numbers(texts: Series, notation: Notation) -> np.ndarray:
    """Returns the numbers in texts, [R] float64; NaN for a missing text and for a text that is no number.

    Args:
      texts: [R].
      notation: how numbers are written.
    """
    point, mark = re.escape(notation.decimal), re.escape(notation.thousands)
    if notation.thousands == " ":  # no-break spaces count as spaces
        texts = texts.str.replace("[\u00a0\u202f]", " ", regex=True)
    # 0,123 is no way to write 123: its comma is a decimal one
    whole = rf"(\d+|[1-9]\d{{0,2}}({mark}\d{{3}})+)" if mark else r"\d+"
    digits = rf"({whole}({point}\d*)?|{point}\d+)([eE][+-]?\d+)?"
    share = " ?%?" if notation.percent else ""
    texts = texts.where(matches(texts, rf"^[+-]?({digits}{share}|(?i:inf(inity)?))$"))
    signed = matches(texts, SHARE)
    texts = texts.str.rstrip(" %")
    if mark:
        texts = texts.str.replace(notation.thousands, "", regex=False)
    if notation.decimal != ".":
        texts = texts.str.replace(notation.decimal, ".", regex=False)
    values = texts.astype(pd.ArrowDtype(pa.float64())).to_numpy(float, na_value=np.nan)
    return np.where(signed, values / 100, values)


def _ways(texts: Series, notation: Notation) -> str:
    """Returns the remedy that makes numbers of the most texts, with options in braces. If several remedies do
    equally well, as for 1,000, it names all of them."""
    ranked = []
    bare = texts.str.replace(f"[{SIGNS}]", "", regex=True).str.strip()
    for candidates, changes in ((texts, WAYS), (bare, ({}, *WAYS))):
        for way in changes:
            other, signs = notation._replace(**way), candidates is bare
            if (other != notation or signs) and other.thousands != other.decimal:
                options = " and ".join(f"{{{option}}}={value!r}" for option, value in way.items())
                read = int((~np.isnan(numbers(candidates, other))).sum())
                remedy = "write them without a sign such as $" if signs else f"give {options}"
                ranked.append(((read, not signs, -len(way)), remedy))
    best = max(rank for rank, _ in ranked)
    first, *others = dict.fromkeys(remedy for rank, remedy in ranked if rank == best)
    return " or ".join([first, *(other.removeprefix("give ") for other in others)])


def moments(texts: Sequence[str], form: str) -> np.ndarray | None:
    """Returns dates and times as microseconds since 1970, [R] float64; None if some text is not in ``form``.

    Args:
      texts: [R], none missing.
      form: a format of ``strptime``, or ``ISO``.
    """
    if form != ISO:
        try:
            dates = [datetime.datetime.strptime(text, form) for text in texts]
            return np.asarray([(date.replace(tzinfo=None) - EPOCH) / TICK for date in dates], float)
        except ValueError:
            return None
    for kind in (pa.timestamp("us"), pa.timestamp("us", "UTC")):
        try:
            return pc.cast(pc.cast(pa.array(texts, pa.string()), kind), pa.int64()).to_numpy() * 1.0
        except pa.ArrowInvalid:
            continue
    return None


def days(
    parts: Sequence[Series], place: Place, date_format: str
) -> tuple[list[np.ndarray], Since] | None:
    """Reads a column of dates or times.

    Args:
      parts: texts, or Arrow's dates, times or durations, with null for a missing value: the training file's,
        which decide the format, and then the test file's if there is one.
      place: the files and row numbers of all rows, for messages.
      date_format: a format of ``strptime`` that is used if it reads all texts; "" is none.

    Returns:
      Days since the training rows' first date or time for each part, NaN where a row has none, and what they
      count from. None for a column that holds neither dates nor times.

    Raises:
      UserError: for dates that can be read in several ways, or by no format.
    """
    training, *tested = parts
    kind = training.dtype.pyarrow_dtype
    if pa.types.is_temporal(kind):
        form, family = f"type {kind}", _family(kind)
        ticks = _microseconds(training, place.files[0], place.column)
    elif training.dtype == TEXT:
        codes, distinct = pd.factorize(training)
        values = list(distinct)
        if date_format and moments(values, date_format) is not None:
            formats = [date_format]
        elif matches(pd.Series(distinct), DATE).all():
            formats = FORMATS if moments(values, ISO) is None else [ISO]
        else:
            return None
        readings: dict[bytes, tuple[str, np.ndarray]] = {}  # of each result, the first format
        for form in formats:
            if (ticks := moments(values, form)) is not None:
                readings.setdefault(ticks.tobytes(), (form, ticks))
        if len(readings) != 1:
            named = " or ".join(f"{{date_format}}={form!r}" for form, _ in readings.values())
            row = place.rows[np.argmax(codes == 0)]
            how = "may be read in several ways" if readings else "no form reads in all rows"
            raise place.fault(
                f"holds dates or times ({shown(values[0])} in row {row}) that {how}",
                f"give {named or '{date_format}= as of strptime'}, write all as 2020-01-31, or name it in "
                "{drop}= or {categorical}=",
            )
        ((form, ticks),) = readings.values()
        ticks = np.append(ticks, np.nan)[codes]  # code -1 (missing) takes the last
        family = "date" if form == ISO or "%y" in form.lower() else "time"
    else:
        return None
    since = Since(form, family == "date", float(np.nanmin(ticks)))
    read = [ticks, *(_as_training(part, since, family, place) for part in tested)]
    return [(ticks - since.first) / MICROSECONDS for ticks in read], since


def _family(kind: Any) -> str:
    """Returns whether values of one of Arrow's temporal types are durations, times of a day or dates."""
    return (
        "duration" if pa.types.is_duration(kind) else "time" if pa.types.is_time(kind) else "date"
    )


def _as_training(column: Series, since: Since, family: str, place: Place) -> np.ndarray:
    """Returns [R] microseconds of a test file's column, NaN for a value not in the training rows' format."""
    kind = column.dtype.pyarrow_dtype
    if pa.types.is_temporal(kind) and _family(kind) == family:
        return _microseconds(column, place.files[1], place.column)
    codes, distinct = pd.factorize(column.astype(TEXT))
    ticks = moments(list(distinct), since.form)
    if ticks is None:
        each = [moments([text], since.form) for text in distinct]
        ticks = [np.nan if moment is None else moment[0] for moment in each]
    return np.array([*ticks, np.nan])[codes]


def _microseconds(column: Series, file: str, name: str) -> np.ndarray:
    """Returns [R] microseconds: dates since 1970, times since midnight, or durations, as Arrow holds them."""
    kind = column.dtype.pyarrow_dtype
    unit = {"duration": pa.duration("us"), "time": pa.time64("us")}.get(_family(kind))
    unit = unit or pa.timestamp("us", getattr(kind, "tz", None))
    # nanoseconds are cut off; a coarser unit may overflow, which must raise
    fine = getattr(kind, "unit", "day") == "ns"
    try:
        ticks = pc.cast(pc.cast(column.array.__arrow_array__(), unit, safe=not fine), pa.int64())
    except pa.ArrowInvalid as error:
        what = f"holds dates out of bounds ({error})"
        raise fault(file, what, "correct them", column=name) from error
    return pc.cast(ticks, pa.float64(), safe=False).to_numpy()


def refuse_mixture(column: Series, place: Place, notation: Notation) -> None:
    """Raises UserError if at least half of a column of texts are numbers, or dates (``SEVERAL`` or more).

    Args:
      column: the training rows' texts, with null for a missing one.
      place: the files and row numbers of all rows, for messages.
      notation: how numbers are written.
    """
    codes, distinct = pd.factorize(column)
    values, counts = pd.Series(distinct), np.bincount(codes[codes >= 0])

    def first(which: np.ndarray) -> str:
        code = int(np.argmax(which))
        return f"{shown(values.iloc[code])} in row {place.rows[np.argmax(codes == code)]}"

    dates, noted = matches(values, DATE), matches(values, NOTED)
    numeric = ~np.isnan(numbers(values, notation))
    # fewer than SEVERAL suffice if an option names a notation, or if the column holds nothing else
    named = notation != Notation() and noted.any()
    several = noted.sum() >= SEVERAL or noted.all() or named
    if several and 2 * noted.sum() >= len(noted) and (noted & ~numeric).any():
        what = f"holds numbers in a notation that is not read ({first(noted & ~numeric)})"
        raise place.fault(what, _ways(values[noted], notation) + ", or name it in {categorical}=")
    many = dates.sum() >= SEVERAL and 2 * dates.sum() >= len(dates)
    # half of the distinct texts or of the rows: a few words, often repeated, do not make it categories
    share = max(numeric.mean(), counts[numeric].sum() / counts.sum())
    if many or (numeric.any() and 2 * share >= 1):
        kind, known = ("dates", dates) if many else ("numbers", numeric)
        raise place.fault(
            f"holds {kind}, and {first(~known)}",
            "correct it, name such words in {na_values}= if they stand for missing values, or the column in "
            f"{{categorical}}= if it holds no {kind}",
        )
