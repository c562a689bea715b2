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
    SHARE,
    TEXT,
    Notation,
    Series,
    Since,
    days,
    is_number,
    matches,
    moments,
    numbers,
    refuse_mixture,
)
from vfljax.datasets.table_errors import Place, fault, shown
from vfljax.errors import options_in

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


def source(parts: Sequence[Series], place: Place, rule: Rule, kind: str = "") -> Source:
    """Finds out what a column of a table is, and reads it.

    Args:
      parts: its values as of ``reading.framed`` in the training file, which decides, and then in the test file
        if there is one.
      place: where all rows are.
      rule: how it is read.
      kind: "number", "category", or "": what it looks like.

    Raises:
      UserError: with column and row, for what could be read in two ways, or as nothing that helps.
    """
    parts, words = _cleaned(parts, place, rule)
    column = None if kind == "category" else _numeric(parts, place, rule, kind)
    column = column or _category(_texts(parts), place, rule, kind)
    return column._replace(words=words + Counter(column.words))


def words_of(parts: Sequence[Series], place: Place, rule: Rule) -> Series:
    """Returns a column as trimmed texts of ``TEXT`` [R], null where one is missing.

    Args:
      parts: as of ``source``.
      place: where all rows are.
      rule: which words are missing values.
    """
    return _texts(_cleaned(parts, place, rule)[0])


def ordered(values: Iterable[str]) -> list[str]:
    """Numbers by size, if all are such; else texts by character. ``NONE`` is the last."""
    values = list(values)
    numeric = all(is_number(value) for value in values if value != NONE)
    return sorted(values, key=lambda v: (v == NONE, numeric and v != NONE and float(v), v))


def _type(values: Series) -> Any:
    return values.dtype.pyarrow_dtype


def _cleaned(
    parts: Sequence[Series], place: Place, rule: Rule
) -> tuple[list[Series], Counter[str]]:
    """(booleans, whole numbers, floats, times or trimmed texts, null where missing; the words met)."""
    cleaned, words = [], Counter()
    for file, column in zip(place.files, parts, strict=True):
        kind = _type(column)
        if column.dtype == TEXT:
            column = column.str.strip()
            gone = column.isin(rule.missing)
            words.update(column[gone].value_counts(sort=False).drop("", errors="ignore").to_dict())
            column = column.mask(gone)
        elif pa.types.is_integer(kind) or pa.types.is_floating(kind):
            floats, met = _without(column.to_numpy(float, na_value=np.nan), rule)
            words.update(met)
            column = column.mask(np.isnan(floats))
        elif not (pa.types.is_boolean(kind) or pa.types.is_temporal(kind)):
            what = f"is of type {shown(kind)[1:-1]}, neither number nor text"
            remedy = options_in("name it in {drop}=, or write it as columns of numbers or texts")
            raise fault(file, what, remedy, column=place.column)
        cleaned.append(column)
    return cleaned, words


def _without(values: np.ndarray, rule: Rule) -> tuple[np.ndarray, dict[str, int]]:
    """(the numbers, NaN where one is a missing value however it is spelled; those, and how often)."""
    gone = np.isin(values, [float(word) for word in rule.missing if is_number(word)])
    met, counts = np.unique(values[gone], return_counts=True)
    words = {f"{x:g}": int(n) for x, n in zip(met, counts, strict=True)}
    return np.where(gone, np.nan, values), words


def _texts(parts: Sequence[Series]) -> Series:
    """A cleaned column as texts [R]: whole numbers without a decimal point, however a file wrote them."""
    texts = []
    for values in parts:
        kind = _type(values)
        if pa.types.is_boolean(kind) or pa.types.is_floating(kind):
            codes, distinct = pd.factorize(values)
            names = [*map(repr, distinct.tolist()), None]  # -1 of a missing one is the last
            values = pd.Series(pd.array(names, TEXT)).take(codes)
        texts.append(values.astype(TEXT).str.replace(r"^([+-]?\d+)\.0+$", r"\1", regex=True))
    return pd.concat(texts, ignore_index=True).str.replace("^-0$", "0", regex=True)


def _numeric(parts: list[Series], place: Place, rule: Rule, kind: str) -> Source | None:
    """A column of numbers or dates; None if the training rows hold words."""
    notation, since, words = rule.notation, None, Counter()
    digits = notation.date_format and not kind and _of_digits(_texts(parts[:1]), notation)
    if digits:
        parts = [
            values if pa.types.is_temporal(_type(values)) else _texts([values]) for values in parts
        ]
    read = [_floats(values, notation) for values in parts]
    present = np.concatenate([values.notna().to_numpy(bool) for values in parts])
    if digits or (np.isnan(read[0]) & present[~place.held]).any():
        if dates := days(parts, place, notation.date_format):
            read, since = dates
        elif not kind:
            refuse_mixture(parts[0], place, notation)
            return None
    if notation.percent and since is None:
        _check_percent(parts, place, notation)
    x = np.concatenate(read)
    unread = present & np.isnan(x)
    if unread.any():
        kept = "name it in {categorical}= (the training rows have numbers)"
        place.check(
            unread,
            "has {value} in row {row}, which is no "
            + ("date as the training rows'" if since else "number"),
            "correct it, leave it empty or name it in {na_values}= where it is missing, or "
            + ("take the name out of {numeric}=" if kind else kept),
            _texts(parts),
        )
    with np.errstate(over="ignore"):
        infinite = np.isinf(x.astype(np.float32))
    why = "is infinite" if np.isinf(x[np.argmax(infinite)]) else "is too large for float32"
    remedy = "correct it, or leave it empty if it is missing"
    place.check(infinite, f"has {{value}} in row {{row}}, which {why}", remedy, x)
    padded = ""
    if since is None:
        x, words = _without(x, rule)
        _check_truth(parts, x, place)
        texts = [values for values in parts if values.dtype == TEXT]
        padded = next((t for values in texts for t in values[matches(values, r"^0\d+$")]), "")
    missing = np.isnan(x)
    _check_missing(missing, place, rule)
    column = Source(name=place.column, missing=missing, numbers=x, words=words, since=since)
    return column._replace(padded=padded, merged=max(map(_merged, parts, read)))


def _check_missing(missing: np.ndarray, place: Place, rule: Rule) -> None:
    what = "has no value in row {row} and missing='refuse'"
    place.check(missing & rule.refuse, what, "fill it, or {missing}='keep'")


def _floats(values: Series, notation: Notation) -> np.ndarray:
    """The numbers of a file's rows, float64, NaN where one holds none; true and false are 1 and 0."""
    if (truth := _truth(values)) is not None:
        return truth.to_numpy(float, na_value=np.nan)
    if values.dtype == TEXT:
        return numbers(values, notation)
    if pa.types.is_temporal(_type(values)):
        return np.full(len(values), np.nan)
    return values.to_numpy(float, na_value=np.nan)


def _truth(values: Series) -> Series | None:
    """The booleans of a file that holds true and false and nothing else; None of any other."""
    if values.dtype == TEXT:
        lower = values.str.lower()
        return lower == "true" if lower.isin(["true", "false", pd.NA]).all() else None
    return values if pa.types.is_boolean(_type(values)) else None


def _check_percent(parts: Sequence[Series], place: Place, notation: Notation) -> None:
    """Raise UserError where a text that is a number has a % and the training rows' have none, or the other way
    round: it would be a hundred times as large as is meant, or as it looks. Typed numbers are none."""
    texts = [
        part if part.dtype == TEXT else pd.Series([None] * len(part), dtype=TEXT) for part in parts
    ]
    percent = bool(matches(texts[0], SHARE).any())
    text = pd.concat(texts, ignore_index=True)
    odd = (matches(text, SHARE) != percent) & ~np.isnan(numbers(text, notation))
    elsewhere = f"numbers {'with' if percent else 'without'} a % elsewhere"
    what = f"has {{value}} in row {{row}}, and {elsewhere}"
    place.check(odd, what, "write all of a column with it, or none", text)


def _check_truth(parts: Sequence[Series], x: np.ndarray, place: Place) -> None:
    """Raise UserError where true and false in one file meet numbers beside 0 and 1 in the other."""
    truths = [_truth(values) for values in parts]
    logical = [truth is not None and bool(truth.notna().any()) for truth in truths]
    of_truth = np.asarray(logical)[place.held.astype(int)]
    beside = ~of_truth & ~np.isnan(x) & ~np.isin(x, (0, 1))
    if logical[0] != logical[-1] and beside.any():
        names = ("numbers beside 0 and 1", "true and false")
        place.check(
            place.held & (of_truth & ~np.isnan(x) | beside),
            f"has {names[logical[1]]} (row {{row}}), and the training rows have {names[logical[0]]}",
            "write both files alike, or name it in {categorical}=",
        )


def _of_digits(texts: Series, notation: Notation) -> bool:
    """Whether all texts are equally many digits, six or more, that the named format reads: 20200131."""
    texts = texts.dropna()
    fixed = matches(texts, r"^\d{6,14}$").all() and texts.str.len().nunique() == 1
    return bool(fixed) and moments(list(texts.unique()), notation.date_format) is not None


def _category(text: Series, place: Place, rule: Rule, kind: str) -> Source:
    training = ~place.held
    gone = text.isna().to_numpy(bool)
    text = text.fillna(NONE)
    places, found = pd.factorize(text)
    counts = dict(zip(found.tolist(), np.bincount(places[training], minlength=len(found)).tolist()))
    values = ordered(value for value, count in counts.items() if count)
    missing = bool(gone[training].any())
    distinct, present = len(values) - missing, int((~gone[training]).sum())
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
    _check_missing(gone, place, rule)
    place.check(
        unknown & (not rule.ignore),
        "has {value} in row {row}, an unknown category at test time (no training row has it)",
        "correct it, or {unknown}='ignore' reads it as "
        + ("the code of a missing one" if rule.codes else "none of the known"),
        text,
    )
    if unknown.any() and rule.codes:
        values = values if NONE in values else [*values, NONE]
        codes[unknown] = len(values) - 1
    found = Source(name=place.column, missing=gone, codes=codes, values=tuple(values))
    return found._replace(pooled=pooled, unknown=int(unknown.sum()))


def _merged(column: Series, values: np.ndarray) -> int:
    """How many different numbers are equal to another as float32. Counted of the file's own, as float64
    does not hold every whole number either."""
    kept = values[~np.isnan(values)]
    distinct = len(np.unique(kept))
    if column.dtype == TEXT:
        long = matches(column, r"^[1-9]\d{15,}$")
        distinct = column[long].nunique() + len(np.unique(values[~long & ~np.isnan(values)]))
    elif pa.types.is_integer(_type(column)):
        distinct = column.nunique()
    return distinct - len(np.unique(kept.astype(np.float32)))
