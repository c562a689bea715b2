"""Figures as text: the only place where a number of the report is rounded."""

from __future__ import annotations

import math
from collections.abc import Sequence

NONE = "-"
"""The text in place of a figure that is not known."""


def number(value: float) -> str:
    """Returns a knob's value, such as ".3", "2" or "1e-05"."""
    text = f"{value:g}"
    sign, text = ("-", text[1:]) if text.startswith("-") else ("", text)
    return sign + (text.removeprefix("0") if text.startswith("0.") else text)


def figure(value: float, digits: int = 2) -> str:
    """Returns a figure in [0, 1] as ".97" or "1.00"; "-" for NaN."""
    if math.isnan(value):
        return NONE
    text = f"{value:.{digits}f}"
    return "." + text.removeprefix("0.") if text.startswith("0.") else text


def with_limits(mean: float, lower: float, upper: float, digits: int = 2) -> str:
    """Returns ".97 (.95 to .98)"; without limits the mean alone."""
    text = figure(mean, digits)
    if math.isnan(lower) or math.isnan(mean):
        return text
    return f"{text} ({figure(lower, digits)} to {figure(upper, digits)})"


def signed(mean: float, lower: float = math.nan, upper: float = math.nan) -> str:
    """Returns a difference as "+.12 (+.08 to +.16)"; "0" where it rounds to 0, "-" for NaN."""

    def one(value: float) -> str:
        text = f"{value:+.2f}"
        return "0" if float(text) == 0 else text.replace("0.", ".", 1)

    if math.isnan(mean):
        return NONE
    return one(mean) if math.isnan(lower) else f"{one(mean)} ({one(lower)} to {one(upper)})"


def points(mean: float, lower: float = math.nan, upper: float = math.nan) -> str:
    """Returns a difference of utility in points, such as "-0.4 points (-0.9 to +0.1)"; "-" for NaN."""

    def one(value: float) -> str:
        text = f"{100 * value:+.1f}"
        return "0.0" if text in ("+0.0", "-0.0") else text

    if math.isnan(mean):
        return NONE
    return f"{one(mean)} points" + ("" if math.isnan(lower) else f" ({one(lower)} to {one(upper)})")


def share(value: float) -> str:
    """Returns a share as "83 %"; "-" for NaN."""
    return NONE if math.isnan(value) else f"{100 * value:.0f} %"


def apart(value: float, bound: float) -> tuple[str, str]:
    """Returns two figures with as many digits as it takes to see which is the larger one, at least three.

    >>> apart(0.99995, 0.99991), apart(0.91, 0.87)
    (('1.0000', '.9999'), ('.910', '.870'))
    """
    for count in range(3, 16):
        texts = figure(value, count), figure(bound, count)
        if texts[0] != texts[1] or value == bound:
            return texts
    return repr(value), repr(bound)


def count(number: int, what: str) -> str:
    """Returns "1 seed" or "3 seeds"; "family" becomes "families"."""
    many = f"{what[:-1]}ies" if what.endswith("y") else f"{what}s"
    return f"{number:,} {what if number == 1 else many}"


def listed(names: Sequence[str], most: int | None = None) -> str:
    """Returns "a, b and c"; beyond ``most`` names "a, b and 2 more"."""
    names = list(names)
    if most is not None and len(names) > most:
        names = [*names[:most], f"{len(names) - most} more"]
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))
