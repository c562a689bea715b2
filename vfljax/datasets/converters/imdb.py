"""IMDB (Maas et al., ACL 2011): 50,000 film reviews, 25,000 published as test rows, 1 = positive.

It is read from one of the following, in ``config.data.dir`` or named by it:

    aclImdb   the official folder, with train/neg/ID_RATING.txt and the like
    archive   the official aclImdb_v1.tar.gz, which is not unpacked
    CSV       one .csv or .csv.gz with the columns split (train, test), label (0, 1), id and review

Rows are sorted by part (training first), class (negative first) and id, so that all three give the same arrays.
Get it from ai.stanford.edu/~amaas/data/sentiment.
"""

from __future__ import annotations

import itertools
import pathlib
import re
import tarfile
from collections.abc import Iterator
from typing import Any, NamedTuple

from vfljax.datasets.converters import texts
from vfljax.datasets.core import Conversion
from vfljax.datasets.files import find
from vfljax.datasets.options import limited
from vfljax.datasets.table_errors import fault, reading

CLASSES = ("negative", "positive")
SOURCE = (
    "the folder aclImdb, its archive aclImdb_v1.tar.gz, or a CSV of split, label, id and review"
)
COLUMNS = ("split", "label", "id", "review")
RIGHT = {"split": "train|test", "label": "0|1", "id": "[0-9]+"}  # what the values of columns match
MEMBER = re.compile(
    r"(?:\./)?(?:aclImdb/)?(train|test)/(neg|pos)/([0-9]+)_[0-9]+\.txt"
)  # ID_RATING


class Review(NamedTuple):
    """One review. Reviews sort by published part, class and id."""

    test: bool
    label: int
    id: int
    text: str


@limited(**texts.LIMITS, split=("published", "redrawn"))
def imdb(
    folder: str,
    *,
    form: str = "words",
    words: int = 500,
    length: int = 128,
    vocabulary: str = "",
    vocabulary_size: int = 8192,
    rows: int = 0,
    split: str = "published",
) -> Conversion:
    """Reads IMDB.

    Args:
      folder: the folder that holds it, or the file itself.
      form, words, length, vocabulary, vocabulary_size: as of ``texts.conversion``.
      rows: 0 reads all; n reads the first n training and n test rows in the order above, classes balanced.
      split: "published" keeps the published test part. "redrawn" returns the same rows without one, so that
        the shares in ``config.data`` divide all rows anew for each seed (GAFM, appendix E.1). Words and
        vocabularies are those of the published training part either way, as are the ranks of Keras' copy.
    """
    reviews = sorted(_reviews(folder))
    lacking = set(itertools.product((False, True), (0, 1))) - {review[:2] for review in reviews}
    for test, label in sorted(lacking)[:1]:
        what = f"has no {CLASSES[label]} review in its {'test' if test else 'training'} part"
        raise fault(folder, what)
    parts = []
    for test in (False, True):
        part = ((review.label, review.text) for review in reviews if review.test == test)
        where = f"{folder}: the {'test' if test else 'training'} part"
        parts.append(list(texts.balanced(part, rows, CLASSES, where)))
    return texts.conversion(
        "imdb",
        parts,
        CLASSES,
        form=form,
        words=words,
        length=length,
        vocabulary=vocabulary,
        vocabulary_size=vocabulary_size,
        redrawn=split == "redrawn",
    )


def _reviews(folder: str) -> Iterator[Review]:
    """Yields the labeled reviews of any of the layouts."""
    path = pathlib.Path(folder)
    for root in (path / "aclImdb", path) if folder else ():
        if (root / "train").is_dir():
            yield from _official(root)
            return
    path = find(folder, SOURCE, ["aclimdb_v1.tar.gz", "aclimdb_v1.tar"], ["*.csv", "*.csv.gz"])
    if path.name.lower().endswith((".tar.gz", ".tgz", ".tar")):
        yield from _official(path)
        return
    for line, row in texts.csv_rows(path, COLUMNS, header=True):
        for column, right in RIGHT.items():
            if not re.fullmatch(right, row[column]):
                raise fault(path, f"is {row[column][:40]!r}, not {right}", line=line, column=column)
        yield Review(row["split"] == "test", int(row["label"]), int(row["id"]), row["review"])


def _official(path: pathlib.Path) -> Iterator[Review]:
    """Yields the labeled reviews of the unpacked folder, or of the archive."""
    with reading(path):
        if path.is_dir():
            for file in path.glob("*/*/*.txt"):
                if place := MEMBER.fullmatch(file.relative_to(path).as_posix()):
                    yield _review(place, file.read_bytes())
            return
        with tarfile.open(path, "r:gz") as archive:
            stream: Any = archive.fileobj
            for member in archive:
                content = archive.extractfile(member)
                if (place := MEMBER.fullmatch(member.name)) and content:
                    yield _review(place, content.read())
            while stream.read(1 << 20):  # to the end, where the checksum is
                pass


def _review(place: re.Match[str], content: bytes) -> Review:
    part, label, number = place.groups()
    return Review(part == "test", int(label == "pos"), int(number), content.decode())
