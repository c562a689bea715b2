"""Released weights: what safetensors files hold, one line for each fault, and where tensors are placed."""

import struct

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from safetensors.numpy import save_file

from tests.datasets.refusals import one_line
from tests.models.drawing import draw
from tests.models.weight_files import bert_tensors
from vfljax.errors import UserError
from vfljax.models import MLP
from vfljax.models.bert import Bert
from vfljax.models.weights import digest, load, read

NUMBERS = {
    "w": np.arange(6, dtype=np.float32).reshape(2, 3) - 2.5,
    "b": np.asarray([0.5, -1.5], np.float64),
    "half": np.asarray([1.5, -2.0], np.float16),
    "count": np.asarray(7, np.int64),
    "none": np.zeros((0, 4), np.float32),
}


def test_a_file_and_a_hugging_face_folder_give_their_tensors(tmp_path):
    half = np.asarray(jnp.asarray([1.0, -2.5, 3.140625, 1e-30], jnp.bfloat16))
    save_file({**NUMBERS, "bfloat16": half}, tmp_path / "model.safetensors")
    found, of_folder = (read(str(path)) for path in (tmp_path / "model.safetensors", tmp_path))
    assert digest(str(tmp_path)) == digest(str(tmp_path / "model.safetensors"))
    expected = {**NUMBERS, "bfloat16": half.astype(np.float32)}
    assert set(found) == set(of_folder) == set(expected)
    for name, value in expected.items():
        assert found[name].dtype == of_folder[name].dtype == value.dtype
        np.testing.assert_array_equal(found[name], value)


def test_a_prefix_that_all_names_have_is_dropped(tmp_path):
    path = tmp_path / "x.safetensors"
    for names, expected in (
        (("module.w", "module.b"), {"w", "b"}),
        (("module.w", "b"), {"module.w", "b"}),
    ):
        save_file({name: np.ones(2) for name in names}, path)
        assert set(read(str(path))) == expected


FLOAT8 = b'{"w":{"dtype":"F8_E4M3","shape":[2],"data_offsets":[0,2]}}'
FAULTS = {
    "missing": ("x.safetensors", None, "is missing"),
    "a state dict": ("x.pt", b"PK", "torch.load(FILE, weights_only=True)"),
    "arrays": ("x.npz", b"PK", "no .safetensors file"),
    "a pointer": ("x.safetensors", b"version https://git-lfs", "Git LFS"),
    "cut off": ("x.safetensors", struct.pack("<Q", 80) + FLOAT8, "cannot be read"),
    "float8": ("x.safetensors", struct.pack("<Q", len(FLOAT8)) + FLOAT8 + b"\0\0", "float8_e4m3fn"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_faulty_file_is_one_line_that_names_it(tmp_path, fault):
    name, content, words = FAULTS[fault]
    if content is not None:
        (tmp_path / name).write_bytes(content)
    one_line(lambda: read(str(tmp_path / name)), str(tmp_path / name), words)


TINY = Bert(3, vocabulary=11, hidden=8, layers=1, heads=2, intermediate=6, positions=5)


def test_load_places_the_tensors_by_the_network_s_rule(tmp_path):
    variables = draw(TINY.init, jnp.ones((2, 4)))
    state = bert_tensors(vocabulary=11, positions=5, hidden=8, layers=1, intermediate=6)
    save_file({**state, "cls.predictions.bias": np.ones(11)}, tmp_path / "x.safetensors")
    found, left_out = load(TINY, variables, str(tmp_path / "x.safetensors"))
    assert left_out == ["cls.predictions.bias"]
    table = found["params"]["word_embeddings"]["embedding"]
    np.testing.assert_array_equal(table, np.float32(state["embeddings.word_embeddings.weight"]))
    assert jax.tree.structure(found) == jax.tree.structure(variables)


def test_load_names_the_file_and_the_networks_that_have_a_rule(tmp_path):
    save_file({"w": np.ones(2)}, tmp_path / "x.safetensors")
    path = str(tmp_path / "x.safetensors")
    with pytest.raises(UserError, match=r"x\.safetensors: tensor 'embeddings\..*is missing"):
        load(TINY, draw(TINY.init, jnp.ones((2, 4))), path)
    with pytest.raises(UserError, match=r"MLP has no rule for weights from a file .*: use .*Bert"):
        load(MLP((), 2), {}, path)
