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

import numpy as np

from vfljax.datasets import imdb_files, texts
from vfljax.datasets.core import Dataset
from vfljax.datasets.textfile import fault, find

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
    given = {name: value for name, value in locals().items() if name != "folder"}
    options = texts.asked(imdb, given, len(CLASSES), "rows")
    reviews, published = _read(folder)
    parts = []
    for test in (False, True)[: 1 + published]:
        where = f"{folder}: the {'test' if test else 'training'} part" if published else folder
        part = ((review.label, review) for review in reviews if review.test == test)
        parts.append([row for _, row in texts.balanced(part, rows, CLASSES, where)])
    kept = [review for part in parts for review in part]
    labels = np.array([review.label for review in kept], np.int32)
    held = np.array([review.test for review in kept], bool) if published else None
    data = texts.to_dataset("imdb", [row.text for row in kept], labels, held, CLASSES, options)
    notes = list(data.notes)
    if rows == 0 and published and [len(part) for part in parts] != [OFFICIAL, OFFICIAL]:
        counts = " and ".join(f"{len(part):,} {name}" for part, name in zip(parts, PARTS))
        notes.append(f"{counts} rows; the official set has 25,000 each")
    if split == "redrawn" and published:
        notes.append("the published test part is not kept apart: every seed divides all rows")
        data = data._replace(test=None)
    return data._replace(notes=tuple(notes))


PARTS = ("training", "test")


def _read(folder: str) -> tuple[list[imdb_files.Review], bool]:
    """(Every labeled review in its order, whether there is a published test part)."""
    path = pathlib.Path(folder)
    if folder and (path / imdb_files.TFDS.parts[0]).is_dir():
        return list(imdb_files.tfds_reviews(path)), True
    for root in (path / "aclImdb", path) if folder else ():
        if (root / "train").is_dir() or (root / "test").is_dir():
            return sorted(imdb_files.folder_reviews(root)), True
    archived = bool(folder) and (path / ARCHIVE).exists()
    path = find(folder, "", [ARCHIVE] if archived else ["*.csv", "*.csv.gz"], LAYOUTS)
    if path.name.endswith((".tar.gz", ".tgz")):
        return sorted(imdb_files.archive_reviews(path)), True
    if not path.name.endswith((".csv", ".csv.gz")):
        raise fault(path, "no file of IMDB", f"give {LAYOUTS}")
    reviews, published = imdb_files.csv_reviews(path)
    return sorted(reviews) if published else reviews, published
