"""3x3 convolutions in Pallas' interpreter: XLA's in value and gradients, at sizes that no tile divides."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.harness import quick_jit
from vfljax import machine
from vfljax.models import convolution, implicit_gemm

BF16 = jnp.bfloat16


def xla(x, kernel):
    numbers = ("NHWC", "HWIO", "NHWC")
    pads = ((1, 1), (1, 1))
    return jax.lax.conv_general_dilated(x, kernel, (1, 1), pads, dimension_numbers=numbers)


def drawn(*shapes):
    """Arrays of numbers that bfloat16 has."""
    rng = np.random.default_rng(0)
    return [jnp.asarray(rng.normal(size=s), BF16) for s in shapes]


def value_and_gradients(convolve):
    def of(x, kernel, slope):
        y, pullback = jax.vjp(convolve, x, kernel)
        return y, *pullback(slope)

    return of


@pytest.mark.parametrize(
    ("batch", "height", "width", "channels", "out"),
    [
        (3, 9, 7, 6, 20),  # two tiles of rows, the second of 61; channels that are padded
        (1, 1, 2, 80, 48),  # five products a tap, three tiles of columns
        (2, 3, 5, 130, 3),  # tiles of another row of the tables: single taps, sums in parts
    ],
)
def test_value_and_both_gradients_are_those_of_xla_s(batch, height, width, channels, out):
    shapes = (batch, height, width), (3, 3, channels, out)
    x, kernel, slope = drawn((*shapes[0], channels), shapes[1], (*shapes[0], out))

    @quick_jit
    def both(*args):
        exact = [a.astype(jnp.float32) for a in args]
        return value_and_gradients(implicit_gemm.convolve)(*args), value_and_gradients(xla)(*exact)

    for ours, theirs in zip(*both(x, kernel, slope), strict=True):
        assert ours.dtype == BF16
        # the sums agree to float32's digits, and their rounding to half a digit of bfloat16
        np.testing.assert_allclose(ours.astype(jnp.float32), theirs, rtol=2**-8, atol=1e-4)


def test_trials_in_a_loop_are_one_kernel_with_the_figures_of_each():
    """Two trials of one batch, whose results are the inputs of the loop's next turn."""
    x, kernels = drawn((2, 3, 3, 4), (2, 3, 3, 4, 4))

    def run(kernel):
        def loss(kernel):
            def turn(z, _):
                return implicit_gemm.convolve(z, kernel), None

            return jnp.sum(jax.lax.scan(turn, x, length=2)[0].astype(jnp.float32))

        return jax.value_and_grad(loss)(kernel)

    together = quick_jit(jax.vmap(run))(kernels)
    alone = quick_jit(run)
    for number in range(2):
        for a, b in zip(together, alone(kernels[number]), strict=True):
            np.testing.assert_array_equal(a[number], b)
    # one for GPUs and one for other platforms; gpu_programs_test lowers it for CUDA
    text = str(jax.make_jaxpr(jax.vmap(implicit_gemm.convolve, (None, 0)))(x, kernels))
    assert text.count("pallas_call[") == 2
    assert "while[" not in text


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, True),
        ({"capability": 7.5}, False),
        ({"dtype": jnp.float32}, False),
        ({"stride": 2}, False),
        ({"size": 5}, False),
        ({"padding": "VALID"}, False),
        ({"channels": 50}, False),  # more than there are pixels
    ],
)
def test_kernels_are_used_where_they_are_faster(monkeypatch, changes, expected):
    given = {"capability": 8.0, "dtype": BF16, "stride": 1, "size": 3, "padding": "SAME"}
    chosen = {**given, "channels": 3, **changes}
    monkeypatch.setattr(machine, "capability", lambda: chosen["capability"])
    size, channels = chosen["size"], chosen["channels"]
    shapes = (1, 7, 7, channels), (size, size, channels, 2)
    x, kernel = (jax.ShapeDtypeStruct(s, chosen["dtype"]) for s in shapes)
    strides = (chosen["stride"],) * 2
    names = {"dimension_numbers": ("NHWC", "HWIO", "NHWC")}
    traced = jax.make_jaxpr(lambda *a: convolution.pallas(*a, strides, chosen["padding"], **names))
    assert ("pallas_call" in str(traced(x, kernel))) == expected
