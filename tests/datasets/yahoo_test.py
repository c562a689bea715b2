"""Yahoo! Answers as Zhang et al. publish it: which rows and fields are read, or one clear line."""

import gzip

import numpy as np
import pytest
from hypothesis import strategies as st

from tests.datasets.conversions import whole
from tests.datasets.fuzzing import drawn, mutate
from tests.datasets.refusals import one_line
from tests.datasets.reviews import split as keras_words
from vfljax.datasets.converters.yahoo import yahoo
from vfljax.errors import UserError

NAMES = (
    *("Society & Culture", "Science", "Health", "Education", "Computers", "Sports", "Business"),
    *("Entertainment & Music", "Family", "Politics"),
)


def lines(each=2, first=0):
    """Rows of all classes in turn: every field quoted, quotes doubled, newlines escaped."""
    rows = []
    for i in range(each):
        for c in range(1, 11):
            n = first + i
            content = "" if i % 2 else f'why "so" {n}?\\nreally'
            content = content.replace('"', '""')
            rows.append(f'"{c}","what is ""topic{c}"", {n}","{content}","an answer about topic{c}"')
    return rows


def write(folder, train=None, test=None, names=True, newline="\n"):
    train, test = train or lines(3), test or lines(2, first=7)
    (folder / "train.csv").write_text(newline.join(train) + newline, newline="")
    (folder / "test.csv").write_text(newline.join(test) + newline, newline="")
    if names:
        (folder / "classes.txt").write_text("\n".join(NAMES) + "\n")
    return str(folder)


def plain(each, first=0):
    """The same rows' (class, fields), by hand."""
    rows = []
    for i in range(each):
        for c in range(10):
            content = "" if i % 2 else f'why "so" {first + i}?\nreally'
            title = f'what is "topic{c + 1}", {first + i}'
            rows.append((c, (title, content, f"an answer about topic{c + 1}")))
    return rows


def matrix_of(rows, data):
    texts = [" ".join(field for field in fields if field) for _, fields in rows]
    columns = data.about["columns"]
    return [[column.name in keras_words(text) for column in columns] for text in texts]


@pytest.mark.parametrize("inside", ["\\n", "\n"])  # as published, or a newline inside quotes
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_rows_stand_in_file_order_and_the_test_part_is_published(tmp_path, newline, inside):
    train = [line.replace("\\nreally", f"{inside}really") for line in lines(3)]
    data = whole(yahoo(write(tmp_path, train=train, newline=newline), form="words", words=18))
    rows = plain(3) + plain(2, first=7)
    np.testing.assert_array_equal(data.features, matrix_of(rows, data))
    assert data.labels.tolist() == [c for c, _ in rows]
    assert data.test.tolist() == [False] * 30 + [True] * 20
    assert data.about["classes"] == NAMES
    names = {column.name for column in data.about["columns"]}
    assert {"topic1", "topic10", "really"} <= names


def test_fields_choose_the_text(tmp_path):
    folder = write(tmp_path, names=False)
    data = whole(yahoo(folder, form="words", words=5, fields=("question_content",)))
    rows = [(c, fields[1:2]) for c, fields in plain(3) + plain(2, first=7)]
    np.testing.assert_array_equal(data.features, matrix_of(rows, data))
    assert data.about["classes"] == tuple(map(str, range(1, 11)))


def test_some_rows_are_the_first_of_each_class_and_none_is_read_after_them(tmp_path):
    rows = plain(3)
    order = [9, 19, *range(9), *range(10, 19), *range(20, 30)]  # class 10 twice at the start
    train = [*(lines(3)[i] for i in order[:11]), "no row"]
    folder = write(tmp_path, train=train)
    data = whole(yahoo(folder, form="words", words=8, train_rows=10, test_rows=10))
    want = [rows[i] for i in order if i < 10] + plain(1, first=7)
    np.testing.assert_array_equal(data.features, matrix_of(want, data))
    assert data.test.sum() == 10
    one_line(lambda: yahoo(folder, form="words", words=3), "train.csv line 12 does not have 4")


def test_texts_are_ids_by_default(tmp_path):
    folder = write(tmp_path)
    data = whole(yahoo(folder, vocabulary_size=200, fields=("question_content",)))
    assert (data.about["kind"], data.about["length"]) == ("text", 256)
    assert [bool(ids) for ids in data.features[:20]] == [True] * 10 + [False] * 10


def test_zipped_files_are_read(tmp_path):
    want = whole(yahoo(write(tmp_path), form="words", words=8))
    for part in ("train", "test"):
        content = (tmp_path / f"{part}.csv").read_bytes()
        (tmp_path / f"{part}.csv").unlink()
        (tmp_path / f"{part}.csv.gz").write_bytes(gzip.compress(content))
    data = whole(yahoo(str(tmp_path), form="words", words=8))
    np.testing.assert_array_equal(data.features, want.features)


GOOD = lines(3)
CASES = {
    "class 0": ([GOOD[0].replace('"1"', '"0"'), *GOOD[1:]], {}, "line 1 has the class '0'"),
    "a header": (["class,title,content,answer", *GOOD], {}, "line 1 has the class 'class'"),
    "a field missing": ([GOOD[0], '"2","a","b"'], {}, "line 2 does not have 4 fields"),
    "a quote never closed": ([*GOOD, '"2","a'], {}, "train.csv cannot be read"),
    "an unknown field": (GOOD, {"fields": ("title",)}, "data.options.fields='title'"),
    "no field": (GOOD, {"fields": ()}, "data.options.fields=()"),
    "too many rows": (GOOD, {"train_rows": 40}, "train.csv has 3 rows of class '1'"),
}


@pytest.mark.parametrize("case", CASES)
def test_a_bad_row_or_option_is_one_line(tmp_path, case):
    train, options, message = CASES[case]
    folder = write(tmp_path, train=train)
    one_line(lambda: yahoo(folder, form="words", words=3, **options), message)


def test_files_that_are_not_there_or_no_text_are_one_line(tmp_path):
    one_line(lambda: yahoo(""), "data.dir is empty")
    one_line(lambda: yahoo(str(tmp_path)), "holds no file train.csv")
    folder = write(tmp_path)
    (tmp_path / "classes.txt").write_bytes(b"one\none\n")
    one_line(lambda: yahoo(folder), "classes.txt names 1 classes, not 10")
    (tmp_path / "test.csv").write_bytes(b'"1","caf\xe9","b","c"\n')
    one_line(lambda: yahoo(folder), "test.csv cannot be read")


@drawn(data=st.data())
def test_a_damaged_file_is_read_or_is_one_line(tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("damaged")
    write(folder)
    (folder / "train.csv").write_bytes(mutate(data, (folder / "train.csv").read_bytes()))
    try:
        read = whole(yahoo(str(folder), form="words", words=3))
    except UserError as error:
        assert len(str(error).splitlines()) == 1
    else:
        assert read.features.shape == (len(read.labels), 3)
