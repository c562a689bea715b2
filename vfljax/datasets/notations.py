"""Reads numbers that are written as texts: which texts are numbers, in which notation, and which are codes."""

from __future__ import annotations

import decimal
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

WHOLE = 2**53  # above it, float64 does not hold every whole number
PLAIN = re.compile(r"0|-?[1-9]\d*", re.ASCII)  # a whole number as Python writes it
PADDED = re.compile(r"0\d+", re.ASCII)
NAMED_PADDED = re.compile(
    r"[+-]?0\d+(\.\d*)?", re.ASCII
)  # also 001.9, a code if its column is named
EXPONENT = re.compile(r"\d+[eE]\d+", re.ASCII)  # as codes have it; programs write 1e+20
CLOCK = re.compile(  # 20200131235959 and further digits
    r"(19|20)\d\d(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01])([01]\d|2[0-3])[0-5]\d[0-5]\d+", re.ASCII
)
BLOCK = 1 << 14  # numbers that stay in a processor's cache
MOST_DIGITS = 40  # of a whole number that is written without an exponent
TRUTH = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
"""The words that ``pandas.read_csv`` reads as booleans."""
END = r"([-+]?(?:inf|\d+\.?\d*(?:e[-+]?\d+)?))"
INTERVAL = re.compile(rf"[\[(]{END}, {END}[\])]", re.ASCII)  # as pandas writes one
SIGNS = "$\u20ac\u00a3\u00a5\u2212%"  # currencies, U+2212 (a minus sign) and the percent sign
GROUPED = (
    r"(\d{1,3}([.,' \u00a0\u202f]\d{3})+([.,]\d+)?|\d*[.,]?\d+)"  # 1,000 or 1 000.5, 0,5; 7 too
)
NOTED = re.compile(  # (1,000.50) and 1,000.50- are negative amounts of accountants
    rf"[-+{SIGNS}]{{0,2}} ?[-+{SIGNS}]?{GROUPED} ?[{SIGNS}]? ?-?"
    rf"|[{SIGNS}]? ?\( ?[{SIGNS}]? ?{GROUPED} ?[{SIGNS}]? ?\) ?[{SIGNS}]?"
)
SIGNED = set(SIGNS + "()")  # marks of numbers that no option of pandas reads
NOTATION = {"decimal": ".", "thousands": ""}  # as ``pandas.read_csv`` reads without options
NOTATIONS = (  # options of ``pandas.read_csv`` that read such numbers
    {"decimal": "."},
    {"decimal": ","},
    *({"thousands": mark} for mark in ",' "),
    *({"thousands": mark, "decimal": ","} for mark in ".' "),
)


def is_number(text: str) -> bool:
    """Returns True if ``text`` is a finite decimal number."""
    return re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", text, re.ASCII) is not None


def are_whole(x: np.ndarray) -> bool:
    """Returns whether all numbers [R] are whole, or NaN."""
    if x.dtype.kind != "f":
        return True
    blocks = (x[start : start + BLOCK] for start in range(0, len(x), BLOCK))
    return all(((part == np.floor(part)) | (part != part)).all() for part in blocks)


def one_spelling(words: list[str], missing: Iterable[str], options: Mapping[str, Any]) -> list[str]:
    """Returns the words of a text file's column. If all are truth values, or all are numbers, equal ones are
    spelled alike, as they are when pandas reads them. Codes stay as they are: numbers with leading zeros
    and such as 1E2 make all numbers of their column codes.

    Args:
      words: the distinct texts, missing values among them.
      missing: texts that stand for missing values.
      options: of ``pandas.read_csv``.
    """
    missing = {*missing}
    present = [word for word in words if word not in missing]
    truth = {**TRUTH, **dict.fromkeys(options.get("true_values") or (), True)}
    truth |= dict.fromkeys(options.get("false_values") or (), False)
    if present and all(word in truth for word in present):
        return [word if word in missing else str(truth[word]) for word in words]
    notation = notation_of(options)
    if any(NAMED_PADDED.fullmatch(word) or EXPONENT.fullmatch(word) for word in present):
        return words
    spelled = {word: plain_digits(word, notation) for word in present}
    if not all(spelled.values()):
        return words
    return [_shortest(spelled[word]) if word in spelled else word for word in words]


def _shortest(number: str) -> str:
    """Returns a decimal number as Python writes it, or as it is if no float is exactly this number."""
    if PLAIN.fullmatch(number):
        return number
    exact = decimal.Decimal(number)
    if exact == exact.to_integral_value() and exact.adjusted() < MOST_DIGITS:
        return str(int(exact))
    shortest = repr(float(number))
    return shortest if decimal.Decimal(shortest) == exact else number


def codes_note(values: Sequence[str]) -> str:
    """Returns why the numbers of a column are codes or identifiers; "" if they are numbers.

    They are codes if all are whole and some begin with zeros, or are so large that different ones could be
    equal as float64. Numbers that are all multiples of 1,000, or are written as 20200131235959, are times.

    Args:
      values: distinct texts, all of them numbers.
    """
    override = "numeric= reads numbers"
    if any(PADDED.fullmatch(value) for value in values):
        whole = all(float(value).is_integer() for value in values if is_number(value))
        return f"codes with leading zeros ({override})" if whole else ""
    if not all(PLAIN.fullmatch(value) for value in values):
        return ""
    large = [int(value) for value in values if len(value) > 15 and abs(int(value)) > WHOLE]
    if not any(value % 1000 for value in large) or all(map(CLOCK.fullmatch, values)):
        return ""
    return f"whole numbers beyond 2^53 ({override})"


def notation_of(options: Mapping[str, Any]) -> dict[str, str]:
    """Returns how numbers are written in a file that ``pandas.read_csv`` reads with these options."""
    return {**NOTATION, **{k: options[k] for k in NOTATION if options.get(k)}}


def floats_of(texts: Sequence[str], notation: Mapping[str, str]) -> np.ndarray:
    """Returns the numbers in texts as float64, NaN for a text that is no number."""
    if notation != NOTATION:
        return np.asarray([number_of(text, notation) for text in texts], float)
    numbers: Any = pd.to_numeric(pd.Series(texts, dtype=object), errors="coerce")
    return numbers.to_numpy(float, na_value=np.nan)


def number_of(text: str, notation: Mapping[str, str]) -> float:
    """Returns the number that a text is in a notation; NaN if it is none."""
    return float(plain_digits(text, notation) or math.nan)


def plain_digits(text: str, notation: Mapping[str, str]) -> str:
    """Returns the number that a text is in a notation, with a point and without marks; "" if it is none."""
    point = re.escape(notation.get("decimal", "."))
    mark = re.escape(notation.get("thousands", ""))
    whole = (
        rf"(\d+|[1-9]\d{{0,2}}({mark}\d{{3}})+)" if mark else r"\d+"
    )  # 0,123 is no way to write 123
    number = rf"[+-]?({whole}({point}\d*)?|{point}\d+)([eE][+-]?\d+)?"
    if not re.fullmatch(number, text, re.ASCII):
        return ""
    plain = text.replace(notation["thousands"], "") if mark else text
    return plain.replace(notation.get("decimal", "."), ".")


def readable(column: Any, notation: Mapping[str, str], now: Mapping[str, str]) -> bool:
    """Returns False if another notation would change a column's numbers, or leave them texts."""
    if pd.api.types.is_float_dtype(column.dtype):
        x = column.to_numpy(float, na_value=np.nan)
        fractions = bool((x[~np.isnan(x)] % 1 != 0).any())
        return notation.get("decimal", ".") == now["decimal"] or not fractions
    if not pd.api.types.is_string_dtype(column.dtype) and column.dtype != object:
        return True
    values = [str(value).strip() for value in pd.unique(column.dropna())]
    noted = [value for value in values if NOTED.fullmatch(value) and not set(value) & SIGNED]
    few = 2 * len(noted) < len(values)
    return few or not any(math.isnan(number_of(value, notation)) for value in noted)


def ordered(values: Iterable[str]) -> list[str]:
    """Returns the values sorted: by size if all are numbers, or all intervals, else by character.

    >>> ordered(["(100.0, inf]", "(-inf, 5.0]", "(5.0, 100.0]"])
    ['(-inf, 5.0]', '(5.0, 100.0]', '(100.0, inf]']
    """
    values = list(values)
    sizes: dict[str, tuple[float, ...]] = {}
    for value in values:
        ends = INTERVAL.fullmatch(value)
        if is_number(value):
            sizes[value] = (float(value),)
        elif ends:
            sizes[value] = tuple(map(float, ends.groups()))
    if len(sizes) < len(values) or len({len(size) for size in sizes.values()}) > 1:
        return sorted(values)
    return sorted(values, key=lambda value: (sizes[value], value))
