"""GAFM's and Marvell's networks for ISIC: shapes, PyTorch's numbers, refusals."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from tests.harness import quick_jit
from tests.models.drawing import pixels
from tests.sweeps import plan_of, tiny
from vfljax.errors import UserError
from vfljax.models import BOTTOMS, CNN
from vfljax.models.cnn import halve
from vfljax.models.parties import from_module

NETS = {
    "cnn_gafm": ({"out": 7}, ((6, 16, 32), (120, 84), 7, 0), 22),
    "cnn_marvell": (
        {"out": 5, "linear": True, "hidden": (64,)},
        ((64, 64, 64, 64), (64,), 5, 1),
        16,
    ),
}


def variables_of(nets, net, channels):
    """Of a PyTorch Sequential; its first Linear reads [C, H, W], ours [H, W, C]."""
    variables = nets.variables_of(net)
    first = variables["params"]["Dense_0"]
    kernel = first["kernel"].reshape(channels, -1, len(first["bias"]))
    first["kernel"] = kernel.transpose(1, 0, 2).reshape(-1, len(first["bias"]))
    return variables


@pytest.mark.parametrize("name", NETS)
@pytest.mark.parametrize("extra", [0, 3])
def test_value_and_gradients_are_pytorch_s(name, extra):
    nets = pytest.importorskip("tests.reference.torch_nets")
    options, (channels, hidden, out, padding), least = NETS[name]
    x = pixels(3, least + extra, least + 1, 2)
    net = nets.randomize(nets.cnn(channels, hidden, out, padding, (2, *x.shape[1:3])), 3)
    module, variables = BOTTOMS[name](**options), variables_of(nets, net, channels[-1])
    tensor = nets.torch.from_numpy(np.array(x.transpose(0, 3, 1, 2)))
    expected = net(tensor)
    got = quick_jit(module.apply)(variables, x)
    own = jax.eval_shape(lambda: from_module(module).init(jax.random.key(0), x))
    assert jax.tree.map(jnp.shape, variables) == jax.tree.map(jnp.shape, own)
    np.testing.assert_allclose(got, expected.detach().numpy(), rtol=1e-4, atol=1e-4)

    weights = pixels(3, out, seed=4)
    (expected * nets.torch.from_numpy(np.array(weights))).sum().backward()
    gradients = quick_jit(jax.grad(lambda v: jnp.sum(module.apply(v, x) * weights)))(variables)
    expected = variables_of(nets, nets.gradients_of(net), channels[-1])
    for a, b in zip(jax.tree.leaves(gradients), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-3 * np.abs(b).max())


def test_gafm_s_flattened_map_is_6_by_6_by_32_and_its_layers_are_sown():
    module = BOTTOMS["cnn_gafm"](out=40)
    party = from_module(module)
    shapes = jax.eval_shape(lambda: party.init(jax.random.key(0), jnp.ones((2, 64, 64))))
    assert shapes["params"]["Dense_0"]["kernel"].shape == (32 * 6 * 6, 120)
    assert shapes["params"]["Dense_2"]["kernel"].shape == (84, 40)
    z, (_, layers) = jax.eval_shape(
        lambda v: party.apply(v, jnp.ones((2, 64, 64)), True, None), shapes
    )
    assert z.shape == (2, 40)
    assert [layer.shape[1:] for layer in layers["hidden"]] == [
        (31, 31, 6),
        (14, 14, 16),
        (6, 6, 32),
        (120,),
        (84,),
    ]


def test_marvell_s_embedding_is_the_flattened_map_after_the_fourth_convolution():
    module, x = BOTTOMS["cnn_marvell"](out=1600), jnp.ones((1, 84, 84, 3))
    variables = jax.eval_shape(lambda: from_module(module).init(jax.random.key(0), x))
    assert set(variables["params"]) == {f"Conv_{i}" for i in range(4)}
    assert jax.eval_shape(lambda v: module.apply(v, x), variables).shape == (1, 1600)


@pytest.mark.parametrize(
    ("module", "image", "message"),
    [
        (BOTTOMS["cnn_gafm"](out=2), (21, 40), "21x40 .* at least 22x22"),
        (BOTTOMS["cnn_marvell"](out=64), (16, 15), "16x15 .* at least 16x16"),
        (
            BOTTOMS["cnn_marvell"](out=10),
            (32, 16),
            r"2x1x64: set config\.model\.cut=128; .*linear=True",
        ),
        (
            BOTTOMS["cnn_marvell"](out=128, hidden=(64,)),
            (32, 16),
            r"config\.model\.options\.hidden=\(\)",
        ),
        (CNN(2, padding="CIRCULAR"), (64, 64), "padding='CIRCULAR'"),
        (CNN(2, weights="ones"), (64, 64), "weights='ones'"),
    ],
)
def test_what_does_not_fit_is_refused(module, image, message):
    with pytest.raises(ValueError, match=message):
        module.init(jax.random.key(0), pixels(2, *image))


def test_without_splitting_the_refusal_names_the_config_s_fields():
    """Where every cut is C logits, so that none fits the map."""
    fields = {"model.bottom": "cnn_marvell", "model.hidden": (64,), "model.cut": 8}
    options = {"channels": (4, 4)}  # halves of digits, 8x4, leave 2x1x4 = 8
    with pytest.raises(UserError) as error:
        plan_of(tiny(**fields, **{"model.options": options}))
    says = str(error.value)
    assert says.startswith("config.model: out=10, hidden=(): images of 8x4")
    assert "for logits (without model splitting), config.model.options.linear=True" in says
    made = plan_of(tiny(**fields, **{"model.options": {**options, "linear": True}}))
    assert any(group.spec.top is None for group in made.groups)


@pytest.mark.parametrize(("name", "least"), [("cnn_gafm", 22), ("cnn_marvell", 16)])
def test_the_smallest_image_named_by_the_refusal_is_accepted(name, least):
    module = BOTTOMS[name](out=64, linear=True)
    x = jnp.ones((2, least, least))
    out = jax.eval_shape(lambda: module.init_with_output(jax.random.key(0), x)[0])
    assert out.shape == (2, 64)


def test_torch_s_initial_values_are_uniform_within_one_over_the_root_of_the_inputs():
    x = jnp.ones((1, 22, 22, 3))
    params = quick_jit(CNN(64, weights="torch").init)(jax.random.key(1), x)["params"]
    for name, inputs in (("Conv_1", 9 * 6), ("Conv_2", 9 * 16), ("Dense_1", 120)):
        law = stats.uniform(-(inputs**-0.5), 2 * inputs**-0.5)
        for values in params[name].values():
            assert stats.kstest(np.asarray(values).ravel(), law.cdf).pvalue > 1e-3


def test_pooling_drops_an_odd_rest():
    x = jnp.arange(15.0).reshape(1, 3, 5, 1)
    np.testing.assert_array_equal(halve(x)[0, :, :, 0], [[6, 8]])
