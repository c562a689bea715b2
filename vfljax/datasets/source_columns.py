"""Records of a column of a user's table: its distinct texts, the rows of its files, and what it was read as."""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from vfljax.datasets.core import SourceColumn
from vfljax.datasets.notations import one_spelling
from vfljax.datasets.table_errors import fault
from vfljax.errors import Text, UserError, options_in

Series = Any  # of pandas, whose annotations do not say what an operation on one returns


CELLS = str, bool, int, float, decimal.Decimal, datetime.date, datetime.time, np.generic


class Rule(NamedTuple):
    """How columns are read, as ``table.table``'s options ask."""

    missing: frozenset[str]  # texts that stand for missing values
    codes: bool = False  # whether categories become codes; none are pooled then
    most: int = 256  # the most categories of a column, the pooled one included


class Place(NamedTuple):
    """The files and row numbers of a table's rows: the training file's, then those of the test file."""

    files: tuple[str, ...]  # their names
    test: np.ndarray  # [R] bool: the rows of the test file
    rows: np.ndarray  # [R] each row's number in its file, from 1
    text: Mapping[str, Any] | None = None  # the options of ``read_csv``; None: no text was read
    hint: Text = ()  # what may be wrong with the whole table
    doubt: Text = ()  # the same, if the separator was chosen among several

    def fault(self, column: str, what: str, remedy: Text, row: int | None = None) -> UserError:
        """Returns the error of a column.

        Args:
          column: its name.
          what: what is wrong, beginning with a verb.
          remedy: what to do; names of options are in braces.
          row: the place of the row that is named, in 0..R-1; None names the column alone.
        """
        remedy = options_in(remedy) if isinstance(remedy, str) else tuple(remedy)
        remedy = (*remedy, ".", *self.doubt) if self.doubt else remedy
        if row is None:
            return fault(self.files[0], what, remedy, column=column)
        file = self.files[int(self.test[row])]
        return fault(file, what, remedy, row=int(self.rows[row]), column=column)


class Texts(NamedTuple):
    """A column as its distinct texts."""

    codes: np.ndarray  # [R] places in ``values``; -1 is missing
    values: list[str]  # without blanks around them

    def row(self, code: int) -> int:
        """Returns the first row with a value."""
        return int(np.argmax(self.codes == code))


class Feature(NamedTuple):
    """One column of the user's table, as numbers or as categories."""

    about: SourceColumn
    numbers: np.ndarray | None = None  # [R] float32, NaN where missing
    codes: np.ndarray | None = None  # [R] places in ``values``; -1 is none of them
    values: tuple[str, ...] = ()  # the categories, sorted; OTHER and NONE come last

    @property
    def column(self) -> np.ndarray:
        """The numbers, or else the codes [R]."""
        either = self.codes if self.numbers is None else self.numbers
        assert either is not None
        return either


def texts_of(
    column: Series, name: str, place: Place, missing: frozenset[str], spelled: bool = True
) -> Texts:
    """Returns a column as texts without blanks around them. Whole numbers have no decimal point.

    Args:
      column: its values [R].
      name, place: as of ``read_column``.
      missing: texts that stand for missing values.
      spelled: whether equal numbers of a text file become one text (``one_spelling``).

    Raises:
      UserError: for values that are neither texts, numbers, booleans nor dates.
    """
    try:
        codes, distinct = pd.factorize(column)
        odd = [k for k, value in enumerate(distinct) if not isinstance(value, CELLS)]
        rows = np.flatnonzero(np.isin(codes, odd[:1]))
    except TypeError:  # values without a hash, such as lists
        codes, distinct = np.zeros(0, int), []
        rows = np.flatnonzero([not isinstance(value, CELLS) for value in column])
    if len(rows):
        kind = type(column.iloc[rows[0]]).__name__
        remedy = "name it in {drop}=, or write it as columns of numbers or texts"
        what = f"holds values of type {kind}, neither number nor text"
        raise place.fault(name, what, remedy, int(rows[0]))
    words = [_text(value) for value in distinct]
    if spelled and place.text is not None:
        words = one_spelling(words, missing, place.text)
    inner, values = pd.factorize(np.asarray([None if w in missing else w for w in words], object))
    return Texts(np.append(inner, -1)[codes], list(values))


def _text(value: Any) -> str:
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return str(int(value))
    if isinstance(value, datetime.datetime):
        return str(value).removesuffix(" 00:00:00")
    return str(value).strip()
