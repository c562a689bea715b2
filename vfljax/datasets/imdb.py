"""IMDB (Maas et al., ACL 2011): 50,000 film reviews, 25,000 published as test rows, 1 = positive.

Layouts, in the order they are looked for in ``config.data.dir`` (which may also name the file):

    TFDS      imdb_reviews/plain_text/1.0.0, prepared as array_record or Parquet
    aclImdb   the official folder, or its parent
    archive   the official aclImdb_v1.tar.gz, read in place
    CSV       one .csv or .csv.gz: split,label,review and perhaps id; or Kaggle's review,sentiment,
              which has no published test part

Rows stand in this order whatever the layout: training part first, negative first, by id; so a
folder, its archive and a CSV with ids give one checksum. A CSV without ids keeps the order of its
file within a part and class, Kaggle's CSV keeps it altogether; TFDS keeps no ids: its rows stand in
the order of its shards, training part first.

Get it from ai.stanford.edu/~amaas/data/sentiment or TFDS.
"""

from __future__ import annotations

import pathlib
from collections.abc import Iterable

import numpy as np

from vfljax.datasets.core import Dataset
from vfljax.datasets.imdb_files import (
    TFDS,
    Review,
    archive_reviews,
    csv_reviews,
    folder_reviews,
    tfds_reviews,
)
from vfljax.datasets.texts import Form, Texts, check, first_rows, to_dataset
from vfljax.errors import UserError, unknown

SPLITS = ("published", "redrawn")
ARCHIVE = "aclImdb_v1.tar.gz"
CLASSES = ("negative", "positive")
OFFICIAL = 25_000  # rows of each part
LAYOUTS = (
    f"the folder aclImdb, its archive {ARCHIVE}, one .csv or .csv.gz with the columns split, label, "
    "review (or review, sentiment), or a TFDS folder with imdb_reviews"
)


def imdb(
    folder: str,
    *,
    form: str = "words",
    words: int = 500,
    length: int = 128,
    vocabulary: str = "",
    vocabulary_size: int = 8192,
    lowercase: bool = True,
    rows: int = 0,
    split: str = "published",
) -> Dataset:
    """Read IMDB; every fault of the files is one clear line.

    form: "words": kind "table", [R, words] uint8, 1 where a review has the word (GAFM's input; see
        ``vfljax.datasets.words`` for the difference); "wordpiece": kind "text", token ids.
    words: how many of the published training part's most frequent words.
    length, vocabulary, vocabulary_size, lowercase: of "wordpiece": tokens a party reads; a vocab.txt
        ("" learns one from the published training texts), its size, whether case is dropped.
    rows: 0 takes all; n takes the first n training and n test rows in the order above, classes
        balanced (of a set without published test part: n rows in all).

    split: "published" keeps the published test part, which Kaggle's CSV does not have. "redrawn"
        returns the same rows without one, so that shares of training, validation and test rows
        divide all rows anew for each seed (GAFM, appendix E.1). Words and vocabularies are those of
        the published training part either way, as are the ranks of Keras' copy.
    """
    if split not in SPLITS:
        raise unknown("config.data.options.split", split, SPLITS)
    how = Form(form, words, length, vocabulary, vocabulary_size, lowercase)
    check(how, len(CLASSES), rows=rows)
    reviews, published = _read(folder)
    labels = np.asarray([review.label for review in reviews], np.int32)
    test = np.asarray([review.test for review in reviews], bool)
    name = str(folder)
    parts = [~test, test] if published else [~test]
    kept = [
        np.flatnonzero(mine)[first_rows(labels[mine], rows, CLASSES, _part(name, p, published))]
        for p, mine in enumerate(parts)
    ]
    chosen = np.sort(np.concatenate(kept))
    texts = Texts(
        [reviews[row].text for row in chosen], labels[chosen], test[chosen] if published else None
    )
    data = to_dataset("imdb", texts, CLASSES, how)
    counts = [len(mine) for mine in kept]
    if rows == 0 and published and counts != [OFFICIAL, OFFICIAL]:
        note = (
            f"{counts[0]:,} training and {counts[1]:,} test rows; the official set has 25,000 each"
        )
        data = data._replace(notes=(*data.notes, note))
    if split == "redrawn" and published:
        note = "the published test part is not kept apart: every seed divides all rows"
        data = data._replace(test=None, notes=(*data.notes, note))
    return data


def _part(name: str, part: int, published: bool) -> str:
    return f"{name}: the {('training', 'test')[part]} part" if published else name


def _read(folder: str) -> tuple[list[Review], bool]:
    """(Every labeled review in its order, whether there is a published test part)."""
    if not folder:
        raise UserError(f"data.dir is empty: give the path of {LAYOUTS}.")
    path = pathlib.Path(folder)
    if path.is_file():
        return _file(path)
    if not path.is_dir():
        raise UserError(f"data.dir={folder!r} is no folder and no file: give {LAYOUTS}.")
    if (path / TFDS.parts[0]).is_dir():
        return list(tfds_reviews(path)), True
    for root in (path / "aclImdb", path):
        if (root / "train").is_dir() or (root / "test").is_dir():
            return _ordered(folder_reviews(root)), True
    if (path / ARCHIVE).exists():
        return _file(path / ARCHIVE)
    tables = sorted([*path.glob("*.csv"), *path.glob("*.csv.gz")])
    if len(tables) > 1:
        names = ", ".join(table.name for table in tables[:5])
        raise UserError(f"{folder} holds several tables ({names}): give one's path as data.dir.")
    if not tables:
        raise UserError(f"{folder} holds no IMDB: put there {LAYOUTS}.")
    return _file(tables[0])


def _ordered(reviews: Iterable[Review]) -> list[Review]:
    return sorted(reviews, key=lambda review: review[:3])  # equal ids keep the file's order


def _file(path: pathlib.Path) -> tuple[list[Review], bool]:
    if not path.is_file():
        raise UserError(f"{path} is a folder: a file of that name was expected.")
    if path.name.endswith((".tar.gz", ".tgz")):
        return _ordered(archive_reviews(path)), True
    if path.name.endswith((".csv", ".csv.gz")):
        reviews, published = csv_reviews(path)
        return (_ordered(reviews) if published else reviews), published
    raise UserError(f"{path} is no file of IMDB: give {LAYOUTS}.")
