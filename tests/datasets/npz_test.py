"""A table or images in one .npz file."""

import io
import zipfile

import numpy as np
import pytest

from tests.datasets import small
from tests.datasets.refusals import refused
from vfljax.datasets import load
from vfljax.datasets.npz import npz

X, Y = np.arange(4 * 5 * 6, dtype=np.uint8).reshape(4, 5, 6), np.array([0, 1, 2, 0])


def arrays(**changes):
    return {"a.npz": small.archived(**{"x": X, "y": Y, **changes})}


def test_any_arrays_are_images_or_a_table_that_may_miss_numbers(tmp_path):
    def read(options=None, **arrays):
        small.write(tmp_path, {"set.npz": small.archived(**arrays)})
        return load("npz", str(tmp_path / "set.npz"), options or {})

    data = npz(small.write(tmp_path, {"set.npz": small.archived(x=X, y=Y)}))
    assert (data.kind, data.name, data.num_classes) == ("image", "set", 3)
    assert data.features.dtype == np.uint8
    np.testing.assert_array_equal(data.features, X)
    assert read(x=X[..., None], y=Y).features.shape == (4, 5, 6, 1)
    rows_of_three = np.stack([X[:, :3]] * 4, axis=-1)  # with four channels, which are the last
    assert read(x=rows_of_three, y=Y).features.shape == (4, 3, 6, 4)
    table = np.array([[1, np.nan], [2, 3], [4, 5], [6, 7.5]])
    data = read(x=table, y=Y)
    assert data.kind == "table"
    np.testing.assert_array_equal(data.features, table.astype(np.float32))
    names = {"x": "pixels", "y": "target", "groups": "who"}
    data = read(names, pixels=X / 255, target=Y.astype(float), who=np.array(["b", "a", "b", "c"]))
    assert data.groups.tolist() == [1, 0, 1, 2]
    assert data.features.dtype == np.float32
    assert data.labels.tolist() == Y.tolist()


CASES = [
    (arrays(x=np.array([None] * 4)), {}, "never opened"),
    (arrays(x=None, a=X), {}, "no array 'x': it has y, a"),
    (arrays(x=X[:, :0]), {}, "of shape (4, 0, 6)"),
    (arrays(x=np.zeros((4, 3, 8, 8))), {}, "channels last"),
    (arrays(x=np.where(X == 50, np.nan, X)), {}, "x row 2 holds nan"),
    (arrays(x=np.full((4, 2), 1e300)), {}, "holds 1e+300"),
    (arrays(y=Y[:3]), {}, "y is int64 of shape (3,): it must be of 4 rows, as others are"),
    (arrays(y=np.array([0, 1, 5, 0])), {}, "label 5 and no row of label 2"),
    (arrays(g=np.array([1, np.nan, 2, 3])), {"groups": "g"}, "g row 2 is nan"),
    (arrays(g=np.eye(4)), {"groups": "g"}, "one number or word a row"),
    ({}, {}, "holds no file *.npz"),
    ({"a.npz": b"no zip"}, {}, "cannot be read"),
]


@pytest.mark.parametrize(("files", "options", "message"), CASES)
def test_a_bad_file_is_one_line_with_its_remedy(tmp_path, files, options, message):
    assert message in refused(npz, small.write(tmp_path, files), **options)


def test_an_array_that_claims_too_much_is_refused_before_it_is_made(tmp_path):
    header = io.BytesIO()
    claimed = {"shape": (1 << 40, 64, 64), "fortran_order": False, "descr": "|u1"}
    np.lib.format.write_array_header_2_0(header, claimed)
    with zipfile.ZipFile(tmp_path / "set.npz", "w") as archive:
        archive.writestr("x.npy", header.getvalue())
        archive.writestr("y.npy", b"")
    assert "more than 8,589,934,592" in refused(npz, str(tmp_path))
