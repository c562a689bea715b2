"""What each column of a user's table is: a number, a date, or a category.

What enters: one Arrow column and what the user said of it. What leaves: a ``Source``, numbers with
NaN where one is missing, or codes of sorted values. CSV, Parquet, NPZ and data frames of equal content
give equal sources: texts that are all numbers are numbers, numbers named as categories are texts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute

from vfljax.datasets.dates import DATE, Since, days, moments, of_digits
from vfljax.datasets.number_formats import NOTED, Notation, is_number, numbers, ways
from vfljax.datasets.table_errors import Place, shown
from vfljax.errors import UserError, options_in

pc: Any = pyarrow.compute  # its functions are made when imported: no type checker knows them
TEXT = pa.large_string()  # more than 2 GiB of texts in one array

NAN = ("", "NaN", "nan", "-NaN", "-nan", "NAN")
# pandas' (3.1, pandas._libs.parsers.STR_NA_VALUES), the question mark, and two more of ours
MISSING = (
    *NAN,
    *("#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "1.#IND", "1.#QNAN", "<NA>", "N/A", "NA"),
    *("NULL", "None", "n/a", "null", "Null", "?"),
)
NONE = "(missing)"  # the category of a missing one
SEVERAL = 3  # values of one notation among words: fewer may well be the names of categories
NEARLY = (20, 0.9)  # more distinct texts than this, and in this share of the rows: an identifier


class Rule(NamedTuple):
    """How texts are read: which words are missing values, and how numbers are written."""

    missing: tuple[str, ...] = MISSING
    how: Notation = Notation()

    @property
    def gone(self) -> list[float]:
        """The missing words that are numbers: a number equal to one is missing too."""
        return [float(word) for word in self.missing if is_number(word)]


class Source(NamedTuple):
    """One column of the user's table; either ``numbers`` or ``codes`` is set."""

    name: str
    numbers: np.ndarray | None = None  # [R] float64, NaN where missing
    codes: np.ndarray | None = None  # [R] int32, places in values
    values: tuple[str, ...] = ()  # sorted; NONE last, where one is missing
    missing: int = 0
    first: int = -1  # the first row with a missing value, from 0
    words: Mapping[str, int] = {}  # those read as missing, and how often
    since: Since | None = None  # of dates
    pooled: int = 0  # rare values that became one
    padded: str = ""  # of numbers: the first that was written with a zero before it
    percent: bool = False  # written with a %
    logical: bool = False  # true and false, read as 1 and 0
    merged: int = 0  # different numbers that are equal as float32

    @property
    def kind(self) -> str:
        return "category" if self.numbers is None else "number"


def source(
    place: Place, name: str, column: Any, rule: Rule, kind: str = "", like: Source | None = None
) -> Source:
    """The column as ``kind`` ("number", "category"), as the training file's column ``like``, or as
    what it looks like (""), where a column that pandas or Arrow marks as a category is one.

    Raises UserError, with column and row, for what could be read in two ways, or as nothing that helps:
    numbers in a notation that no option names, words among numbers (half of the values or of the
    distinct values), texts that differ in nearly all rows; a nested or binary column, an infinite
    number, one that float32 cannot hold, a word where numbers must be.
    """
    array, words = _plain(place, name, column, rule)
    if not kind and pa.types.is_dictionary(column.type):
        kind = "category"
    if (like.kind if like else kind) == "category":
        return _category(place, name, array, words)
    since = like.since if like else None
    _all_percent(place, name, array, rule.how, like)
    temporal = pa.types.is_temporal(array.type)
    date_format = "" if kind or like else rule.how.date_format
    digits = bool(date_format) and of_digits(texts(array).drop_null().unique(), date_format)
    if digits or (since and not temporal):
        array = texts(array)
    dated = (since or digits or temporal) and array.null_count < len(array)
    values = None if dated else _numbers(array, rule.how)
    if values is None and (like is None or since):
        values, since = days(place, name, array, rule.how.date_format, since) or (None, None)
    if values is not None:
        number = _number(place, name, values, rule, words, since)
        number = number._replace(merged=_merged(array, values))
        if since:
            return number
        truth = _truth(array)
        number = number._replace(logical=truth is not None and truth.null_count < len(array))
        if like:
            _same_truth(place, number, like)
        if array.type != TEXT:
            return number
        percent = bool(pc.any(pc.ends_with(array, "%")).as_py())
        return number._replace(padded=_padded(array), percent=percent)
    if kind or like:
        raise _no_number(place, name, array, rule.how, kind, like)
    _refuse(place, name, array, rule.how)
    return _category(place, name, array, words, nearly=NEARLY)


def _plain(place: Place, name: str, column: Any, rule: Rule) -> tuple[pa.Array, dict[str, int]]:
    """(one array of booleans, whole numbers, floats, times or trimmed texts, null where missing; the
    words that were missing values)."""
    kind, words = column.type, {}
    if pa.types.is_dictionary(kind):
        column, kind = column.cast(kind.value_type), kind.value_type
    is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    if is_text or pa.types.is_string_view(kind):
        column = pc.utf8_trim_whitespace(column.cast(TEXT))
        gone = pc.is_in(column, value_set=pa.array(rule.missing, TEXT))
        met = pc.value_counts(column.filter(gone)).to_pylist()
        words = {one["values"]: one["counts"] for one in met if one["values"]}
        column = pc.if_else(gone, pa.scalar(None, TEXT), column)
    elif pa.types.is_null(kind) or pa.types.is_decimal(kind) or pa.types.is_floating(kind):
        column = column.cast(pa.float64())
    elif not (pa.types.is_integer(kind) or pa.types.is_boolean(kind) or pa.types.is_temporal(kind)):
        raise place.fault(
            name,
            f"is of type {shown(kind)[1:-1]}, neither number nor text",
            options_in("name it in {drop}=, or write it as columns of numbers or texts"),
        )
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    array = pa.concat_arrays(array.chunks) if isinstance(array, pa.ChunkedArray) else array
    if rule.gone and (pa.types.is_integer(array.type) or pa.types.is_floating(array.type)):
        values = array.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
        gone = np.isin(values, rule.gone)
        words = {f"{one:g}": int(np.sum(values == one)) for one in np.unique(values[gone])}
        array = pc.if_else(pa.array(gone), pa.scalar(None, array.type), array)
    return array, words


def _numbers(array: pa.Array, how: Notation) -> np.ndarray | None:
    """[R] float64 with NaN for null; None for texts that are not all numbers, or all true and false."""
    if array.type == TEXT:
        truth = _truth(array)
        parsed = numbers(array, how) if truth is None else truth
        if parsed.null_count > array.null_count:
            return None
        array = parsed
    if pa.types.is_temporal(array.type):  # all null
        return np.full(len(array), np.nan)
    return pc.cast(array, pa.float64(), safe=False).to_numpy(zero_copy_only=False)


def _truth(array: pa.Array) -> pa.Array | None:
    """The booleans of a column of true and false; None of any other."""
    if pa.types.is_boolean(array.type):
        return array
    if array.type != TEXT:
        return None
    lower = pc.utf8_lower(array)
    words = pc.is_in(lower, value_set=pa.array(["true", "false"], TEXT))
    return pc.equal(lower, "true") if pc.all(pc.or_(words, pc.is_null(array))).as_py() else None


def _same_truth(place: Place, number: Source, like: Source) -> None:
    """Raise UserError where true and false in one file meet numbers beside 0 and 1 in the other."""
    other = like if number.logical else number
    assert number.numbers is not None
    assert other.numbers is not None
    rows = ~np.isin(other.numbers, (0, 1)) & ~np.isnan(other.numbers)
    if number.logical == like.logical or not rows.any():
        return
    here, there = "numbers beside 0 and 1", "true and false"
    if number.logical:
        rows, here, there = ~np.isnan(number.numbers), there, here
    raise place.fault(
        number.name,
        f"has {here} (row {place.row(int(np.argmax(rows)))}), and the training rows have {there}",
        options_in("write both files alike, or name it in {categorical}="),
    )


def _all_percent(
    place: Place, name: str, array: pa.Array, how: Notation, like: Source | None
) -> None:
    """Raise UserError where a number without a % stands among numbers with one, here or in the training
    file: it would be a hundred times as large as is meant, or as it looks."""
    if not how.percent or array.type != TEXT:
        return
    values = array.drop_null()
    signed = pc.ends_with(values, "%")
    bare = pc.and_(pc.invert(signed), numbers(values, how).is_valid())
    if like is None and not pc.any(signed).as_py():
        return
    odd = signed if like is not None and not like.percent else bare
    if pc.any(odd).as_py():
        value = values.filter(odd)[0].as_py()
        raise place.fault(
            name,
            f"has {shown(value)} in row {place.row(pc.index(array, value).as_py())}, and numbers "
            f"{'without' if value.endswith('%') else 'with'} a % elsewhere",
            "write all of a column with it, or none",
        )


def _no_number(
    place: Place, name: str, array: pa.Array, how: Notation, kind: str, like: Source | None
) -> UserError:
    """The first word where numbers, or the training file's dates, must be."""
    text, form = texts(array), like.since[0] if like and like.since else ""
    values = text.drop_null().unique()
    good = numbers(values, how).is_valid()
    if form:
        good = pa.array([moments(values[k : k + 1], form) is not None for k in range(len(values))])
    word = values.filter(pc.invert(good))[0].as_py()
    remedy = "name it in {categorical}= (the training rows have numbers)"
    return place.fault(
        name,
        f"has {shown(word)} in row {place.row(pc.index(text, word).as_py())}, which is no "
        + ("date as the training rows'" if form else "number"),
        options_in(
            "correct it, leave it empty or name it in {na_values}= where it is missing, or "
            + ("take the name out of {numeric}=" if kind else remedy)
        ),
    )


def _refuse(place: Place, name: str, array: pa.Array, how: Notation) -> None:
    """Raise UserError where a column of texts is mostly numbers or dates."""
    counted = pc.value_counts(array.drop_null())
    values, counts = counted.field("values"), counted.field("counts").to_numpy()

    def which(mask: pa.Array) -> np.ndarray:
        return mask.to_numpy(zero_copy_only=False).astype(bool)

    def first(these: np.ndarray) -> str:
        value = values[int(np.argmax(these))].as_py()
        return f"{shown(value)} in row {place.row(pc.index(array, value).as_py())}"

    dates = which(pc.match_substring_regex(values, DATE))
    noted = which(pc.match_substring_regex(values, NOTED))
    plain = which(numbers(values, how).is_valid())
    # an option says that numbers are so written, and a column of nothing else does
    several = noted.sum() >= SEVERAL or noted.all() or (how != Notation() and noted.any())
    if several and 2 * noted.sum() >= len(noted) and (noted & ~plain).any():
        raise place.fault(
            name,
            f"holds numbers in a notation that is not read ({first(noted & ~plain)})",
            (
                *ways(values.filter(pa.array(noted)), how),
                *options_in(", or name it in {categorical}="),
            ),
        )
    many = dates.sum() >= SEVERAL and 2 * dates.sum() >= len(dates)
    # of numbers, half of the rows are enough: a few words among them, often repeated, are no categories
    if many or (plain.any() and max(2 * plain.mean(), 2 * counts[plain].sum() / counts.sum()) >= 1):
        kind, these = ("dates", dates) if many else ("numbers", plain)
        raise place.fault(
            name,
            f"holds {kind}, and {first(~these)}",
            options_in(
                "correct it, name such words in {na_values}= if they stand for missing values, or the "
                f"column in {{categorical}}= if it holds no {kind}"
            ),
        )


def _number(
    place: Place,
    name: str,
    values: np.ndarray,
    rule: Rule,
    words: Mapping[str, int],
    since: Since | None,
) -> Source:
    with np.errstate(over="ignore"):
        wrong = np.isinf(values.astype(np.float32))
    if wrong.any():
        row = int(np.argmax(wrong))
        what = "is infinite" if np.isinf(values[row]) else "is too large for float32"
        raise place.fault(
            name,
            f"has {values[row]:g} in row {place.row(row)}, which {what}",
            "correct it, or leave it empty if it is missing",
        )
    if since is None:
        late = np.isin(values, rule.gone)  # spelled otherwise than the word
        words = {**words, **{f"{one:g}": int(np.sum(values == one)) for one in set(values[late])}}
        values = np.where(late, np.nan, values)
    gone = np.isnan(values)
    missing = int(gone.sum())
    return Source(name, values, None, (), missing, int(np.argmax(gone)), words, since)


def _merged(array: pa.Array, values: np.ndarray) -> int:
    """How many different numbers are equal to another as float32. Counted of the file's own, as float64
    does not hold every whole number either."""

    def kept_of(some: np.ndarray) -> np.ndarray:
        return some[~np.isnan(some)]

    kept = kept_of(values)
    distinct = len(np.unique(kept))
    if array.type == TEXT:
        long = pc.match_substring_regex(array, r"^[1-9]\d{15,}$").fill_null(False)
        short = kept_of(values[~long.to_numpy(zero_copy_only=False)])
        distinct = len(array.filter(long).unique()) + len(np.unique(short))
    elif pa.types.is_integer(array.type):
        distinct = len(array.drop_null().unique())
    return distinct - len(np.unique(kept.astype(np.float32)))


def _padded(array: pa.Array) -> str:
    """The first number with a zero before its other digits: a code, such as 00123, may be meant."""
    if array.type != TEXT:
        return ""
    row = pc.index(pc.match_substring_regex(array, r"^0\d+$"), True).as_py()
    return "" if row < 0 else array[row].as_py()


def texts(array: pa.Array) -> pa.Array:
    """Any array as texts: whole numbers without a decimal point, however the file wrote them."""
    if pa.types.is_boolean(array.type):
        return pc.if_else(array, "True", "False").cast(TEXT)
    if pa.types.is_floating(array.type):
        array = pc.if_else(pc.is_nan(array), pa.scalar(None, array.type), array)
        distinct = array.dictionary_encode()
        names = [repr(value) for value in distinct.dictionary.to_pylist()]
        array = pc.take(pa.array(names, TEXT), distinct.indices)
    text = (array.cast(pa.string()) if pa.types.is_temporal(array.type) else array).cast(TEXT)
    text = pc.replace_substring_regex(text, r"^([+-]?\d+)\.0+$", r"\1")
    return pc.replace_substring_regex(text, r"^-0$", "0")


def _category(
    place: Place,
    name: str,
    array: pa.Array,
    words: Mapping[str, int],
    nearly: tuple[float, float] = (np.inf, 1.0),
) -> Source:
    text = texts(array)
    gone = text.is_null().to_numpy(zero_copy_only=False)
    encoded = text.fill_null(NONE).dictionary_encode()
    distinct_texts = encoded.dictionary.to_pylist()
    missing = int(gone.sum())
    distinct, rows = len(distinct_texts) - bool(missing), len(gone) - missing
    if distinct > nearly[0] and distinct >= nearly[1] * rows:
        raise place.fault(
            name,
            f"has {distinct:,} distinct texts in {rows:,} rows, like an identifier (the first is "
            f"{shown(distinct_texts[0] if distinct_texts[0] != NONE else distinct_texts[1])})",
            options_in(
                "name it in {drop}=, or in {categorical}= if its values are categories; numbers with a "
                "unit are to be written without it"
            ),
        )
    values = tuple(sorted(distinct_texts, key=_order(distinct_texts)))
    rank = {value: k for k, value in enumerate(values)}
    places = np.asarray([rank[value] for value in distinct_texts], np.int32)
    codes = places[encoded.indices.to_numpy()]
    return Source(name, None, codes, values, missing, int(np.argmax(gone)), words)


def _order(values: Sequence[str]) -> Any:
    """A sorting key: numbers by size, texts by character, NONE last."""
    if all(is_number(value) for value in values if value != NONE):
        return lambda v: (v == NONE, float(v) if v != NONE else 0.0, v)
    return lambda v: (v == NONE, 0.0, v)
