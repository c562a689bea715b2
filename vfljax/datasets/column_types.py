"""What each column of a user's table is and becomes: a number, days since a date, or a category.

CSV, Parquet, NPZ and data frames of equal content give equal sources: texts that are all numbers are
numbers, numbers named as categories are texts. The training file's rows decide; a test file's are read alike.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa

from vfljax.datasets.number_formats import (
    TEXT,
    Notation,
    Series,
    Since,
    days,
    is_number,
    matches,
    moments,
    numbers,
    of_digits,
    refuse_mixture,
)
from vfljax.datasets.table_errors import Place, shown

NAN = ("", "NaN", "nan", "-NaN", "-nan", "NAN")
# pandas' (3.1, pandas._libs.parsers.STR_NA_VALUES), the question mark, and two more of ours
MISSING = (
    *NAN,
    *("#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "1.#IND", "1.#QNAN", "<NA>", "N/A", "NA"),
    *("NULL", "None", "n/a", "null", "Null", "?"),
)
NONE = "(missing)"  # the category of a missing value
OTHER = "(other)"  # the category that pools the rarest
NEARLY = (20, 0.9)  # more distinct texts than this, and in this share of the rows: an identifier
SHARE = "^.*%$"
NO_VALUE = ("has no value in row {row} and missing='refuse'", "fill it, or {missing}='keep'")
Part = tuple[Place, Series]  # a column in one file


class Rule(NamedTuple):
    """How columns are read, as ``user_table.table``'s options ask."""

    missing: tuple[str, ...] = MISSING  # words that are missing values
    notation: Notation = Notation()  # of numbers and dates
    refuse: bool = False  # missing values
    codes: bool = False  # categories become codes, and none are pooled
    most: int = 256  # categories of a column, the pooled one among them
    ignore: bool = False  # categories that only the test file has; they are refused otherwise


class Source(NamedTuple):
    """One column of the user's table; either ``numbers`` or ``codes`` is set."""

    name: str
    missing: np.ndarray  # [R] bool
    numbers: np.ndarray | None = None  # [R] float64, NaN where missing
    codes: np.ndarray | None = None  # [R] int32, places in values; -1 is none of them
    values: tuple[str, ...] = ()  # sorted; OTHER and NONE last, where there are such
    words: Mapping[str, int] = {}  # those read as missing, and how often
    since: Since | None = None  # of dates
    pooled: int = 0  # rare values that became one
    unknown: int = 0  # test rows of a category that no training row has
    padded: str = ""  # of numbers: the first that was written with a zero before it
    merged: int = 0  # different numbers that are equal as float32


def source(name: str, parts: Sequence[Part], rule: Rule, kind: str = "") -> Source:
    """Finds out what a column of a table is, and reads it.

    Args:
      name: the column's name.
      parts: where it is and its values as of ``reading.framed``: of the training file, which decides, and
        then of the test file if there is one.
      rule: how it is read.
      kind: "number", "category", or "": what it looks like.

    Raises:
      UserError: with column and row, for what could be read in two ways, or as nothing that helps.
    """
    read, words = [], Counter()
    for place, column in parts:
        place = place.at(name)
        values, met = _cleaned(place, column, rule)
        words.update(met)
        read.append((place, values))
    column = None if kind == "category" else _numeric(read, rule, kind)
    column = column or _category(read, rule, kind)
    words.update(column.words)
    return column._replace(words=words)


def words_of(place: Place, column: Series, rule: Rule) -> Series:
    """Returns a column as trimmed texts of ``TEXT``, null where one is missing.

    Args:
      place: the column's, for messages.
      column: as of ``reading.framed``.
      rule: which words are missing values.
    """
    return _texts(_cleaned(place, column, rule)[0])


def ordered(values: Iterable[str]) -> list[str]:
    """Numbers by size, if all are such; else texts by character. ``NONE`` is the last."""
    values = list(values)
    numbers = all(is_number(value) for value in values if value != NONE)
    return sorted(values, key=lambda v: (v == NONE, numbers and v != NONE and float(v), v))


def _cleaned(place: Place, column: Series, rule: Rule) -> tuple[Series, dict[str, int]]:
    """(booleans, whole numbers, floats, times or trimmed texts, null where missing; the words met)."""
    kind = _type(column)
    if column.dtype == TEXT:
        column = column.str.strip()
        gone = column.isin(rule.missing)
        words = column[gone].value_counts(sort=False).drop("", errors="ignore").to_dict()
        return column.mask(gone), words
    if pa.types.is_boolean(kind) or pa.types.is_temporal(kind):
        return column, {}
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        raise place.fault(
            f"is of type {shown(kind)[1:-1]}, neither number nor text",
            "name it in {drop}=, or write it as columns of numbers or texts",
        )
    floats, words = _without(column.to_numpy(float, na_value=np.nan), rule)
    return column.mask(np.isnan(floats)), words


def _texts(values: Series) -> Series:
    """Any cleaned column as texts: whole numbers without a decimal point, however the file wrote them."""
    kind = _type(values)
    if pa.types.is_boolean(kind) or pa.types.is_floating(kind):
        codes, distinct = pd.factorize(values)
        names = [*map(repr, distinct.tolist()), None]  # -1 of a missing one is the last
        values = pd.Series(pd.array(names, TEXT)).take(codes).reset_index(drop=True)
    text = values.astype(TEXT).str.replace(r"^([+-]?\d+)\.0+$", r"\1", regex=True)
    return text.str.replace("^-0$", "0", regex=True)


def _numeric(parts: Sequence[Part], rule: Rule, kind: str) -> Source | None:
    """A column of numbers or dates; None if the training rows hold words."""
    notation, since, percent = rule.notation, None, None
    read, merged, padded, words = [], 0, "", Counter()
    for place, values in parts:
        first = not read
        percent = _check_percent(place, values, notation, percent)
        temporal = pa.types.is_temporal(_type(values))
        form = notation.date_format if first and not kind else ""
        digits = bool(form) and of_digits(_texts(values), form)
        if digits or (since and not temporal):
            values = _texts(values)
        dated = (since or digits or temporal) and values.notna().any()
        x = None if dated else _floats(values, notation)
        if x is None and (first or since):
            x, since = days(place, values, notation.date_format, since) or (None, since)
        if x is None and first and not kind:
            refuse_mixture(place, values, notation)
            return None
        if x is None:
            _refuse_words(place, values, notation, kind, since)
        assert x is not None  # or it was refused
        with np.errstate(over="ignore"):
            wrong = np.isinf(x.astype(np.float32))
        what = "is infinite" if np.isinf(x[np.argmax(wrong)]) else "is too large for float32"
        remedy = "correct it, or leave it empty if it is missing"
        place.check(wrong, f"has {{value}} in row {{row}}, which {what}", remedy, x)
        merged = max(merged, _merged(values, x))
        if since is None:
            x, met = _without(x, rule)
            words.update(met)
            if values.dtype == TEXT and not padded:
                padded = next(iter(values[matches(values, r"^0\d+$")]), "")
        place.check(np.isnan(x) & rule.refuse, *NO_VALUE)
        read.append(x)
    if since is None and len(parts) > 1:
        _check_truth(parts, read)
    x = np.concatenate(read)
    name, missing = parts[0][0].column, np.isnan(x)
    found = Source(name=name, missing=missing, numbers=x, words=words, since=since)
    return found._replace(padded=padded, merged=merged)


def _category(parts: Sequence[Part], rule: Rule, kind: str) -> Source:
    place, rows = parts[0][0], len(parts[0][1])
    text = pd.concat([_texts(values) for _, values in parts], ignore_index=True)
    gone = text.isna().to_numpy(bool)
    places, found = pd.factorize(text.fillna(NONE))
    counts = dict(zip(found.tolist(), np.bincount(places[:rows], minlength=len(found)).tolist()))
    values = ordered(value for value, count in counts.items() if count)
    missing = bool(gone[:rows].any())
    distinct, present = len(values) - missing, int((~gone[:rows]).sum())
    if not kind and distinct > NEARLY[0] and distinct >= NEARLY[1] * present:
        first = shown(next(value for value in counts if value != NONE))
        raise place.fault(
            f"has {distinct:,} distinct texts in {present:,} rows, like an identifier (the first is {first})",
            "name it in {drop}=, or in {categorical}= if its values are categories; numbers with a unit are "
            "to be written without it",
        )
    pooled, rest = 0, -1
    if not rule.codes and len(values) > rule.most:  # of equally frequent values the last are pooled
        frequent = sorted(values[:distinct], key=lambda value: -counts[value])
        kept = set(frequent[: max(0, rule.most - 1 - missing)])
        pooled, rest = distinct - len(kept), len(kept)
        values = [*(v for v in values[:distinct] if v in kept), OTHER, *values[distinct:]]
    code = {value: k for k, value in enumerate(values) if k != rest}
    codes = np.asarray([code.get(value, rest) for value in counts], np.int32)[places]
    unknown = codes < 0  # in test rows alone
    for where, part in parts:
        where.check(part.isna().to_numpy(bool) & rule.refuse, *NO_VALUE)
    if len(parts) > 1 and not rule.ignore:
        parts[1][0].check(
            unknown[rows:],
            "has {value} in row {row}, an unknown category at test time (no training row has it)",
            "correct it, or {unknown}='ignore' reads it as "
            + ("the code of a missing one" if rule.codes else "none of the known"),
            text.fillna(NONE)[rows:],
        )
    if unknown.any() and rule.codes:
        values = values if NONE in values else [*values, NONE]
        codes[unknown] = len(values) - 1
    found = Source(name=place.column, missing=gone, codes=codes, values=tuple(values))
    return found._replace(pooled=pooled, unknown=int(unknown.sum()))


def _type(values: Series) -> Any:
    return values.dtype.pyarrow_dtype


def _without(numbers: np.ndarray, rule: Rule) -> tuple[np.ndarray, dict[str, int]]:
    """(the numbers, NaN where one is a missing value however it is spelled; those, and how often)."""
    gone = np.isin(numbers, [float(word) for word in rule.missing if is_number(word)])
    met, counts = np.unique(numbers[gone], return_counts=True)
    words = {f"{x:g}": int(n) for x, n in zip(met, counts, strict=True)}
    return np.where(gone, np.nan, numbers), words


def _floats(values: Series, notation: Notation) -> np.ndarray | None:
    """[R] float64 with NaN for null; None for texts that are not all numbers, or all true and false."""
    truth = _truth(values)
    if truth is None and values.dtype == TEXT:
        read = numbers(values, notation)
        return None if np.isnan(read).sum() > values.isna().sum() else read
    if pa.types.is_temporal(_type(values)):  # all null
        return np.full(len(values), np.nan)
    return (values if truth is None else truth).to_numpy(float, na_value=np.nan)


def _truth(values: Series) -> Series | None:
    """The booleans of a column of true and false; None of any other."""
    if values.dtype == TEXT:
        lower = values.str.lower()
        return lower == "true" if lower.isin(["true", "false", pd.NA]).all() else None
    return values if pa.types.is_boolean(_type(values)) else None


def _check_truth(parts: Sequence[Part], read: Sequence[np.ndarray]) -> None:
    """Raise UserError where true and false in one file meet numbers beside 0 and 1 in the other."""
    truths = [_truth(values) for _, values in parts]
    logical = [truth is not None and bool(truth.notna().any()) for truth in truths]
    rows = [~np.isnan(x) & (truth | ~np.isin(x, (0, 1))) for x, truth in zip(read, logical)]
    if logical[0] != logical[1] and rows[logical.index(False)].any():
        names = ("numbers beside 0 and 1", "true and false")
        parts[1][0].check(
            rows[1],
            f"has {names[logical[1]]} (row {{row}}), and the training rows have {names[logical[0]]}",
            "write both files alike, or name it in {categorical}=",
        )


def _check_percent(
    place: Place, values: Series, notation: Notation, percent: bool | None
) -> bool | None:
    """Raise UserError where a number without a % stands among numbers with one, here or in the training
    file (``percent``, None of itself): it would be a hundred times as large as is meant, or as it looks."""
    if not notation.percent or values.dtype != TEXT:
        return bool(percent)
    signed = matches(values, SHARE)
    percent = bool(signed.any()) if percent is None else percent
    odd = ~signed & ~np.isnan(numbers(values, notation)) if percent else signed
    elsewhere = f"numbers {'with' if percent else 'without'} a % elsewhere"
    remedy = "write all of a column with it, or none"
    place.check(odd, f"has {{value}} in row {{row}}, and {elsewhere}", remedy, values)
    return percent


def _refuse_words(
    place: Place, values: Series, notation: Notation, named: str, since: Since | None
) -> None:
    """Raise UserError for the first word where numbers, or the training file's dates, must be."""
    words = _texts(values)
    if since:
        wrong = [not pd.isna(word) and moments([word], since[0]) is None for word in words]
    else:
        wrong = np.isnan(numbers(words, notation)) & words.notna().to_numpy()
    kind = "date as the training rows'" if since else "number"
    kept = "name it in {categorical}= (the training rows have numbers)"
    place.check(
        np.asarray(wrong),
        f"has {{value}} in row {{row}}, which is no {kind}",
        "correct it, leave it empty or name it in {na_values}= where it is missing, or "
        + ("take the name out of {numeric}=" if named else kept),
        words,
    )


def _merged(column: Series, values: np.ndarray) -> int:
    """How many different numbers are equal to another as float32. Counted of the file's own, as float64
    does not hold every whole number either."""
    kept = values[~np.isnan(values)]
    distinct = len(np.unique(kept))
    if column.dtype == TEXT:
        long = matches(column, r"^[1-9]\d{15,}$")
        short = values[~long & ~np.isnan(values)]
        distinct = column[long].nunique() + len(np.unique(short))
    elif pa.types.is_integer(_type(column)):
        distinct = column.nunique()
    return distinct - len(np.unique(kept.astype(np.float32)))
