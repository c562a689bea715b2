"""BHI patches, one or several a row: which lie together, which are left out, what faults are told."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conftest import real_data
from tests.datasets import small
from tests.datasets.fuzzing import damaged, few_or_many
from vfljax.datasets import load
from vfljax.datasets.bhi import bhi, together
from vfljax.datasets.dividing import Parties, divide
from vfljax.errors import UserError


def name(patient, k, label):
    return f"{patient}/{label}/{patient}_idx5_x{50 * k + 51}_y1001_class{label}.png"


def patch(seed):
    return small.picture(seed, 50, 50)


# patient 10253: 3 patches of class 0, 2 of class 1; patient 9: 2 of class 0, 1 of class 1
PLAN = [("10253", 0, 3), ("10253", 1, 2), ("9", 0, 2), ("9", 1, 1)]
FILES = {
    name(patient, k, label): small.encoded(patch(10 * p + k))
    for p, (patient, label, many) in enumerate(PLAN)
    for k in range(many)
}


def refused(folder, **options):
    with pytest.raises(UserError) as error:
        bhi(str(folder), **options)
    assert len(str(error.value).splitlines()) == 1
    return str(error.value)


def test_one_patch_a_row_in_order_of_name(tmp_path):
    data = bhi(small.write(tmp_path, FILES))
    assert data.kind == "image"
    assert data.features.shape == (8, 50, 50, 3)
    # names: ..x101_..class0, x101 class1, x151 class0, x51 class0, x51 class1, then patient 9
    np.testing.assert_array_equal(data.features[0], patch(1))
    assert data.labels.tolist() == [0, 1, 0, 0, 1, 0, 0, 1]
    assert data.groups.tolist() == [0] * 5 + [1] * 3


def test_two_patches_a_row_are_of_one_patient_and_class_and_the_odd_ones_stay_out(tmp_path):
    data = bhi(small.write(tmp_path, FILES), patches=2)
    assert data.kind == "patches"
    assert data.features.shape == (3, 2, 50, 50, 3)
    assert data.labels.tolist() == [0, 1, 0]
    assert data.groups.tolist() == [0, 0, 1]
    np.testing.assert_array_equal(data.features[0], [patch(1), patch(2)])
    np.testing.assert_array_equal(data.features[1], [patch(11), patch(10)])
    assert "2 patches that fill no row" in " ".join(data.notes)


@given(
    rows=st.lists(st.tuples(st.integers(0, 4), st.integers(0, 1)), min_size=1, max_size=40),
    per_row=st.integers(1, 4),
)
def test_every_row_is_of_one_patient_and_class_and_no_patch_is_lost_or_used_twice(rows, per_row):
    patients, labels = np.array(rows).T
    places, left = together(labels, patients, per_row)
    assert places.size + left == len(rows) == len(set(places.ravel())) + left
    for row in places:
        assert len({(patients[i], labels[i]) for i in row}) == 1
        assert (np.diff(row) > 0).all()
    sizes = np.unique(np.stack([patients, labels]), axis=1, return_counts=True)[1]
    assert left == (sizes % per_row).sum()


def test_borders_of_a_slide_and_second_copies_stay_out_and_are_counted(tmp_path):
    border = {name("9", 7, 1): small.encoded(small.picture(0, 50, 32))}
    again = {f"IDC_regular_ps50_idx5/{path}": content for path, content in FILES.items()}
    data = bhi(small.write(tmp_path, {**FILES, **border, **again}))
    assert len(data.labels) == 8
    told = " ".join(data.notes)
    assert "1 patches that are not 50x50" in told
    assert "8 second copies" in told


def test_a_second_copy_that_differs_is_refused(tmp_path):
    other = {f"copy/{name('9', 0, 0)}": small.encoded(patch(99))}
    said = refused(small.write(tmp_path, {**FILES, **other}))
    assert "have one name and are not the same file" in said
    assert f"copy/{name('9', 0, 0)}" in said


def test_an_archive_reads_as_its_folders_and_rows_keep_their_shares(tmp_path):
    small.write(tmp_path / "zip", {"bhi.zip": small.zipped(FILES)})
    packed = bhi(str(tmp_path / "zip"))
    loose = bhi(small.write(tmp_path / "loose", FILES))
    np.testing.assert_array_equal(packed.features, loose.features)
    few = bhi(str(tmp_path / "loose"), rows=4)
    assert loose.labels.tolist() == [0, 1, 0, 0, 1, 0, 0, 1]
    np.testing.assert_array_equal(few.features, loose.features[[0, 1, 2, 5]])


def test_size_resizes_every_patch_by_means(tmp_path):
    data = bhi(small.write(tmp_path, FILES), size=25, patches=2)
    assert data.features.shape == (3, 2, 25, 25, 3)
    mean = patch(1)[:2, :2].mean((0, 1))
    np.testing.assert_allclose(data.features[0, 0, 0, 0], mean, atol=1)  # Pillow rounds twice


def save(folder, **changes):
    arrays = {
        "x": np.stack([patch(i) for i in range(6)]),
        "y": np.array([0, 0, 1, 1, 0, 1], np.uint8),
        "patient": np.array([7, 7, 7, 7, 3, 3], np.int32),
        "name": np.array(list("fedcba")),
    }
    np.savez(
        folder / "bhi.npz", **{k: v for k, v in {**arrays, **changes}.items() if v is not None}
    )
    return folder


def test_an_npz_is_put_in_order_of_name(tmp_path):
    data = bhi(str(save(tmp_path)))
    assert data.labels.tolist() == [1, 0, 1, 1, 0, 0]
    assert data.groups.tolist() == [0, 0, 1, 1, 1, 1]
    np.testing.assert_array_equal(data.features[0], patch(5))
    unnamed = load("bhi", str(save(tmp_path, name=None)), {"patches": 2})
    assert unnamed.labels.tolist() == [0, 1]
    np.testing.assert_array_equal(unnamed.features[1], [patch(2), patch(3)])
    assert bhi(str(tmp_path), size=10).features.shape == (6, 10, 10, 3)


ODD = small.encoded(patch(0))
CASES = {
    "nothing": ({}, "does not hold <patient>/"),
    "a strange name": ({"1/0/a.png": ODD}, "not named as a patch"),
    "another label": ({"9/1/9_idx5_x1_y1_class0.png": ODD}, "lies in 9/1 and not in 9/0"),
    "another patient": ({"8/0/9_idx5_x1_y1_class0.png": ODD}, "lies in 8/0 and not in 9/0"),
    "no folder": ({"9_idx5_x1_y1_class0.png": ODD}, "lies in no folder"),
    "no image": ({**FILES, name("9", 3, 0): b"x"}, "cannot be read"),
    "a cut image": ({**FILES, name("9", 3, 0): ODD[:-600]}, "cannot be read"),
    "one class": ({k: v for k, v in FILES.items() if "class0" in k}, "at least two classes"),
    "only borders": (
        {name("9", 0, 0): small.encoded(small.picture(0, 10, 50))},
        "no patch of 50x50",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_bad_folder_is_one_line(tmp_path, case):
    files, message = CASES[case]
    small.write(tmp_path, files)
    assert message in refused(tmp_path)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"patient": None}, "no array 'patient'"),
        ({"x": np.zeros((6, 32, 32, 3), np.uint8)}, "uint8 [rows, 50, 50, 3]"),
        ({"x": np.zeros((6, 50, 50, 3))}, "is float64"),
        ({"y": np.array([0, 0, 1, 1, 0, 2])}, "labels must be 0..1"),
        (
            {"y": np.array([0, 0, 1])},
            "y is int64 of shape (3,): it must be 1 or more rows, as many as x",
        ),
        ({"patient": np.eye(6)}, "one number or word a row"),
    ],
)
def test_a_bad_npz_is_one_line(tmp_path, changes, message):
    assert message in refused(save(tmp_path, **changes))


def test_options_are_checked(tmp_path):
    small.write(tmp_path, FILES)
    assert "set patches lower" in refused(tmp_path, patches=9)
    assert "size=4097 must be an integer from 1 to 4,096" in refused(tmp_path, size=4097)
    assert "must be an integer from 1 to 10,000" in refused(tmp_path, patches=10**30)
    assert "patches=0" in refused(tmp_path, patches=0)
    assert "more than 1,000: set rows" in refused(tmp_path, max_bytes=1000)


@few_or_many
@pytest.mark.parametrize("form", ["folders", "npz"])
def test_damage_to_any_file_loads_or_is_one_line(tmp_path, form, examples):
    if form == "npz":
        save(tmp_path)
    else:
        small.write(tmp_path, FILES)

    @settings(max_examples=examples, deadline=None)
    @given(data=st.data())
    def check(data):
        damaged(data, bhi, tmp_path, patches=2)

    check()


def test_real_patches_have_their_counts_and_each_party_gets_one():
    folder = str(real_data("bhi"))
    data = bhi(folder)
    assert data.features.shape == (2000, 50, 50, 3)
    assert np.bincount(data.labels).tolist() == [1000, 1000]
    assert len(np.unique(data.groups)) == 272
    pairs = bhi(folder, patches=2)
    parties = Parties(passive=2, label_features=False)
    first, second = divide(pairs, parties)
    assert first.features.shape == second.features.shape == (len(pairs.labels), 50, 50, 3)
    for x, y, patient in zip(pairs.features[:50], pairs.labels, pairs.groups):
        for image in x:  # every patch of a row is one of its patient and class
            same = (data.groups == patient) & (data.labels == y)
            assert (data.features[same] == image).all((1, 2, 3)).any()
