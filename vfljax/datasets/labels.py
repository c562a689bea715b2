"""Makes classes, or numbers, of the label column of a user's table."""

from __future__ import annotations

import decimal
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd

from vfljax.datasets.bins import MOST_CLASSES, classes_of, most_often, names_of, spelled, thresholds
from vfljax.datasets.core import APART, TOO_NEAR, SourceColumn, rounds_off
from vfljax.datasets.notations import PADDED, is_number, ordered
from vfljax.datasets.source_columns import Place, Texts
from vfljax.datasets.table_errors import alike, csv_option, fault, quoted
from vfljax.errors import UserError, options_in, unknown

REGRESSION = "regression"  # the value of the option ``task`` for labels that are numbers
TRUTHS = {  # word, as ``alike`` returns it -> the truth value that it may stand for
    **dict.fromkeys(("1", "true", "t", "yes", "y", "on"), True),
    **dict.fromkeys(("0", "false", "f", "no", "n", "off"), False),
}


def read_labels(
    texts: Texts, name: str, place: Place, o: SimpleNamespace
) -> tuple[tuple[str, ...], np.ndarray, SourceColumn]:
    """Returns the classes, the labels of the rows that have one, and what is said of the column. There are no
    classes if the option ``task`` says that labels are numbers.

    Raises:
      UserError: for labels that are missing, that are no classes, or that only the test file has.
    """
    gone = texts.codes < 0
    for rows in (~place.test, place.test):
        if (missing := int((gone & rows).sum())) and (
            not o.drop_unlabeled or missing == rows.sum()
        ):
            first = int(np.argmax(gone & rows))
            count = (
                f"missing in {missing:,} of {rows.sum():,} rows, first in row {place.rows[first]}"
            )
            remedy = options_in("fill it, or {drop_unlabeled}=True leaves such rows out")
            if place.text is not None and place.text.get("keep_default_na", True):
                words = (
                    " (pandas reads NA and None as missing: ",
                    *csv_option(keep_default_na=False),
                )
                remedy = (*remedy, *words, " reads them as classes)")
            if (
                missing == rows.sum() and place.hint
            ):  # a line of names may have one more than the others
                remedy = (*remedy, ".", *place.hint)
            file = place.files[int(place.test[first])]
            raise fault(file, f"is the label and is {count}", remedy, column=name)
    if o.task == REGRESSION:
        return (), *_numbers(texts, name, place)
    note = ""
    if o.bins:
        texts, note = _binned(texts, o.bins, name, place)
    numeric = not o.bins and all(map(is_number, texts.values))
    spelled = [_whole(value) for value in texts.values] if numeric else texts.values
    _refuse_spellings(texts, spelled, name, place)
    training = {*pd.unique(texts.codes[~place.test & ~gone]).tolist()}
    present = {value for code, value in enumerate(spelled) if code in training}
    names = texts.values if o.bins else ordered(present)  # bins are in order, and none is empty
    _refuse_labels(texts, names, numeric, name, place)
    if o.positive != "":
        positive = _whole(str(o.positive)) if numeric else str(o.positive)
        if len(names) != 2:
            what = f"{positive!r}: label {name!r} has {len(names)} classes, not two."
            raise UserError((*options_in("{positive}="), what))
        if positive not in names:
            raise unknown("class (positive=)", positive, names)
        names = [*(value for value in names if value != positive), positive]
    number = {value: k for k, value in enumerate(names)}
    for code, value in enumerate(spelled):
        if value not in number:
            remedy = f"a test row needs one of the training file's {len(names)} classes"
            raise place.fault(name, f"has the label {quoted(value)}", remedy, texts.row(code))
    codes = np.asarray([number[value] for value in spelled], np.int32)[texts.codes[~gone]]
    about = SourceColumn(name, "label", int(gone.sum()), len(names), note=note)
    return tuple(names), codes, about


def _numbers(texts: Texts, name: str, place: Place) -> tuple[np.ndarray, SourceColumn]:
    """Returns the numbers [rows with a label] float32, and what is said of the column.

    Raises:
      UserError: for a value that is no finite number of float32, and if all are equal, or too near for it.
    """
    most = float(np.finfo(np.float32).max)
    for code, value in enumerate(texts.values):
        if not (is_number(value) and abs(float(value)) <= most):
            what = f"has the label {quoted(value)}, which is no finite number"
            remedy = "correct it, name such words in {na_values}=, or leave {task}= out"
            raise place.fault(name, what, remedy, texts.row(code))
    gone = texts.codes < 0
    labels = np.asarray([float(value) for value in texts.values])[texts.codes[~gone]]
    if labels.min() == labels.max():
        what = f"is the label and is {spelled(labels[0])} in all rows"
        raise place.fault(name, what, "at least two numbers are needed")
    if rounds_off(labels):
        raise place.fault(name, f"is the label, and its numbers {TOO_NEAR}", APART)
    note = f"of numbers from {spelled(labels.min())} to {spelled(labels.max())}"
    return labels.astype(np.float32), SourceColumn(name, "label", int(gone.sum()), note=note)


def _binned(texts: Texts, bins: int, name: str, place: Place) -> tuple[Texts, str]:
    """Returns the classes that quantiles make of a label of numbers, and a sentence with the thresholds.

    Args:
      texts: the label's values.
      bins: the number of classes K.
      name, place: the label's column.

    Raises:
      UserError: for values that are no numbers, and if a class would have no row.
    """
    for code, value in enumerate(texts.values):
        if not (is_number(value) and np.isfinite(float(value))):
            remedy = "correct it, name such words in {na_values}=, or leave {bins}= out"
            what = f"has the label {quoted(value)}, which is no number to cut at quantiles"
            raise place.fault(name, what, remedy, texts.row(code))
    numbers = np.asarray([float(value) for value in texts.values])
    # The thresholds define the task, as class names do. Those of each seed's training rows would give a row
    # different classes on different seeds, whose figures could not be compared. So the rows are those by
    # which categories are counted: all but the published test part.
    labeled = texts.codes[(texts.codes >= 0) & ~place.test]
    values = numbers[labeled]
    if len(distinct := np.unique(values)) == 1:
        what = f"is the label and is {quoted(texts.values[labeled[0]])} in all rows"
        raise place.fault(name, what, "at least two classes are needed")
    cut = thresholds(values, bins) if len(distinct) >= bins else None
    if cut is None:
        why = f"quantiles do not make {bins} classes of it: {most_often(values)}"
        what, remedy = (
            f"is the label, and {why}",
            "give fewer {bins}=, or cut it into classes first",
        )
        raise place.fault(name, what, remedy)
    classes = classes_of(numbers, cut)
    counts = np.bincount(classes[labeled], minlength=bins)
    sizes = " and ".join(f"{of:,}" for of in counts) if bins == 2 else f"{min(counts):,} or more"
    where = f"{'median' if bins == 2 else 'quantiles'} {', '.join(map(spelled, cut))}"
    note = f"cut at the {where}: {sizes} rows a class"
    names = names_of(cut)
    return Texts(np.append(classes, -1)[texts.codes], names), note


def _whole(value: str) -> str:
    """Returns a whole number as plain digits ("+1" and "1e0" as "1"), and any other text as it is, also a code
    that begins with a zero, such as "01"."""
    if PADDED.fullmatch(value) or not is_number(value) or len(value) > 30:
        return value
    exact = decimal.Decimal(value)
    whole = exact == exact.to_integral_value() and exact.adjusted() < 30
    return str(int(exact)) if whole else value


def _refuse_spellings(texts: Texts, spelled: Sequence[str], name: str, place: Place) -> None:
    """Raises UserError for two labels that are probably one class: that look alike, that are one number with
    and without leading zeros, or that are two words for a truth value where all labels are such words.

    Args:
      texts: the labels as they are in the file.
      spelled: the distinct ones, equal numbers as one text.
      name, place: the label's column.
    """
    truths = [TRUTHS.get(alike(text)) for text in spelled]
    of_truth = None not in truths
    first: dict[Any, tuple[str, str]] = {}
    for code, (value, text) in enumerate(zip(texts.values, spelled)):
        form: Any = truths[code] if of_truth else alike(text)
        if PADDED.fullmatch(text):
            form = text.lstrip("0") or "0"
        other, other_text = first.setdefault(form, (value, text))
        letters = len(other_text) == len(text) == 1 and other_text.isalpha() and text.isalpha()
        if other_text != text and not (letters and alike(text) != alike(other_text)):
            what = f"has the labels {quoted(other)} and {quoted(value)}, which look alike or mean the same"
            raise place.fault(name, what, "write one class in one way", texts.row(code))


def _refuse_labels(texts: Texts, names: list[str], numeric: bool, name: str, place: Place) -> None:
    distinct = f"is the label and has {len(names):,} distinct values"
    if numeric and not all(float(value).is_integer() for value in names):
        what = f"{distinct} that are not all whole numbers, a regression target"
        ways = "give {task}=regression to keep the numbers, or {bins}=2, or more, to cut them"
        raise place.fault(name, what, f"{ways} into classes")
    if len(names) > MOST_CLASSES:
        what = f"{distinct}, more than {MOST_CLASSES} classes"
        ways = "give {task}=regression, or {bins}=2, or more, "
        cut = ways if numeric else "cut it into classes first"
        raise place.fault(name, what, f"name another column, or {cut}".rstrip(", "))
    if len(names) == 1:
        what = f"is the label and is {quoted(names[0])} in all rows"
        raise place.fault(name, what, "at least two classes are needed")
