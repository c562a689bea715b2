"""IMDB in every layout: one order and one matrix; which rows and parts are read; faults are one line."""

import collections
import gzip

import numpy as np
import pytest

from tests.datasets import reviews as written
from tests.datasets.conversions import whole
from tests.datasets.refusals import one_line
from tests.datasets.reviews import split as keras_words
from vfljax.datasets.converters.imdb import imdb

ROWS = written.reviews()
LAYOUTS = {
    "folder": lambda root: written.write_folder(root, ROWS),
    "archive itself": lambda root: written.write_archive(root, ROWS) / "aclImdb_v1.tar.gz",
    "csv.gz": lambda root: written.write_csv(root, ROWS[::-1]),
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


CSV = written.csv_text(ROWS).encode()
CASES = {  # the file, its content, and words of the line
    "a truncated archive": ("aclImdb_v1.tar.gz", gzip.compress(written.tar_bytes(ROWS))[:-300], ""),
    "a part missing": ("a.csv", CSV.replace(b"test,1", b"test,0"), "no positive review in its test"),
    "a column missing": ("a.csv", CSV.replace(b"review", b"text", 1), "'review'"),
    "a label of 2": ("a.csv", CSV.replace(b"train,0", b"train,2", 1), "line 2, column 'label' is '2'"),
    "a split of its own": ("a.csv", CSV.replace(b"train", b"valid", 1), "column 'split' is 'valid'"),
    "an id that is none": ("a.csv", CSV.replace(b",9,", b",nine,", 1), "column 'id' is 'nine'"),
    "a field more": ("a.csv", CSV.replace(b",9,", b",9,9,", 1), "line 2 does not have 5 fields"),
    "a quote never closed": ("a.csv", CSV.replace(b'"\n', b"\n", 1), "cannot be read"),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_a_fault_of_the_files_is_one_line_that_names_them(tmp_path, case):
    name, content, words = CASES[case]
    (tmp_path / name).write_bytes(content)
    one_line(lambda: imdb(str(tmp_path), words=3), str(tmp_path), words)


def test_what_is_no_set_or_no_option_is_one_line_that_names_it(tmp_path):
    one_line(lambda: imdb(str(tmp_path)), "holds no file", str(tmp_path))
    folder = str(written.write_csv(tmp_path, ROWS))
    for name, value in {"form": "word", "words": 10_000, "split": "redraw"}.items():
        one_line(lambda n=name, v=value: imdb(folder, **{n: v}), f"options.{name}", repr(value))
