"""Finds what each column of a user's table is, and makes numbers or categories of it.

A column comes as the pandas Series of all rows: the training file's, then those of a test file. Texts are
looked at once for each distinct value. Where two readings of a column differ in value, none is chosen: the
error names the options that choose.
"""

from __future__ import annotations

import datetime
import decimal
import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from vfljax.datasets.core import SourceColumn
from vfljax.datasets.table_errors import alike, fault, quoted
from vfljax.errors import Field, Text, UserError, options_in

Series = Any  # of pandas, whose annotations do not say what an operation on one returns
NONE = "(missing)"  # the category of a missing value
OTHER = "(other)"  # the category that pools the rarest values
CELLS = str, bool, int, float, decimal.Decimal, datetime.date, datetime.time, np.generic
NEARLY = (20, 0.9)  # an identifier has more than 20 distinct texts, and as many as 90 % of its rows
SEVERAL = 3  # fewer numbers or dates among words may well be names of categories
EXACT = 2**24  # above it, float32 does not hold every whole number
FEW = 20  # a column of at most so many distinct whole numbers may hold codes
SAMPLE = 10_000  # rows in which a column is looked at before all of it is
DAY = 86_400_000_000  # microseconds

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
MONTH = "(jan|feb|mar|apr|may|june?|july?|aug|sept?|oct|nov|dec)[a-z]*"
DATE = re.compile(
    rf"(\d{{1,4}}[-/.]\d{{1,2}}[-/.]\d{{1,4}}|(\d{{1,2}}[ .-]+)?{MONTH}[ .-]+(\d{{1,2}},? +)?\d{{2,4}})"
    r"([T ,]+\d{1,2}:\d{2}.*)?",
    re.IGNORECASE,
)
ZONE = re.compile(r":\d{2}.*(Z|[+-]\d{2}(:?\d{2})?)", re.IGNORECASE)
FORMATS = tuple(  # of dates; ISO 8601 is tried before them
    f"{day} {clock}".strip()
    for day in (
        *(
            f"{d}{s}{y}".replace(",", s)
            for s in "/-."
            for y in ("%Y", "%y")
            for d in ("%d,%m", "%m,%d")
        ),
        *("%Y.%m.%d", "%d %b %Y", "%d-%b-%Y", "%d-%b-%y", "%d %B %Y", "%b %d, %Y", "%B %d, %Y"),
    )
    for clock in ("", "%H:%M", "%H:%M:%S", "%H:%M:%S.%f", "%I:%M %p", "%I:%M:%S %p")
)


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
    text: Mapping[str, Any] | None = (
        None  # the options of ``pandas.read_csv``; None: no text was read
    )

    def fault(self, column: str, what: str, remedy: Text, row: int | None = None) -> UserError:
        """Returns the error of a column.

        Args:
          column: its name.
          what: what is wrong, beginning with a verb.
          remedy: what to do; names of options are in braces.
          row: the place of the row that is named, in 0..R-1; None names the column alone.
        """
        remedy = options_in(remedy) if isinstance(remedy, str) else remedy
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


def csv_option(**options: Any) -> tuple[str | Field, ...]:
    """Returns the parts of a message that give options of ``pandas.read_csv``: ``options={"sep": ";"}``."""
    written = json.dumps(options, ensure_ascii=False)
    return (Field("data.options.options", "options"), f"={written}")


def is_number(text: str) -> bool:
    """Returns True if ``text`` is a finite decimal number."""
    return re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", text, re.ASCII) is not None


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
            return _dates(_microseconds(column), name, place)
        except (ValueError, OverflowError) as error:
            raise place.fault(
                name, f"holds dates out of bounds ({error})", "correct them"
            ) from error
    if types.is_timedelta64_dtype(column.dtype):
        x, read_as, note = column.dt.total_seconds().to_numpy(float) / 86400, "number", "days"
        return _numbers(x, name, place, read_as, note)
    if types.is_numeric_dtype(column.dtype) and not types.is_complex_dtype(column.dtype):
        read_as = "boolean" if types.is_bool_dtype(column.dtype) else "number"
        x = column.to_numpy(float, na_value=np.nan)
        gone = [float(word) for word in rule.missing if is_number(word)]
        x = np.where(np.isin(x, gone), np.nan, x) if gone else x
        return _numbers(x, name, place, read_as, "", kind == "number")
    texts = texts_of(column, name, place, rule.missing, spelled=False)
    if not texts.values:
        return None
    if all(value.lower() in ("true", "false") for value in texts.values):
        truth = [float(value.lower() == "true") for value in texts.values]
        return _numbers(np.asarray([*truth, np.nan])[texts.codes], name, place, "boolean")
    notation = _notation(place.text or {})
    numbers = _numbers_of(texts.values, notation)
    if not np.isnan(numbers).any():
        if kind != "number" and (note := codes_note(texts.values)):
            return _category(texts, name, place, rule, False, note)
        x = np.append(numbers, np.nan)[texts.codes]
        return _numbers(x, name, place, "number", "", kind == "number")
    dated = np.asarray([DATE.fullmatch(value) is not None for value in texts.values])
    if dated.all():
        return _dates(_days_of(texts, name, place), name, place)
    if kind == "number":
        code = int(np.argmax(np.isnan(numbers)))
        what = f"has {quoted(texts.values[code])}, which is no number"
        remedy = "correct it, name it in {na_values}= if it is missing, or take the column out of {numeric}="
        raise place.fault(name, what, remedy, texts.row(code))
    _refuse_mixture(texts, numbers, dated, name, place, notation, frame)
    return _category(texts, name, place, rule, False)


def texts_of(
    column: Series, name: str, place: Place, missing: frozenset[str], spelled: bool = True
) -> Texts:
    """Returns a column as texts without blanks around them. Whole numbers have no decimal point.

    Args:
      column: its values [R].
      name, place: as of ``read_column``.
      missing: texts that stand for missing values.
      spelled: whether equal numbers of a text file become one text (``_one_spelling``).

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
        words = _one_spelling(words, missing, place.text)
    inner, values = pd.factorize(np.asarray([None if w in missing else w for w in words], object))
    return Texts(np.append(inner, -1)[codes], list(values))


def _text(value: Any) -> str:
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return str(int(value))
    if isinstance(value, datetime.datetime):
        return str(value).removesuffix(" 00:00:00")
    return str(value).strip()


def _one_spelling(
    words: list[str], missing: Iterable[str], options: Mapping[str, Any]
) -> list[str]:
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
    notation = _notation(options)
    if any(NAMED_PADDED.fullmatch(word) or EXPONENT.fullmatch(word) for word in present):
        return words
    spelled = {word: _digits(word, notation) for word in present}
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


def _notation(options: Mapping[str, Any]) -> dict[str, str]:
    """Returns how numbers are written in a file that ``pandas.read_csv`` reads with these options."""
    return {**NOTATION, **{k: options[k] for k in NOTATION if options.get(k)}}


def _numbers_of(texts: Sequence[str], notation: Mapping[str, str]) -> np.ndarray:
    """Returns the numbers in texts as float64, NaN for a text that is no number."""
    if notation != NOTATION:
        return np.asarray([_number_of(text, notation) for text in texts], float)
    numbers: Any = pd.to_numeric(pd.Series(texts, dtype=object), errors="coerce")
    return numbers.to_numpy(float, na_value=np.nan)


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


# ------------------------------------------------------------- numbers


def _numbers(
    x: np.ndarray, name: str, place: Place, read_as: str, note: str = "", named: bool = False
) -> Feature | None:
    """Returns a column of numbers [R], or None if all are missing; ``named``: as the user asks."""
    missing = np.isnan(x)
    count = int(missing.sum())
    if count == len(x):
        return None
    with np.errstate(over="ignore"):
        rounded = x.astype(np.float32)
    infinite = np.isinf(rounded)
    if infinite.any():
        row = int(np.argmax(infinite))
        why = "is infinite" if np.isinf(x[row]) else "is too large for float32"
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
    if (distinct == np.floor(distinct)).all() and (x == np.floor(x)).all():
        if len(distinct) == len(sample) > FEW and whole_column and len(pd.unique(x)) == len(x):
            notes.append("another whole number in every row: drop an identifier")
        elif 2 < len(distinct) <= FEW and len(few := pd.unique(x)) <= FEW and not named:
            notes.append(f"{len(few)} distinct whole numbers: name codes in categorical=")
        if np.abs(x).max() > EXACT and (x.astype(np.float32) != x).any():
            notes.append(f"whole numbers above {EXACT:,} are rounded to float32")
    elif (merged := len(distinct) - len(np.unique(distinct.astype(np.float32)))) > 0.01 * len(
        distinct
    ):
        notes.append(
            f"different values are equal as float32 ({merged:,} of the first {len(distinct):,})"
        )
    return notes


# ------------------------------------------------------------- dates


def _dates(ticks: np.ndarray, name: str, place: Place) -> Feature | None:
    """Returns a column of microseconds since 1970 [R], NaN where missing, as days since the first date of
    the training rows."""
    missing = np.isnan(ticks)
    if missing.all():
        return None
    training = ~place.test & ~missing
    first = float(ticks[training if training.any() else ~missing].min())
    moment = datetime.datetime(1970, 1, 1) + datetime.timedelta(microseconds=first)
    note = f"days since {str(moment).removesuffix(' 00:00:00')}"
    days = (ticks - first) / DAY
    rounded = days.astype(np.float32)
    if len(pd.unique(days)) > 1.01 * len(pd.unique(rounded)):
        note += "; different times are equal as float32"
    return Feature(SourceColumn(name, "date", int(missing.sum()), note=note), numbers=rounded)


def _microseconds(column: Series) -> np.ndarray:
    """Returns [R] float64, NaN where missing; a time in a zone is taken in UTC."""
    times = column.dt.tz_convert(None) if column.dt.tz is not None else column
    ticks = times.astype("datetime64[us]").to_numpy().astype(np.int64).astype(float)
    return np.where(times.isna(), np.nan, ticks)


def _days_of(texts: Texts, name: str, place: Place) -> np.ndarray:
    """Reads dates that are texts, as microseconds since 1970 [R]; raises UserError if formats differ."""
    values = pd.Series(texts.values, dtype=object)
    zoned = np.asarray([ZONE.search(value) is not None for value in values])
    mixed = bool(zoned.any() and not zoned.all())
    readings: dict[bytes, tuple[str, np.ndarray]] = {}  # of each result, the first format
    for form in () if mixed else ("ISO8601", *FORMATS):
        if not _read_as(form, values[:1]).isna().any():
            times = _read_as(form, values)
            if not times.isna().any():
                ticks = _microseconds(times)
                readings.setdefault(ticks.tobytes(), (form, ticks))
                if form == "ISO8601":
                    break
    if not readings:
        raise _no_date(texts, values, zoned if mixed else None, name, place)
    if len(readings) > 1:
        remedy: list[str | Field] = ["write all as 2020-01-31"]
        for form, _ in readings.values():
            if place.text is None:
                remedy += [f" or read them by pandas.to_datetime(format={form!r})"]
            else:
                remedy += [" or give ", *csv_option(parse_dates=[name], date_format=form)]
        remedy += options_in(", or name it in {drop}= or {categorical}=")
        what = f"holds dates ({quoted(values[0])}) that can be read in several ways"
        raise place.fault(name, what, remedy, texts.row(0))
    ((_, ticks),) = readings.values()
    return np.append(ticks, np.nan)[texts.codes]


def _read_as(form: str, values: Series) -> Series:
    """Returns texts as times in UTC, NaT for one that is not of this format or is no day."""
    return pd.to_datetime(values, format=form, errors="coerce", utc=True)


def _no_date(
    texts: Texts, values: Series, zoned: np.ndarray | None, name: str, place: Place
) -> UserError:
    """Returns the error of dates that no one format reads. It quotes a value that the format of most values
    does not read, or that has a zone, or none, unlike most.

    Args:
      texts, values: the dates, and their distinct texts.
      zoned: which of ``values`` have a zone, if only some have; else None.
      name, place: the column.
    """
    if zoned is None:
        unread = [_read_as(form, values).isna().to_numpy() for form in ("ISO8601", *FORMATS)]
        odd = min(unread, key=np.count_nonzero)
        known = np.flatnonzero(~odd)
        why = "is no day of the calendar, or is written in another way"
    else:
        odd = zoned if 2 * zoned.sum() <= len(zoned) else ~zoned
        known = np.flatnonzero(~odd)
        why = f"has {'a' if odd is zoned else 'no'} time zone"
    code = int(np.argmax(odd))
    others = f", unlike {quoted(values[known[0]])} of row {_row_of(texts, known[0], place)}"
    what = f"has {quoted(values[code])}, which {why}{others if len(known) else ''}"
    remedy = (
        "write all as 2020-01-31, name it in {na_values}= if it stands for a missing date, or name the column "
        "in {drop}= or {categorical}="
    )
    return place.fault(name, what, remedy, texts.row(code))


def _row_of(texts: Texts, code: int, place: Place) -> int:
    """Returns the number of the first row with a value, in its file."""
    return int(place.rows[texts.row(code)])


# ------------------------------------------------------------- categories


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
        numbers = tuple(_number_of(value, notation) for value in values)
        if not any(map(math.isnan, numbers)):
            fitting.setdefault(numbers, notation)
    if not fitting:
        return ("write them as plain numbers, such as 1000.5", *other)
    usable, witness = [], ""
    for notation in fitting.values():
        against = [c for c in frame if c != name and not _readable(frame[c], notation, now)]
        witness = witness or next(map(str, against), "")
        usable += [] if against else [" or ", *csv_option(**notation)]
    if usable:
        return ("give ", *usable[1:], *other)
    what = f"the file mixes notations (column {witness!r} writes its numbers in another way)"
    return (f"{what}, which no option reads: rewrite one of the two columns", *other)


def _number_of(text: str, notation: Mapping[str, str]) -> float:
    """Returns the number that a text is in a notation; NaN if it is none."""
    return float(_digits(text, notation) or math.nan)


def _digits(text: str, notation: Mapping[str, str]) -> str:
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


def _readable(column: Series, notation: Mapping[str, str], now: Mapping[str, str]) -> bool:
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
    return few or not any(math.isnan(_number_of(value, notation)) for value in noted)


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
        values.append(NONE)
    code = {value: k for k, value in enumerate(values) if k != rest}
    absent = len(values) - 1 if values and values[-1] == NONE else -1
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
