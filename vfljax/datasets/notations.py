"""Texts that stand for numbers, dates or times, in a notation that options name.

What enters: the distinct texts of a column. What leaves: numbers, days, or the options that would read them.
"""

from __future__ import annotations

import datetime
import re
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute

from vfljax.errors import UserError

pc: Any = pyarrow.compute  # its functions are made when imported: no type checker knows them

MONTH = (
    "(jan(uary)?|feb(ruary)?|mar(ch)?|apr(il)?|may|june?|july?|aug(ust)?|sept?(ember)?|oct(ober)?"
    "|nov(ember)?|dec(ember)?)"
)
CLOCK = r"\d{1,2}:\d{2}(:\d{2}([.,]\d+)?)?( ?[ap]m)?"
DAY = rf"(\d{{1,4}}[-/.]\d{{1,2}}[-/.]\d{{1,4}}|(\d{{1,4}}[ .-]+)?{MONTH}[ .-]+(\d{{1,2}},? +)?\d{{2,4}})"
WEEKDAY = "((mon|tue|wed|thu|fri|sat|sun)[a-z]*,? +)?"
# 2020-01-31, 31.1.20, 31 Jan 2020, Fri, Jan 31, 2020; a time may follow, or stand alone
DATE = rf"(?i)^({WEEKDAY}{DAY}([T ,]+\d{{1,2}}:\d{{2}}.*)?|{CLOCK})$"
DAYS = "%Y-%m-%d %Y/%m/%d %Y.%m.%d %d.%m.%Y %d.%m.%y %d/%m/%Y %m/%d/%Y %d/%m/%y %m/%d/%y %d-%m-%Y %m-%d-%Y"
NAMED = "%d %b %Y", "%d %B %Y", "%d-%b-%Y", "%d-%b-%y", "%b %d, %Y", "%B %d, %Y", "%b %d %Y"
CLOCKS = "%H:%M", "%H:%M:%S", "%H:%M:%S.%f", "%I:%M %p", "%I:%M:%S %p"
FORMATS = (  # of datetime.strptime; ISO 8601 is read before
    *(f"{day} {time}".strip() for time in ("", *CLOCKS) for day in (*DAYS.split(), *NAMED)),
    *CLOCKS,
)
ISO = "ISO 8601"
EPOCH, TICK = datetime.datetime(1970, 1, 1), datetime.timedelta(microseconds=1)
SIGNS = "$\u20ac\u00a3\u00a5\u2212"  # a minus sign that is no hyphen too: no option reads these
# 1,000 or 1 000.5, 0,5, 5%, $1.00; plain numbers too
DIGITS = "(\\d{1,3}([.,' \u00a0\u202f]\\d{3})+([.,]\\d+)?|\\d*[.,]?\\d+)"
NOTED = f"^[-+{SIGNS}]{{0,2}} ?[-+{SIGNS}]?{DIGITS} ?[%{SIGNS}]?$"


class Notation(NamedTuple):
    """How numbers are written: 1,000.5 with thousands=","; 0,5 with decimal=","; 5% with percent=True,
    then .05. ``date_format``: of dates that may be read in several ways, as of ``strptime``."""

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


def checked(how: Notation) -> Notation:
    """``how``, if its values can be meant; raises UserError."""
    if how.thousands and how.thousands == how.decimal:
        raise UserError(f"thousands={how.thousands!r} is also decimal=: give two different signs.")
    for option, value, right in (
        ("decimal", how.decimal, "'.' or ','"),
        ("thousands", how.thousands, "another of ',', '.', ' ', \"'\", '_', or '' for none"),
        ("percent", how.percent, "True or False"),
        ("date_format", how.date_format, "a text as of strptime, such as '%d/%m/%Y'"),
    ):
        good = {
            "decimal": value in (".", ","),
            "thousands": value in ("", ",", ".", " ", "'", "_"),
            "percent": isinstance(value, bool),
            "date_format": isinstance(value, str) and (not value or "%" in value),
        }
        if not good[option]:
            raise UserError(f"{option}={value!r}: give {right}.")
    return how


def is_number(text: str) -> bool:
    """Whether ``text`` is a finite decimal number, without any option."""
    return re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", text, re.ASCII) is not None


def numbers(texts: pa.Array, how: Notation) -> pa.Array:
    """[R] float64, null where a text is no number in this notation."""
    point, mark = re.escape(how.decimal), re.escape(how.thousands)
    if how.thousands == " ":  # and those that do not break a line
        texts = pc.replace_substring_regex(texts, "[\u00a0\u202f]", " ")
    # nobody writes 123 as 0,123: that is a decimal comma
    whole = rf"(\d+|[1-9]\d{{0,2}}({mark}\d{{3}})+)" if mark else r"\d+"
    form = rf"({whole}({point}\d*)?|{point}\d+)([eE][+-]?\d+)?{' ?%?' if how.percent else ''}"
    good = pc.match_substring_regex(texts, rf"^[+-]?({form}|(?i:inf(inity)?))$")
    texts = pc.if_else(good, texts, pa.scalar(None, texts.type))
    share = pc.ends_with(texts, "%")
    texts = pc.utf8_rtrim(texts, " %")
    if mark:
        texts = pc.replace_substring(texts, how.thousands, "")
    if how.decimal != ".":
        texts = pc.replace_substring(texts, how.decimal, ".")
    values = pc.cast(texts, pa.float64())
    return pc.if_else(share, pc.divide(values, 100.0), values)


def of_day(texts: pa.Array, form: str) -> bool:
    """Whether all ``texts`` are equally many digits, six or more, that the form reads: 20200131."""
    alike = pc.all(pc.match_substring_regex(texts, r"^\d{6,14}$")).as_py()
    alike = alike and len(pc.utf8_length(texts).unique()) == 1
    return bool(form and alike) and moments(texts, form) is not None


def ways(texts: pa.Array, how: Notation) -> str:
    """The options under which the most texts are numbers, as a message names them. Where two read equally
    many, as of 1,000, both are named."""
    ranked = []
    bare = pc.utf8_trim_whitespace(pc.replace_substring_regex(texts, f"[{SIGNS}]", ""))
    for signs, some in ((False, texts), (True, bare)):
        for way in WAYS if not signs else ({}, *WAYS):
            other = how._replace(**way)
            if (other != how or signs) and other.thousands != other.decimal:
                named = " and ".join(f"{option}={value!r}" for option, value in way.items())
                read = pc.sum(numbers(some, other).is_valid()).as_py() or 0
                said = "write them without a sign such as $" if signs else named
                ranked.append(((read, not signs, -len(way)), said))
    best = max(rank for rank, _ in ranked)
    names = " or ".join(dict.fromkeys(said for rank, said in ranked if rank == best))
    return names if names.startswith("write") else f"give {names}"


def moments(texts: pa.Array, form: str) -> np.ndarray | None:
    """[R] microseconds since 1970 as float64; None where a text is no date or time of this form."""
    if form != ISO:
        try:
            read = [datetime.datetime.strptime(text, form) for text in texts.to_pylist()]
            return np.asarray([(one.replace(tzinfo=None) - EPOCH) / TICK for one in read], float)
        except ValueError:
            return None
    for kind in (pa.timestamp("us"), pa.timestamp("us", "UTC")):
        try:
            return pc.cast(pc.cast(texts, kind), pa.int64()).to_numpy().astype(float)
        except pa.ArrowInvalid:
            continue
    return None


def forms(texts: pa.Array) -> list[tuple[str, np.ndarray]]:
    """(form, microseconds) of each different reading of all ``texts`` as dates or times."""
    out: list[tuple[str, np.ndarray]] = []
    for form in (ISO, *FORMATS):
        ticks = moments(texts, form)
        if ticks is not None and all((ticks != other).any() for _, other in out):
            out.append((form, ticks))
        if out and form == ISO:
            break
    return out


def microseconds(array: pa.Array) -> np.ndarray:
    """[R] float64 of Arrow's dates, times or durations: since 1970, midnight or nothing."""
    kind = array.type
    if pa.types.is_duration(kind) or pa.types.is_time(kind):
        unit = pa.duration("us") if pa.types.is_duration(kind) else pa.time64("us")
    else:
        unit = pa.timestamp("us", getattr(kind, "tz", None))
    # nanoseconds are cut off; coarser units may be out of bounds, which is not to pass
    fine = getattr(kind, "unit", "day") == "ns"
    ticks = pc.cast(pc.cast(array, unit, safe=not fine), pa.int64())
    return pc.cast(ticks, pa.float64(), safe=False).to_numpy(zero_copy_only=False)
