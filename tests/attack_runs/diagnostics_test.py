"""What stands inside a federation: layers by name, and gradients of the undefended loss."""

import dataclasses
import functools

import jax
import numpy as np
import pytest

from tests import harness
from tests.federation.protocol_test import layers_of
from tests.reference import protocol as reference
from vfljax.attack_runs import diagnostics
from vfljax.attacks.core import CLEAN
from vfljax.models import Head
from vfljax.types import DefenseSpec


def federation():
    spec = harness.make_spec(3, hidden=(7,), top_hidden=(5,), defenses=(DefenseSpec("noise"),))
    return spec, harness.make_weights(dataclasses.replace(spec, defenses=()), 0)


def with_head():
    """Batch norms that have seen something."""
    spec = dataclasses.replace(harness.make_spec(3, hidden=(7,)), top=Head((5,), 3))
    weights, rng = harness.make_weights(spec, 0), np.random.default_rng(1)

    def moved(path, leaf):
        statistic = path[-1].key in ("mean", "var")
        return np.float32(rng.uniform(0.5, 2, leaf.shape)) if statistic else leaf

    return spec, weights._replace(active=jax.tree_util.tree_map_with_path(moved, weights.active))


def head(variables, z):
    """The output of every linear layer, then the logits, which are that of the last."""
    out = []
    for i, dense in enumerate(layers_of(variables)):
        seen, norm = (variables[of][f"BatchNorm_{i}"] for of in ("batch_stats", "params"))
        z = (z - np.float64(seen["mean"])) / np.sqrt(np.float64(seen["var"]) + 1e-5)
        z = np.maximum(z * np.float64(norm["scale"]) + np.float64(norm["bias"]), 0)
        z = z @ dense.weight + dense.bias
        out.append(z)
    return [*out, z]


def mlp(variables, x):
    """Every layer's output, those of hidden ones rectified."""
    out, (_, *hidden) = reference.forward(layers_of(variables), np.float64(x))
    return [*hidden, out]


def top_of(spec, weights):
    return functools.partial(head if isinstance(spec.top, Head) else mlp, weights.active)


def forward(weights, features, top):
    """Every layer by name, one party after the other."""
    named, cut = {}, []
    for p, (variables, x) in enumerate(zip(weights.bottoms, features, strict=True)):
        hidden, z = mlp(variables, x)
        named |= {f"party{p}.hidden.0": hidden, f"party{p}.cut": z}
        cut.append(z)
    *hidden, logits = top(np.concatenate(cut, axis=1))
    named |= {f"top.hidden.{i}": layer for i, layer in enumerate(hidden)}
    return named | {"top.logits": logits}


@pytest.mark.parametrize("make", [federation, with_head])
def test_layers_agree_with_a_numpy_forward_pass_in_evaluation_mode(make):
    (spec, weights), batch = make(), harness.make_batch(harness.make_spec(3), 0)
    layers = harness.quick_jit(diagnostics.make_layers(spec))(weights, batch.features)
    expected = forward(weights, batch.features, top_of(spec, weights))
    assert set(layers) == set(expected)
    for name, layer in expected.items():
        np.testing.assert_allclose(layers[name], layer, rtol=1e-4, atol=1e-5, err_msg=name)


@pytest.mark.parametrize("make", [federation, with_head])
def test_the_clean_gradient_is_the_numeric_derivative_of_the_undefended_mean_loss(make):
    """Whatever the defenses; the loss is averaged over the batch size, whatever the rows."""
    (spec, weights), batch = make(), harness.make_batch(harness.make_spec(3), 0)
    features, labels = tuple(x[:3] for x in batch.features), batch.labels[:3]
    clean = harness.quick_jit(diagnostics._make_diagnostic(spec, CLEAN, (1, 0)))
    gradient = np.asarray(clean(weights, features, labels))
    named, labels = forward(weights, features, top_of(spec, weights)), np.asarray(labels)
    cut = [named[f"party{p}.cut"] for p in range(len(spec.bottoms))]

    def losses(cut):
        """Each row's own part of the batch-mean loss."""
        *_, logits = top_of(spec, weights)(np.concatenate(cut, axis=1))
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
