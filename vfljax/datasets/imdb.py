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

import json
import pathlib
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from vfljax.datasets import archives, texts
from vfljax.datasets.core import Dataset
from vfljax.datasets.faults import all_different
from vfljax.datasets.given import explained, limited
from vfljax.datasets.textfile import LONGEST, csv_rows, decoded, fault, find, reading

ARCHIVE = "aclImdb_v1.tar.gz"
CLASSES = ("negative", "positive")
OFFICIAL = 25_000  # rows of each part
LAYOUTS = (
    f"the folder aclImdb, its archive {ARCHIVE}, one .csv or .csv.gz with the columns split, label, "
    "review (or review, sentiment), or a TFDS folder with imdb_reviews"
)
LABELS = {"0": 0, "neg": 0, "negative": 0, "1": 1, "pos": 1, "positive": 1}
SPLITS = ("train", "test")
FILE = re.compile(r"([0-9]{1,9})_([0-9]{1,9})\.txt")  # id_rating
MEMBER = re.compile(r"(?:\./)?aclImdb/(train|test)/(neg|pos)/([^/]*\.txt)")
IDENTITY = re.compile(r"([0-9]{1,9})(?:_[0-9]{1,9})?")
READABLE = ("array_record", "parquet")  # of TFDS' formats, without TensorFlow
TFDS = pathlib.Path("imdb_reviews", "plain_text", "1.0.0")


@limited(**texts.LIMITS)
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
        ``vfljax.datasets.texts`` for the difference); "wordpiece": kind "text", token ids.
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
    texts.at_least_one_a_class(len(CLASSES), rows=rows)
    reviews, published = _read(folder)
    parts = []
    for test in (False, True)[: 1 + published]:
        where = f"{folder}: the {'test' if test else 'training'} part" if published else folder
        part = ((review.label, review) for review in reviews if review.test == test)
        parts.append([row for _, row in texts.balanced(part, rows, CLASSES, where)])
    kept = [review for part in parts for review in part]
    labels = np.array([review.label for review in kept], np.int32)
    held = np.array([review.test for review in kept], bool) if published else None
    features = texts.Form(form, words, length, vocabulary, vocabulary_size, lowercase)
    data = texts.to_dataset("imdb", [row.text for row in kept], labels, held, CLASSES, features)
    notes = list(data.notes)
    if rows == 0 and published and [len(part) for part in parts] != [OFFICIAL, OFFICIAL]:
        counts = " and ".join(
            f"{len(part):,} {name}" for part, name in zip(parts, ("training", "test"))
        )
        notes.append(f"{counts} rows; the official set has 25,000 each")
    if split == "redrawn" and published:
        notes.append("the published test part is not kept apart: every seed divides all rows")
        data = data._replace(test=None)
    return data._replace(notes=tuple(notes))


def _read(folder: str) -> tuple[list[Review], bool]:
    """(Every labeled review in its order, whether there is a published test part)."""
    path = pathlib.Path(folder)
    if folder and (path / TFDS.parts[0]).is_dir():
        return list(tfds_reviews(path)), True
    for root in (path / "aclImdb", path) if folder else ():
        if (root / "train").is_dir() or (root / "test").is_dir():
            return sorted(folder_reviews(root)), True
    archived = bool(folder) and (path / ARCHIVE).exists()
    path = find(folder, "", [ARCHIVE] if archived else ["*.csv", "*.csv.gz"], LAYOUTS)
    if path.name.endswith((".tar.gz", ".tgz")):
        return sorted(archive_reviews(path)), True
    if not path.name.endswith((".csv", ".csv.gz")):
        raise fault(path, "no file of IMDB", f"give {LAYOUTS}")
    reviews, published = csv_reviews(path)
    return sorted(reviews) if published else reviews, published


class Review(NamedTuple):
    """One review; records sort by published part, class and id."""

    test: bool
    label: int  # 1 = positive
    number: tuple[int, int]  # (id, rating) within its part and class, or (place in the file, 0)
    place: int  # in the file: equal ids keep its order
    text: str


def folder_reviews(root: pathlib.Path) -> Iterator[Review]:
    """Reviews of an unpacked aclImdb folder; ``unsup`` and files of other kinds are ignored."""
    for split in SPLITS:
        for label in ("neg", "pos"):
            folder = root / split / label
            if not folder.is_dir():
                raise fault(folder, "is no folder, as IMDB has it", "unpack the archive again")
            for path in folder.glob("*.txt"):
                with reading(path), path.open("rb") as file:
                    raw = file.read(LONGEST)
                yield _named(split, label, path.name, raw, str(path))


def archive_reviews(path: pathlib.Path) -> Iterator[Review]:
    """Reviews of aclImdb_v1.tar.gz, read in place."""
    seen = set()
    for member, raw in archives.chosen(path, lambda name: bool(MEMBER.fullmatch(name)), LONGEST):
        match = MEMBER.fullmatch(member)
        assert match is not None
        split, label, name = match.groups()
        if (split, label, name) in seen:
            raise fault(f"{path}: {member}", "is there twice")
        seen.add((split, label, name))
        yield _named(split, label, name, raw, f"{path}: {member}")


def _named(split: str, label: str, name: str, raw: bytes, where: str) -> Review:
    """The review of a file's name and content."""
    match = FILE.fullmatch(name)
    if match is None:
        raise fault(where, "not named id_rating.txt, as IMDB's reviews are", "remove it")
    number = (int(match[1]), int(match[2]))
    return Review(split == "test", LABELS[label], number, 0, decoded(raw, where))


def csv_reviews(path: pathlib.Path) -> tuple[list[Review], bool]:
    """(Reviews of a CSV with a header, whether it says which are training and test rows).

    Columns split, label, review and perhaps id; or Kaggle's review, sentiment. Others are ignored.
    """
    rows = csv_rows(path)
    header = next(rows, (1, []))[1]
    published = {"split", "label", "review"} <= set(header)
    if not published and not {"review", "sentiment"} <= set(header):
        needed = "give split, label and review, or Kaggle's review and sentiment"
        raise fault(path, f"the header is {str(header)[:80]}", needed, line=1)
    all_different(header, str(path))
    labeled = "label" if published else "sentiment"
    reviews = []
    for line, row in rows:
        if len(row) != len(header):
            why = f"{len(row)} fields, not {len(header)}: cut off or damaged"
            raise fault(path, why, line=line)
        of = dict(zip(header, row, strict=True))
        label = LABELS.get(of[labeled].strip().lower())
        split = of["split"] if published else "train"
        number = IDENTITY.fullmatch(of["id"] if published and "id" in of else str(line))
        if label is None or split not in SPLITS or number is None:
            column, right = labeled, "0 or neg, 1 or pos"
            if label is not None:
                column, right = "id", "a number; without the column the file's order is kept"
            if split not in SPLITS:
                column, right = "split", "train or test"
            raise fault(path, f"{of[column][:40]!r} is not {right}", line=line, column=column)
        reviews.append(Review(split == "test", label, (int(number[1]), 0), line, of["review"]))
    return reviews, published


def tfds_reviews(folder: pathlib.Path) -> Iterator[Review]:
    """Reviews of imdb_reviews/plain_text, prepared by TensorFlow Datasets as array_record or Parquet.

    Read without TensorFlow. What TFDS says of an unprepared folder misleads, hence the checks.
    """
    home = folder / TFDS
    info = home / "dataset_info.json"
    remedy = (
        "prepare it in another folder, where TensorFlow is, with tfds.builder('imdb_reviews/plain_text'"
        ", data_dir=FOLDER, file_format='array_record').download_and_prepare()"
    )
    if not info.is_file():
        raise fault(info, "is missing: TFDS has not prepared imdb_reviews there", remedy)
    with reading(info, remedy):
        described = json.loads(info.read_text(encoding="utf-8"))
        if not isinstance(described, dict):
            raise ValueError("no description")
    kind = described.get("fileFormat", "tfrecord")  # TFDS's default
    if kind not in READABLE:
        raise fault(home, f"prepared as {kind!r}, which cannot be read without TensorFlow", remedy)
    import tensorflow_datasets as tfds  # slow to import, and only this layout needs it

    # of the code, not by ``tfds.builder``: that may import modules by names in the folder's files
    official: Any = tfds.builder_cls(TFDS.parts[0])
    for split in SPLITS:
        with explained(home, remedy):
            source: Any = official(config=TFDS.parts[1], data_dir=folder).as_data_source(split)
            rows = [(row["text"], int(row["label"])) for row in source]
        for place, (text, label) in enumerate(rows):
            where = f"{home}, row {place + 1} of {split}"
            if label not in (0, 1):
                raise fault(where, f"the label is {label}, not 0 or 1")
            yield Review(split == "test", label, (place, 0), 0, decoded(text, where))
