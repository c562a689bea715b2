"""Yahoo! Answers as Zhang et al. publish it: which rows and fields are read, or one clear line."""

import numpy as np
import pytest

from tests.datasets.conversions import whole
from tests.datasets.refusals import one_line
from tests.datasets.reviews import split as keras_words
from vfljax.datasets.converters.yahoo import yahoo

NAMES = (
    *("Society & Culture", "Science", "Health", "Education", "Computers", "Sports", "Business"),
    *("Entertainment & Music", "Family", "Politics"),
)


def plain(each, first=0):
    """Rows of all classes in turn: (class, fields)."""
    rows = []
    for i in range(each):
        for c in range(10):
            content = "" if i % 2 else f'why "so" {first + i}\nreally'
            title = f'what is "topic{c + 1}", {first + i}'
            rows.append((c, (title, content, f"an answer about topic{c + 1}")))
    return rows


def lines(each, first=0):
    """The same rows as published: every field quoted, quotes doubled, newlines escaped."""
    return [
        ",".join(f'"{field}"' for field in (c + 1, *(f.replace('"', '""') for f in fields)))
        .replace("\n", "\\n")
        for c, fields in plain(each, first)
    ]  # fmt: skip


def write(folder, train=None, names=True, newline="\n"):
    train, test = train or lines(3), lines(2, first=7)
    (folder / "train.csv").write_text(newline.join(train) + newline, newline="")
    (folder / "test.csv").write_text(newline.join(test) + newline, newline="")
    if names:
        (folder / "classes.txt").write_text("\n".join(NAMES) + "\n")
    return str(folder)


def matrix_of(rows, data):
    texts = [" ".join(field for field in fields if field) for _, fields in rows]
    columns = data.about["columns"]
    return [[column.name in keras_words(text) for column in columns] for text in texts]


# as published, or a newline inside quotes
@pytest.mark.parametrize(("newline", "inside"), [("\n", "\\n"), ("\r\n", "\n")])
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
    order = [9, 19, *range(9)]  # class 10 twice at the start
    folder = write(tmp_path, train=[*(lines(3)[i] for i in order), "no row"])
    data = whole(yahoo(folder, form="words", words=8, train_rows=10, test_rows=10))
    want = [rows[i] for i in order if i < 10] + plain(1, first=7)
    np.testing.assert_array_equal(data.features, matrix_of(want, data))
    assert data.test.sum() == 10
    one_line(lambda: yahoo(folder, form="words", words=3), "train.csv line 12 does not have 4")


GOOD = lines(3)
CASES = {
    "a header": (["class,title,content,answer", *GOOD], {}, "line 1 has the class 'class'"),
    "class 0": ([GOOD[0].replace('"1"', '"0"'), *GOOD[1:]], {}, "line 1 has the class '0'"),
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


def test_files_that_are_not_there_are_one_line(tmp_path):
    one_line(lambda: yahoo(str(tmp_path)), "holds no file train.csv")
    folder = write(tmp_path)
    (tmp_path / "classes.txt").write_bytes(b"one\none\n")
    one_line(lambda: yahoo(folder), "classes.txt names 1 classes, not 10")
