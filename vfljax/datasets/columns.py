"""Finds what each column of a user's table is, and makes numbers or categories of it.

A column comes as the pandas Series of all rows: the training file's, then those of a test file. Texts are
looked at once for each distinct value. Where two readings of a column differ in value, none is chosen: the
error names the options that choose.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import pandas as pd

from vfljax.datasets.core import SourceColumn
from vfljax.datasets.dates import DATE, date_column, microseconds, ticks_of
from vfljax.datasets.notations import (
    NOTATIONS,
    NOTED,
    SIGNED,
    WHOLE,
    are_whole,
    codes_note,
    floats_of,
    is_number,
    notation_of,
    number_of,
    ordered,
    readable,
)
from vfljax.datasets.source_columns import Feature, Place, Rule, Series, Texts, texts_of
from vfljax.datasets.table_errors import alike, csv_option, quoted
from vfljax.errors import Text, options_in

MISSING = "(missing)"  # the category of a missing value
OTHER = "(other)"  # the category that pools the rarest values
NEARLY = (20, 0.9)  # an identifier has more than 20 distinct texts, and as many as 90 % of its rows
SEVERAL = 3  # fewer numbers or dates among words may well be names of categories
EXACT = 2**24  # above it, float32 does not hold every whole number
FEW = 20  # a column of at most so many distinct whole numbers may hold codes
SAMPLE = 10_000  # rows in which a column is looked at before all of it is


def read_column(
    column: Series, name: str, place: Place, rule: Rule, kind: str, frame: pd.DataFrame
) -> Feature | None:
    """Finds what a column is, and reads it.

    Args:
      column: its values [R].
      name: its name.
      place: the files and numbers of the rows.
      rule: how it is read.
      kind: "number" or "category" if the user names it so; "" lets the values decide.
      frame: all columns, which decide whether an option of the whole file can help.

    Returns:
      The column; None if it has no value at all.

    Raises:
      UserError: for a column that can be read in several ways, or that is neither numbers nor categories.
    """
    marked = isinstance(column.dtype, pd.CategoricalDtype)
    if kind == "category" or (marked and kind != "number"):
        texts = texts_of(column, name, place, rule.missing)
        return _category(texts, name, place, rule, True) if texts.values else None
    types = pd.api.types
    if marked:
        column = column.astype(object).infer_objects()
    if types.is_datetime64_any_dtype(column.dtype):
        try:
            return date_column(microseconds(column), name, place)
        except (ValueError, OverflowError) as error:
            raise place.fault(
                name, f"holds dates out of bounds ({error})", "correct them"
            ) from error
    if types.is_timedelta64_dtype(column.dtype):
        x, read_as, note = column.dt.total_seconds().to_numpy(float) / 86400, "number", "days"
        return _numbers(x, name, place, read_as, note)
    if types.is_numeric_dtype(column.dtype) and not types.is_complex_dtype(column.dtype):
        read_as = "boolean" if types.is_bool_dtype(column.dtype) else "number"
        x = _values(column)
        gone = [float(word) for word in rule.missing if is_number(word)]
        x = np.where(np.isin(x, gone), np.nan, x) if gone else x
        return _numbers(x, name, place, read_as, _merged_note(column), kind == "number")
    texts = texts_of(column, name, place, rule.missing, spelled=False)
    if not texts.values:
        return None
    if all(value.lower() in ("true", "false") for value in texts.values):
        truth = [float(value.lower() == "true") for value in texts.values]
        return _numbers(np.asarray([*truth, np.nan])[texts.codes], name, place, "boolean")
    notation = notation_of(place.text or {})
    numbers = floats_of(texts.values, notation)
    if not np.isnan(numbers).any():
        if kind != "number" and (note := codes_note(texts.values)):
            return _category(texts, name, place, rule, False, note)
        x = np.append(numbers, np.nan)[texts.codes]
        return _numbers(x, name, place, "number", "", kind == "number")
    dated = np.asarray([DATE.fullmatch(value) is not None for value in texts.values])
    if dated.all():
        return date_column(ticks_of(texts, name, place), name, place)
    if kind == "number":
        code = int(np.argmax(np.isnan(numbers)))
        what = f"has {quoted(texts.values[code])}, which is no number"
        remedy = "correct it, name it in {na_values}= if it is missing, or take the column out of {numeric}="
        raise place.fault(name, what, remedy, texts.row(code))
    _refuse_mixture(texts, numbers, dated, name, place, notation, frame)
    return _category(texts, name, place, rule, False)


def _values(column: Series) -> np.ndarray:
    """Returns a column of numbers [R] as float64, NaN where missing; integers stay if float64 has them all."""
    if isinstance(column.dtype, np.dtype) and column.dtype.kind in "iu":
        x = column.to_numpy()
        if x.max(initial=0) <= WHOLE and x.min(initial=0) >= -WHOLE:
            return x
    return column.to_numpy(float, na_value=np.nan)


def _merged_note(column: Series) -> str:
    """Returns what to say of integers that float64 merges; "" if it holds them all."""
    if not pd.api.types.is_integer_dtype(column.dtype):
        return ""
    if not len(column := column.dropna()) or max(int(column.max()), -int(column.min())) <= WHOLE:
        return ""
    values = pd.unique(column)
    if len(pd.unique(np.asarray(values, float))) == len(values):
        return ""
    return "different whole numbers beyond 2^53 are equal as float64: name codes in categorical="


def _numbers(
    x: np.ndarray, name: str, place: Place, read_as: str, note: str = "", named: bool = False
) -> Feature | None:
    """Returns a column of numbers [R], or None if all are missing; ``named``: as the user asks."""
    missing = np.isnan(x) if x.dtype.kind == "f" else np.zeros(len(x), bool)
    count = int(missing.sum())
    if count == len(x):
        return None
    with np.errstate(over="ignore"):
        rounded = x.astype(np.float32)
    infinite = np.isinf(rounded)
    if infinite.any():
        row = int(np.argmax(infinite))
        why = "is infinite or too large" if np.isinf(x[row]) else "is too large for float32"
        remedy = "correct it, or leave it empty if it is missing"
        raise place.fault(name, f"has {x[row]:g}, which {why}", remedy, row)
    present = x[~missing] if count else x
    notes = (
        [note] if note else _number_notes(present, count == 0, named) if read_as == "number" else []
    )
    if read_as == "boolean" and (present == present[0]).all():
        notes = ["one value in all rows"]
    return Feature(SourceColumn(name, read_as, count, note="; ".join(notes)), numbers=rounded)


def _number_notes(x: np.ndarray, whole_column: bool, named: bool) -> list[str]:
    """Returns what a person should know about numbers without NaN. A sample spares most columns a look at
    all rows."""
    sample = x[:SAMPLE]
    distinct = np.unique(sample)
    if len(distinct) == 1 and (x == x[0]).all():
        return ["one value in all rows"] if whole_column else ["one value, or none"]
    notes = []
    if are_whole(distinct) and are_whole(x):
        if len(distinct) == len(sample) > FEW and whole_column and len(pd.unique(x)) == len(x):
            notes.append("another whole number in every row: drop an identifier")
        elif 2 < len(distinct) <= FEW and len(few := pd.unique(x)) <= FEW and not named:
            notes.append(f"{len(few)} distinct whole numbers: name codes in categorical=")
        if max(float(x.max()), -float(x.min())) > EXACT and (x.astype(np.float32) != x).any():
            notes.append(f"whole numbers above {EXACT:,} are rounded to float32")
    elif (merged := len(distinct) - len(np.unique(distinct.astype(np.float32)))) > 0.01 * len(
        distinct
    ):
        notes.append(
            f"different values are equal as float32 ({merged:,} of the first {len(distinct):,})"
        )
    return notes


def _refuse_mixture(
    texts: Texts,
    numbers: np.ndarray,
    dated: np.ndarray,
    name: str,
    place: Place,
    notation: Mapping[str, str],
    frame: pd.DataFrame,
) -> None:
    """Raises UserError if about half of a column are numbers, also in a notation that is not read, or dates.

    Args:
      texts: the column.
      numbers: [V] of its distinct values, NaN for one that is no number.
      dated: [V] which of them are dates.
      name, place, frame: as of ``read_column``.
      notation: how numbers are written in the file.
    """
    values = texts.values
    numeric = ~np.isnan(numbers)
    noted = np.asarray([NOTED.fullmatch(value) is not None for value in values])
    bracketed = np.asarray(["(" in value for value in values])
    if not (noted & ~bracketed).any():  # (1), (2) and (3) are no negative amounts
        noted &= ~bracketed
    if (
        (noted & ~numeric).any()
        and 2 * noted.sum() >= len(values)
        and (noted.sum() >= SEVERAL or noted.all())
    ):
        code = int(np.argmax(noted & ~numeric))
        what = f"has {quoted(values[code])}, a number in a notation that is not read"
        odd = [value for value, is_noted in zip(values, noted) if is_noted]
        remedy = _notation_remedy(odd, name, place, notation, frame)
        raise place.fault(name, what, remedy, texts.row(code))
    dates = dated.sum() >= SEVERAL and 2 * dated.sum() >= len(values)
    counts = np.bincount(texts.codes[texts.codes >= 0], minlength=len(values))
    # half of the distinct texts or of the rows: a few words, often repeated, do not make it categories
    share = max(numeric.mean(), counts[numeric].sum() / counts.sum())
    if not dates and not (numeric.any() and 2 * share >= 1):
        return
    kind, known = ("dates", dated) if dates else ("numbers", numeric)
    code = int(np.argmax(~known))
    remedy = (
        "correct it, name such words in {na_values}= if they stand for missing values, or the column in "
        f"{{categorical}}= if it holds no {kind}"
    )
    what = f"has {quoted(values[code])}, and other rows hold {kind}"
    raise place.fault(name, what, remedy, texts.row(code))


def _notation_remedy(
    values: list[str], name: str, place: Place, now: Mapping[str, str], frame: pd.DataFrame
) -> Text:
    """Returns what to do about numbers in a notation that is not read. An option is for a whole file: it is
    advised only if every other column can be read with it."""
    other = options_in(", or name it in {categorical}= if they are no numbers")
    if place.text is None or any(set(value) & SIGNED for value in values):
        plain = (
            "write them as plain numbers, such as 1000.5 or -0.05, without parentheses and signs of a "
            "currency or a %"
        )
        return (plain, *other)
    fitting: dict[tuple[float, ...], dict[str, str]] = {}  # of each reading, the first notation
    for notation in NOTATIONS:
        numbers = tuple(number_of(value, notation) for value in values)
        if not any(map(math.isnan, numbers)):
            fitting.setdefault(numbers, notation)
    if not fitting:
        return ("write them as plain numbers, such as 1000.5", *other)
    usable, witness = [], ""
    for notation in fitting.values():
        against = [c for c in frame if c != name and not readable(frame[c], notation, now)]
        witness = witness or next(map(str, against), "")
        usable += [] if against else [" or ", *csv_option(**notation)]
    if usable:
        return ("give ", *usable[1:], *other)
    what = f"the file mixes notations (column {witness!r} writes its numbers in another way)"
    return (f"{what}, which no option reads: rewrite one of the two columns", *other)


def _category(
    texts: Texts, name: str, place: Place, rule: Rule, named: bool, note: str = ""
) -> Feature:
    """Returns a column of categories.

    Args:
      texts: the column.
      name, place, rule: as of ``read_column``.
      named: whether the user names it a category, whatever its values look like.
      note: what is said of the column.
    """
    of_all, of_test = (
        np.bincount(codes + 1, minlength=len(texts.values) + 1)  # the first counts missing values
        for codes in (texts.codes, texts.codes[place.test])
    )
    of_training = of_all - of_test
    missing, counts = bool(of_training[0]), of_training[1:]
    values = ordered(value for value, count in zip(texts.values, counts) if count)
    present = int(counts.sum())
    if not named and len(values) > NEARLY[0] and len(values) >= NEARLY[1] * present:
        what = f"has {len(values):,} distinct texts in {present:,} rows, like an identifier"
        remedy = "name it in {drop}=, or in {categorical}= if its values are categories"
        first = 0
        if note:
            what, remedy = f"{what}, {note}", f"{remedy}, or in {{numeric}}= if they are numbers"
        else:  # what keeps a column from being numbers is none
            first = next((k for k, v in enumerate(texts.values) if not is_number(v)), 0)
            remedy += "; numbers with a unit are to be written without it"
        example = "the first" if first == 0 else "one"
        what = f"{what} ({example} is {quoted(texts.values[first])})"
        raise place.fault(name, what, remedy, texts.row(first) if first else None)
    pooled, rest = 0, -1
    number = dict(zip(texts.values, counts.tolist()))
    if not rule.codes and len(values) + missing > rule.most:  # of equal counts, the last are pooled
        frequent = sorted(values, key=lambda value: -number[value])
        kept = set(frequent[: max(0, rule.most - 1 - missing)])
        pooled, rest = len(values) - len(kept), len(kept)
        values = [*(value for value in values if value in kept), OTHER]
    gone = int(of_all[0])
    unknown = int(of_all[1:][counts == 0].sum())  # test rows of another category
    if missing or (rule.codes and (gone or unknown)):
        values.append(MISSING)
    code = {value: k for k, value in enumerate(values) if k != rest}
    absent = len(values) - 1 if values and values[-1] == MISSING else -1
    none = absent if rule.codes else rest
    codes = np.asarray([*(code.get(v, none) for v in texts.values), absent], np.int32)[texts.codes]
    notes = [note] if note else []
    if unknown:
        notes.append(f"{unknown:,} test rows have a category that no training row has")
    if len(texts.values) <= SAMPLE and len(set(map(alike, texts.values))) < len(texts.values):
        notes.append("some categories differ in case, spaces or invisible characters only")
    if len(values) == 1:
        notes.append("one value in all rows")
    about = SourceColumn(name, "category", gone, len(values), pooled, "; ".join(notes))
    return Feature(about, codes=codes, values=tuple(values))
