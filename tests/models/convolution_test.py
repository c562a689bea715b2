"""The convolution as a matrix product: XLA's in value and gradients, wherever it is called."""

import functools
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.harness import optimized_jit, quick_jit
from tests.models.drawing import draw
from tests.reference import precision as twin
from vfljax.models.convolution import conv, images, matmul

# kernel, stride, padding, height, width: each of the two forms, odd and even images
CASES = [
    (1, 2, "VALID", 6, 5),
    (3, 1, "SAME", 12, 5),  # by rows
    (3, 1, "SAME", 4, 5),  # by windows
    (3, 1, ((2, 0), (0, 1)), 11, 6),
    (3, 2, ((1, 1), (1, 1)), 8, 5),
    (5, 2, "SAME", 10, 7),
]


def layers(size, stride, padding, features=4, **options):
    layer = functools.partial(nn.Conv, features, (size, size), stride, padding, **options)
    return layer(), layer(conv_general_dilated=matmul)


def inputs(height, width, channels=3, batch=2, seed=0):
    rng = np.random.default_rng(seed)
    return jnp.asarray(rng.normal(size=(batch, height, width, channels)), jnp.float32)


def initial(layer, other, x):
    """Variables for a layer; another's are of the same shapes."""
    one, same = (jax.eval_shape(each.init, jax.random.key(0), x) for each in (layer, other))
    assert one == same
    return draw(layer.init, x)


def value_and_gradients(layer, weights):
    """Of a loss whose gradient differs at every output; flat."""

    def loss(variables, x):
        out = layer.apply(variables, x)
        return jnp.sum(jnp.sin(out) * weights), out

    def both(variables, x):
        (_, out), gradients = jax.value_and_grad(loss, argnums=(0, 1), has_aux=True)(variables, x)
        return out, gradients

    return both


def weights_for(layer, variables, x):
    out = jax.eval_shape(layer.apply, variables, x)
    return inputs(*out.shape[1:3], channels=out.shape[3], seed=5)


def assert_close(one, other):
    for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
        assert a.shape == b.shape
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5 * np.abs(b).max())


@pytest.mark.parametrize(("size", "stride", "padding", "height", "width"), CASES)
def test_value_and_both_gradients_are_those_of_xla_s(size, stride, padding, height, width):
    theirs, ours = layers(size, stride, padding)
    x = inputs(height, width)
    variables = initial(theirs, ours, x)
    weights = weights_for(theirs, variables, x)
    expected, found = (value_and_gradients(layer, weights) for layer in (theirs, ours))
    both = quick_jit(lambda *a: (found(*a), expected(*a)))  # one compilation
    assert_close(*both(variables, x))


def test_what_is_no_matrix_product_is_refused():
    given = {
        "lhs": jnp.ones((1, 8, 8, 3)),
        "rhs": jnp.ones((3, 3, 3, 2)),
        "window_strides": (1, 1),
        "padding": "SAME",
        "dimension_numbers": ("NHWC", "HWIO", "NHWC"),
    }
    jax.eval_shape(lambda: matmul(**given))
    for change, message in (
        ({"rhs": jnp.ones((3, 1, 3, 2))}, "k, k, C, O"),
        ({"rhs": jnp.ones((3, 3, 4, 2))}, "k, k, C, O"),
        ({"lhs": jnp.ones((1, 8, 3))}, "B, H, W, C"),
        ({"window_strides": (1, 2)}, "equal strides"),
        ({"rhs_dilation": (2, 2)}, "no dilation"),
        ({"feature_group_count": 3}, "feature_group_count=3"),
        ({"dimension_numbers": ("NCHW", "HWIO", "NHWC")}, "dimension_numbers"),
        ({"lhs": jnp.ones((1, 2, 8, 3)), "padding": "VALID"}, "3x3 kernel"),
    ):
        with pytest.raises(ValueError, match=message):
            matmul(**{**given, **change})


class Layer(nn.Module):
    implementation: str
    dtype: Any = None

    @nn.compact
    def __call__(self, x):
        return conv(x, 4, 3, use_bias=True, implementation=self.implementation, dtype=self.dtype)


def primitives(name):
    text = str(jax.make_jaxpr(Layer(name).apply)(initial(Layer("xla"), Layer("xla"), X), X))
    return "conv_general_dilated" in text, "dot_general" in text


X = jnp.ones((2, 9, 6, 3))


def test_auto_is_the_product_on_a_cpu_or_a_gpu_and_xla_s_elsewhere(monkeypatch):
    assert primitives("xla") == (True, False)
    assert primitives("matmul") == (False, True)
    for backend, expected in (
        ("cpu", (False, True)),
        ("gpu", (False, True)),
        ("tpu", (True, False)),
    ):
        monkeypatch.setattr(jax, "default_backend", lambda backend=backend: backend)
        assert primitives("auto") == expected
    with pytest.raises(ValueError, match="'im2col'.*auto"):
        Layer("im2col").init(jax.random.key(0), X)


@pytest.mark.parametrize("name", ["matmul", "pallas"])
def test_in_bfloat16_a_layer_rounds_its_operands_and_its_result_once(name):
    """z = r(r(r(x) * r(W)) + r(b)), in the program that users run, whose parameters stay float32."""
    x = inputs(9, 6)
    variables = initial(Layer("xla"), Layer(name, jnp.bfloat16), x)
    kernel, bias = (variables["params"]["Conv_0"][leaf] for leaf in ("kernel", "bias"))
    assert kernel.dtype == bias.dtype == jnp.float32
    out = optimized_jit(Layer(name, jnp.bfloat16).apply)(variables, x)
    windows = np.lib.stride_tricks.sliding_window_view(np.pad(x, PADS), (3, 3), axis=(1, 2))
    columns = windows.transpose(0, 1, 2, 4, 5, 3).reshape(-1, 27)
    z = twin.rounded(twin.multiply(columns, np.reshape(kernel, (27, -1))))
    expected = twin.rounded(z + twin.rounded(bias)).reshape(out.shape)
    assert out.dtype == jnp.bfloat16
    # a sum that lies between two bfloat16 may be rounded to either
    np.testing.assert_allclose(out.astype(jnp.float32), expected, rtol=2**-7, atol=2**-9)
    assert np.mean(np.asarray(out, np.float64) == expected) > 0.98


PADS = ((0, 0), (1, 1), (1, 1), (0, 0))


def test_gray_images_get_a_channel_and_tables_are_refused():
    assert images(jnp.ones((2, 5, 4))).shape == (2, 5, 4, 1)
    assert images(jnp.ones((2, 5, 4, 3))).shape == (2, 5, 4, 3)
    with pytest.raises(ValueError, match=r"\(2, 7\)"):
        images(jnp.ones((2, 7)))
