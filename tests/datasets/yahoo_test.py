"""Yahoo! Answers as Zhang et al. publish it: loads, or one clear line."""

import gzip

import numpy as np
import pytest

from tests.datasets.refusals import one_line
from tests.datasets.reviews import split as keras_words
from vfljax.datasets import load
from vfljax.datasets.yahoo import FIELDS, yahoo

NAMES = "Society Science Health Education Computers Sports Business Entertainment Family Politics"


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
        (folder / "classes.txt").write_text("\n".join(NAMES.split()) + "\n")
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
    return [[column.name in keras_words(text) for column in data.columns] for text in texts]


@pytest.mark.parametrize("inside", ["\\n", "\n"])  # as published, or a newline inside quotes
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_rows_stand_in_file_order_and_the_test_part_is_published(tmp_path, newline, inside):
    train = [line.replace("\\nreally", f"{inside}really") for line in lines(3)]
    data = yahoo(write(tmp_path, train=train, newline=newline), form="words", words=18)
    rows = plain(3) + plain(2, first=7)
    np.testing.assert_array_equal(data.features, matrix_of(rows, data))
    assert data.labels.tolist() == [c for c, _ in rows]
    assert data.test.tolist() == [False] * 30 + [True] * 20
    assert data.classes == tuple(NAMES.split())
    names = {column.name for column in data.columns}
    assert {"topic1", "topic10", "really"} <= names
    assert "nreally" not in names


def test_fields_choose_the_text(tmp_path):
    folder = write(tmp_path, names=False)
    data = load("yahoo", folder, {"form": "words", "words": 5, "fields": ["question_content"]})
    rows = [(c, fields[1:2]) for c, fields in plain(3) + plain(2, first=7)]
    np.testing.assert_array_equal(data.features, matrix_of(rows, data))
    assert not data.features[10:20].any()  # an empty field has no words
    assert data.classes == tuple(map(str, range(1, 11)))
    one = yahoo(folder, form="words", words=5, fields="question_content")
    np.testing.assert_array_equal(one.features, data.features)


def test_some_rows_are_the_first_of_each_class(tmp_path):
    rows = plain(3)
    order = [9, 19, *range(9), *range(10, 19), *range(20, 30)]  # class 10 twice at the start
    folder = write(tmp_path, train=[lines(3)[i] for i in order])
    data = yahoo(folder, form="words", words=8, train_rows=10, test_rows=10)
    want = [rows[i] for i in order if i < 10] + plain(1, first=7)
    np.testing.assert_array_equal(data.features, matrix_of(want, data))
    assert data.test.sum() == 10
    more = yahoo(folder, form="words", words=8, train_rows=13)
    assert np.bincount(more.labels[~more.test]).tolist() == [2, 2, 2, *[1] * 7]


def test_nothing_is_read_past_the_last_row_needed(tmp_path):
    folder = write(tmp_path, train=[*lines(1), "no, row"])
    assert len(yahoo(folder, form="words", words=3, train_rows=10).labels) == 30
    one_line(lambda: yahoo(folder, form="words", words=3), "train.csv line 11 has 2 fields")


def test_zipped_files_load(tmp_path):
    want = yahoo(write(tmp_path), form="words", words=8)
    for part in ("train", "test"):
        raw = (tmp_path / f"{part}.csv").read_bytes()
        (tmp_path / f"{part}.csv").unlink()
        (tmp_path / f"{part}.csv.gz").write_bytes(gzip.compress(raw))
    np.testing.assert_array_equal(
        yahoo(str(tmp_path), form="words", words=8).features, want.features
    )


GOOD = lines(3)
CASES = {
    "class 0": ([GOOD[0].replace('"1"', '"0"'), *GOOD[1:]], "line 1 has the class '0'"),
    "class 11": ([*GOOD[:4], GOOD[4].replace('"5"', '"11"')], "line 5 has the class '11'"),
    "a header": (["class,title,content,answer", *GOOD], "line 1 has the class 'class'"),
    "a NUL byte": ([GOOD[0], '"2","a","b\0","c"'], "line 2 holds a NUL byte (byte 11)"),
    "a field missing": ([GOOD[0], '"2","a","b"'], "line 2 has 3 fields, not 4"),
    "a quote never closed": ([*GOOD, '"2","a'], "line 31 begins a row that is no CSV"),
    "a class lacking": ([line for line in GOOD if line[1:3] != '3"'], "no row of class 'Health'"),
}


@pytest.mark.parametrize("case", CASES)
def test_a_bad_row_is_one_line_with_its_place(tmp_path, case):
    train, message = CASES[case]
    folder = write(tmp_path, train=train)
    one_line(lambda: yahoo(folder, form="words", words=3), message)


def test_names_of_classes_are_one_line_each(tmp_path):
    folder = write(tmp_path)
    text = "\n".join(NAMES.split()).replace("Society", "Soc\x1b[2Jiety").replace("lth", "l\u2028th")
    (tmp_path / "classes.txt").write_text(text + "\n", encoding="utf-8")
    names = yahoo(folder, form="words", words=3).classes
    assert names[:3] == ("Soc\ufffd[2Jiety", "Science", "Heal th")


NOT_A_LIST = (3, None, {FIELDS[0]}, {FIELDS[0]: 1}, b"question_title", iter(FIELDS))
OPTIONS = (
    ({"fields": ("title",)}, "option", FIELDS[0]),
    ({"fields": ()}, "fields=() must be a list", "one or more"),
    *(({"fields": fields}, "fields=", "must be a list") for fields in NOT_A_LIST),
    ({"train_rows": -1}, "train_rows=-1"),
    ({"train_rows": 5}, "train_rows=5 leaves a class without", "10 or"),
    ({"test_rows": 9}, "test_rows=9 leaves a class without"),
    ({"train_rows": 40}, "train.csv has 3 rows of class 'Society'", "40 balanced rows need 4"),
)


def test_bad_options_are_one_line(tmp_path):
    folder = write(tmp_path)
    for options, *words in OPTIONS:
        one_line(lambda o=options: yahoo(folder, form="words", **o), *words)


def test_files_that_are_not_there_or_no_text_are_one_line(tmp_path):
    one_line(lambda: yahoo(""), "data.dir is empty: give the folder that holds train.csv")
    one_line(lambda: yahoo(str(tmp_path / "nowhere")), "nowhere' is not a folder", "train.csv")
    one_line(lambda: yahoo(str(tmp_path)), "holds no file train.csv")
    folder = write(tmp_path)
    for name, content, words in (
        ("classes.txt", b"one\none\n", "classes.txt has 2 lines of names, 1 of them different"),
        ("classes.txt", b"\xff", "classes.txt is not UTF-8 text"),
        ("test.csv", b'"1","caf\xe9","b","c"\n', "test.csv line 1 is not UTF-8 text"),
    ):
        before = (tmp_path / name).read_bytes()
        (tmp_path / name).write_bytes(content)
        one_line(lambda: yahoo(folder), words)
        (tmp_path / name).write_bytes(before)
    (tmp_path / "test.csv").unlink()
    (tmp_path / "test.csv").mkdir()
    one_line(lambda: yahoo(folder), "holds no file test.csv")
