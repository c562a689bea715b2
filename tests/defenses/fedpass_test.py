"""FedPass: its layer against the twin, when passports are drawn, and its place."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests import harness
from tests.reference import fedpass as reference
from vfljax import defenses
from vfljax.defenses.fedpass import fedpass
from vfljax.models.mlp import MLP
from vfljax.models.passports import Passports
from vfljax.types import DefenseSpec

KEY = jax.random.key(0)
X = jnp.asarray(np.random.default_rng(0).normal(size=(6, 4)), jnp.float32)


def layer(**options):
    """(the module, its variables, the twin's matrices)"""
    module = Passports(MLP((), 3), **options)
    variables = module.init({"params": KEY, "dropout": KEY}, X)
    names = ("first", "second", "encoder", "decoder")
    params = variables["params"]
    return module, variables, [np.float64(params[f"passport_{n}"]["kernel"]) for n in names]


def matrices_of(variables):
    """W2 W1, from the right."""
    first, second = (variables["params"][f"passport_{n}"]["kernel"] for n in ("first", "second"))
    return np.float64(first) @ np.float64(second)


def read(module, variables, x, train=True, key=KEY):
    """What the top model reads: its linear layer is taken off."""
    eye = {"kernel": jnp.eye(4, 4), "bias": jnp.zeros(4)}
    bare = Passports(MLP((), 4), module.count, module.loc, module.law, module.once)
    variables = {**variables, "params": {**variables["params"], "Dense_0": eye}}
    return bare.apply(variables, x, train, rngs={"dropout": key})


@pytest.mark.parametrize("law", ["normal", "uniform"])
@pytest.mark.parametrize("count", [1, 5])
def test_the_layer_and_its_gradient_agree_with_the_twin(law, count):
    module, variables, matrices = layer(count=count, law=law, loc=0.5)
    s, b = (np.float64(variables["passports"][name]) for name in "sb")
    assert s.shape == b.shape == (count, 4)
    assert not np.array_equal(s, b)
    expected = reference.forward(np.float64(X), s, b, *matrices)
    np.testing.assert_allclose(read(module, variables, X), expected, atol=1e-5)
    sent, pullback = jax.vjp(lambda x: read(module, variables, x), X)
    gradient = jnp.cos(sent)
    expected = reference.backward(np.float64(gradient), s, *matrices)
    np.testing.assert_allclose(pullback(gradient)[0], expected, atol=1e-5)


@pytest.mark.parametrize(
    ("law", "mean", "deviation"), [("normal", 2, 1), ("uniform", 2.5, 12**-0.5)]
)
def test_passports_have_the_stated_law(law, mean, deviation):
    _, variables, _ = layer(count=5000, law=law, loc=2.0)
    drawn = np.concatenate([np.ravel(variables["passports"][name]) for name in "sb"])
    assert drawn.mean() == pytest.approx(mean, abs=0.03)
    assert drawn.std() == pytest.approx(deviation, abs=0.02)


def test_passports_are_drawn_once_or_at_every_step_and_predictions_take_their_mean():
    module, variables, _ = layer()
    other = jax.random.key(1)
    once = [
        read(module, variables, X, train, key) for train in (True, False) for key in (KEY, other)
    ]
    for again in once[1:]:
        np.testing.assert_array_equal(once[0], again)
    module, variables, matrices = layer(once=False)
    assert "passports" not in variables
    steps = [read(module, variables, X, True, key) for key in (KEY, other)]
    assert not np.allclose(*steps)
    both, beta = (read(module, variables, x) for x in (jnp.ones((1, 4)), jnp.zeros((1, 4))))
    gamma = (both - beta) / (np.ones((1, 4)) @ matrices_of(variables))
    assert not np.allclose(gamma, beta, atol=1e-3)  # s and b differ
    mean = np.ones((1, 4))
    expected = reference.forward(np.float64(X), mean, mean, *matrices)
    np.testing.assert_allclose(read(module, variables, X, False), expected, atol=1e-5)


def test_no_optimizer_changes_the_passports_and_trials_of_a_seed_share_them():
    spec = harness.make_spec(3, (DefenseSpec("fedpass"),))
    hparams = harness.make_hparams(spec, {"fedpass": {}})
    initial = harness.make_state(spec, hparams, seed=1)
    batches = [harness.make_batch(spec, i) for i in range(3)]
    final, _, metrics = harness.run_steps(spec, hparams, batches, seed=1)
    for name in "sb":
        before, after = (w.weights.active["passports"][name] for w in (initial, final))
        np.testing.assert_array_equal(before, after)
    moved = final.weights.active["params"]["passport_first"]["kernel"]
    assert not np.allclose(moved, initial.weights.active["params"]["passport_first"]["kernel"])
    assert all(np.isfinite(m.loss) for m in metrics)


def test_the_top_model_starts_from_the_weights_that_it_has_without_the_layer():
    weights = []
    for chain in ({}, {"fedpass": {}}):
        spec = harness.make_spec(3, tuple(chain))
        hparams = harness.make_hparams(spec, chain)
        weights.append(harness.make_state(spec, hparams, seed=1).weights)
    a, b = (w.active["params"]["Dense_0"]["kernel"] for w in weights)
    np.testing.assert_array_equal(a, b)


def test_it_is_refused_without_a_top_model_and_out_of_range():
    spec = harness.make_spec(3, (), split=False)
    assert defenses.TABLE["fedpass"].network(spec) is spec
    spec = harness.make_spec(3, ("fedpass",), split=False)
    hparams = harness.make_hparams(spec, {"fedpass": {}})
    with pytest.raises(ValueError, match="this federation has none"):
        harness.make_state(spec, hparams, seed=1)
    for options, message in (
        ({"law": "cauchy"}, "law='cauchy' is unknown"),
        ({"draw": "epoch"}, "draw='epoch' is unknown"),
        ({"passports": 0}, "passports=0 is out of range"),
        ({"passports": 1.5}, "no whole number"),
        ({"loc": 1e4}, "loc=10000.0 is out of range"),
    ):
        with pytest.raises(ValueError, match=message):
            fedpass(**options)


def test_beside_noise_both_act():
    chain = {"fedpass": {}, "noise": {"scale": 0.1}}
    sent = {}
    for names in (("fedpass",), ("fedpass", "noise")):
        spec = harness.make_spec(3, names)
        hparams = harness.make_hparams(spec, {name: chain[name] for name in names})
        _, exchanges, _ = harness.run_steps(spec, hparams, [harness.make_batch(spec, 0)], seed=1)
        sent[names] = np.asarray(exchanges[0].gradients[0])
    added = np.subtract(*sent.values())
    assert 0.05 < np.abs(added).mean() < 0.2  # Laplace of scale .1
