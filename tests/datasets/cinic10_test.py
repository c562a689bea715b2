"""CINIC-10's three parts: which join, which stay out, and what a bad folder is told."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.datasets import small
from tests.datasets.fuzzing import damaged, few_or_many
from vfljax.datasets import load
from vfljax.datasets.cifar import NAMES10
from vfljax.datasets.cinic10 import cinic10
from vfljax.errors import UserError

SPLITS = ("train", "valid", "test")
FILES = small.class_folders(SPLITS, NAMES10)


def test_the_validation_part_is_trained_on_as_published_and_may_be_left_out(tmp_path):
    published = cinic10(small.write(tmp_path, FILES))
    assert published.test.tolist() == [False] * 20 + [True] * 10
    data = cinic10(small.write(tmp_path, FILES), validation="drop")
    assert data.features.shape == (20, 32, 32, 3)
    np.testing.assert_array_equal(data.features[3], small.picture(3))
    np.testing.assert_array_equal(data.features[12], small.picture(2002))
    assert data.labels.tolist() == [*range(10)] * 2
    assert data.test.tolist() == [False] * 10 + [True] * 10


def test_what_is_left_out_is_counted(tmp_path):
    data = cinic10(small.write(tmp_path, {**FILES, "test/cat/1.bmp": b"", "readme.md": b""}))
    assert "1 files that are no PNG or JPEG" in " ".join(data.notes)
    assert cinic10(small.write(tmp_path / "clean", FILES)).notes[1:] == ()


@pytest.mark.parametrize("part", ["train", "test"])
def test_the_validation_part_joins_the_part_named(tmp_path, part):
    data = cinic10(small.write(tmp_path, FILES), validation=part)
    first = 10 if part == "train" else 20
    np.testing.assert_array_equal(data.features[first], small.picture(1000))
    assert (~data.test).sum() == (20 if part == "train" else 10)
    assert len(data.labels) == 30


def test_the_official_archive_is_read_in_place_and_rows_is_a_balanced_share(tmp_path):
    files = small.class_folders(SPLITS, NAMES10, images=5)
    small.write(tmp_path, {"CINIC-10.tar.gz": small.tar({f"./{k}": v for k, v in files.items()})})
    data = load("cinic10", str(tmp_path), {"rows": 50, "validation": "drop"})
    assert np.bincount(data.labels[~data.test]).tolist() == [5] * 10
    assert data.labels[data.test].tolist() == [*range(10)]
    assert data.classes == NAMES10


@pytest.mark.parametrize(
    ("gone", "options", "message"),
    [
        ("test/", {}, "no image in test/<class>/"),
        ("valid/", {"validation": "train"}, "no image in valid/<class>/"),
        ("train/frog/", {}, "train/frog holds no image"),
        ("", {}, "does not hold train/<class>/"),
        ("valid/", {"validation": "no"}, "must be one of drop, train, test"),
    ],
)
def test_what_is_missing_is_named(tmp_path, gone, options, message):
    left = {name: content for name, content in FILES.items() if not name.startswith(gone)}
    with pytest.raises(UserError) as error:
        cinic10(small.write(tmp_path, left), **options)
    assert message in str(error.value)
    assert len(str(error.value).splitlines()) == 1


@few_or_many
def test_damage_to_any_file_loads_or_is_one_line(tmp_path, examples):
    small.write(tmp_path, FILES)

    @settings(max_examples=examples, deadline=None)
    @given(data=st.data())
    def check(data):
        damaged(data, cinic10, tmp_path, validation="train")

    check()
