"""The layouts IMDB's reviews come in, each read as it is: nothing is extracted or downloaded.

What enters: a path. What leaves: ``Review``s. The order of an archive's members is arbitrary;
``vfljax.datasets.imdb`` sorts.
"""

from __future__ import annotations

import json
import pathlib
import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from vfljax.datasets import archives
from vfljax.datasets.faults import all_different, unpermitted
from vfljax.datasets.textfile import LONGEST, broken, csv_rows, decoded, one_line
from vfljax.errors import UserError

LABELS = {"0": 0, "neg": 0, "negative": 0, "1": 1, "pos": 1, "positive": 1}
SPLITS = ("train", "test")
FILE = re.compile(r"([0-9]{1,9})_([0-9]{1,9})\.txt")  # id_rating
MEMBER = re.compile(r"(?:\./)?aclImdb/(train|test)/(neg|pos)/([^/]*\.txt)")
IDENTITY = re.compile(r"([0-9]{1,9})(?:_[0-9]{1,9})?")
READABLE = ("array_record", "parquet")  # of TFDS' formats, without TensorFlow
TFDS = pathlib.Path("imdb_reviews", "plain_text", "1.0.0")


class Review(NamedTuple):
    """One review; records sort by published part, class and id."""

    test: bool
    label: int  # 1 = positive
    number: tuple[int, int]  # (id, rating) within its part and class, or (place in the file, 0)
    text: str


def folder_reviews(root: pathlib.Path) -> Iterator[Review]:
    """Reviews of an unpacked aclImdb folder; ``unsup`` and files of other kinds are ignored."""
    for split in SPLITS:
        for label in ("neg", "pos"):
            folder = root / split / label
            if not folder.is_dir():
                raise UserError(
                    f"{folder} is no folder: {root} must hold train/neg, train/pos, test/neg and "
                    "test/pos; unpack aclImdb_v1.tar.gz again."
                )
            for path in folder.glob("*.txt"):
                number = _number(path.name, str(path))
                try:
                    with path.open("rb") as file:
                        raw = file.read(LONGEST)
                except OSError as error:
                    raise broken(path, error) from error
                yield Review(split == "test", LABELS[label], number, decoded(raw, str(path)))


def archive_reviews(path: pathlib.Path) -> Iterator[Review]:
    """Reviews of aclImdb_v1.tar.gz, read in place."""
    seen = set()
    for member, raw in archives.chosen(path, lambda name: bool(MEMBER.fullmatch(name)), LONGEST):
        where = f"{path}: {member}"
        found = MEMBER.fullmatch(member)
        assert found is not None
        split, label, name = found.groups()
        if (split, label, name) in seen:
            raise UserError(f"{where!r} is there twice: fetch the archive again.")
        seen.add((split, label, name))
        yield Review(split == "test", LABELS[label], _number(name, where), decoded(raw, where))


def _number(name: str, where: str) -> tuple[int, int]:
    """(id, rating) of a file's name."""
    found = FILE.fullmatch(name)
    if found is None:
        raise UserError(f"{where!r} is not named id_rating.txt, as IMDB's reviews are: remove it.")
    return int(found[1]), int(found[2])


def csv_reviews(path: pathlib.Path) -> tuple[list[Review], bool]:
    """(Reviews of a CSV with a header, whether it says which are training and test rows).

    Columns split, label, review and perhaps id; or Kaggle's review, sentiment. Others are ignored.
    """
    rows = csv_rows(path)
    header = next(rows, (1, []))[1]
    published = {"split", "label", "review"} <= set(header)
    if not published and not {"review", "sentiment"} <= set(header):
        raise UserError(
            f"{path} has the columns {_short(header)}: needed are split, label and review, or "
            "Kaggle's review and sentiment, in the first line."
        )
    all_different(header, str(path))
    at = {name: place for place, name in enumerate(header)}
    reviews = []
    for line, row in rows:
        where = f"{path} line {line}"
        if len(row) != len(header):
            raise UserError(
                f"{where} has {len(row)} fields, not {len(header)}: the file is cut off or damaged."
            )
        sentiment = row[at["label" if published else "sentiment"]]
        label = LABELS.get(sentiment.strip().lower())
        if label is None:
            raise UserError(
                f"{where}: the label {_short(sentiment)} is unknown: it must be 0 or neg, 1 or pos."
            )
        if published and row[at["split"]] not in SPLITS:
            raise UserError(
                f"{where}: the split {_short(row[at['split']])} is unknown: it must be train or "
                "test."
            )
        number = (line, 0)
        if published and "id" in at:
            found = IDENTITY.fullmatch(row[at["id"]])
            if found is None:
                raise UserError(
                    f"{where}: the id {_short(row[at['id']])} is no number: leave the column out "
                    "for the order of the file."
                )
            number = (int(found[1]), 0)
        reviews.append(
            Review(published and row[at["split"]] == "test", label, number, row[at["review"]])
        )
    return reviews, published


def _short(value: str | Sequence[str]) -> str:
    """A value for a message: on one line and not long."""
    shown = repr(value)
    return shown if len(shown) <= 80 else f"{shown[:76]}..."


def tfds_reviews(folder: pathlib.Path) -> Iterator[Review]:
    """Reviews of imdb_reviews/plain_text, prepared by TensorFlow Datasets as array_record or Parquet.

    Read without TensorFlow. What TFDS says of an unprepared folder misleads, hence the checks.
    """
    home = folder / TFDS
    info = home / "dataset_info.json"
    remedy = (
        "prepare it, where TensorFlow is installed, with tfds.builder('imdb_reviews/plain_text', "
        f"data_dir={str(folder)!r}, file_format='array_record').download_and_prepare()"
    )
    if not info.is_file():
        raise UserError(f"{info} is missing: TFDS has not prepared imdb_reviews there; {remedy}.")
    try:
        described: Any = json.loads(info.read_text(encoding="utf-8"))
        kind = described.get("fileFormat", "tfrecord")  # TFDS's default
    except PermissionError as error:
        raise unpermitted(info) from error
    except (OSError, ValueError, AttributeError) as error:
        raise UserError(f"{info} is damaged ({one_line(error)}): {remedy}.") from error
    if kind not in READABLE:
        raise UserError(
            f"{home} is prepared as {kind!r}, which cannot be read without TensorFlow: {remedy}, in "
            "another folder."
        )
    import tensorflow_datasets as tfds  # slow to import, and only this layout needs it

    # of the code, not by ``tfds.builder``: that may import modules by names in the folder's files
    official: Any = tfds.builder_cls(TFDS.parts[0])
    for split in SPLITS:
        try:
            source: Any = official(config=TFDS.parts[1], data_dir=folder).as_data_source(split)
            rows = [(row["text"], int(row["label"])) for row in source]
        except Exception as error:  # whatever a damaged shard or description makes TFDS raise
            raise UserError(f"{home} cannot be read ({one_line(error)}): {remedy}.") from error
        for place, (text, label) in enumerate(rows):
            where = f"{home}, row {place + 1} of {split}"
            if label not in (0, 1):
                raise UserError(f"{where} has the label {label}: it must be 0 or 1.")
            yield Review(split == "test", label, (place, 0), decoded(text, where))
