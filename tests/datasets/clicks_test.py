"""Criteo and Avazu alike: which rows are read, streaming, preparing, and every fault in one line."""

import json
import tracemalloc

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.datasets.clicks import SETS, avazu_csv, criteo_rows, csv, tsv, zipped
from tests.datasets.fuzzing import drawn, mutate
from tests.datasets.refusals import one_line
from vfljax import datasets
from vfljax.datasets import ctr, ctr_forms, prepared
from vfljax.datasets.core import checksum
from vfljax.errors import UserError

both = pytest.mark.parametrize("name", SETS)
FORMS = [(name, options) for name, of in SETS.items() for options in of.forms]
each_form = pytest.mark.parametrize(("name", "options"), FORMS)


def written(folder, name, file="train.csv", content=None):
    (folder / file).write_bytes(SETS[name].files[file] if content is None else content)
    return str(folder)


@both
def test_every_kind_of_file_holds_the_same_rows(tmp_path, name):
    sums = set()
    for content in SETS[name].files.values():
        path = written(tmp_path, name, "any name", content)
        sums |= {checksum(SETS[name].load(path, file="any name", **o)) for o in ({}, {"offset": 0})}
        if b"," in content[:20]:  # quoted, with CRLF and a byte order mark
            rows = [line.split(b",") for line in content.splitlines()]
            lines = [b",".join(b'"' + value + b'"' for value in row) for row in rows]
            (tmp_path / "x").write_bytes(b"\xef\xbb\xbf" + b"\r\n".join(lines))
            sums.add(checksum(SETS[name].load(str(tmp_path / "x"))))
        assert len(sums) == 1


@both
def test_rows_and_offset_cut_the_file_and_balance_comes_first(tmp_path, name):
    load, rows = SETS[name].load, SETS[name].rows
    folder = written(tmp_path, name)
    whole, part = load(folder), load(folder, rows=20, offset=7)
    np.testing.assert_array_equal(part.features, whole.features[7:27])
    assert whole.labels.tolist() == [int(row[0]) for row in rows]
    assert part.labels.tolist() == whole.labels[7:27].tolist()
    assert len(load(folder, offset=50).labels) == 10
    kept, last = [], "1"
    for r, row in enumerate(rows):
        if row[0] != last:
            kept, last = [*kept, r], row[0]
    data = load(folder, balanced=True, rows=6)
    np.testing.assert_array_equal(data.features, whole.features[kept[:6]])
    assert data.labels.tolist() == [0, 1] * 3
    _, pieces = zip(*SETS[name].stream(folder, 800, balanced=True), strict=True)
    assert np.concatenate(pieces).tolist() == load(folder, balanced=True).labels.tolist()


@pytest.mark.parametrize("examples", [15, pytest.param(100, marks=pytest.mark.slow)])
def test_any_block_size_gives_the_whole(tmp_path_factory, examples):
    @settings(max_examples=examples, deadline=None)
    @given(
        case=st.sampled_from(FORMS),
        data=st.data(),
        size=st.integers(800, 6000),
        rows=st.integers(0, 30),
        offset=st.integers(0, 30),
    )
    def check(case, data, size, rows, offset):
        name, options = case
        file = data.draw(st.sampled_from(list(SETS[name].files)))
        folder = written(tmp_path_factory.mktemp("x"), name, file)
        options = {**options, "rows": rows, "offset": offset}
        try:
            whole = SETS[name].load(folder, **options)
        except UserError as error:  # too few rows, or of one class
            words = ("asks for more", "at least two classes", "rows read are clicks")
            assert any(word in str(error) for word in words)
            return
        features, labels = zip(*SETS[name].stream(folder, size, **options), strict=True)
        np.testing.assert_array_equal(np.concatenate(features), whole.features)
        np.testing.assert_array_equal(np.concatenate(labels), whole.labels)

    check()


@each_form
def test_values_of_rows_left_out_do_not_matter(tmp_path, name, options):
    rows = [list(row) for row in SETS[name].rows]
    rows[30][1], rows[30][15] = "five", "a word of more than sixty-four characters" * 2
    folder = written(tmp_path, name, content=csv(rows) if name == "criteo" else avazu_csv(rows))
    options = {key: v for key, v in options.items() if key not in ("balanced", "positive_ratio")}
    assert len(SETS[name].load(folder, **options, rows=30).labels) == 30
    assert len(SETS[name].load(folder, **options, offset=31).labels) == 29
    one_line(lambda: SETS[name].load(folder, **options, rows=31), "train.csv line 32", "'five'")


@each_form
def test_prepared_is_what_the_loader_reads(tmp_path, name, options):
    out, folder = str(tmp_path / "out"), written(tmp_path, name)
    made, whole = datasets.prepare(name, folder, out, options), SETS[name].load(folder, **options)
    assert checksum(made) == checksum(whole) == checksum(datasets.load(name, out, options))
    assert made._replace(features=0, labels=0) == whole._replace(features=0, labels=0)
    prepared.verify(out)
    other = "avazu" if name == "criteo" else "criteo"
    one_line(lambda: datasets.load(name, out, {**options, "rows": 3}), "was prepared with form=")
    one_line(lambda: datasets.load(other, out, {}), f"{name!r} and config.data.name is {other!r}")
    assert checksum(datasets.prepare(name, out, str(tmp_path / "copy"), {})) == checksum(whole)
    specs = [json.loads((tmp_path / at / "vfljax.json").read_text()) for at in ("out", "copy")]
    assert specs[0]["options"] == specs[1]["options"]


def test_a_folder_prepared_before_there_was_an_option_is_read_with_its_default(tmp_path):
    out = tmp_path / "out"
    datasets.prepare("criteo", written(tmp_path, "criteo"), str(out), {"buckets": 50})
    spec = json.loads((out / "vfljax.json").read_text())
    del spec["options"]["positive_ratio"]
    spec["sha256_description"] = prepared.sum_of(spec)
    (out / "vfljax.json").write_text(json.dumps(spec))
    assert len(datasets.load("criteo", str(out), {"buckets": 50}).labels) == 60
    asked = {"buckets": 50, "positive_ratio": 0.5}
    one_line(lambda: datasets.load("criteo", str(out), asked), "was prepared with")


def test_a_failed_prepare_leaves_nothing(tmp_path):
    path = tmp_path / "train.txt"
    path.write_bytes(SETS["criteo"].files["train.txt"] + b"0\tcut\n")
    out = str(tmp_path / "out")
    one_line(lambda: datasets.prepare("criteo", str(path), out, {}), "61 has 2 columns, not 40")
    assert [p.name for p in tmp_path.iterdir()] == ["train.txt"]


@pytest.mark.slow
@pytest.mark.parametrize("form", ["codes", "unique"])
def test_memory_does_not_grow_with_the_rows(tmp_path, monkeypatch, form):
    for function in (ctr.read, ctr_forms.stream):  # 32 blocks, Arrow's most, are 4 MB
        monkeypatch.setattr(function, "__defaults__", (1 << 17,))
    lines = tsv(criteo_rows(50, values=400))
    peaks, arrow = [], []
    for times in (600, 1200):  # 30,000 and 60,000 rows
        with open(tmp_path / "train.txt", "wb") as file:
            for _ in range(times):
                file.write(lines)
        tracemalloc.start()
        out = str(tmp_path / f"{times}")
        data = datasets.prepare("criteo", str(tmp_path / "train.txt"), out, {"form": form})
        labels = 2 * data.labels.nbytes  # held in memory by what is returned, and while checked
        peaks.append(tracemalloc.get_traced_memory()[1] - labels)
        tracemalloc.stop()
        arrow.append(pa.default_memory_pool().max_memory() or 0)
        assert data.features.shape == (50 * times, 39)
    assert peaks[1] < 1.1 * peaks[0]
    assert arrow[1] < 1.2 * arrow[0]


def test_rows_that_would_not_fit_in_memory_are_refused(tmp_path, monkeypatch):
    folder, load = written(tmp_path, "criteo"), SETS["criteo"].load
    size = load(folder).features.nbytes
    monkeypatch.setattr(ctr_forms, "MAX_BYTES", 2 * size)  # blocks are held while they are joined
    assert load(folder).features.nbytes == size
    monkeypatch.setattr(ctr_forms, "MAX_BYTES", 2 * size - 1)
    one_line(lambda: load(folder), "60 rows read so far take 18,720 bytes", "--prepare")
    one_line(lambda: load(folder, rows=60), "60 rows asked for take 18,720 bytes")
    assert len(load(folder, rows=59).labels) == 59
    assert len(datasets.prepare("criteo", folder, str(tmp_path / "out"), {}).labels) == 60


def test_the_file_is_found_or_asked_for(tmp_path):
    load, files = SETS["criteo"].load, SETS["criteo"].files
    one_line(lambda: load(""), "data.dir is empty: give the folder or file of Criteo's")
    one_line(lambda: load(str(tmp_path / "nowhere")), "nowhere' is missing: give the folder")
    one_line(lambda: load(str(tmp_path)), "holds no file train.txt, train.csv")
    one_line(lambda: load(str(tmp_path), file="x.csv"), "holds no file x.csv")
    path = tmp_path / "any name"
    path.write_bytes(files["train.csv"])
    assert len(load(str(path)).labels) == len(load(str(tmp_path), file="any name").labels) == 60
    one_line(lambda: load(str(path), file="x"), "is a file: leave config.data.options.file='x' out")
    for file in files:
        written(tmp_path, "criteo", file)
    one_line(lambda: load(str(tmp_path)), "holds head.txt.gz, spread.csv.gz, train.csv, train.txt")
    (tmp_path / "sub").mkdir()
    one_line(lambda: load(str(tmp_path), file="sub"), "holds no file sub")
    (tmp_path / "sub" / "dac_sample.txt").write_bytes(files["train.txt"])
    assert len(load(str(tmp_path / "sub")).labels) == 60


ROWS = SETS["criteo"].rows
HEAD, TAIL, CLICKS = tsv(ROWS), csv(ROWS), SETS["avazu"].files["train.csv"]
ROW, LINE = tsv(ROWS[:1]), CLICKS.splitlines(keepends=True)[1]
EMPTY = b"\t" * 38 + b"\n"
FILES = {  # content of a file, and what is said of it
    "nothing": (b"", "line 1 is empty"),
    "an empty line first": (b"\n" + HEAD, "line 1 lacks the column 'Label'"),
    "a column missing": (HEAD + ROW.rpartition(b"\t")[0] + b"\n", "line 61 has 39 columns, not 40"),
    "a column too many": (ROW + ROW[:-1] + b"\tx\n" + HEAD, "line 2 has 41 columns, not 40"),
    "a label of 2": (HEAD + b"2" + ROW[1:], "line 61, column 'Label' is '2', not 0 or 1"),
    "a label of 0.0": (HEAD + b"0.0" + ROW[1:], "line 61, column 'Label' is '0.0'"),
    "an empty label": (HEAD + ROW[1:], "line 61, column 'Label' is ''"),
    "an empty line": (ROW + b"\n" + HEAD, "line 2, column 'Label' is ''"),
    "a word for a number": (ROW + b"0\tfive" + EMPTY + HEAD, "line 2, column 'I1' is 'five', not an integer"),
    "a number of a float": (ROW + b"0\t1.5" + EMPTY + HEAD, "line 2, column 'I1' is '1.5'"),
    "a number too large": (ROW + b"0\t" + b"9" * 40 + EMPTY, "line 2, column 'I1' is '999"),
    "Arabic digits": (ROW + "0\t\u0661".encode() + EMPTY, "line 2, column 'I1' is '\u0661'"),
    "a long value": (ROW + b"0" + EMPTY[:-1] + b"\tx" + b"y" * 64 + b"\n", "not up to 64 plain"),
    "no line end": (HEAD + b"x" * 100_000, "line 61 has 1 columns, not 40"),
    "another encoding": (HEAD + b"0\t1\t\xff" + EMPTY[1:], "line 61, column 'I2' is wrong (CSV con"),
    "a NUL byte": (HEAD + b"0" + EMPTY[:-1] + b"\t\0x\n", "line 61, column 'C26' is '\\x00x', not up to 64"),
    "UTF-16": (HEAD.decode().encode("utf-16-le"), "columns, not 40"),
    "one class": (tsv([row for row in ROWS if row[0] == "0"]), "all labels are 0"),
    "a lone CR": (ROW + b"0\t1\r" + ROW, "line 2 has 2 columns, not 40"),
    "gzip cut off": (zipped(HEAD)[:-30], "cannot be read"),
    "gzip damaged": (zipped(HEAD)[:50] + b"xxxx" + zipped(HEAD)[54:], "cannot be read"),
    "a zipped line without end": (zipped(b"0\t" * (1 << 23)), "has over 4,194,304 bytes"),
    "zipped nothing without end": (zipped(bytes(1 << 24)), "line 1 lacks"),
    "no header": (TAIL.partition(b"\n")[2], "line 1 lacks the column 'Label'"),
    "only a header": (csv([]), "has 0 rows"),
    "two million names": (b"Label," + b"I1," * 2_000_000 + b"I1\n0\n", "line 1 lacks"),
    "a column not named": (TAIL.replace(b",I5,", b",i5,"), "line 1 lacks the column 'I5'"),
    "a column named twice": (TAIL.replace(b"Id,", b"I1,", 1), "line 1 has 'I1' too often"),
    "another column": (TAIL.replace(b"Id,", b"click,", 1), "as no column of criteo"),
    "a quote never closed": (TAIL.replace(b",0,", b',"0,', 1), ", not "),
    "a quote over two lines": (TAIL[:-1] + b'"\n"' + TAIL.splitlines()[1] + b"\n", "line 61, column 'C26' is"),
    "a quoted comma, and rows after": (TAIL + b'1,0,"1,2"' + b"," * 38 + b"\n", "line 62 has 42 col"),
    "the header again": (TAIL + TAIL, "line 62, column 'Label' is 'Label'"),
    "a CSV line cut": (TAIL[:-25], "line 61 has 3"),
}  # fmt: skip
CLICK_FILES = {  # Avazu's are read by the same code: what differs are the columns and the hour
    "no header": (CLICKS.partition(b"\n")[2], "line 1 lacks the column 'click'"),
    "Criteo's": (b"0\t1\t2\n", "line 1 lacks the column 'click'"),
    "a label of 2": (CLICKS.replace(b",1,1410", b",2,1410", 1), "line 2, column 'click' is '2'"),
    "a day that is none": (
        CLICKS.replace(LINE.split(b",")[2], b"14023012", 1),
        "line 2, column 'hour' is '14023012', not a time YYMMDDHH",
    ),
    "five digits": (CLICKS.replace(LINE.split(b",")[2], b"14102", 1), "column 'hour' is '14102', not"),
    "a word": (CLICKS.replace(b",1,1410", b",1,noon", 1), "not a time YYMMDDHH"),
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "case"), [*(("criteo", c) for c in FILES), *(("avazu", c) for c in CLICK_FILES)]
)
def test_a_bad_file_is_one_line_with_its_remedy(tmp_path, name, case):
    content, message = (FILES if name == "criteo" else CLICK_FILES)[case]
    for options in SETS[name].forms[:1] if name == "criteo" else SETS[name].forms:
        folder = written(tmp_path, name, "train.csv", content)
        one_line(lambda f=folder, o=options: SETS[name].load(f, **o), message, folder)


COUNT, TEXT, SHARE = "give an integer from 0 to ", "give a text", "give a share above 0 and below 1"
OPTIONS = (
    ("criteo", {"rows": 61}, "has 60 rows, and config.data.options.rows=61"),
    ("criteo", {"offset": 60}, "has 0 rows after the first 60"),
    ("criteo", {"rows": -1}, f"options.rows=-1: {COUNT}"),
    ("criteo", {"rows": True}, f"options.rows=True: {COUNT}"),
    ("criteo", {"balanced": "yes"}, "options.balanced='yes': give True or False"),
    ("criteo", {"form": "code"}, "did you mean 'codes'?"),
    ("criteo", {"numbers": "sqrt"}, "unknown config.data.options.numbers"),
    ("criteo", {"form": "frequent", "numbers": "raw"}, "has no numbers"),
    ("criteo", {"crosses": True}, "crosses and counts are of form='hashed'"),
    ("criteo", {"form": "hashed", "buckets": 100, "crosses": True}, "must be a power of two"),
    ("criteo", {"buckets": 1}, "buckets=1: give at least 2"),
    ("criteo", {"form": "unique", "buckets": 9}, "form='unique' has none"),
    ("criteo", {"buckets": 2**32}, "options.buckets=4294967296: give an integer from 0 to 16,777,216"),
    ("criteo", {"file": 3}, f"options.file=3: {TEXT}"),
    ("criteo", {"file": ("train.csv",)}, f"options.file=('train.csv',): {TEXT}"),
    ("criteo", {"positive_ratio": 0.05}, "of the 60 rows read are clicks: give a larger one"),
    ("criteo", {"positive_ratio": 0.999}, "of the 60 rows read are clicks: read more rows"),
    ("criteo", {"positive_ratio": 1}, f"positive_ratio=1: {SHARE}"),
    ("criteo", {"positive_ratio": True}, f"positive_ratio=True: {SHARE}"),
    ("criteo", {"positive_ratio": "half"}, f"positive_ratio='half': {SHARE}"),
    ("criteo", {"positive_ratio": 0.5, "balanced": True}, "balanced=True makes it 1/2; leave one out"),
    ("avazu", {"hour": "day"}, "unknown config.data.options.hour"),
    ("avazu", {"form": "hashed"}, "unknown config.data.options.form"),
    ("avazu", {"buckets": 2**32}, "from 0 to 16,777,216"),
)  # fmt: skip


@pytest.mark.parametrize(("name", "options", "message"), OPTIONS)
def test_a_bad_option_is_one_line(tmp_path, name, options, message):
    folder = written(tmp_path, name)
    one_line(lambda: SETS[name].load(folder, **options), message)


@drawn(case=st.sampled_from(FORMS), data=st.data(), zipped_after=st.booleans())
def test_a_mutated_file_loads_or_is_one_line(tmp_path_factory, case, data, zipped_after):
    name, options = case
    content = SETS[name].files[data.draw(st.sampled_from(list(SETS[name].files)))]
    path = tmp_path_factory.mktemp("mutated") / "file"
    content = mutate(data, content)
    path.write_bytes(zipped(content) if zipped_after and content[:1] != b"\x1f" else content)
    options = {key: v for key, v in options.items() if key not in ("balanced", "positive_ratio")}
    try:
        read = SETS[name].load(str(path), **options)
    except UserError as error:
        assert len(str(error).splitlines()) == 1
        assert str(path) in str(error)
        return
    assert len(read.features) == len(read.labels) <= 62
    assert np.isfinite(read.features).all()
    for column, codes in zip(read.columns, read.features.T, strict=bool(read.columns)):
        assert column.kind == "number" or 0 <= codes.min() <= codes.max() < column.vocabulary
