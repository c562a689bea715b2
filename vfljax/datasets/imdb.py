"""IMDB (Maas et al., ACL 2011): 50,000 film reviews, 25,000 published as test rows, 1 = positive.

Layouts, in the order they are looked for in ``config.data.dir`` (which may also name the file):

    TFDS      imdb_reviews/plain_text/1.0.0, prepared as array_record or Parquet
    aclImdb   the official folder, or its parent
    archive   the official aclImdb_v1.tar.gz, read in place
    CSV       one .csv or .csv.gz: split,label,review and perhaps id; or Kaggle's review,sentiment,
              which has no published test part

Rows are sorted by part (training first), class (negative first) and id, so that a folder, its archive and a CSV
with ids give one checksum. A CSV without ids keeps the order of its file within a part and class, and Kaggle's
CSV keeps it throughout. TFDS has no ids, so its rows keep the order of its shards, training part first.

Get it from ai.stanford.edu/~amaas/data/sentiment or TFDS.
"""

from __future__ import annotations

import itertools
import pathlib
import re
from collections.abc import Iterator
from typing import NamedTuple

from vfljax.datasets import texts, tfds
from vfljax.datasets.core import Dataset
from vfljax.datasets.files import content, find
from vfljax.datasets.options import limited
from vfljax.datasets.table_errors import fault

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
TFDS = pathlib.Path("imdb_reviews", "plain_text", "1.0.0")


class _Review(NamedTuple):
    """One review; records sort by published part, class and id."""

    test: bool
    label: int  # 1 = positive
    number: tuple[int, int]  # (id, rating) within its part and class, or (place in the file, 0)
    place: int  # in the file, for the order of equal ids
    text: str


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
    """Reads IMDB.

    Args:
      folder: the folder that holds it, or the file itself.
      form, words, length, vocabulary, vocabulary_size, lowercase: as of ``texts.to_dataset``.
      rows: 0 takes all; n takes the first n training and n test rows in the order above, classes
        balanced (n rows in all, if there is no published test part).
      split: "published" keeps the published test part, which Kaggle's CSV does not have. "redrawn"
        returns the same rows without a published test part, so that the shares in ``config.data``
        divide all rows anew for each seed (GAFM, appendix E.1). Words and vocabularies are those of
        the published training part either way, as are the ranks of Keras' copy.
    """
    texts.at_least_one_a_class(len(CLASSES), rows=rows)
    reviews, published = _read(folder)
    parts = []
    for test in (False, True)[: 1 + published]:
        where = f"{folder}: the {'test' if test else 'training'} part" if published else folder
        part = ((review.label, review.text) for review in reviews if review.test == test)
        parts.append(list(texts.balanced(part, rows, CLASSES, where)))
    form_of = form, words, length, vocabulary, vocabulary_size, lowercase
    data = texts.to_dataset("imdb", parts, CLASSES, *form_of)
    notes = list(data.notes)
    if rows == 0 and published and [len(part) for part in parts] != [OFFICIAL, OFFICIAL]:
        training, test = map(len, parts)
        counts = f"{training:,} training and {test:,} test rows"
        notes.append(f"{counts}; the official set has 25,000 each")
    if split == "redrawn" and published:
        notes.append("the published test part is not kept apart: every seed divides all rows")
        data = data._replace(test=None)
    return data._replace(notes=tuple(notes))


def _read(folder: str) -> tuple[list[_Review], bool]:
    """Returns every labeled review in the order above, and whether there is a published test part."""
    path = pathlib.Path(folder)
    if folder and (path / TFDS.parts[0]).is_dir():
        return list(_of_tfds(path)), True
    for root in (path / "aclImdb", path) if folder else ():
        if (root / "train").is_dir() or (root / "test").is_dir():
            return sorted(_official(root)), True
    path = find(folder, LAYOUTS, [ARCHIVE.lower()], ["*.csv", "*.csv.gz"])
    if path.name.endswith((".tar.gz", ".tgz")):
        return sorted(_official(path)), True
    if not path.name.endswith((".csv", ".csv.gz")):
        raise fault(path, "is no file of IMDB", f"give {LAYOUTS}")
    reviews, published = _of_csv(path)
    return sorted(reviews) if published else reviews, published


def _official(path: pathlib.Path) -> Iterator[_Review]:
    """Yields the reviews of an unpacked aclImdb folder, or of aclImdb_v1.tar.gz, which is read in place.
    ``unsup`` and files of other kinds are ignored."""
    seen = set()
    archived = not path.is_dir()
    for member, raw in texts.chosen(path, MEMBER.fullmatch) if archived else _loose(path):
        where = f"{path}: {member}" if archived else path / member.removeprefix("aclImdb/")
        parts = MEMBER.fullmatch(member)
        assert parts is not None  # only such members are read
        split, label, name = parts.groups()
        if (split, label, name) in seen:
            raise fault(where, "is there twice")
        seen.add((split, label, name))
        number = FILE.fullmatch(name)
        if number is None:
            raise fault(where, "is not named id_rating.txt, as IMDB's reviews are", "remove it")
        place = (int(number[1]), int(number[2]))
        yield _Review(split == "test", LABELS[label], place, 0, texts.decoded(raw, where))


def _loose(root: pathlib.Path) -> Iterator[tuple[str, bytes]]:
    """Yields (name as in the archive, bytes) of the reviews in a folder."""
    for split, label in itertools.product(SPLITS, ("neg", "pos")):
        folder = root / split / label
        if not folder.is_dir():
            raise fault(folder, "is no folder, as IMDB has it", "unpack the archive again")
        for path in folder.glob("*.txt"):
            yield f"aclImdb/{split}/{label}/{path.name}", content(path)


def _of_csv(path: pathlib.Path) -> tuple[list[_Review], bool]:
    """Returns the reviews of a CSV, and whether its column ``split`` names their part."""
    header, records = texts.csv_table(path)
    published = {"split", "label", "review"} <= set(header)
    if not published and not {"review", "sentiment"} <= set(header):
        needed = "give split, label and review, or Kaggle's review and sentiment"
        raise fault(path, f"has the header {str(header)[:80]}", needed, line=1)
    labeled = "label" if published else "sentiment"
    allowed = {
        labeled: (lambda text: text.strip().lower() in LABELS, "give 0 or neg, 1 or pos"),
        "split": (lambda text: text in SPLITS, "give train or test"),
        "id": (IDENTITY.fullmatch, "give a number; without it the file's order is kept"),
    }
    columns = [labeled, *(c for c in ("split", "id") if published and c in header)]
    reviews = []
    for line, record in records:
        for column in columns:
            right, remedy = allowed[column]
            if not right(record[column]):
                raise fault(path, f"is {record[column][:40]!r}", remedy, line=line, column=column)
        number = int(record["id"].partition("_")[0]) if "id" in columns else line
        is_test = published and record["split"] == "test"
        label = LABELS[record[labeled].strip().lower()]
        reviews.append(_Review(is_test, label, (number, 0), line, record["review"]))
    return reviews, published


def _of_tfds(folder: pathlib.Path) -> Iterator[_Review]:
    """Yields the reviews of imdb_reviews/plain_text, which TFDS prepared as array_record or Parquet."""
    home = folder / TFDS
    for split in SPLITS:
        _, records = tfds.examples(home, TFDS.parts[0], split, TFDS.parts[1])
        for place, record in enumerate(records):
            where, label = f"{home}, row {place + 1} of {split}", int(record["label"])
            if label not in (0, 1):
                raise fault(where, f"has the label {label}, not 0 or 1")
            yield _Review(split == "test", label, (place, 0), 0, texts.decoded(record["text"], where))
