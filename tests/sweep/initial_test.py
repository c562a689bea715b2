"""What trials start from: random weights of their seed, and those that a file holds of the bottoms."""

import dataclasses

import jax
import numpy as np
import pytest
from flax import traverse_util
from safetensors.numpy import save_file

from tests.refusals import refused
from tests.sweeps import plan_of, tiny
from vfljax.sweep import programs
from vfljax.sweep.grid import parse
from vfljax.sweep.initial import initial_weights, unread_tensors

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
    """A file of weights; its last layer has 7 classes, as no bottom here."""
    rng = np.random.default_rng(0)
    state = {name: rng.normal(size=shape) for name, shape in {**SHAPES, **changes}.items()}
    for norm in ("bn1", "layer1.0.bn1", "layer1.0.bn2"):
        for part in ("weight", "bias", "running_mean", "running_var"):
            state[f"{norm}.{part}"] = rng.random(2) + 0.5
    path = folder / "weights.safetensors"
    save_file({k: v.astype(np.float32) for k, v in state.items()}, path)
    return path, state


@pytest.fixture(scope="module")
def planned():
    """Arms of two top models, one of them with a defense; three seeds."""
    wide = {"model": {"top": "mlp", "top_hidden": (8,)}, "kdk": {"epsilon": 0.1, "k": 2}}
    return plan_of(tiny(attacks={}, seeds=3, grid={"undefended": {}, "wide": wide}))


def weights_of(plan, spec=None):
    return initial_weights(spec or plan.groups[0].spec, plan.experiment, plan.seeds, plan.table)


def test_initial_weights_depend_on_the_seed_alone(planned):
    spec = planned.groups[1].spec
    assert spec.defenses
    weights = weights_of(planned, spec)
    leaf = jax.tree.leaves(weights.bottoms[0])[-1]
    assert leaf.shape[0] == 3
    assert (leaf[0] != leaf[1]).any()
    again = weights_of(planned, dataclasses.replace(spec, defenses=()))
    jax.tree.map(np.testing.assert_array_equal, weights, again)
    # and on the seed itself, not on its place among others
    by_seed = ("train", "validation", "test", "mean", "scale")
    parts = {
        name: jax.tree.map(lambda a: a[::-1], getattr(planned.table, name)) for name in by_seed
    }
    table = planned.table._replace(**parts)
    turned = initial_weights(spec, planned.experiment, planned.seeds[::-1], table)
    jax.tree.map(lambda a, b: np.testing.assert_array_equal(a, b[::-1]), weights, turned)


def test_sweeps_of_other_rows_and_epochs_share_the_program_and_the_weights(planned):
    weights, before = weights_of(planned), len(programs._PROGRAMS)
    changes = {"data.train": 300, "training.epochs": 5}
    other = plan_of(tiny(attacks={}, seeds=3, grid={"undefended": {}}, **changes))
    jax.tree.map(np.testing.assert_array_equal, weights_of(other), weights)
    assert len(programs._PROGRAMS) <= before


def test_bottoms_start_alike_whatever_the_top_of_the_arm(planned):
    one, other = (weights_of(planned, group.spec).bottoms for group in planned.groups)
    jax.tree.map(np.testing.assert_array_equal, one, other)


def test_every_party_and_seed_starts_from_the_file_but_for_what_it_does_not_fit(tmp_path):
    path, state = file_of(tmp_path)
    plan = plan_of(tiny(**CHANGES))
    random = weights_of(plan)
    experiment = parse(tiny(**CHANGES, **{"model.pretrained": str(path)}))
    loaded = weights_of(plan._replace(experiment=experiment))
    kernel = state["conv1.weight"].transpose(2, 3, 1, 0)
    for before, after in zip(random.bottoms, loaded.bottoms, strict=True):
        before, after = (traverse_util.flatten_dict(tree, sep="/") for tree in (before, after))
        for q in range(2):
            np.testing.assert_allclose(after["params/conv1/kernel"][q], kernel, rtol=1e-6)
        same = {k for k in after if np.array_equal(np.asarray(before[k]), np.asarray(after[k]))}
        assert same == {"params/Dense_0/kernel", "params/Dense_0/bias"}  # 7 classes: no embedding
    jax.tree.map(np.testing.assert_array_equal, random.active, loaded.active)
    unread = unread_tensors(plan.groups[0].spec, experiment, plan.seeds, plan.table)
    assert unread == ["fc.bias", "fc.weight"]


def test_a_file_of_another_network_is_refused_before_anything_is_trained(tmp_path):
    path, _ = file_of(tmp_path, **{"layer1.0.conv2.weight": (2, 3, 3, 3)})
    with refused("layer1.0.conv2"):
        plan_of(tiny(**CHANGES, **{"model.pretrained": str(path)}))
