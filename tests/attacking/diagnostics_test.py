"""What stands inside a federation: layers by name, and gradients of the undefended loss."""

import dataclasses

import jax
import numpy as np
import pytest

from tests import harness
from vfljax.attacking import diagnostics
from vfljax.attacks.core import CLEAN
from vfljax.models import Head
from vfljax.types import DefenseSpec

HEAD = Head((5,), 3)


def federation(**changes):
    spec = harness.make_spec(
        3, **{"hidden": (7,), "top_hidden": (5,), "defenses": (DefenseSpec("noise"),), **changes}
    )
    weights = harness.make_state(
        spec, harness.make_hparams(spec, {"noise": {"scale": 9.0}})
    ).weights
    return spec, weights, harness.make_batch(spec, 0)


def with_head(**changes):
    """As ``federation``, with batch norms that have seen something."""
    spec = dataclasses.replace(harness.make_spec(3, hidden=(7,), **changes), top=HEAD)
    weights = harness.make_weights(spec, 0)
    rng = np.random.default_rng(1)

    def moved(path, leaf):
        statistic = path[-1].key in ("mean", "var")
        return np.float32(rng.uniform(0.5, 2, leaf.shape)) if statistic else leaf

    active = jax.tree_util.tree_map_with_path(moved, weights.active)
    return spec, weights._replace(active=active), harness.make_batch(spec, 0)


def relu(x):
    return np.maximum(x, 0)


def dense(params, i, x):
    layer = params[f"Dense_{i}"]
    return x @ np.float64(layer["kernel"]) + np.float64(layer["bias"])


def mlp(params, x):
    hidden = relu(dense(params, 0, x))
    return [hidden], dense(params, 1, hidden)


def head(variables, x):
    out = []
    for i in range(2):
        seen, norm = (
            variables["batch_stats"][f"BatchNorm_{i}"],
            variables["params"][f"BatchNorm_{i}"],
        )
        x = (x - np.float64(seen["mean"])) / np.sqrt(np.float64(seen["var"]) + 1e-5)
        x = relu(x * np.float64(norm["scale"]) + np.float64(norm["bias"]))
        x = dense(variables["params"], i, x)
        out.append(x)
    return out, x


def forward(weights, features, top):
    """Every layer by name, one party after the other."""
    named, cut = {}, []
    for p, (variables, x) in enumerate(zip(weights.bottoms, features, strict=True)):
        (hidden,), z = mlp(variables["params"], np.float64(x))
        named |= {f"party{p}.hidden.0": hidden, f"party{p}.cut": z}
        cut.append(z)
    z = np.concatenate(cut, axis=1)
    hidden, logits = top(z)
    named |= {f"top.hidden.{i}": layer for i, layer in enumerate(hidden)}
    return named | {"top.logits": logits}


def tops(spec, weights):
    if isinstance(spec.top, Head):
        return lambda z: head(weights.active, z)
    return lambda z: mlp(weights.active["params"], z)


@pytest.mark.parametrize("make", [federation, with_head])
def test_layers_agree_with_a_numpy_forward_pass_in_evaluation_mode(make):
    spec, weights, batch = make()
    layers = harness.quick_jit(diagnostics.make_layers(spec))(weights, batch.features)
    expected = forward(weights, batch.features, tops(spec, weights))
    assert set(layers) == set(expected)
    for name, layer in expected.items():
        np.testing.assert_allclose(layers[name], layer, rtol=1e-4, atol=1e-5, err_msg=name)


@pytest.mark.parametrize("make", [federation, with_head])
def test_the_clean_gradient_is_the_numeric_derivative_of_the_undefended_mean_loss(make):
    """Whatever the defenses; the loss is averaged over the batch size, whatever the rows."""
    spec, weights, batch = make()
    features, labels = tuple(x[:3] for x in batch.features), batch.labels[:3]
    clean = harness.quick_jit(diagnostics._make_diagnostic(spec, CLEAN, (1, 0)))
    gradient = np.asarray(clean(weights, features, labels))
    named, labels = forward(weights, features, tops(spec, weights)), np.asarray(labels)
    cut = [named[f"party{p}.cut"] for p in range(len(spec.bottoms))]

    def losses(cut):
        """Each row's own part of the batch-mean loss."""
        _, logits = tops(spec, weights)(np.concatenate(cut, axis=1))
        log_sum = np.log(np.exp(logits).sum(axis=1))
        return (log_sum - logits[np.arange(len(labels)), labels]) / spec.batch_size

    columns, small = [], 1e-6
    for p in (1, 0):
        for d in range(cut[p].shape[1]):
            up, down = ([z.copy() for z in cut] for _ in range(2))
            up[p][:, d] += small
            down[p][:, d] -= small
            columns.append((losses(up) - losses(down)) / (2 * small))
    np.testing.assert_allclose(gradient, np.stack(columns, axis=1), rtol=1e-3, atol=1e-6)


def test_a_layer_is_seen_by_its_owner_alone():
    for name, attackers, seen in (
        ("party0.hidden.0", (0,), True),
        ("party0.cut", (1, 0), True),
        ("party1.cut", (0,), False),
        ("party10.cut", (1,), False),
        ("top.logits", (0, 1), False),
        (CLEAN, (0,), False),
    ):
        assert diagnostics.belongs_to(name, attackers) == seen
