"""Yahoo! Answers topics (Zhang et al., 2015): 1,400,000 questions of 10 classes, and 60,000 for tests.

It is read from ``<folder>/train.csv`` and ``test.csv`` (or ``.csv.gz``); ``classes.txt`` names the classes.
The files have no header, and quoted fields: class 1 to 10, question title, question content, best answer.
A doubled quote stands for a quote, and every backslash with an n after it for a newline.

Fu et al. (2022) train on 50,000 rows, 5,000 per class, and state 20,000 test rows (KDk follows them).
Their released code reads only the question's content (``fields=("question_content",)``), at most 256
tokens per half, draws the training rows at random within the class, and tests on all 60,000.

Get it as ``yahoo_answers_csv`` of Zhang et al. 2015.
"""

from __future__ import annotations

import pathlib
from collections.abc import Iterator
from typing import Any

from vfljax.datasets import texts
from vfljax.datasets.core import Dataset
from vfljax.datasets.files import content, find, folder_of
from vfljax.datasets.options import limited
from vfljax.datasets.table_errors import fault, one_line
from vfljax.errors import Field, UserError, unknown

FIELDS = ("question_title", "question_content", "best_answer")  # columns 2 to 4
CLASSES = tuple(str(c + 1) for c in range(10))
LAYOUT = "train.csv and test.csv of Zhang et al.'s yahoo_answers_csv"


@limited(**texts.LIMITS)
def yahoo(
    folder: str,
    *,
    form: str = "wordpiece",
    words: int = 500,
    length: int = 256,
    vocabulary: str = "",
    vocabulary_size: int = 8192,
    lowercase: bool = True,
    fields: tuple[str, ...] | str = FIELDS,
    train_rows: int = 0,
    test_rows: int = 0,
) -> Dataset:
    """Reads Yahoo! Answers, rows in file order, training part first.

    Args:
      folder: the folder that holds the files.
      form, words, length, vocabulary, vocabulary_size, lowercase: as of ``texts.to_dataset``.
      fields: the fields that make the text, joined with a space in this order; empty ones are left out.
      train_rows, test_rows: the numbers of rows, the first of each class in file order, classes balanced;
        0 takes all. Reading stops at the last row needed, so rows after it are not checked.
    """
    texts.at_least_one_a_class(len(CLASSES), train_rows=train_rows, test_rows=test_rows)
    columns = _columns(fields)
    root = str(folder_of(folder, LAYOUT))
    train, test = (find(root, LAYOUT, [f"{p}.csv"], [f"{p}.csv.gz"]) for p in ("train", "test"))
    names = _names(train.parent / "classes.txt")
    parts = [
        list(texts.balanced(_rows(path, columns), most, names, str(path)))
        for path, most in ((train, train_rows), (test, test_rows))
    ]
    form_of = form, words, length, vocabulary, vocabulary_size, lowercase
    return texts.to_dataset("yahoo", parts, names, *form_of)


def _columns(fields: Any) -> list[int]:
    fields = (fields,) if isinstance(fields, str) else fields
    # a set or a dict has no order to join by
    if not isinstance(fields, list | tuple) or not fields:
        what = (Field("data.options.fields"), f"={one_line(repr(fields))[:80]} must be a list")
        raise UserError(what, remedy=f"choose from {', '.join(FIELDS)}, one or more")
    for field in fields:
        if field not in FIELDS:
            raise unknown(Field("data.options.fields"), str(field), FIELDS)
    return [FIELDS.index(field) + 1 for field in fields]


def _names(path: pathlib.Path) -> tuple[str, ...]:
    """Returns the classes' names, one per line of the file; their numbers if there is no file."""
    if not path.exists():
        return CLASSES
    lines = texts.decoded(content(path), path).removeprefix("\ufeff").split("\n")
    names = tuple(name for name in map(one_line, lines) if name)
    if len(names) != len(CLASSES) or len(set(names)) != len(CLASSES):
        what = f"has {len(names)} lines of names, {len(set(names))} of them different, not 10"
        raise fault(path, what, "fetch it again, or remove it")
    return names


def _rows(path: pathlib.Path, columns: list[int]) -> Iterator[tuple[int, str]]:
    """Yields (class 0..9, text) for each row of a file."""
    for line, row in texts.csv_rows(path):
        if len(row) != len(FIELDS) + 1:
            what = f"has {len(row)} fields, not 4 (class, title, content, answer)"
            raise fault(path, what, line=line)
        if row[0].strip() not in CLASSES:
            what = f"has the class {row[0][:40]!r}, not a number from 1 to 10"
            raise fault(path, what, line=line)
        text = " ".join(row[c].replace("\\n", "\n") for c in columns if row[c])
        yield CLASSES.index(row[0].strip()), text
