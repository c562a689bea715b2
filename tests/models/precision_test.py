"""Products in bfloat16: what is rounded, what is not, and that float32 is what it was."""

import dataclasses

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.extend.core import ClosedJaxpr, Jaxpr

from tests import harness, sweeps
from tests.federation.protocol_test import assert_same_nets, nets_of
from tests.reference import precision as twin
from tests.reference import protocol as reference
from vfljax import store
from vfljax.config import DEFAULT
from vfljax.errors import UserError
from vfljax.federation import protocol
from vfljax.models import BOTTOMS, MLP, parties
from vfljax.models.bottleneck import Bottleneck
from vfljax.models.convolution import conv
from vfljax.models.precision import RESULTS, bfloat16_products
from vfljax.sweep.grid import experiment_of, parse

STEPS = 2


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


# --- one step ---


@pytest.mark.parametrize(
    "changes",
    [{"hidden": (5,), "top_hidden": (6,), "passive": 1}, {"hidden": (5,), "split": False}],
    ids=["top model", "no split"],
)
def test_steps_agree_with_the_numpy_twin(changes):
    """To 1e-5, where one of products in float32 is 1e-3 away."""
    spec = low(harness.make_spec(**changes))
    numbers = {"learning_rate": 0.1, "momentum": 0.9, "weight_decay": 0.01}
    hparams = harness.make_hparams(spec, **numbers)
    batches = [harness.make_batch(spec, i) for i in range(STEPS)]
    initial = harness.make_state(spec, hparams, seed=1)
    final, exchanges, metrics = harness.run_steps(spec, hparams, batches, seed=1)

    def stepped(multiply):
        bottoms, top = nets_of(initial.weights)
        state, seen = reference.start([*bottoms, top or []]), []
        for batch in batches:
            bottoms, top, state, exchange = reference.step(
                *(bottoms, top, state, [np.float64(x) for x in batch.features]),
                np.eye(spec.num_classes)[np.asarray(batch.labels)],
                **{"lr": 0.1, "mu": 0.9, "wd": 0.01},
                multiply=multiply,
            )
            seen.append(exchange)
        return bottoms, top, seen

    bottoms, top, seen = stepped(twin.multiply)
    exact = stepped(np.matmul)[2]
    for ours, expected, metric in zip(exchanges, seen, metrics):
        np.testing.assert_allclose(ours.embeddings[0], expected.embeddings[0], atol=1e-5)
        np.testing.assert_allclose(ours.gradients[0], expected.gradients[0], atol=1e-6)
        np.testing.assert_allclose(metric.loss, expected.loss, rtol=1e-5)
    assert np.abs(exchanges[-1].embeddings[0] - exact[-1].embeddings[0]).max() > 1e-3
    for variables, net in zip(final.weights.bottoms, bottoms):
        assert_same_nets(variables, net, 1e-5)
    if top:
        assert_same_nets(final.weights.active, top, 1e-5)


def test_what_crosses_the_wire_and_what_is_kept_is_float32():
    spec = low(harness.make_spec(hidden=(5,)))
    hparams, batch = harness.make_hparams(spec), harness.make_batch(spec, 0)
    state, exchange, metrics = harness.jitted_step(spec)(
        harness.make_state(spec, hparams), batch, hparams
    )
    kept = (state.weights, state.optimizer, exchange.embeddings, exchange.gradients, metrics.loss)
    types = {str(leaf.dtype) for leaf in jax.tree.leaves(kept)}
    assert types <= {"float32", "int32"}  # counts of steps
    # results of whole sums, no messages of 8 bits
    sent = exchange.embeddings[0]
    assert np.mean(np.asarray(sent) == twin.rounded(sent)) < 0.1


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
    "resnet50": ({"blocks": (1,), "width": 2}, (6, 6, 1)),
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
def test_every_product_of_a_network_and_of_its_gradient_is_rounded(name):
    module, x = network(name)
    party, plain = parties.from_module(module, "bfloat16"), parties.from_module(module)
    key = jax.random.key(0)
    shapes = jax.eval_shape(plain.init, key, x)
    assert jax.eval_shape(party.init, key, x) == shapes

    def gradient(of, variables):
        def loss(params):
            z, _ = of.apply({**variables, "params": params}, x, True, key)
            return z.sum()

        return jax.grad(loss)(variables["params"])

    assert set(products(lambda v: gradient(party, v), shapes)) == {"bfloat16"}
    slopes = jax.eval_shape(lambda v: gradient(party, v), shapes)
    assert slopes == shapes["params"]
    assert jax.eval_shape(lambda v: party.apply(v, x, True, key), shapes) == jax.eval_shape(
        lambda v: plain.apply(v, x, True, key), shapes
    )


def test_a_bottleneck_is_part_of_the_top_model():
    top = Bottleneck(MLP((), 2), (3, 3), 1, parties.concatenate)
    party, x, key = parties.from_module(top, "bfloat16"), jnp.ones((4, 6)), jax.random.key(0)
    shapes = jax.eval_shape(party.init, key, x)
    assert set(products(lambda v: party.apply(v, x, True, key), shapes)) == {"bfloat16"}


class Convolved(nn.Module):
    implementation: str

    @nn.compact
    def __call__(self, x):
        return conv(x, 3, 3, 2, implementation=self.implementation)


@pytest.mark.parametrize("implementation", ["xla", "matmul"])
def test_a_convolution_is_that_of_rounded_numbers(implementation):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2, 6, 6, 2)).astype(np.float32)
    module = Convolved(implementation)
    variables = module.init(jax.random.key(0), x)
    of_rounded = jax.tree.map(lambda a: np.float32(twin.rounded(a)), (variables, x))
    expected = module.apply(*of_rounded)
    ours = jax.jit(bfloat16_products(module.apply))(variables, x)
    # XLA's own returns bfloat16
    np.testing.assert_allclose(ours, expected, rtol=2**-8 if implementation == "xla" else 1e-5)
    assert ours.dtype == jnp.float32
    assert np.abs(ours - module.apply(variables, x)).max() > 1e-3


# --- the rule itself ---


def test_a_product_and_its_gradient_round_their_operands():
    """z = r(x) r(W), dL/dx = r(g) r(W)^T, dL/dW = r(x)^T r(g), optimized and not."""
    rng = np.random.default_rng(0)
    x, w, g = (rng.normal(size=s).astype(np.float32) for s in ((5, 300), (300, 4), (5, 4)))

    def all_three(x, w, g):
        z, pullback = jax.vjp(bfloat16_products(jnp.matmul), x, w)
        return z, *pullback(g)

    expected = twin.multiply(x, w), twin.multiply(g, w.T), twin.multiply(x.T, g)
    for jit in (harness.quick_jit, harness.optimized_jit):
        for ours, theirs in zip(jit(all_three)(x, w, g), expected, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-4)
    assert np.abs(expected[0] - x @ w).max() > 1e-2


def test_it_is_differentiable_twice():
    square = bfloat16_products(lambda x: jnp.sum((x @ x) ** 2))
    x = jnp.arange(4.0).reshape(2, 2)
    twice = jax.grad(lambda x: jnp.sum(jax.grad(square)(x) ** 2))(x)
    exact = jax.grad(lambda x: jnp.sum(jax.grad(lambda x: jnp.sum((x @ x) ** 2))(x) ** 2))(x)
    np.testing.assert_allclose(twice, exact, rtol=0.02)


def test_products_of_whole_numbers_stay_as_they_are():
    x = jnp.arange(1000, 1004).reshape(2, 2)
    np.testing.assert_array_equal(bfloat16_products(jnp.matmul)(x, x), x @ x)


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


def test_the_default_is_float32_and_traces_to_the_very_program_of_the_network():
    assert DEFAULT["training"]["precision"] == "float32"
    spec = harness.make_spec(hidden=(5,))
    assert spec.precision == "float32"
    (bottom, *_), _, _ = parties.parties(spec)
    module, x, key = spec.bottoms[0], jnp.ones((4, 6)), jax.random.key(0)
    variables = bottom.init(key, x)

    def network(v):
        kinds = ["layers", "batch_stats"]
        return module.apply(v, x, train=True, mutable=kinds, rngs={"dropout": key})[0]

    ours = jax.make_jaxpr(lambda v: bottom.apply(v, x, True, key)[0])(variables)
    assert str(ours) == str(jax.make_jaxpr(network)(variables))
    assert "bf16" not in str(ours)


@pytest.mark.parametrize("value", ["float16", "bfloat", ""])
def test_another_precision_is_refused_in_one_line(value):
    with pytest.raises(UserError, match="config.training.precision.*choose from bfloat16, float32"):
        parse({"training": {"precision": value}})


@pytest.mark.slow
def test_a_sweep_in_bfloat16_trains_its_grid_as_one_program_and_is_attacked(
    tmp_path, every_program
):
    config = sweeps.tiny(
        grid={"noise": {"noise": {"scale": (0.01, 0.1)}}},
        attacks={"mean": {"known": 20}},
        federations=("split",),
        seeds=1,
        **{"training.epochs": 1, "training.precision": "bfloat16", "data.train": 160},
    )
    sweeps.train(tmp_path, config, attack=False)
    assert len(every_program) == 2  # one trains all settings, one evaluates them
    assert [program.traces for program in every_program] == [1, 1]
    sweeps.attack(tmp_path)
    loaded = store.load(tmp_path)
    assert loaded.results.num_rows == loaded.attacks.num_rows == 2
    exchange = loaded.trial(0).exchange()
    kept = (
        loaded.trial(0).weights(),
        *(exchange[f"party0_{s}"] for s in ("embeddings", "gradients")),
    )
    assert {str(array.dtype) for array in jax.tree.leaves(kept)} == {"float32"}
    # what is stored decides, and a sweep stored before there was a choice is one in float32
    assert experiment_of(loaded).training.precision == "bfloat16"
    header = loaded.header
    with pytest.raises(UserError, match="training.precision: bfloat16 -> float32"):
        store.refuse_another(tmp_path, header, {**header, "config": with_precision(header, None)})
    before, after = (
        {**header, "config": with_precision(header, value)} for value in (None, "float32")
    )
    store.refuse_another(tmp_path, before, after)


def with_precision(header, value):
    """A stored config with another precision, or as it was stored before the field was."""
    training = {k: v for k, v in header["config"]["training"].items() if k != "precision"}
    return {**header["config"], "training": training | ({"precision": value} if value else {})}
