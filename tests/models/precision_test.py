"""Networks in bfloat16: their hidden layers alone, and that of a network within another too."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.extend.core import ClosedJaxpr, Jaxpr

from tests import harness, sweeps
from vfljax.config import DEFAULT
from vfljax.errors import UserError
from vfljax.federation import protocol
from vfljax.models import BOTTOMS, MLP, parties
from vfljax.models.bottleneck import Bottleneck
from vfljax.sweep.grid import parse


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
        if equation.primitive.name in ("dot_general", "conv_general_dilated")
        for variable in equation.invars
    ]


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


def test_every_network_is_tried():
    assert {type(network(name)[0]) for name in SMALL} == {
        getattr(make, "func", make) for make in BOTTOMS.values()
    }


@pytest.mark.parametrize("name", SMALL)
def test_hidden_layers_and_their_gradients_are_bfloat16_and_all_else_is_float32(name):
    module, x = network(name)
    party, plain = parties.from_module(module, "bfloat16"), parties.from_module(module)
    key = jax.random.key(0)
    shapes = jax.eval_shape(plain.init, key, x)
    assert jax.eval_shape(party.init, key, x) == shapes

    def slopes(variables):
        def total(params):
            return party.apply({**variables, "params": params}, x, True, key)[0].sum()

        return jax.grad(total)(variables["params"])

    types = products(slopes, shapes)
    hidden, last = types.count("bfloat16"), types.count("float32")
    assert hidden > 0
    assert last > 0
    assert hidden + last == len(types)
    assert jax.eval_shape(slopes, shapes) == shapes["params"]
    assert jax.eval_shape(lambda v: party.apply(v, x, True, key), shapes) == jax.eval_shape(
        lambda v: plain.apply(v, x, True, key), shapes
    )
    assert set(products(lambda v: plain.apply(v, x, True, key), shapes)) == {"float32"}


def test_a_network_s_figures_are_those_in_float32_to_the_digits_of_bfloat16():
    module, x = MLP((32,), 4, batch_norm=True), jnp.asarray(harness.tensor(0, (64, 6)))
    exact = parties.from_module(module)
    variables = exact.init(jax.random.key(1), x)
    rounded = parties.from_module(module, "bfloat16").apply(variables, x, True, None)[0]
    whole = exact.apply(variables, x, True, None)[0]
    assert 0 < np.abs(rounded - whole).max() < 0.05 * np.abs(whole).max()


def test_a_network_within_a_defense_s_is_in_bfloat16_too():
    top = Bottleneck(MLP((3,), 2), (3, 3), 1, parties.concatenate)
    found = parties.in_bfloat16(top)
    assert isinstance(found, Bottleneck)
    assert found.top == MLP((3,), 2, dtype=jnp.bfloat16)


def test_defenses_multiply_in_float32():
    def types(names, knobs):
        spec = harness.make_spec(defenses=names, top_hidden=(6,), hidden=(5,))
        spec = dataclasses.replace(spec, precision="bfloat16")
        hparams = harness.make_hparams(spec, knobs)
        state, batch = harness.make_state(spec, hparams), harness.make_batch(spec, 0)
        found = products(protocol.make_step(spec), state, batch, hparams)
        return found.count("bfloat16"), found.count("float32")

    bare, defended = types((), {}), types(("dcor",), {"dcor": {"alpha": 0.1}})
    assert defended[0] == bare[0] > 0
    assert defended[1] > bare[1]


def test_a_config_s_precision_is_that_of_its_programs_and_another_is_refused():
    assert DEFAULT["training"]["precision"] == "float32"
    changed = {"grid": {"undefended": {}}, "attacks": {}, "training.precision": "bfloat16"}
    plan = sweeps.plan_of(sweeps.tiny(**changed))
    assert {group.spec.precision for group in plan.groups} == {"bfloat16"}
    with pytest.raises(UserError, match="config.training.precision.*choose from bfloat16, float32"):
        parse({"training": {"precision": "float16"}})
