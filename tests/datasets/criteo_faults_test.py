"""Bad, cut and damaged files of Criteo, and bad options: each loads or is one line."""

import numpy as np
import pytest
from hypothesis import strategies as st

from tests.datasets.clicks import CRITEO_FILES as FILES
from tests.datasets.clicks import CRITEO_ROWS as ROWS
from tests.datasets.clicks import csv, tsv, zipped
from tests.datasets.fuzzing import drawn
from vfljax import datasets
from vfljax.datasets import ctr_forms
from vfljax.datasets.criteo import criteo
from vfljax.errors import UserError


@pytest.fixture
def good(tmp_path):
    (tmp_path / "train.txt").write_bytes(FILES["train.txt"])
    return str(tmp_path)


HEAD, TAIL = FILES["train.txt"], FILES["train.csv"]
ROW = tsv(ROWS[:1])
CASES = {
    "nothing": (b"", "is empty"),
    "an empty line first": (b"\n" + HEAD, "line 1 names no column 'Label'"),
    "a column missing": (
        HEAD + b"\t".join(ROW.split(b"\t")[:-1]) + b"\n",
        "line 61 has 39 columns",
    ),
    "a column too many": (ROW + ROW[:-1] + b"\tx\n" + HEAD, "line 2 has 41 columns, not 40"),
    "a label of 2": (HEAD + b"2" + ROW[1:], "line 61: Label is '2', not 0 or 1"),
    "a label of 0.0": (HEAD + b"0.0" + ROW[1:], "line 61: Label is '0.0'"),
    "an empty label": (HEAD + ROW[1:], "line 61: Label is ''"),
    "an empty line": (ROW + b"\n" + HEAD, "line 2: Label is ''"),
    "a word for a number": (ROW + b"0\tfive" + b"\t" * 38 + b"\n" + HEAD, "line 2: I1 is 'five'"),
    "a number of a float": (ROW + b"0\t1.5" + b"\t" * 38 + b"\n" + HEAD, "line 2: I1 is '1.5'"),
    "a number too large": (ROW + b"0\t" + b"9" * 40 + b"\t" * 38 + b"\n", "line 2: I1 is '999"),
    "Arabic digits": (ROW + "0\t\u0661".encode() + b"\t" * 38 + b"\n", "line 2: I1 is '\u0661'"),
    "a long value": (
        ROW + b"0" + b"\t" * 38 + b"\tx" + b"y" * 99 + b"\n",
        "not at most 64 characters long",
    ),
    "no line end": (HEAD + b"x" * 100_000, "line 61 is longer than 65536 bytes"),
    "another encoding": (HEAD + b"0\t\xff\n", "line 61 holds byte 0xff, which is not UTF-8"),
    "a NUL byte": (HEAD + b"0\t\0\n", "line 61 holds a NUL byte"),
    "one class": (tsv([row for row in ROWS if row[0] == "0"]), "all labels are 0"),
    "a lone CR": (ROW + ROW[:-1] + b"\r" + ROW, "the 2 lines from line 1 are 3 rows"),
    "gzip cut off": (zipped(HEAD)[:-30], "cannot be read"),
    "gzip damaged": (zipped(HEAD)[:50] + b"xxxx" + zipped(HEAD)[54:], "train.txt"),
    "no header": (csv(ROWS).split(b"\n", 1)[1], "line 1 names no column 'Label'"),
    "only a header": (csv([]), "has 0 rows"),
    "a column not named": (TAIL.replace(b",I5,", b",i5,"), "line 1 names no column 'I5'"),
    "a column named twice": (TAIL.replace(b"Id,", b"I1,", 1), "line 1 names 'I1' twice"),
    "another column": (TAIL.replace(b"Id,", b"click,", 1), "'click', which is no column of criteo"),
    "a quote over a line's end": (TAIL.replace(b",0,", b',"0,', 1), "train.txt"),
    "the header again": (TAIL + TAIL, "line 62: Label is 'Label'"),
    "a CSV line cut": (TAIL[:-25], "line 61 has 3"),
}


@pytest.mark.parametrize("case", CASES)
def test_a_bad_file_is_one_line_with_its_remedy(tmp_path, case):
    content, message = CASES[case]
    (tmp_path / "train.txt").write_bytes(content)
    with pytest.raises(UserError) as error:
        criteo(str(tmp_path))
    assert message in str(error.value)
    assert len(str(error.value).splitlines()) == 1


OPTIONS = {
    "more rows than there are": ({"rows": 61}, "has 60 rows, and config.data.options.rows=61"),
    "an offset past the end": ({"offset": 60}, "has 0 rows after the first 60"),
    "rows of a negative number": ({"rows": -1}, "options.rows=-1: give an integer from 0"),
    "rows of a float": ({"rows": 1e5}, "options.rows=100000.0"),
    "rows of a bool": ({"rows": True}, "options.rows=True"),
    "a word for a flag": ({"balanced": "yes"}, "options.balanced='yes': give True or False"),
    "a form unknown": ({"form": "code"}, "did you mean 'codes'?"),
    "a form of a wrong type": ({"form": ["codes"]}, "unknown config.data.options.form"),
    "numbers unknown": ({"numbers": "sqrt"}, "unknown config.data.options.numbers"),
    "numbers of words": ({"form": "frequent", "numbers": "raw"}, "has no numbers"),
    "crosses of codes": ({"crosses": True}, "crosses and counts are of form='hashed'"),
    "crosses of odd buckets": (
        {"form": "hashed", "buckets": 100, "crosses": True},
        "must be a power of two",
    ),
    "one bucket": ({"buckets": 1}, "buckets=1: give at least 2"),
    "buckets of unique": ({"form": "unique", "buckets": 9}, "form='unique' has none"),
    "buckets beyond float32": (
        {"buckets": 2**32},
        "4294967296: give an integer from 0 to 16777216",
    ),
    "buckets beyond counting": ({"form": "hashed", "buckets": 10**30}, "from 0 to 16777216"),
    "a number for a file": ({"file": 3}, "options.file=3: give the name of a file"),
    "None for a file": ({"file": None}, "options.file=None: give the name"),
    "a list of files": ({"file": ("train.txt",)}, "options.file=('train.txt',): give the name"),
    "a file that is not there": ({"file": "x.csv"}, "x.csv is missing"),
    "a folder for a file": ({"file": "sub"}, "sub is a folder, not a file"),
}


@pytest.mark.parametrize("case", OPTIONS)
def test_a_bad_option_is_one_line(good, tmp_path, case):
    options, message = OPTIONS[case]
    (tmp_path / "sub").mkdir()
    with pytest.raises(UserError) as error:
        criteo(good, **options)
    assert message in str(error.value)
    assert len(str(error.value).splitlines()) == 1


def test_rows_that_would_not_fit_in_memory_are_refused(good, tmp_path, monkeypatch):
    size = criteo(good).features.nbytes
    monkeypatch.setattr(ctr_forms, "MAX_BYTES", 2 * size)  # blocks are held while they are joined
    assert criteo(good).features.nbytes == size
    monkeypatch.setattr(ctr_forms, "MAX_BYTES", 2 * size - 1)
    with pytest.raises(UserError, match=r"60 rows read so far take 18,720 bytes, .*--prepare"):
        criteo(good)
    assert len(criteo(good, rows=59).labels) == 59
    assert len(datasets.prepare("criteo", good, str(tmp_path / "out"), {}).labels) == 60
    with pytest.raises(
        UserError, match=r"60 rows asked for take 18,720 bytes"
    ):  # at the first block
        criteo(good, rows=60)


def test_a_header_of_very_many_names_is_refused_at_once(tmp_path):
    (tmp_path / "train.txt").write_bytes(b"Label," + b"I1," * 2_000_000 + b"I1\n0\n")
    with pytest.raises(UserError, match="has 2,000,002 columns, more than 100,000"):
        criteo(str(tmp_path))


def test_the_file_is_found_or_asked_for(tmp_path):
    with pytest.raises(UserError, match="data.dir is empty"):
        criteo("")
    with pytest.raises(UserError, match="is missing: give the folder or file"):
        criteo(str(tmp_path / "nowhere"))
    with pytest.raises(UserError, match="holds none of train.txt"):
        criteo(str(tmp_path))
    (tmp_path / "any name").write_bytes(FILES["train.csv"])
    assert len(criteo(str(tmp_path / "any name")).labels) == 60
    assert len(criteo(str(tmp_path), file="any name").labels) == 60
    with pytest.raises(UserError, match="is a file, and options.file names one"):
        criteo(str(tmp_path / "any name"), file="x")
    for file in FILES:
        (tmp_path / file).write_bytes(FILES[file])
    with pytest.raises(UserError, match="holds head.txt.gz, spread.csv.gz, train.csv, train.txt"):
        criteo(str(tmp_path))


def mutated(content, at, what, cut):
    at %= len(content) + 1
    return content[:at] + what + content[at + cut :]


@drawn(
    file=st.sampled_from(["tsv", "csv in gzip", "damaged gzip"]),
    form=st.sampled_from(["codes", "unique", "hashed", "frequent"]),
    at=st.integers(0, 1 << 20),
    what=st.binary(max_size=5) | st.sampled_from([b"\t", b"\n", b",", b'"', b"\r", b"1", b"-"]),
    cut=st.integers(0, 5),
)
def test_a_mutated_file_loads_or_is_one_line(tmp_path_factory, file, form, at, what, cut):
    content = {
        "tsv": lambda: mutated(FILES["train.txt"], at, what, cut),
        "csv in gzip": lambda: zipped(mutated(FILES["train.csv"], at, what, cut)),
        "damaged gzip": lambda: mutated(FILES["spread.csv.gz"], at, what, cut),
    }[file]()
    path = tmp_path_factory.mktemp("mutated") / "file"
    path.write_bytes(content)
    try:
        data = criteo(str(path), form=form)
    except UserError as error:
        assert len(str(error).splitlines()) == 1
        assert str(path) in str(error)
        return
    assert len(data.features) == len(data.labels) in (59, 60, 61)
    assert np.isfinite(data.features).all()
    for j, column in enumerate(data.columns):
        if column.kind == "code":
            assert 0 <= data.features[:, j].min() <= data.features[:, j].max() < column.vocabulary
