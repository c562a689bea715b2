"""What one column of a table is."""

from __future__ import annotations

from typing import NamedTuple


class Column(NamedTuple):
    """One column of a table's features: a number; one category of a source column, as 0 or 1; or a
    whole source column as a code 0..vocabulary-1. NaN is a missing number."""

    name: str  # of the source column; those of one name never part
    kind: str = "number"  # or "category", "code"
    value: str = ""  # the category, where it is one
    vocabulary: int = 0  # of a code
