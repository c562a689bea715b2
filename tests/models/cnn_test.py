"""GAFM's and Marvell's networks for ISIC: shapes, PyTorch's numbers, refusals."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from tests.harness import quick_jit
from tests.models.drawing import pixels
from vfljax.models import BOTTOMS, CNN
from vfljax.models.cnn import halve
from vfljax.models.parties import from_module


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


def test_the_smallest_images_that_refusals_name_are_accepted():
    for name, least in (("cnn_gafm", 22), ("cnn_marvell", 16)):
        module, x = BOTTOMS[name](out=64, linear=True), jnp.ones((2, least, least))
        z, _ = jax.eval_shape(lambda m=module, x=x: m.init_with_output(jax.random.key(0), x))
        assert z.shape == (2, 64)


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
