"""Small files of weights in every format."""

import os
import zipfile

import numpy as np
import pytest
from flax.traverse_util import flatten_dict

from vfljax.models import bert
from vfljax.models.tensors import torch_shape

FORMATS = (".safetensors", ".pt", ".npz")
NUMBERS = {
    "w": np.arange(6, dtype=np.float32).reshape(2, 3) - 2.5,
    "b": np.asarray([0.5, -1.5], np.float64),
    "half": np.asarray([1.5, -2.0], np.float16),
    "count": np.asarray(7, np.int64),
    "small": np.asarray([[-3], [4]], np.int8),
    "flags": np.asarray([True, False]),
    "none": np.zeros((0, 4), np.float32),
}


def write(path, state):
    """``state`` in the format of the path's suffix, by the libraries users write with."""
    if path.suffix == ".npz":
        np.savez(path, **state)
    elif path.suffix == ".safetensors":
        pytest.importorskip("safetensors.numpy").save_file(state, path)
    else:
        torch = pytest.importorskip("torch")
        torch.save({k: torch.from_numpy(v) for k, v in state.items()}, path)
    return str(path)


def tensors_of(network, variables, seed=0):
    """A checkpoint's random tensors for these variables, by a network module's names and without PyTorch."""
    tree = variables["params"] if network is bert else variables
    flat = {path: leaf for path, leaf in flatten_dict(tree).items() if path[0] != "linear"}
    rng = np.random.default_rng(seed)
    values = {network._torch_name(p): rng.normal(size=torch_shape(flat, p)) for p in flat}
    return {name: abs(x) if name.endswith("running_var") else x for name, x in values.items()}


def same(found, expected):
    assert set(found) == set(expected)
    for name, value in expected.items():
        assert found[name].dtype == value.dtype
        assert found[name].shape == value.shape
        np.testing.assert_array_equal(found[name], value)


class Attack:
    """Leaves a file behind when unpickled."""

    def __init__(self, mark):
        self.mark = mark

    def __reduce__(self):
        return os.mkdir, (self.mark,)


def torch_zip(path, program, **records):
    """A file as torch.save lays it out, around any pickle program."""
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("archive/data.pkl", program)
        for key, raw in records.items():
            archive.writestr(f"archive/data/{key}", raw)
    return str(path)
