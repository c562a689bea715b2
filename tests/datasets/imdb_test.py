"""IMDB in every layout: one order, one checksum; the real reviews; faults are one line."""

import collections
import gzip
import io
import shutil
import sys
import tarfile

import numpy as np
import pytest

from tests.conftest import real_data
from tests.datasets import reviews as written
from tests.datasets.refusals import one_line
from tests.datasets.reviews import split as keras_words
from vfljax.config import Parties
from vfljax.datasets import load
from vfljax.datasets.core import checksum
from vfljax.datasets.imdb import imdb
from vfljax.datasets.partition import divide
from vfljax.datasets.splits import split_rows

ROWS = written.reviews()
PARTIES = Parties(passive=2, label_features=False)
KAGGLE = {"name": "IMDB Dataset.csv", "columns": ("review", "sentiment")}
LAYOUTS = {
    "folder": lambda root: written.write_folder(root, ROWS),
    "folder itself": lambda root: written.write_folder(root, ROWS) / "aclImdb",
    "archive": lambda root: written.write_archive(root, ROWS),
    "archive itself": lambda root: written.write_archive(root, ROWS) / "aclImdb_v1.tar.gz",
    "csv.gz": lambda root: written.write_csv(root, ROWS[::-1]),
    "csv": lambda root: written.write_csv(root, ROWS[::-1], name="imdb.csv"),
    "csv itself": lambda root: written.write_csv(root, ROWS, name="a.csv") / "a.csv",
}


def matrix(rows, data):
    """Which of the data's words each review has, by a plain restatement of Keras' rule."""
    return [[column.name in keras_words(row[4]) for column in data.columns] for row in rows]


def top(texts, most):
    """The most frequent words, ties in alphabetical order."""
    counts = collections.Counter(word for text in texts for word in keras_words(text))
    return sorted(counts, key=lambda word: (-counts[word], word))[:most]


def names(data):
    return [column.name for column in data.columns]


def test_every_layout_gives_the_same_rows_in_the_same_order(tmp_path):
    sums = set()
    for layout, write in LAYOUTS.items():
        (tmp_path / layout).mkdir()
        data = imdb(str(write(tmp_path / layout)), words=8)
        np.testing.assert_array_equal(data.features, matrix(ROWS, data))
        assert data.labels.tolist() == [row[1] for row in ROWS]
        assert data.test.tolist() == [row[0] == "test" for row in ROWS]
        assert (data.kind, data.features.dtype, data.num_classes) == ("table", np.uint8, 2)
        assert data.classes == ("negative", "positive")
        assert "6 training and 6 test rows" in data.notes[-1]
        sums.add(checksum(data))
    assert len(sums) == 1


def test_words_are_the_most_frequent_of_the_training_part(tmp_path):
    rows = [r if r[0] == "train" else (*r[:4], "testing " * 50 + r[4]) for r in ROWS]
    data = imdb(str(written.write_csv(tmp_path, rows)), words=8)
    assert names(data) == top([row[4] for row in rows[: len(rows) // 2]], 8)
    assert "testing" not in names(data)


def test_a_csv_without_ids_keeps_its_order_within_part_and_class(tmp_path):
    rows = ROWS[::-1]
    written.write_csv(tmp_path, rows, columns=("label", "review", "split"))
    data = imdb(str(tmp_path), words=20)
    want = [r for s in ("train", "test") for y in (0, 1) for r in rows if r[:2] == (s, y)]
    np.testing.assert_array_equal(data.features, matrix(want, data))


def test_kaggle_s_csv_has_no_published_part_and_keeps_its_order(tmp_path):
    written.write_csv(tmp_path, [ROWS[i] for i in (3, 0, 4, 1, 5, 2)], **KAGGLE)
    data, other = (imdb(str(tmp_path), words=5, split=s) for s in ("published", "redrawn"))
    assert data.test is other.test is None
    assert data.labels.tolist() == [1, 0, 1, 0, 1, 0]
    assert imdb(str(tmp_path), words=5, rows=3).labels.tolist() == [1, 0, 0]
    np.testing.assert_array_equal(data.features, other.features)
    assert data.notes == other.notes


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
        assert [len(part) for part in parts[:3]] == [6, 2, 4]
        assert sorted(np.concatenate(parts).tolist()) == list(range(12))
        tests.append(set(parts.test.tolist()))
    published = set(np.flatnonzero(want.test).tolist())
    assert any(test != tests[0] for test in tests)
    assert any(test - published for test in tests)  # of the published training part too


def test_some_rows_are_the_first_of_each_class_of_each_part(tmp_path):
    folder = str(written.write_folder(tmp_path, ROWS))
    data = imdb(folder, words=8, rows=4)
    np.testing.assert_array_equal(data.features, matrix([r for r in ROWS if r[3] < 11], data))
    assert data.labels.tolist() == [0, 0, 1, 1, 0, 0, 1, 1]
    assert data.test.sum() == 4
    one_line(lambda: imdb(folder, words=8, rows=8), "the training part has 3 rows of class 'neg")


def test_an_empty_review_is_a_row_without_words(tmp_path):
    data = imdb(str(written.write_csv(tmp_path, [*ROWS, ("train", 0, 1, 99, "")])), words=8)
    assert data.features.sum(1)[3] == 0


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


@pytest.mark.slow  # the first thousands are pinned in ``pinned_test``
def test_the_real_reviews():
    data = load("imdb", str(real_data("imdb")), {})
    assert data.features.shape == (50_000, 500)
    assert [data.labels[part].sum() for part in (data.test, ~data.test)] == [12_500] * 2
    # Keras' published first ranks of the same reviews
    keras = "the and a of to is br in it i this that was as for with movie but film on"
    assert names(data)[:20] == keras.split()
    assert not any("official" in note for note in data.notes)
    assert [block.features.shape for block in divide(data, PARTIES)] == [(50_000, 250)] * 2


def replaced(old, new):
    """A CSV with one place changed."""
    content = written.csv_text(ROWS).encode().replace(old, new, 1)
    return lambda root: (root / "a.csv").write_bytes(content)


def archive(content):
    return lambda root: (root / "aclImdb_v1.tar.gz").write_bytes(content)


def table(content):
    return lambda root: (root / "a.csv.gz").write_bytes(content)


def changed(path, raw=None):
    """A folder with one file more or (without content) a part less."""

    def write(root):
        written.write_folder(root, ROWS)
        if raw is None:
            shutil.rmtree(root / "aclImdb" / path)
        else:
            (root / "aclImdb" / path).write_bytes(raw)

    return write


def members(name="aclImdb/train/neg/9_1.txt", size=0):
    """The archive with one header more: after all members, or where the size cannot be before."""
    member = tarfile.TarInfo(name)
    if size:
        member.size = size
        return gzip.compress(member.tobuf(tarfile.GNU_FORMAT) + TAR)
    content = io.BytesIO(TAR)
    with tarfile.open(fileobj=content, mode="a") as appended:
        appended.addfile(member)
    return gzip.compress(content.getvalue())


TAR = written.tar_bytes(ROWS)
with tarfile.open(fileobj=io.BytesIO(TAR)) as opened:
    AFTER_A_MEMBER = opened.getmembers()[-3].offset
BAD_HEADER = TAR[: 6 * 512 + 100] + bytes([TAR[6 * 512 + 100] ^ 255]) + TAR[6 * 512 + 101 :]
TGZ, CSVGZ = gzip.compress(TAR), gzip.compress(written.csv_text(ROWS).encode())
ONE_CLASS = written.csv_text([r for r in ROWS if r[:2] != ("test", 1)]).encode()
CASES = {
    "nothing": (lambda root: None, "holds no file aclimdb_v1.tar.gz, *", "review, sentiment"),
    "several tables": (
        lambda root: [written.write_csv(root, ROWS, name=n) for n in ("a.csv", "b.csv.gz")],
        "holds a.csv, b.csv.gz: give the path of one",
    ),
    "a truncated archive": (archive(TGZ[:-300]), "aclImdb_v1.tar.gz cannot be read"),
    "a truncated table": (table(CSVGZ[:-30]), "a.csv.gz cannot be read"),
    "a table that is a folder": (lambda root: (root / "a.csv").mkdir(), "holds no file aclimdb_v1.tar.gz, *"),
    # gzip's checksum is right
    "cut between members": (archive(gzip.compress(TAR[:AFTER_A_MEMBER])), "without a tar file's end"),
    "a damaged header": (archive(gzip.compress(BAD_HEADER)), "aclImdb_v1.tar.gz"),
    "a member twice": (archive(members()), "9_1.txt' twice"),
    "a member under two paths": (archive(members("./aclImdb/train/neg/9_1.txt")), "is there twice"),
    "a member of negative size": (archive(members(size=-1)), "aclImdb_v1.tar.gz", "fetch it again"),
    "an archive that is none": (archive(b"<html>"), "cannot be read"),
    "a part missing": (changed("test/pos"), "pos is no folder", "unpack"),
    "a review not UTF-8": (changed("train/neg/9_1.txt", b"caf\xe9"), "9_1.txt is not UTF-8 text"),
    "a review of another name": (changed("test/pos/x.txt", b"a"), "not named id_rating.txt"),
    "a review too long": (changed("test/pos/9_9.txt", b"a" * (1 << 20)), "over 1,048,576 bytes"),
    "a line without end": (table(gzip.compress(bytes(1 << 22))), "line 1 holds a NUL byte"),
    "a long line": (table(gzip.compress(b"a" * (1 << 22))), "line 1 is over 1,048,576 bytes"),
    "no column review": (replaced(b"review", b"text"), "line 1 has the header", "give split, label"),
    "no header": (replaced(b"split,label,rating,id,review\n", b""), "give split, label and review"),
    "a column twice": (replaced(b"rating", b"label"), "two columns are named 'label'"),
    "an empty table": (table(gzip.compress(b"")), "line 1 has the header []"),
    "a header alone": (table(gzip.compress(b"split,label,review\n")), "no row of class 'negative'"),
    "a label of 2": (replaced(b"train,0", b"train,2"), "a.csv line 2, column 'label' is '2': give 0 or neg"),
    "a split of its own": (replaced(b"train,0", b"valid,0"), "line 2, column 'split' is 'valid': give train"),
    "an id that is none": (replaced(b",9,", b",nine,"), "line 2, column 'id' is 'nine': give a number"),
    "a field more": (replaced(b",9,", b",9,9,"), "line 2 has 6 fields, not 5"),
    "a table not UTF-8": (replaced("é".encode(), b"\xe9"), "a.csv line 7 is not UTF-8 text (byte 18"),
    "a quote never closed": (replaced(b'"\n', b"\n"), "a.csv line", "is no CSV"),
    "one class": (table(gzip.compress(ONE_CLASS)), "the test part has no row of class 'positive'"),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_a_fault_of_the_files_is_one_line_with_its_remedy(tmp_path, case):
    write, *words = CASES[case]
    write(tmp_path)
    one_line(lambda: imdb(str(tmp_path), words=3), *words)


def test_folders_that_are_not_there_are_named(tmp_path):
    one_line(lambda: imdb(""), "data.dir is empty")
    one_line(lambda: imdb(str(tmp_path / "nowhere")), "nowhere' is missing", "aclImdb")
    (tmp_path / "a.txt").write_text("")
    one_line(lambda: imdb(str(tmp_path / "a.txt")), "a.txt is no file of IMDB")


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"form": "word"}, "did you mean 'words'"),
        ({"words": 0}, "words=0: give an integer from 1 to 1,000,000"),
        ({"words": 10_000}, "words=10000: the texts have"),
        ({"length": 2}, "length=2"),
        ({"length": 10**12}, "give an integer from 3 to 4,096"),
        ({"rows": 1}, "rows=1 leaves a class without a row: give 0 for all rows, or 2 or more"),
        ({"vocabulary_size": True}, "vocabulary_size=True"),
        ({"vocabulary": 3}, "vocabulary=3: give a text"),
        ({"lowercase": 1}, "lowercase=1"),
        ({"split": "redraw"}, "did you mean 'redrawn'"),
    ],
)
def test_a_bad_option_is_one_line(tmp_path, asked, words):
    written.write_csv(tmp_path, ROWS)
    one_line(lambda: imdb(str(tmp_path), **asked), words)
