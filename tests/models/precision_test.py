"""Products in bfloat16: what is rounded, what is not, and that float32 is what it was."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.extend.core import ClosedJaxpr, Jaxpr

from tests import harness, sweeps
from tests.reference import precision as twin
from vfljax import store
from vfljax.config import DEFAULT
from vfljax.errors import UserError
from vfljax.federation import protocol
from vfljax.models import BOTTOMS, MLP, parties
from vfljax.models.bottleneck import Bottleneck
from vfljax.models.precision import RESULTS, bfloat16_products
from vfljax.sweep.grid import parse


def low(spec):
    return dataclasses.replace(spec, precision="bfloat16")


def operations(traced):
    """Every operation of a traced function, those of the functions it calls included."""
    for equation in traced.eqns:
        yield equation
        for leaf in jax.tree.leaves(list(equation.params.values())):
            if isinstance(leaf, ClosedJaxpr | Jaxpr):
                yield from operations(leaf.jaxpr if isinstance(leaf, ClosedJaxpr) else leaf)


def products(function, *args):
    """The types of the operands of every product."""
    traced = jax.make_jaxpr(function)(*args)
    return [
        str(variable.aval.dtype)
        for equation in operations(traced.jaxpr)
        if equation.primitive in RESULTS
        for variable in equation.invars
    ]


# --- one step, whose twin is among those of tests/federation/protocol_test.py ---


def test_defenses_multiply_in_float32():
    """Of dCor's products, the twin of whose rule is elsewhere, none is rounded."""
    spec = low(harness.make_spec(defenses=("dcor",), top_hidden=(6,)))
    hparams = harness.make_hparams(spec, {"dcor": {"alpha": 0.1}})
    state, batch = harness.make_state(spec, hparams), harness.make_batch(spec, 0)
    bare = low(harness.make_spec(top_hidden=(6,)))
    without = products(
        protocol.make_step(bare),
        *(harness.make_state(bare, harness.make_hparams(bare)), batch, harness.make_hparams(bare)),
    )
    types = products(protocol.make_step(spec), state, batch, hparams)
    assert set(without) == {"bfloat16"}
    assert types.count("bfloat16") == len(without)
    assert types.count("float32") == len(types) - len(without) > 0


# --- networks ---

SMALL = {
    "mlp": ({"hidden": (4,)}, (6,)),
    "resnet20": ({"blocks": (1, 1), "width": 2}, (6, 6, 1)),
    "cnn_gafm": ({"channels": (2,), "hidden": (4,), "convolution": "xla"}, (6, 6, 1)),
    "wide_deep": ({"vocabulary": (0, 3), "hidden": (4,)}, (2,)),
    "bert": ({"vocabulary": 9, "hidden": 4, "layers": 1, "heads": 2, "intermediate": 4}, (3,)),
}


def network(name):
    options, shape = SMALL[name]
    return BOTTOMS[name](out=2, **options), jnp.ones((4, *shape))


def gradient(party, variables, x, key):
    """The gradient of the sum of the embeddings by the parameters."""

    def total(params):
        z, _ = party.apply({**variables, "params": params}, x, True, key)
        return z.sum()

    return jax.grad(total)(variables["params"])


def test_every_network_is_tried():
    assert {type(network(name)[0]) for name in SMALL} == {
        getattr(make, "func", make) for make in BOTTOMS.values()
    }


@pytest.mark.parametrize("name", SMALL)
def test_every_product_of_a_network_and_of_its_gradient_is_rounded(name):
    module, x = network(name)
    party, plain = parties.from_module(module, "bfloat16"), parties.from_module(module)
    key = jax.random.key(0)
    shapes = jax.eval_shape(plain.init, key, x)
    assert jax.eval_shape(party.init, key, x) == shapes
    assert set(products(lambda v: gradient(party, v, x, key), shapes)) == {"bfloat16"}
    slopes = jax.eval_shape(lambda v: gradient(party, v, x, key), shapes)
    assert slopes == shapes["params"]
    assert jax.eval_shape(lambda v: party.apply(v, x, True, key), shapes) == jax.eval_shape(
        lambda v: plain.apply(v, x, True, key), shapes
    )


@pytest.mark.parametrize("name", ["mlp", "resnet20", "cnn_gafm", "wide_deep"])
def test_activations_are_bfloat16_and_sums_over_rows_and_variables_are_float32(name):
    module, x = network(name)
    party, key = parties.from_module(module, "bfloat16"), jax.random.key(0)
    shapes = jax.eval_shape(party.init, key, x)
    assert {leaf.dtype for leaf in jax.tree.leaves(shapes)} == {jnp.dtype(jnp.float32)}
    traced = jax.make_jaxpr(lambda v: gradient(party, v, x, key))(shapes)
    activations, sums = set(), set()  # sums: batch statistics, and gradients of biases
    for equation in operations(traced.jaxpr):
        kind = str(equation.outvars[0].aval.dtype) if equation.outvars else None
        if equation.params.get("name") == "relu":
            activations.add(kind)
        elif equation.primitive.name == "reduce_sum" and 0 in equation.params["axes"]:
            sums.add(kind)
    assert activations == {"bfloat16"}
    assert sums == {"float32"}


def test_a_bottleneck_is_part_of_the_top_model():
    top = Bottleneck(MLP((), 2), (3, 3), 1, parties.concatenate)
    party, x, key = parties.from_module(top, "bfloat16"), jnp.ones((4, 6)), jax.random.key(0)
    shapes = jax.eval_shape(party.init, key, x)
    assert set(products(lambda v: party.apply(v, x, True, key), shapes)) == {"bfloat16"}


# --- the rule itself ---


def test_a_product_and_its_gradient_round_their_operands():
    """z = r(x) r(W), dL/dx = r(g) r(W)^T, dL/dW = r(x)^T r(g), as users compile it."""
    rng = np.random.default_rng(0)
    x, w, g = (rng.normal(size=s).astype(np.float32) for s in ((5, 300), (300, 4), (5, 4)))

    def all_three(x, w, g):
        z, pullback = jax.vjp(bfloat16_products(jnp.matmul), x, w)
        return z, *pullback(g)

    expected = twin.multiply(x, w), twin.multiply(g, w.T), twin.multiply(x.T, g)
    for ours, theirs in zip(harness.optimized_jit(all_three)(x, w, g), expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-4)
    assert np.abs(expected[0] - x @ w).max() > 1e-2
    whole = jnp.arange(1000, 1004).reshape(2, 2)  # numbers that stay as they are
    np.testing.assert_array_equal(bfloat16_products(jnp.matmul)(whole, whole), whole @ whole)


def test_it_is_differentiable_twice():
    def twice(square):
        return jax.grad(lambda x: jnp.sum(jax.grad(square)(x) ** 2))

    def square(x):
        return jnp.sum((x @ x) ** 2)

    @jax.jit
    def both(x):
        return twice(bfloat16_products(square))(x), twice(square)(x)

    np.testing.assert_allclose(*both(jnp.arange(4.0).reshape(2, 2)), rtol=0.02)


def test_a_product_in_a_loop_is_refused_in_one_line():
    def looped(x):
        return jax.lax.scan(lambda z, _: (z @ x, None), x, length=2)[0]

    with pytest.raises(ValueError, match="a product inside a scan.*choose config.*'float32'") as e:
        bfloat16_products(looped)(jnp.eye(2))
    assert len(str(e.value).splitlines()) == 1
    # a loop without one is as it was
    total = bfloat16_products(lambda x: jax.lax.fori_loop(0, 2, lambda i, z: z + x, x))
    np.testing.assert_array_equal(total(jnp.eye(2)), 3 * jnp.eye(2))


# --- the config ---


def test_a_config_s_precision_is_that_of_its_programs_and_another_is_refused():
    assert DEFAULT["training"]["precision"] == "float32"
    changed = {"grid": {"undefended": {}}, "attacks": {}, "training.precision": "bfloat16"}
    plan = sweeps.plan_of(sweeps.tiny(**changed))
    assert {group.spec.precision for group in plan.groups} == {"bfloat16"}
    with pytest.raises(UserError, match="config.training.precision.*choose from bfloat16, float32"):
        parse({"training": {"precision": "float16"}})


def test_a_sweep_stored_before_there_was_a_choice_is_one_in_float32(tiny_sweep):
    header = store.read_header(tiny_sweep)
    training = {k: v for k, v in header["config"]["training"].items() if k != "precision"}
    absent, same, other = (
        {**header, "config": {**header["config"], "training": {**training, **changes}}}
        for changes in ({}, {"precision": "float32"}, {"precision": "bfloat16"})
    )
    store.refuse_another(tiny_sweep, absent, same)
    with pytest.raises(UserError, match="training.precision: bfloat16 -> float32"):
        store.refuse_another(tiny_sweep, other, absent)
