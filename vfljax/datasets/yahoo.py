"""Yahoo! Answers topics (Zhang et al., 2015): 1,400,000 questions of 10 classes, and 60,000 for tests.

``<folder>/train.csv`` and ``test.csv`` (or ``.csv.gz``), and ``classes.txt``, which names the classes.
No header; quoted fields: class 1 to 10, question title, question content, best answer. A doubled
quote stands for one, backslash and n for a newline (a backslash before any other n reads the same).

Fu et al. (2022) train on 50,000 rows, 5,000 a class, and state 20,000 test rows (KDk follows them).
Their released code reads the question's content alone (``fields=("question_content",)``), at most
256 tokens a half, draws the training rows at random within the class, and tests on all 60,000.

Get it as ``yahoo_answers_csv`` of Zhang et al. 2015.
"""

from __future__ import annotations

import pathlib
from collections.abc import Iterator

import numpy as np

from vfljax.datasets.core import Dataset
from vfljax.datasets.faults import one_line
from vfljax.datasets.textfile import BROKEN, LONGEST, broken, csv_rows, decoded
from vfljax.datasets.texts import Form, Texts, check, quotas, to_dataset, too_few
from vfljax.errors import UserError, unknown

FIELDS = ("question_title", "question_content", "best_answer")  # columns 2 to 4
CLASSES = 10
LAYOUT = "the folder with train.csv and test.csv of Zhang et al.'s yahoo_answers_csv"


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
    """Read Yahoo! Answers, rows in file order, training part first; faults are one clear line.

    form, words, length, vocabulary, vocabulary_size, lowercase: as ``vfljax.datasets.imdb``.
    fields: which make the text, joined with a space in this order; empty ones are left out.
    train_rows, test_rows: the first of each class in file order, classes balanced; 0 takes all.
        Reading stops at the last row needed: what follows is not checked.
    """
    how = Form(form, words, length, vocabulary, vocabulary_size, lowercase)
    check(how, CLASSES, train_rows=train_rows, test_rows=test_rows)
    columns = _columns(fields)
    train, test = _files(folder)
    names = _names(train.parent / "classes.txt")
    texts: list[str] = []
    labels: list[int] = []
    counts = []
    for path, most in ((train, train_rows), (test, test_rows)):
        for label, text in _rows(path, columns, most, names):
            labels.append(label)
            texts.append(text)
        counts.append(len(labels))
    held = np.arange(len(labels)) >= counts[0]
    return to_dataset("yahoo", Texts(texts, np.asarray(labels, np.int32), held), names, how)


def _columns(fields: object) -> tuple[int, ...]:
    if isinstance(fields, str):
        fields = (fields,)
    if not isinstance(fields, list | tuple):  # a set or a dict has no order to join texts in
        raise UserError(
            f"config.data.options.fields={one_line(repr(fields))[:80]} must be a list: choose from "
            f"{', '.join(FIELDS)}, one or more."
        )
    for field in fields:
        if field not in FIELDS:
            raise unknown("config.data.options.fields", str(field), FIELDS)
    if not fields:
        raise UserError(
            f"config.data.options.fields is empty: choose from {', '.join(FIELDS)}, one or more."
        )
    return tuple(FIELDS.index(field) + 1 for field in fields)


def _files(folder: str) -> tuple[pathlib.Path, pathlib.Path]:
    if not folder:
        raise UserError(f"data.dir is empty: give {LAYOUT}.")
    root = pathlib.Path(folder)
    if not root.is_dir():
        raise UserError(f"data.dir={folder!r} is not a folder: give {LAYOUT}.")
    found = []
    for part in ("train", "test"):
        paths = [root / f"{part}.csv", root / f"{part}.csv.gz"]
        there = [path for path in paths if path.exists()]
        if not there:
            raise UserError(f"{paths[0]} is missing: data.dir must be {LAYOUT}.")
        if not there[0].is_file():
            raise UserError(f"{there[0]} is a folder: data.dir must be {LAYOUT}.")
        found.append(there[0])
    return found[0], found[1]


def _names(path: pathlib.Path) -> tuple[str, ...]:
    """The classes' names, one a line; their numbers where there is no file."""
    if not path.exists():
        return tuple(str(c + 1) for c in range(CLASSES))
    try:
        with path.open("rb") as file:
            lines = decoded(file.read(LONGEST), str(path)).removeprefix("\ufeff").split("\n")
    except BROKEN as error:
        raise broken(path, error) from error
    names = tuple(name for name in map(one_line, lines) if name)
    if len(names) != CLASSES or len(set(names)) != CLASSES:
        raise UserError(
            f"{path} has {len(names)} lines of names, {len(set(names))} of them different, not "
            f"{CLASSES}: fetch it again, or remove it."
        )
    return names


def _rows(
    path: pathlib.Path, columns: tuple[int, ...], most: int, names: tuple[str, ...]
) -> Iterator[tuple[int, str]]:
    """(class 0..9, text) of a file's rows; of the first ``most`` balanced ones where it is not 0."""
    wanted = quotas(most, CLASSES)
    left = wanted.copy()
    for line, row in csv_rows(path):
        if most and not left.any():
            return
        if len(row) != len(FIELDS) + 1:
            raise UserError(
                f"{path} line {line} has {len(row)} fields, not {len(FIELDS) + 1} (class, title, "
                "content, answer): the file is damaged or not Zhang et al.'s; fetch it again."
            )
        if row[0].strip() not in NUMBERS:
            raise UserError(
                f"{path} line {line}: the class {row[0][:40]!r} is not a number from 1 to {CLASSES}."
            )
        label = NUMBERS[row[0].strip()]
        if most and not left[label]:
            continue
        left[label] -= 1
        yield label, " ".join(row[c].replace("\\n", "\n") for c in columns if row[c])
    if most and left.any():
        c = int(np.argmax(left))
        raise too_few(str(path), int(wanted[c] - left[c]), names[c], int(wanted[c]), most)


NUMBERS = {str(c + 1): c for c in range(CLASSES)}
