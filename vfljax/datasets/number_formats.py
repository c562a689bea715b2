"""Texts that stand for numbers, in a notation that options name.

What enters: the distinct texts of a column. What leaves: numbers, or the options that would read them.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute

from vfljax.errors import Field, options_in

pc: Any = pyarrow.compute  # its functions are made when imported: no type checker knows them

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


def ways(texts: pa.Array, how: Notation) -> tuple[str | Field, ...]:
    """Returns the remedy: the options under which the most texts are numbers. Where two read equally many,
    as of 1,000, both are named."""
    ranked = []
    bare = pc.utf8_trim_whitespace(pc.replace_substring_regex(texts, f"[{SIGNS}]", ""))
    for signs, some in ((False, texts), (True, bare)):
        for way in WAYS if not signs else ({}, *WAYS):
            other = how._replace(**way)
            if (other != how or signs) and other.thousands != other.decimal:
                named = " and ".join(f"{{{option}}}={value!r}" for option, value in way.items())
                read = pc.sum(numbers(some, other).is_valid()).as_py() or 0
                said = "write them without a sign such as $" if signs else named
                ranked.append(((read, not signs, -len(way)), said))
    best = max(rank for rank, _ in ranked)
    names = " or ".join(dict.fromkeys(said for rank, said in ranked if rank == best))
    return options_in(names if best[1] is False else f"give {names}")
