"""Mutated files of texts load, or are exactly one line: bytes changed before and after zipping."""

import gzip
import shutil

import pytest
from hypothesis import strategies as st

from tests.datasets import reviews as written
from tests.datasets import yahoo_test
from tests.datasets.fuzzing import drawn
from vfljax.datasets.imdb import imdb
from vfljax.datasets.yahoo import yahoo
from vfljax.errors import UserError

ROWS = written.reviews()
MUTATIONS = st.lists(
    st.tuples(
        st.sampled_from(["replace", "insert", "delete", "cut"]),
        st.floats(0, 1),
        st.one_of(
            st.binary(min_size=1, max_size=4),
            st.sampled_from([b'"', b",", b"\n", b"\r", b"\0", b'""', b"\\n", b"\xff"]),
        ),
    ),
    min_size=1,
    max_size=3,
)


def mutate(raw, mutations):
    for kind, place, what in mutations:
        at = int(place * len(raw))
        if kind == "cut":
            raw = raw[:at]
        else:
            skipped = 0 if kind == "insert" else len(what)
            raw = raw[:at] + (b"" if kind == "delete" else what) + raw[at + skipped :]
    return raw


def loads_or_is_one_line(load, folder):
    try:
        data = load(str(folder))
        ids = data.kind == "text"
        rows = len(data.features.offsets) - 1 if ids else len(data.features)
        assert rows == len(data.labels)
        assert set(data.labels.tolist()) == set(range(data.num_classes))
    except UserError as error:
        assert len(str(error).splitlines()) == 1


def words(loader):
    return lambda folder: loader(folder, form="words", words=3)


def pieces(loader):
    return lambda folder: loader(folder, form="wordpiece", vocabulary_size=150)


@pytest.mark.parametrize("zipped", [True, False])
@drawn(mutations=MUTATIONS)
def test_a_table_of_reviews(tmp_path, zipped, mutations):
    raw = written.csv_text(ROWS).encode()
    raw = mutate(gzip.compress(raw, mtime=0), mutations) if zipped else mutate(raw, mutations)
    (tmp_path / "a.csv.gz").write_bytes(raw if zipped else gzip.compress(raw))
    loads_or_is_one_line(words(imdb), tmp_path)


@pytest.mark.parametrize("zipped", [True, False])
@drawn(mutations=MUTATIONS)
def test_an_archive_of_reviews(tmp_path, zipped, mutations):
    raw = written.tar_bytes(ROWS)
    raw = mutate(gzip.compress(raw, mtime=0), mutations) if zipped else mutate(raw, mutations)
    (tmp_path / "aclImdb_v1.tar.gz").write_bytes(raw if zipped else gzip.compress(raw))
    loads_or_is_one_line(words(imdb), tmp_path)


@drawn(mutations=MUTATIONS, which=st.integers(0, len(ROWS) - 1), name=st.text(max_size=6))
def test_a_folder_of_reviews(tmp_path, mutations, which, name):
    if not (tmp_path / "aclImdb").is_dir():
        written.write_folder(tmp_path, ROWS)
    path = sorted((tmp_path / "aclImdb").glob("*/*/[0-9]*.txt"))[which]
    before = path.read_bytes()
    path.write_bytes(mutate(before, mutations))
    usable = name.encode("utf-8", "replace").decode().replace("/", "_").replace("\0", "_")
    other = path.parent / f"{usable}.txt"
    if not other.exists():
        other.write_bytes(before)
    loads_or_is_one_line(words(imdb), tmp_path)
    path.write_bytes(before)
    if other != path:
        other.unlink()


@pytest.mark.parametrize("as_ids", [False, True])
@pytest.mark.parametrize("name", ["train.csv", "test.csv", "classes.txt"])
@drawn(mutations=MUTATIONS)
def test_yahoo_s_files(tmp_path, as_ids, name, mutations):
    if not (tmp_path / "before").is_dir():
        yahoo_test.write(tmp_path)
        shutil.copytree(tmp_path, tmp_path / "before")
    (tmp_path / name).write_bytes(mutate((tmp_path / "before" / name).read_bytes(), mutations))
    loads_or_is_one_line((pieces if as_ids else words)(yahoo), tmp_path)


@drawn(mutations=MUTATIONS, which=st.integers(0, 4))
def test_a_parquet_folder_of_tfds(tmp_path, mutations, which):
    if not (tmp_path / "imdb_reviews").is_dir():
        written.write_tfds(tmp_path, ROWS, "parquet")
    home = tmp_path / "imdb_reviews" / "plain_text" / "1.0.0"
    path = sorted(home.iterdir())[which]
    before = path.read_bytes()
    path.write_bytes(mutate(before, mutations))
    loads_or_is_one_line(words(imdb), tmp_path)
    path.write_bytes(before)
