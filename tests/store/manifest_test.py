"""The rule that makes files whole: a record's own sum, a folder's place, each file's size and sum."""

import json

import numpy as np
import pytest

from tests.refusals import damaged
from tests.store.header_test import SMALL
from tests.sweeps import flip
from vfljax import store
from vfljax.store import manifest, sealed

UNIT = "shards/a"


def sweep(workdir, identity):
    """Make the folder that of a sweep."""
    sealed.write_root(workdir, {**SMALL, "id": identity})


@pytest.fixture
def workdir(tmp_path):
    """A folder of two files with their manifest, in a sweep."""
    sweep(tmp_path, "0123456789abcdef")
    with manifest.new_folder(tmp_path, UNIT, [], width=3) as folder:
        (folder / "deep").mkdir(parents=True)
        (folder / "one.bin").write_bytes(b"eight by")
        (folder / "deep" / "two.bin").write_bytes(b"others")
    return tmp_path


def refused(workdir, why, unit=UNIT):
    with damaged(workdir, unit, why):
        manifest.open_folder(workdir, unit).check_all()


def test_a_sound_folder_gives_the_paths_of_its_files(workdir):
    folder = manifest.open_folder(workdir, UNIT)
    assert sorted(folder.files) == ["deep/two.bin", "one.bin"]
    assert folder.file("deep/two.bin").read_bytes() == b"others"
    assert folder.record["width"] == 3


@pytest.mark.parametrize(("name", "stride"), [("manifest.json", 61), ("one.bin", 7)])
def test_every_bit_of_a_folder_is_under_a_checksum(workdir, name, stride):
    path = workdir / UNIT / name
    whole = path.read_bytes()
    for bit in range(0, 8 * len(whole), stride):
        path.write_bytes(whole)
        flip(path, bit)
        with pytest.raises(store.Damaged):
            manifest.open_folder(workdir, UNIT).check_all()


def test_a_renamed_folder_or_one_of_another_sweep_is_not_believed(workdir):
    (workdir / UNIT).rename(workdir / "shards" / "b")
    refused(workdir, r"it is shards/a of the sweep 01234567", unit="shards/b")
    (workdir / "shards" / "b").rename(workdir / UNIT)
    sweep(workdir, "another")
    refused(workdir, r"it is shards/a of the sweep 01234567")


def test_a_file_that_is_cut_missing_or_not_named_is_refused(workdir):
    path = workdir / UNIT / "one.bin"
    path.write_bytes(b"eight")
    refused(workdir, r"one\.bin has not the 8 bytes it was written with")
    with pytest.raises(store.Damaged, match="has not the 8 bytes"):
        manifest.open_folder(workdir, UNIT, sizes=False).file("one.bin")
    path.unlink()
    refused(workdir, r"one\.bin: no such file")
    path.write_bytes(b"eight by")
    (workdir / UNIT / "three.bin").write_bytes(b"")
    with pytest.raises(store.Damaged, match=r"no manifest\.json names it"):
        manifest.open_folder(workdir, UNIT).file("three.bin")
    (workdir / UNIT / "manifest.json").unlink()
    refused(workdir, r"manifest\.json: no such file")


def test_a_manifest_without_a_sum_is_refused(workdir):
    path = workdir / UNIT / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text())["files"]))
    refused(workdir, "has no checksum")


@pytest.mark.parametrize(
    "other",
    [
        {"x": np.float32([1, 2, 4])},
        {"y": np.float32([1, 2, 3])},
        {"x": np.float32([[1, 2, 3]])},
        {"x": np.float32([1, 2, 3]).view(np.int32)},
        {"x": {"x": np.float32([1, 2, 3])}},
    ],
)
def test_arrays_are_told_apart_by_names_types_shapes_and_values(other):
    arrays = {"x": np.float32([1, 2, 3])}
    assert manifest.digest_of_arrays(arrays) == manifest.digest_of_arrays({"x": arrays["x"][::1]})
    assert manifest.digest_of_arrays(arrays) != manifest.digest_of_arrays(other)
