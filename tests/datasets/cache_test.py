"""Converted sets are kept beside the publisher's files, and read from there."""

import numpy as np
import pytest

from tests.datasets import small
from tests.datasets.prepared_sets import same
from vfljax import datasets
from vfljax.datasets import cache, converters, prepared
from vfljax.errors import UserError

FILES = small.binary10("")[0]


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    """No variable names the cache, and the user's cache is empty."""
    monkeypatch.delenv(cache.VARIABLE)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def conversions(monkeypatch):
    """The options of each conversion that is made."""
    made, real = [], converters.TABLE["cifar10"]

    def convert(folder, *, rows=0):
        made.append(rows)
        return real(folder, rows=rows)

    monkeypatch.setitem(converters.TABLE, "cifar10", convert)
    return made


@pytest.fixture
def source(tmp_path):
    return small.write(tmp_path / "data" / "cifar", FILES)


def cached(tmp_path):
    return sorted(path.name for path in (tmp_path / "data" / ".vfljax").iterdir())


def test_a_set_is_converted_once_and_then_mapped(tmp_path, source, conversions, capsys):
    first = datasets.load("cifar10", source, {})
    again = datasets.load("cifar10", source, {"rows": 0})
    same(first, again)
    assert isinstance(again.features, np.memmap)
    assert conversions == [0]
    (name,) = cached(tmp_path)
    assert name.startswith("cifar10-")
    said = capsys.readouterr()
    assert (said.out, said.err.count("\n")) == ("", 1)
    assert str(tmp_path / "data" / ".vfljax" / name) in said.err
    assert datasets.prepared_at("cifar10", source, {}) == tmp_path / "data" / ".vfljax" / name


def test_other_options_files_and_versions_are_converted_anew(
    tmp_path, source, conversions, monkeypatch
):
    datasets.load("cifar10", source, {})
    datasets.load("cifar10", source, {"rows": 10})
    batch = tmp_path / "data" / "cifar" / "test_batch.bin"
    batch.write_bytes(b"\1" + batch.read_bytes()[1:])
    changed = datasets.load("cifar10", source, {})
    assert changed.labels[changed.test][0] == 1
    (tmp_path / "data" / "cifar" / "more.txt").write_text("")
    datasets.load("cifar10", source, {})
    monkeypatch.setitem(datasets.READERS, "cifar10", 7)
    assert datasets.load("cifar10", source, {}).reader == 7
    assert conversions == [0, 10, 0, 0, 0]
    assert len(cached(tmp_path)) == 5


def test_a_file_that_an_option_names_is_a_part_of_the_key(tmp_path):
    vocabulary = tmp_path / "vocab.txt"
    vocabulary.write_text("a")
    asked = ("imdb", str(tmp_path / "none"), 1, {"vocabulary": str(vocabulary)})
    before = cache.places(*asked)
    assert cache.places(*asked) == before
    vocabulary.write_text("ab")
    assert cache.places(*asked) != before


def test_the_user_s_cache_takes_what_cannot_lie_beside_the_files(tmp_path, source, home):
    (tmp_path / "data" / ".vfljax").write_text("no folder")
    data = datasets.load("cifar10", source, {})
    assert datasets.prepared_at("cifar10", source, {}).parent == home / "vfljax" / "datasets"
    same(data, datasets.load("cifar10", source, {}))


def test_the_variable_names_the_only_place(tmp_path, source, home, monkeypatch):
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path / "chosen"))
    datasets.load("cifar10", source, {})
    assert len([*(tmp_path / "chosen").iterdir()]) == 1
    assert not home.exists()
    assert not (tmp_path / "data" / ".vfljax").exists()
    (tmp_path / "file").write_text("")
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path / "file"))
    with pytest.raises(UserError, match="cannot be written"):
        datasets.load("cifar10", source, {})


def test_whoever_finds_the_set_there_drops_his_own(tmp_path, source, monkeypatch):
    real, loaded = converters.TABLE["cifar10"], []

    def convert(folder, *, rows=0):
        conversion = real(folder, rows=rows)

        def blocks():
            yield from conversion.blocks
            if not loaded:  # another one converts the set meanwhile
                loaded.append(None)
                loaded.append(datasets.load("cifar10", source, {}))

        return conversion._replace(blocks=blocks())

    monkeypatch.setitem(converters.TABLE, "cifar10", convert)
    same(datasets.load("cifar10", source, {}), loaded[1])
    assert len(cached(tmp_path)) == 1
    prepared.verify(datasets.prepared_at("cifar10", source, {}))
