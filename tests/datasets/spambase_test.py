"""UCI Spambase from a folder: loads, or one clear line."""

import numpy as np
import pytest

from tests.conftest import real_data
from tests.datasets.refusals import refused
from vfljax.datasets.spambase import COLUMNS, ROWS, spambase


def lines():
    rng = np.random.default_rng(0)
    values = rng.integers(0, 100, (ROWS, COLUMNS))
    return [",".join(map(str, row)) + f",{i % 2}" for i, row in enumerate(values)]


GOOD = "\r\n".join(lines()) + "\r\n"


def write(folder, text):
    content = text if isinstance(text, bytes) else text.encode()
    (folder / "spambase.data").write_bytes(content)
    return str(folder)


def test_a_file_in_uci_s_format_loads(tmp_path):
    data = spambase(write(tmp_path, GOOD))
    assert data.features.shape == (4601, 57)
    assert data.labels.tolist()[:4] == [0, 1, 0, 1]


def test_the_real_file_has_its_published_balance():
    data = spambase(str(real_data("spambase")))
    assert data.labels.sum() == 1813
    assert data.features[:, -1].max() == 15841


CASES = {
    "an empty folder name": (None, "data.dir is empty"),
    "a row cut off": (GOOD[: len(GOOD) - 20], "cannot be read (ValueError: the number of columns changed"),
    "rows missing": ("\n".join(lines()[:100]), "has 100 rows of 58 values, UCI's has 4601 of 58"),
    "a word": (GOOD.replace(",", ",x", 1), "could not convert string 'x"),
    "no number": ("," + GOOD[GOOD.index(",") + 1 :], "could not convert string '' to float64 at row 0"),
    "a label of 2": (GOOD[:-3] + "2\r\n", "not an integer class: labels must be 0..1"),
    "a label of 0.5": (GOOD[:-3] + "0.5\r\n", "not an integer class"),
    "infinity": (GOOD.replace(GOOD[: GOOD.index(",")], "inf", 1), "row 1 has a value that is no finite number"),
    "beyond float32": ("1e39" + GOOD[GOOD.index(",") :], "row 1 has a value that is no finite number"),
    "a digit separator": ("1_0" + GOOD[GOOD.index(",") :], "could not convert string '1_0'"),
    "bytes that are no text": (b"\xff" * 10, "cannot be read"),
    "nothing": ("", "contained no data"),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_a_bad_file_is_one_line_with_its_remedy(tmp_path, case):
    text, message = CASES[case]
    assert message in refused(spambase, "" if text is None else write(tmp_path, text))


def test_missing_folders_and_files_are_named(tmp_path):
    missing = "nowhere' is missing: give the folder that holds UCI's"
    assert missing in refused(spambase, str(tmp_path / "nowhere"))
    assert "holds no file spambase.data" in refused(spambase, str(tmp_path))
