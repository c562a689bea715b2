"""Any .npz: plain arrays load as they are, everything else is one line."""

import io

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.datasets.fuzzing import damaged, few_or_many
from vfljax.datasets import load
from vfljax.datasets.npz import npz
from vfljax.errors import UserError

Y = np.array([0, 1, 2, 0])
X = np.arange(4 * 5 * 6, dtype=np.uint8).reshape(4, 5, 6)


def save(folder, **arrays):
    np.savez_compressed(folder / "set.npz", **arrays)
    return str(folder)


def refused(folder, **options):
    with pytest.raises(UserError) as error:
        npz(str(folder), **options)
    assert len(str(error.value).splitlines()) == 1
    return str(error.value)


def test_gray_and_color_images_stay_bytes(tmp_path):
    data = npz(save(tmp_path, x=X, y=Y))
    assert (data.kind, data.name, data.num_classes) == ("image", "set", 3)
    assert data.features.dtype == np.uint8
    np.testing.assert_array_equal(data.features, X)
    assert npz(save(tmp_path, x=X[..., None], y=Y)).features.shape == (4, 5, 6, 1)


def test_numbers_of_two_axes_are_a_table_that_may_miss_some(tmp_path):
    table = np.array([[1, np.nan], [2, 3], [4, 5], [6, 7.5]])
    data = npz(save(tmp_path, x=table, y=Y))
    assert data.kind == "table"
    np.testing.assert_array_equal(data.features, table.astype(np.float32))


def test_names_of_the_arrays_and_groups_are_options(tmp_path):
    save(tmp_path, pixels=X / 255, target=Y.astype(float), who=np.array(["b", "a", "b", "c"]))
    options = {"x": "pixels", "y": "target", "groups": "who"}
    data = load("npz", str(tmp_path / "set.npz"), options)
    assert data.groups.tolist() == [1, 0, 1, 2]
    assert data.features.dtype == np.float32
    assert data.labels.tolist() == Y.tolist()


CASES = {
    "objects": ({"x": np.array([None] * 4), "y": Y}, "never opened"),
    "no x": ({"a": X, "y": Y}, "no array 'x': it has a, y"),
    "one axis": ({"x": Y, "y": Y}, "of shape (4,)"),
    "five axes": ({"x": X[..., None, None], "y": Y}, "must be numbers [rows"),
    "no pixels": ({"x": X[:, :0], "y": Y}, "of shape (4, 0, 6)"),
    "channels first": ({"x": np.zeros((4, 3, 8, 8)), "y": Y}, "channels last"),
    "NaN": ({"x": np.where(X == 50, np.nan, X), "y": Y}, "in row 2 holds nan"),
    "infinity": ({"x": np.full((4, 2), np.inf), "y": Y}, "row 1 holds inf: numbers must be finite"),
    "an image with NaN": (
        {"x": np.full((4, 2, 2), np.nan), "y": Y},
        "holds nan: numbers must be finite",
    ),
    "holds 1e+300": ({"x": np.full((4, 2), 1e300), "y": Y}, "holds 1e+300"),
    "words": ({"x": np.array([["a"]] * 4), "y": Y}, "must be numbers"),
    "complex numbers": ({"x": X * 1j, "y": Y}, "must be numbers"),
    "fewer labels": (
        {"x": X, "y": Y[:3]},
        "y is int64 of shape (3,): it must be 1 or more rows, as many as x",
    ),
    "one label": ({"x": X, "y": np.array(1)}, "y is int64 of shape ()"),
    "no rows": (
        {"x": X[:0], "y": Y[:0]},
        "x is uint8 of shape (0, 5, 6): it must be 1 or more rows",
    ),
    "labels in words": ({"x": X, "y": np.array(list("abca"))}, "one integer a row"),
    "labels in two columns": ({"x": X, "y": np.eye(4)}, "one integer a row"),
    "a gap": ({"x": X, "y": np.array([0, 1, 5, 0])}, "label 5 and no row of label 2"),
    "one class": ({"x": X, "y": np.zeros(4)}, "at least two classes"),
    "half labels": ({"x": X, "y": Y / 2}, "not an integer class"),
}


@pytest.mark.parametrize("case", CASES)
def test_a_bad_file_is_one_line(tmp_path, case):
    arrays, message = CASES[case]
    assert message in refused(save(tmp_path, **arrays))


def test_groups_must_be_one_a_row_and_known(tmp_path):
    save(tmp_path, x=X, y=Y, g=np.array([1, np.nan, 2, 3]), two=np.eye(4))
    assert "g in row 2 is nan" in refused(tmp_path, groups="g")
    assert "one number or word a row" in refused(tmp_path, groups="two")
    assert "no array 'h'" in refused(tmp_path, groups="h")


def test_files_that_are_none_are_named(tmp_path):
    assert "data.dir is empty" in refused("")
    assert "does not hold exactly one .npz" in refused(tmp_path)
    (tmp_path / "a.npz").write_bytes(b"no zip")
    assert "cannot be read" in refused(tmp_path)
    (tmp_path / "b.npz").write_bytes(b"")
    assert "holds 2 .npz files" in refused(tmp_path)
    (tmp_path / "sub" / "c.npz").mkdir(parents=True)
    assert "is not a file" in refused(tmp_path / "sub")
    assert "y=3 must be a name" in refused(tmp_path, y=3)


def test_an_array_that_claims_more_memory_than_allowed_is_refused_before_it_is_made(tmp_path):
    save(tmp_path, x=X, y=Y)
    assert "take 120 bytes, more than 100" in refused(tmp_path, max_bytes=100)
    header = io.BytesIO()
    claimed = {"shape": (1 << 40, 64, 64), "fortran_order": False, "descr": "|u1"}
    np.lib.format.write_array_header_1_0(header, claimed)
    import zipfile

    with zipfile.ZipFile(tmp_path / "set.npz", "w") as archive:
        archive.writestr("x.npy", header.getvalue())
        archive.writestr("y.npy", b"")
    assert "more than 8,589,934,592" in refused(tmp_path)


@few_or_many
def test_damage_to_the_file_loads_or_is_one_line(tmp_path, examples):
    np.savez(tmp_path / "set.npz", x=X, y=Y, g=np.array(list("abca")))

    @settings(max_examples=examples, deadline=None)
    @given(data=st.data())
    def check(data):
        damaged(data, npz, tmp_path, groups="g")

    check()


def test_a_number_of_numpy_is_shown_as_a_number(tmp_path):
    save(tmp_path, x=np.zeros((4, 2)), y=Y)
    assert "max_bytes=-1 must be" in refused(tmp_path, max_bytes=np.int64(-1))
