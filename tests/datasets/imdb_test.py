"""IMDB in every layout: one order and one matrix; which rows and parts are read; faults are one line."""

import collections
import gzip
import shutil

import numpy as np
import pytest
from hypothesis import strategies as st

from tests.datasets import reviews as written
from tests.datasets.conversions import whole
from tests.datasets.fuzzing import drawn, mutate
from tests.datasets.refusals import one_line
from tests.datasets.reviews import split as keras_words
from vfljax.datasets.converters.imdb import imdb
from vfljax.errors import UserError

ROWS = written.reviews()
LAYOUTS = {
    "folder": lambda root: written.write_folder(root, ROWS),
    "folder itself": lambda root: written.write_folder(root, ROWS) / "aclImdb",
    "archive": lambda root: written.write_archive(root, ROWS),
    "archive itself": lambda root: written.write_archive(root, ROWS) / "aclImdb_v1.tar.gz",
    "csv.gz": lambda root: written.write_csv(root, ROWS[::-1]),
    "csv itself": lambda root: written.write_csv(root, ROWS, name="a.csv") / "a.csv",
}


def names(data):
    return [column.name for column in data.about["columns"]]


def matrix(rows, data):
    """Which of the data's words each review has, by a plain restatement of Keras' rule."""
    return [[name in keras_words(row[4]) for name in names(data)] for row in rows]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_gives_the_same_rows_in_the_same_order(tmp_path, layout):
    data = whole(imdb(str(LAYOUTS[layout](tmp_path)), words=8))
    np.testing.assert_array_equal(data.features, matrix(ROWS, data))
    assert data.features.dtype == np.uint8
    assert data.labels.tolist() == [row[1] for row in ROWS]
    assert data.test.tolist() == [row[0] == "test" for row in ROWS]
    assert data.about["classes"] == ("negative", "positive")


def test_words_are_the_most_frequent_of_the_training_part_whatever_the_split(tmp_path):
    rows = [r if r[0] == "train" else (*r[:4], "testing " * 50 + r[4]) for r in ROWS]
    folder = str(written.write_csv(tmp_path, rows))
    data, redrawn = (whole(imdb(folder, words=8, split=s)) for s in ("published", "redrawn"))
    training = [word for row in rows if row[0] == "train" for word in keras_words(row[4])]
    counts = collections.Counter(training)
    assert names(data) == sorted(counts, key=lambda word: (-counts[word], word))[:8]
    assert redrawn.test is None
    assert names(redrawn) == names(data)
    np.testing.assert_array_equal(redrawn.features, data.features)


def test_some_rows_are_the_first_of_each_class_of_each_part(tmp_path):
    folder = str(written.write_folder(tmp_path, ROWS))
    data = whole(imdb(folder, words=8, rows=4))
    np.testing.assert_array_equal(data.features, matrix([r for r in ROWS if r[3] < 11], data))
    assert data.labels.tolist() == [0, 0, 1, 1, 0, 0, 1, 1]
    one_line(lambda: imdb(folder, words=8, rows=8), "training part has 3 rows of class 'negative'")


def replaced(old, new):
    """A CSV with one place changed."""
    content = written.csv_text(ROWS).encode().replace(old, new, 1)
    return lambda root: (root / "a.csv").write_bytes(content)


def archive(content):
    return lambda root: (root / "aclImdb_v1.tar.gz").write_bytes(content)


def changed(path, content=None):
    """A folder with one file more or (without content) a part less."""

    def write(root):
        written.write_folder(root, ROWS)
        if content is None:
            shutil.rmtree(root / "aclImdb" / path)
        else:
            (root / "aclImdb" / path).write_bytes(content)

    return write


TAR = written.tar_bytes(ROWS)
TGZ, CSVGZ = gzip.compress(TAR), gzip.compress(written.csv_text(ROWS).encode())
HEADER_CHANGED = TGZ[:200] + bytes([TGZ[200] ^ 255]) + TGZ[201:]
CASES = {
    "nothing": (lambda root: None, "holds no file"),
    "several tables": (
        lambda root: [written.write_csv(root, ROWS, name=n) for n in ("a.csv", "b.csv.gz")],
        "holds a.csv, b.csv.gz",
    ),
    "a truncated archive": (archive(TGZ[:-300]), "aclImdb_v1.tar.gz"),
    "a damaged archive": (archive(HEADER_CHANGED), "aclImdb_v1.tar.gz"),
    "a page for an archive": (archive(b"<html>"), "aclImdb_v1.tar.gz"),
    "a truncated table": (lambda root: (root / "a.csv.gz").write_bytes(CSVGZ[:-30]), "a.csv.gz"),
    "a part missing": (changed("test/pos"), "no positive review in its test part"),
    "a review not UTF-8": (changed("train/neg/9_1.txt", b"caf\xe9"), "UnicodeDecodeError"),
    "a column missing": (replaced(b"review", b"text"), "'review'"),
    "a label of 2": (replaced(b"train,0", b"train,2"), "a.csv line 2, column 'label' is '2'"),
    "a split of its own": (replaced(b"train,0", b"valid,0"), "line 2, column 'split' is 'valid'"),
    "an id that is none": (replaced(b",9,", b",nine,"), "line 2, column 'id' is 'nine'"),
    "a field more": (replaced(b",9,", b",9,9,"), "line 2 does not have 5 fields"),
    "a quote never closed": (replaced(b'"\n', b"\n"), "a.csv cannot be read"),
}


@pytest.mark.parametrize("case", CASES)
def test_a_fault_of_the_files_is_one_line_that_names_them(tmp_path, case):
    write, words = CASES[case]
    write(tmp_path)
    one_line(lambda: imdb(str(tmp_path), words=3), str(tmp_path), words)


def test_a_bad_option_is_one_line_that_names_it(tmp_path):
    folder = str(written.write_csv(tmp_path, ROWS))
    for option in ({"form": "word"}, {"words": 10_000}, {"rows": -1}, {"split": "redraw"}):
        (name, value), *_ = option.items()
        one_line(lambda given=option: imdb(folder, **given), f"options.{name}", repr(value))


@drawn(name=st.sampled_from(["aclImdb_v1.tar.gz", "a.csv.gz"]), data=st.data())
def test_a_damaged_file_is_read_or_is_one_line(tmp_path_factory, name, data):
    path = tmp_path_factory.mktemp("damaged") / name
    path.write_bytes(mutate(data, TGZ if name.endswith(".tar.gz") else CSVGZ))
    try:
        read = whole(imdb(str(path), words=3))
    except UserError as error:
        assert len(str(error).splitlines()) == 1
    else:
        assert read.features.shape == (len(read.labels), 3)
