"""IMDB in every layout: one order, one checksum; the real reviews; faults are one line."""

import gzip
import io
import json
import pathlib
import shutil
import sys
import tarfile

import numpy as np
import pytest

from tests.conftest import real_data
from tests.datasets import reviews as written
from tests.datasets.words_test import split as keras_words
from vfljax.datasets import load, options
from vfljax.datasets.core import checksum, split_rows
from vfljax.datasets.dividing import Parties, divide
from vfljax.datasets.imdb import imdb
from vfljax.errors import UserError

ROWS = written.reviews()
PARTIES = Parties(passive=2, label_features=False)
LAYOUTS = {
    "folder": lambda root: written.write_folder(root, ROWS),
    "folder itself": lambda root: written.write_folder(root, ROWS) / "aclImdb",
    "archive": lambda root: written.write_archive(root, ROWS),
    "archive itself": lambda root: written.write_archive(root, ROWS) / "aclImdb_v1.tar.gz",
    "csv.gz": lambda root: written.write_csv(root, ROWS[::-1]),
    "csv": lambda root: written.write_csv(root, ROWS[::-1], name="imdb.csv"),
    "csv itself": lambda root: written.write_csv(root, ROWS, name="a.csv") / "a.csv",
}


def one_line(call, *words):
    """The UserError of a call, which is one line and says these words."""
    with pytest.raises(UserError) as error:
        call()
    assert len(str(error.value).splitlines()) == 1
    for word in words:
        assert word in str(error.value)
    return str(error.value)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_gives_the_same_rows_in_the_same_order(tmp_path, layout):
    data = imdb(str(LAYOUTS[layout](tmp_path)), words=8)
    texts = [row[4] for row in ROWS]
    want = [[c.name in keras_words(text) for c in data.columns] for text in texts]
    np.testing.assert_array_equal(data.features, want)
    assert data.labels.tolist() == [row[1] for row in ROWS]
    assert data.test.tolist() == [row[0] == "test" for row in ROWS]
    assert (data.kind, data.features.dtype, data.num_classes) == ("table", np.uint8, 2)
    assert data.classes == ("negative", "positive")
    assert "6 training and 6 test rows" in data.notes[-1]


def test_folder_archive_and_csv_have_one_checksum(tmp_path):
    sums = set()
    for layout, write in LAYOUTS.items():
        (tmp_path / layout).mkdir()
        sums.add(checksum(imdb(str(write(tmp_path / layout)), words=8)))
    assert len(sums) == 1


def test_words_are_the_most_frequent_of_the_training_part(tmp_path):
    rows = [r if r[0] == "train" else (*r[:4], "testing " * 50 + r[4]) for r in ROWS]
    data = imdb(str(written.write_csv(tmp_path, rows)), words=8)
    counts = {}
    for row in rows[: len(rows) // 2]:
        for word in keras_words(row[4]):
            counts[word] = counts.get(word, 0) + 1
    want = sorted(counts, key=lambda word: (-counts[word], word))[:8]
    assert [column.name for column in data.columns] == want
    assert not {"testing"} & set(want)


def test_a_csv_without_ids_keeps_its_order_within_part_and_class(tmp_path):
    rows = ROWS[::-1]
    data = imdb(
        str(written.write_csv(tmp_path, rows, columns=("label", "review", "split"))), words=20
    )
    want = [r for s in ("train", "test") for y in (0, 1) for r in rows if r[:2] == (s, y)]
    matrix = [[column.name in keras_words(row[4]) for column in data.columns] for row in want]
    np.testing.assert_array_equal(data.features, matrix)


def test_kaggle_s_csv_has_no_published_part_and_keeps_its_order(tmp_path):
    rows = [ROWS[i] for i in (3, 0, 4, 1, 5, 2)]
    name = "IMDB Dataset.csv"
    written.write_csv(tmp_path, rows, name=name, columns=("review", "sentiment"))
    data = imdb(str(tmp_path), words=5)
    assert data.test is None
    assert data.labels.tolist() == [1, 0, 1, 0, 1, 0]
    assert imdb(str(tmp_path), words=5, rows=3).labels.tolist() == [1, 0, 0]


def test_a_redrawn_split_keeps_rows_and_words_and_divides_all_rows_by_seed(tmp_path):
    folder = str(written.write_folder(tmp_path, ROWS))
    data, want = (imdb(folder, words=8, split=split) for split in ("redrawn", "published"))
    assert data.test is None
    assert want.test.sum() == 6
    np.testing.assert_array_equal(data.features, want.features)
    assert (data.columns, data.labels.tolist()) == (want.columns, want.labels.tolist())
    assert "divides all rows" in data.notes[-1]
    tests = []
    for seed in range(4):
        parts = split_rows(data, seed, 0.5, 1 / 6, 1 / 3)
        assert [len(part) for part in parts] == [6, 2, 4]
        assert sorted(np.concatenate(parts).tolist()) == list(range(12))
        tests.append(set(parts.test.tolist()))
    published = set(np.flatnonzero(want.test).tolist())
    assert any(test != tests[0] for test in tests)
    assert any(test - published for test in tests)  # of the published training part too


def test_a_redrawn_split_of_kaggle_s_csv_is_the_published_one(tmp_path):
    written.write_csv(tmp_path, ROWS, name="IMDB Dataset.csv", columns=("review", "sentiment"))
    one, other = (imdb(str(tmp_path), words=5, split=split) for split in ("redrawn", "published"))
    np.testing.assert_array_equal(one.features, other.features)
    assert (one.test, one.notes) == (None, other.notes)


def test_some_rows_are_the_first_of_each_class_of_each_part(tmp_path):
    folder = str(written.write_folder(tmp_path, ROWS))
    data = imdb(folder, words=8, rows=4)
    first = [row for row in ROWS if row[3] < 11]
    matrix = [[column.name in keras_words(row[4]) for column in data.columns] for row in first]
    np.testing.assert_array_equal(data.features, matrix)
    assert data.labels.tolist() == [0, 0, 1, 1, 0, 0, 1, 1]
    assert data.test.sum() == 4
    one_line(lambda: imdb(folder, words=8, rows=8), "the training part", "has 3 rows of class")


@pytest.mark.parametrize("form", ["array_record", "parquet"])
def test_a_tfds_folder_is_read_without_tensorflow(tmp_path, form):
    data = imdb(str(written.write_tfds(tmp_path, ROWS, form)), words=8)
    assert "tensorflow" not in sys.modules
    want = imdb(str(written.write_csv(tmp_path / "imdb_reviews", ROWS)), words=8)
    assert data.columns == want.columns
    assert data.test.tolist() == want.test.tolist()
    for part in (data.test, ~data.test):  # TFDS shuffles rows: the same ones in another order
        own = np.column_stack([data.features, data.labels])[part]
        other = np.column_stack([want.features, want.labels])[part]
        assert sorted(own.tolist()) == sorted(other.tolist())


def test_tfds_folders_that_cannot_be_read_say_why(tmp_path):
    home = tmp_path / "imdb_reviews" / "plain_text" / "1.0.0"
    home.mkdir(parents=True)
    one_line(lambda: imdb(str(tmp_path)), "has not prepared imdb_reviews", "array_record")
    (home / "dataset_info.json").write_text("{")
    one_line(lambda: imdb(str(tmp_path)), "dataset_info.json is damaged")
    (home / "dataset_info.json").write_text("[]")
    one_line(lambda: imdb(str(tmp_path)), "dataset_info.json is damaged")
    for described in ({}, {"fileFormat": "tfrecord"}):
        (home / "dataset_info.json").write_text(json.dumps(described))
        one_line(lambda: imdb(str(tmp_path)), "prepared as 'tfrecord'", "array_record")
    shutil.rmtree(tmp_path / "imdb_reviews")
    home = written.write_tfds(tmp_path, ROWS) / "imdb_reviews" / "plain_text" / "1.0.0"
    next(home.glob("*train*")).unlink()
    one_line(lambda: imdb(str(tmp_path)), "cannot be read")


@pytest.mark.parametrize("key", ["pythonClassName", "python_class_name", "type"])
def test_a_tfds_folder_makes_nothing_run(tmp_path, monkeypatch, key):
    home = written.write_tfds(tmp_path, ROWS) / "imdb_reviews" / "plain_text" / "1.0.0"
    (tmp_path / "planted").mkdir()
    (tmp_path / "planted" / "planted_by_a_file.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path / "planted")
    assert "tensorflow_datasets.core.features.text_feature." in (home / "features.json").read_text()
    (home / "features.json").write_text(json.dumps({key: "planted_by_a_file.X"}))
    imdb(str(tmp_path), words=3)
    assert "planted_by_a_file" not in sys.modules


def test_the_real_reviews():
    data = load("imdb", str(real_data("imdb")), {})
    assert data.features.shape == (50_000, 500)
    assert data.test.sum() == 25_000
    for part in (data.test, ~data.test):
        assert data.labels[part].sum() == 12_500
    # Keras' published first ranks of the same reviews
    keras = "the and a of to is br in it i this that was as for with movie but film on"
    assert [column.name for column in data.columns[:20]] == keras.split()
    assert not any("official" in note for note in data.notes)
    blocks = divide(data, PARTIES)
    assert [block.features.shape for block in blocks] == [(50_000, 250)] * 2


def test_the_real_reviews_matrix_against_a_plain_restatement():
    import csv

    with gzip.open(real_data("imdb") / "imdb_50k.csv.gz", "rt", encoding="utf-8", newline="") as f:
        rows = list(csv.DictReader(f))
    for row in rows:
        row["id"] = int(row["id"])
    rows.sort(key=lambda row: (row["split"] == "test", row["label"], row["id"]))
    kept = [
        row
        for split in ("train", "test")
        for label in "01"
        for row in [r for r in rows if (r["split"], r["label"]) == (split, label)][:50]
    ]
    data = load("imdb", str(real_data("imdb")), {"rows": 100})
    counts = {}
    for row in kept[:100]:
        for word in keras_words(row["review"]):
            counts[word] = counts.get(word, 0) + 1
    words = sorted(counts, key=lambda word: (-counts[word], word))[:500]
    assert [column.name for column in data.columns] == words
    sets = [set(keras_words(row["review"])) for row in kept]
    want = [[word in present for word in words] for present in sets]
    np.testing.assert_array_equal(data.features, want)


def replaced(old, new):
    """A CSV with one place changed."""
    return lambda root: (root / "a.csv").write_bytes(
        written.csv_text(ROWS).encode().replace(old, new, 1)
    )


def truncated(name):
    def write(root):
        (written.write_archive if "tar" in name else written.write_csv)(root, ROWS)
        raw = (root / name).read_bytes()
        (root / name).write_bytes(raw[: len(raw) * 2 // 3])

    return write


def folder_with(path, raw):
    def write(root):
        written.write_folder(root, ROWS)
        (root / "aclImdb" / path).write_bytes(raw)

    return write


def without(path):
    def write(root):
        written.write_folder(root, ROWS)
        shutil.rmtree(root / "aclImdb" / path)

    return write


def two(root):
    written.write_csv(root, ROWS)
    written.write_csv(root, ROWS, name="b.csv")


def damaged_header(root):
    raw = bytearray(written.tar_bytes(ROWS))
    raw[6 * 512 + 100] ^= 255
    with gzip.open(root / "aclImdb_v1.tar.gz", "wb") as file:
        file.write(bytes(raw))


def between_members(root):
    """The archive cut after a whole member, and zipped anew: gzip's checksum is right."""
    raw = written.tar_bytes(ROWS)
    with tarfile.open(fileobj=io.BytesIO(raw)) as archive:
        end = archive.getmembers()[-3].offset
    (root / "aclImdb_v1.tar.gz").write_bytes(gzip.compress(raw[:end]))


def member_twice(again):
    def write(root):
        content = io.BytesIO(written.tar_bytes(ROWS))
        with tarfile.open(fileobj=content, mode="a") as archive:
            archive.addfile(tarfile.TarInfo(again))
        (root / "aclImdb_v1.tar.gz").write_bytes(gzip.compress(content.getvalue()))

    return write


def negative_size(root):
    member = tarfile.TarInfo("aclImdb/train/neg/9_9.txt")
    member.size = -1
    raw = member.tobuf(tarfile.GNU_FORMAT) + written.tar_bytes(ROWS)
    (root / "aclImdb_v1.tar.gz").write_bytes(gzip.compress(raw))


CASES = {
    "nothing": (lambda root: None, ("holds no IMDB", "aclImdb_v1.tar.gz", "review, sentiment")),
    "several tables": (two, ("several tables", "b.csv, imdb.csv.gz")),
    "a truncated archive": (truncated("aclImdb_v1.tar.gz"), ("aclImdb_v1.tar.gz cannot be read",)),
    "a truncated table": (truncated("imdb.csv.gz"), ("imdb.csv.gz cannot be read",)),
    "an archive that is a folder": (
        lambda root: (root / "aclImdb_v1.tar.gz").mkdir(),
        ("is a folder: a file",),
    ),
    "a table that is a folder": (lambda root: (root / "a.csv").mkdir(), ("is a folder: a file",)),
    "an archive cut between members": (between_members, ("without a tar file's end mark",)),
    "a member twice": (member_twice("aclImdb/train/neg/9_1.txt"), ("9_1.txt' twice",)),
    "a member under two paths": (
        member_twice("./aclImdb/train/neg/9_1.txt"),
        ("9_1.txt' is there twice",),
    ),
    "a member of negative size": (negative_size, ("aclImdb_v1.tar.gz", "fetch it again")),
    "an archive that is none": (
        lambda root: (root / "aclImdb_v1.tar.gz").write_bytes(b"<html>"),
        ("cannot be read",),
    ),
    "a part missing": (without("test/pos"), ("pos is no folder", "unpack")),
    "a review not UTF-8": (folder_with("train/neg/9_1.txt", b"caf\xe9"), ("9_1.txt is not UTF-8",)),
    "a review of another name": (folder_with("test/pos/x.txt", b"a"), ("not named id_rating.txt",)),
    "a review too long": (folder_with("test/pos/9_9.txt", b"a" * (1 << 20)), ("bytes long",)),
    "no column review": (replaced(b"review", b"text"), ("has the columns", "needed are split")),
    "no header": (replaced(b"split,label,rating,id,review\n", b""), ("needed are split",)),
    "a column twice": (replaced(b"rating", b"label"), ("two columns are named 'label'",)),
    "an empty table": (lambda root: (root / "a.csv").write_text(""), ("has the columns []",)),
    "a header alone": (
        lambda root: (root / "a.csv").write_text("split,label,review\n"),
        ("the training part has no row of class 'negative'",),
    ),
    "a label of 2": (replaced(b"train,0", b"train,2"), ("a.csv line 2: the label '2'", "0 or neg")),
    "a split of its own": (replaced(b"train,0", b"valid,0"), ("line 2: the split 'valid'",)),
    "an id that is none": (replaced(b",9,", b",nine,"), ("line 2: the id 'nine'",)),
    "a field more": (replaced(b",9,", b",9,9,"), ("line 2 has 6 fields, not 5",)),
    "a table not UTF-8": (replaced("é".encode(), b"\xe9"), ("a.csv line", "is not UTF-8")),
    "a quote never closed": (replaced(b'"\n', b"\n"), ("a.csv", "is no CSV")),
    "one class": (
        lambda root: written.write_csv(root, [r for r in ROWS if r[:2] != ("test", 1)]),
        ("the test part has no row of class 'positive'",),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_fault_of_the_files_is_one_line_with_its_remedy(tmp_path, case):
    write, words = CASES[case]
    write(tmp_path)
    one_line(lambda: imdb(str(tmp_path), words=3), *words)


def test_a_damaged_member_ends_no_archive_early(tmp_path):
    damaged_header(tmp_path)
    one_line(lambda: imdb(str(tmp_path), words=3), "aclImdb_v1.tar.gz")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"form": "word"}, "did you mean 'words'"),
        ({"words": 0}, "words=0 must be an integer from 1 to 1,000,000"),
        ({"words": 10_000}, "words=10000: the texts have"),
        ({"length": 2}, "length=2"),
        ({"length": 10**12}, "must be an integer from 3 to 4,096"),
        ({"length": 10**30}, "must be an integer from 3 to 4,096"),
        ({"vocabulary_size": 10**30}, "must be an integer from 1 to 1,000,000"),
        ({"rows": 10**30}, "must be an integer from 0 to 1,000,000,000"),
        ({"rows": 1}, "rows=1 leaves a class without a row: give 0 for all rows, or 2 or more"),
        ({"rows": -1}, "rows=-1"),
        ({"rows": 2.5}, "rows=2.5"),
        ({"vocabulary_size": True}, "vocabulary_size=True"),
        ({"lowercase": 1}, "lowercase=1"),
        ({"split": "redraw"}, "did you mean 'redrawn'"),
        ({"split": True}, "choose from published, redrawn"),
    ],
)
def test_a_bad_option_is_one_line(tmp_path, options, words):
    written.write_csv(tmp_path, ROWS)
    one_line(lambda: imdb(str(tmp_path), **options), words)


def test_folders_that_are_not_there_are_named(tmp_path):
    one_line(lambda: imdb(""), "data.dir is empty")
    one_line(lambda: imdb(str(tmp_path / "nowhere")), "is no folder and no file", "aclImdb")
    (tmp_path / "a.txt").write_text("")
    one_line(lambda: imdb(str(tmp_path / "a.txt")), "is no file of IMDB")


def test_a_text_of_imdb_is_128_tokens_a_party_unless_asked_otherwise():
    assert (options.of(imdb)["length"], options.of(imdb)["lowercase"]) == (128, True)


def test_an_empty_review_is_a_row_without_words(tmp_path):
    rows = [*ROWS, ("train", 0, 1, 99, "")]
    data = imdb(str(written.write_csv(tmp_path, rows)), words=8)
    assert data.features.sum(1)[3] == 0
    assert pathlib.Path(tmp_path / "imdb.csv.gz").exists()
