"""Texts that stand for numbers, in a notation that options name."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa

Series = Any  # of pandas, whose annotations do not tell what an operation on one returns
TEXT = pd.ArrowDtype(pa.large_string())  # holds more than 2 GiB of texts
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


def matches(texts: Series, pattern: str) -> np.ndarray:
    """Returns whether each text matches an RE2 pattern that begins with ^; False where it is missing."""
    return texts.str.match(pattern, na=False).to_numpy(bool)


def numbers(texts: Series, notation: Notation) -> np.ndarray:
    """Returns [R] float64, NaN where a text is missing or no number in this notation."""
    point, mark = re.escape(notation.decimal), re.escape(notation.thousands)
    if notation.thousands == " ":  # and those that do not break a line
        texts = texts.str.replace("[\u00a0\u202f]", " ", regex=True)
    # 0,123 is no way to write 123: its comma is a decimal one
    whole = rf"(\d+|[1-9]\d{{0,2}}({mark}\d{{3}})+)" if mark else r"\d+"
    digits = rf"({whole}({point}\d*)?|{point}\d+)([eE][+-]?\d+)?"
    share = " ?%?" if notation.percent else ""
    texts = texts.where(matches(texts, rf"^[+-]?({digits}{share}|(?i:inf(inity)?))$"))
    signed = matches(texts, "^.*%$")
    texts = texts.str.rstrip(" %")
    if mark:
        texts = texts.str.replace(notation.thousands, "", regex=False)
    if notation.decimal != ".":
        texts = texts.str.replace(notation.decimal, ".", regex=False)
    values = texts.astype(pd.ArrowDtype(pa.float64())).to_numpy(float, na_value=np.nan)
    return np.where(signed, values / 100, values)


def ways(texts: Series, notation: Notation) -> str:
    """Returns the remedy, options in braces, under which the most texts are numbers.

    Where two options read equally many, as of 1,000, both are named.
    """
    ranked = []
    bare = texts.str.replace(f"[{SIGNS}]", "", regex=True).str.strip()
    for without_signs, candidates in ((False, texts), (True, bare)):
        for way in ({}, *WAYS) if without_signs else WAYS:
            other = notation._replace(**way)
            if (other != notation or without_signs) and other.thousands != other.decimal:
                named = " and ".join(f"{{{option}}}={value!r}" for option, value in way.items())
                read = int((~np.isnan(numbers(candidates, other))).sum())
                remedy = "write them without a sign such as $" if without_signs else named
                ranked.append(((read, not without_signs, -len(way)), remedy))
    best = max(rank for rank, _ in ranked)
    names = " or ".join(dict.fromkeys(remedy for rank, remedy in ranked if rank == best))
    return names if names.startswith("write") else f"give {names}"
