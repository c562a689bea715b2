"""Generated tables, written by Python's csv module and read back: every value where it was."""

import csv
import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck
from hypothesis import strategies as st

from tests.datasets.fuzzing import drawn
from vfljax.datasets.column_types import MISSING, NONE, is_number
from vfljax.datasets.core import checksum
from vfljax.datasets.user_table import from_frame, table
from vfljax.errors import UserError

FLOATS = st.floats(-1e30, 1e30, allow_nan=False)
WHOLE = st.integers(-(2**24), 2**24)
TEXT = st.text(
    st.characters(codec="utf-8", exclude_categories=("Cc", "Cs")), min_size=1, max_size=8
)


def is_word(word):
    """A word that nothing trims, and that is neither number, date, truth value nor missing."""
    return (
        word == word.strip()
        and word not in (*MISSING, NONE)
        and any(c.isalpha() for c in word)
        and word.lower() not in ("true", "false")
        and word.lower().lstrip("+-") not in ("inf", "infinity", "nan")
        and not any(map(is_number, (word, word[:-1])))
    )


WORDS = TEXT.map(str.strip).filter(is_word)


@st.composite
def tables(draw):
    """({name: (kind, values)}, labels): None is a missing value."""
    rows = draw(st.integers(2, 20))
    columns = {}
    for j in range(draw(st.integers(1, 5))):
        kind = draw(st.sampled_from(["float", "whole", "word"]))
        present = {"float": FLOATS, "whole": WHOLE, "word": WORDS}[kind]
        values = draw(st.lists(st.one_of(*[present] * 3, st.none()), min_size=rows, max_size=rows))
        if kind == "word" and all(v is None for v in values):
            kind = "float"  # without any value, a column is a number
        columns[draw(WORDS.filter(str.isprintable)) + f"_{j}"] = (kind, values)
    labels = draw(st.lists(st.sampled_from(["no", "yes"]), min_size=rows, max_size=rows))
    return columns, labels


def expected(columns):
    """What the data set must hold, in plain Python."""
    out = []
    for kind, values in columns.values():
        if kind == "word":
            texts = [NONE if v is None else v for v in values]
            ordered = sorted({*texts} - {NONE}) + [NONE] * (NONE in texts)
            out += [[float(t == value) for t in texts] for value in ordered]
        else:
            out.append([math.nan if v is None else v for v in values])
    return np.asarray(out, np.float64).T.astype(np.float32)


@drawn(
    health=list(HealthCheck),
    made=tables(),
    delimiter=st.sampled_from(",;\t|"),
    quoting=st.sampled_from([csv.QUOTE_ALL, csv.QUOTE_MINIMAL]),
    end=st.sampled_from(["\n", "\r\n"]),
    gap=st.sampled_from(["", "NA", "NaN", "null", " "]),
    mark=st.booleans(),
)
def test_a_written_table_is_read_back(tmp_path_factory, made, delimiter, quoting, end, gap, mark):
    columns, labels = made
    path = tmp_path_factory.getbasetemp() / "written.csv"
    with open(path, "w", newline="", encoding="utf-8-sig" if mark else "utf-8") as file:
        writer = csv.writer(file, delimiter=delimiter, quoting=quoting, lineterminator=end)
        writer.writerow(["the label", *columns])
        for row in zip(labels, *(values for _, values in columns.values()), strict=True):
            writer.writerow([gap if value is None else value for value in row])
    if len(set(labels)) < 2:
        with pytest.raises(UserError, match="in all rows: at least two classes are needed"):
            table(str(path), label="the label", delimiter=delimiter)
        return
    data = table(str(path), label="the label", delimiter=delimiter)
    np.testing.assert_array_equal(data.features, expected(columns))
    assert [name == "yes" for name in labels] == data.labels.tolist()
    kinds = {c.name: c.kind for c in data.columns}
    assert [*kinds.items()] == [
        (" ".join(name.split()), "category" if kind == "word" else "number")
        for name, (kind, _) in columns.items()
    ]
    frame = pd.DataFrame({name: values for name, (_, values) in columns.items()}).assign(y=labels)
    assert checksum(from_frame(frame, label="y")) == checksum(data)
