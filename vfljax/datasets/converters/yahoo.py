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

from vfljax.datasets.converters import texts
from vfljax.datasets.core import Conversion
from vfljax.datasets.files import find
from vfljax.datasets.options import limited
from vfljax.datasets.table_errors import fault, reading
from vfljax.errors import Field, UserError, check_choice

FIELDS = ("question_title", "question_content", "best_answer")
CLASSES = tuple(str(c + 1) for c in range(10))
SOURCE = "the folder of train.csv and test.csv of Zhang et al.'s yahoo_answers_csv"


@limited(**texts.LIMITS)
def yahoo(
    folder: str,
    *,
    form: str = "wordpiece",
    words: int = 500,
    length: int = 256,
    vocabulary: str = "",
    vocabulary_size: int = 8192,
    fields: tuple[str, ...] = FIELDS,
    train_rows: int = 0,
    test_rows: int = 0,
) -> Conversion:
    """Reads Yahoo! Answers, rows in file order, training part first.

    Args:
      folder: the folder that holds the files.
      form, words, length, vocabulary, vocabulary_size: as of ``texts.conversion``.
      fields: the fields that make the text, joined with a space in this order; empty ones are left out.
      train_rows, test_rows: the numbers of rows, the first of each class in file order, classes balanced;
        0 reads all. Reading stops at the last row needed.
    """
    if not fields:
        remedy = f"choose from {', '.join(FIELDS)}"
        raise UserError(field="data.options.fields", value=fields, remedy=remedy)
    for field in fields:
        check_choice(Field("data.options.fields"), field, FIELDS)
    root = pathlib.Path(folder)
    root = root.parent if root.is_file() else root
    parts = []
    for part, rows in (("train", train_rows), ("test", test_rows)):
        path = find(str(root) if folder else "", SOURCE, [f"{part}.csv", f"{part}.csv.gz"])
        parts.append(list(texts.balanced(_rows(path, fields), rows, CLASSES, path)))
    return texts.conversion(
        "yahoo",
        parts,
        _names(root / "classes.txt"),
        form=form,
        words=words,
        length=length,
        vocabulary=vocabulary,
        vocabulary_size=vocabulary_size,
    )


def _names(path: pathlib.Path) -> tuple[str, ...]:
    """Returns the names of the classes, one a line of the file; their numbers if there is no file."""
    if not path.is_file():
        return CLASSES
    with reading(path):
        lines = path.read_text("utf-8-sig").splitlines()
    names = tuple(line.strip() for line in lines if line.strip())
    if len(set(names)) != len(CLASSES):
        raise fault(path, f"names {len(set(names))} classes, not 10")
    return names


def _rows(path: pathlib.Path, fields: tuple[str, ...]) -> Iterator[texts.Labeled]:
    """Yields the class 0..9 and the text of each row of a file."""
    for line, row in texts.csv_rows(path, ("class", *FIELDS), header=False):
        if row["class"] not in CLASSES:
            what = f"has the class {row['class'][:40]!r}, not a number from 1 to 10"
            raise fault(path, what, line=line)
        text = " ".join(row[field].replace("\\n", "\n") for field in fields if row[field])
        yield CLASSES.index(row["class"]), text
