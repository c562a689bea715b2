"""Bottoms that start from a file's weights."""

import jax
import numpy as np
import pytest
from flax import traverse_util

from tests.sweeps import tiny
from vfljax import lab, sweep
from vfljax.errors import UserError

CHANGES = {
    "model.bottom": "resnet18",
    "model.hidden": (64,),  # its default, which other networks do not read
    "model.options": {"width": 2, "blocks": (1,)},
    "grid": {"undefended": {}},
    "attacks": {},
    "training.batch_size": 40,
}
# torchvision's names of a ResNet of one stage and block
SHAPES = {
    "conv1.weight": (2, 1, 3, 3),
    "layer1.0.conv1.weight": (2, 2, 3, 3),
    "layer1.0.conv2.weight": (2, 2, 3, 3),
    "fc.weight": (7, 2),
    "fc.bias": (7,),
}


def file_of(folder, **changes):
    """A state dict as .npz; its last layer has 7 classes, as no bottom here."""
    rng = np.random.default_rng(0)
    state = {name: rng.normal(size=shape) for name, shape in {**SHAPES, **changes}.items()}
    for norm in ("bn1", "layer1.0.bn1", "layer1.0.bn2"):
        for part in ("weight", "bias", "running_mean", "running_var"):
            state[f"{norm}.{part}"] = rng.random(2) + 0.5
    np.savez(folder / "weights.npz", **{k: v.astype(np.float32) for k, v in state.items()})
    return folder / "weights.npz", state


def initial(path):
    made = lab.prepare(tiny(**CHANGES, **{"model.pretrained": str(path)}))
    return lab.initial_weights(made.groups[0].spec, made)


def test_every_party_and_seed_starts_from_the_file_but_for_what_it_does_not_fit(tmp_path):
    path, state = file_of(tmp_path)
    drawn, loaded = initial(""), initial(path)
    kernel = state["conv1.weight"].transpose(2, 3, 1, 0)
    for before, after in zip(drawn.bottoms, loaded.bottoms, strict=True):
        before, after = (traverse_util.flatten_dict(tree, sep="/") for tree in (before, after))
        for q in range(2):
            np.testing.assert_allclose(after["params/conv1/kernel"][q], kernel, rtol=1e-6)
        same = {k for k in after if np.array_equal(np.asarray(before[k]), np.asarray(after[k]))}
        assert same == {"params/Dense_0/kernel", "params/Dense_0/bias"}  # 7 classes: no embedding
    jax.tree.map(np.testing.assert_array_equal, drawn.active, loaded.active)


def test_a_file_of_another_network_is_one_clear_line(tmp_path):
    path, _ = file_of(tmp_path, **{"layer1.0.conv2.weight": (2, 3, 3, 3)})
    with pytest.raises(UserError, match=r"layer1\.0\.conv2"):
        initial(path)


def test_a_file_of_a_quantized_network_is_one_clear_line(tmp_path):
    path, state = file_of(tmp_path)
    state["layer1.0.conv2.weight"] = state["layer1.0.conv2.weight"].astype(np.int8)
    np.savez(path, **state)
    with pytest.raises(UserError, match=r"weights\.npz: tensor 'layer1.* is int8 .*quantized\.$"):
        initial(path)


def test_a_sweep_says_which_tensors_it_left_out(tmp_path):
    path, _ = file_of(tmp_path)
    changes = {**CHANGES, "model.pretrained": str(path), "training.epochs": 1, "seeds": 1}
    said = []
    sweep.run(tiny(**changes), tmp_path / "run", "test", say=said.append)
    assert f"bottoms start from {path}; of it left out: fc.bias, fc.weight" in said
