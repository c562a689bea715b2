"""Figures as text."""

import math

import pytest

from vfljax.report import words


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (words.number(0.3), ".3"),
        (words.number(-0.25), "-.25"),
        (words.number(1e-5), "1e-05"),
        (words.figure(0.974), ".97"),
        (words.figure(0.05), ".05"),
        (words.figure(math.nan), "-"),
        (words.with_limits(0.9, 0.85, 1.0), ".90 (.85 to 1.00)"),
        (words.signed(-0.123, -0.2, 0.004), "-.12 (-.20 to 0)"),
        (words.points(0.0021), "+0.2 points"),
        (words.points(-0.0001, -0.01, 0.01), "0.0 points (-1.0 to +1.0)"),
        (words.share(0.834), "83 %"),
        (words.count(1, "family"), "1 family"),
        (words.count(3000, "family"), "3,000 families"),
        (words.listed(["a", "b", "c"]), "a, b and c"),
        (words.listed(list("abcde"), 2), "a, b and 3 more"),
    ],
)
def test_figures_are_rounded_in_one_place(text, expected):
    assert text == expected
