"""FedPass: its layer against the twin, when passports are drawn, and its place."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests import harness
from tests.reference import fedpass as reference
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


def test_the_layer_and_its_gradient_agree_with_the_twin():
    module, variables, matrices = layer(count=5, loc=0.5)
    s, b = (np.float64(variables["passports"][name]) for name in "sb")
    assert s.shape == b.shape == (5, 4)
    assert not np.array_equal(s, b)
    expected = reference.forward(np.float64(X), s, b, *matrices)
    np.testing.assert_allclose(read(module, variables, X), expected, atol=1e-5)
    sent, pullback = jax.vjp(lambda x: read(module, variables, x), X)
    gradient = jnp.cos(sent)
    expected = reference.backward(np.float64(gradient), s, *matrices)
    np.testing.assert_allclose(pullback(gradient)[0], expected, atol=1e-5)
    # the top model starts from the weights that it has without the layer
    bare = MLP((), 3).init({"params": KEY}, X)["params"]["Dense_0"]
    harness.assert_same_bits(variables["params"]["Dense_0"], bare)


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
    module, variables, matrices = layer(once=False, law="uniform")
    assert "passports" not in variables
    steps = [read(module, variables, X, True, key) for key in (KEY, other)]
    assert not np.allclose(*steps)
    both, beta = (read(module, variables, x) for x in (jnp.ones((1, 4)), jnp.zeros((1, 4))))
    gamma = (both - beta) / (np.ones((1, 4)) @ matrices_of(variables))
    assert not np.allclose(gamma, beta, atol=1e-3)  # s and b differ
    mean = np.full((1, 4), 1.5)
    expected = reference.forward(np.float64(X), mean, mean, *matrices)
    np.testing.assert_allclose(read(module, variables, X, False), expected, atol=1e-5)


def test_no_optimizer_changes_the_passports_of_a_run():
    spec = harness.make_spec(3, (DefenseSpec("fedpass"),))
    hparams = harness.make_hparams(spec, {"fedpass": {}})
    initial = harness.make_state(spec, hparams).weights.active
    batches = harness.make_batches(spec, 2)
    final = harness.run_steps(spec, hparams, batches)[0].weights.active
    harness.assert_same_bits(initial["passports"], final["passports"])
    assert harness.differ(initial["params"]["passport_first"], final["params"]["passport_first"])
