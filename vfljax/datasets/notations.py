"""Dates and numbers that a table holds as words: as categories they would be one column a value.

What enters: a column of texts that are not all numbers. What leaves: a ``UserError`` with the remedy
where it holds dates, or numbers in a notation that is not read; else nothing.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute

from vfljax.datasets.faults import shown
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
SIGN, UNIT = r"[-+\x{2212}]?", r"[%$\x{20ac}\x{a3}\x{a5}]?"
DIGITS = r"(\d{1,3}([.,' \x{a0}\x{202f}]\d{3})+([.,]\d+)?|\d*[.,]?\d+)"
# 1,000 or 1 000.5, 0,5, 5%, $1.00, -1 by a minus sign that is no hyphen; plain numbers too
NOTED = rf"^{SIGN}{UNIT} ?{SIGN}{DIGITS} ?{UNIT}$"
PLAIN = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"
SEVERAL = 3  # values of one notation: fewer may well be the names of categories


def refuse_notations(place: str, name: str, array: pa.Array) -> None:
    """Raises UserError for dates, and for numbers in a notation that reads as words: at least half of
    the distinct values, and ``SEVERAL``; dates also where there is nothing else."""
    values = array.drop_null().unique()
    dates = pc.match_substring_regex(values, DATE)
    plain = pc.match_substring_regex(values, PLAIN)
    numbers = pc.or_(plain, pc.match_substring_regex(values, NOTED))
    if _most(dates) or pc.all(dates).as_py():
        raise dated(place, name, f"such as {shown(values.filter(dates)[0].as_py())}")
    strange = pc.and_not(numbers, plain)
    if _most(numbers) and pc.any(strange).as_py():
        value = values.filter(strange)[0].as_py()
        row = pc.index(array, value).as_py() + 1
        raise UserError(
            f"{place}: column {name!r} holds numbers in a notation that is not read ({shown(value)} in "
            f"row {row}): write them as 1000 or 0.5, without signs such as % or $, or name it in "
            "categorical=."
        )


def _most(which: pa.Array) -> bool:
    count = pc.sum(which).as_py() or 0
    return count >= SEVERAL and 2 * count >= len(which)


def dated(place: str, name: str, what: str) -> UserError:
    return UserError(
        f"{place}: column {name!r} holds dates or times ({what}): name it in drop=, write it as "
        "numbers (days since a day), or name it in categorical=."
    )
