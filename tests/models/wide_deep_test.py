"""Wide & deep: PyTorch's numbers, codes that fit no table, published sizes."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from tests.harness import quick_jit
from tests.models.drawing import applied, draw, run
from vfljax.models import WideDeep
from vfljax.models.parties import from_module

VOCABULARY = (0, 5, 3, 0, 4)
ROWS = 12


def table(seed=0):
    rng = np.random.default_rng(seed)
    columns = [rng.integers(v, size=ROWS) if v else rng.normal(size=ROWS) for v in VOCABULARY]
    return jnp.asarray(np.stack(columns, axis=1), jnp.float32)


def start(module, x=None):
    return draw(from_module(module).init, table() if x is None else x)


def initial(module, x):
    return quick_jit(from_module(module).init)(jax.random.key(0), x)


def test_a_code_without_a_row_is_read_as_the_nearest():
    module = WideDeep(2, VOCABULARY, weights="torch")
    variables, x, apply = start(module), table(), applied(module)
    read = {code: apply(variables, x.at[:, 1].set(code)) for code in range(5)}
    codes = ((-1, 0), (5, 4), (1e9, 4), (np.inf, 4), (-np.inf, 0), (np.nan, 0), (2.7, 2))
    for code, read_as in codes:
        np.testing.assert_array_equal(apply(variables, x.at[:, 1].set(code)), read[read_as])
    assert not np.allclose(read[0], read[2])
    assert not np.allclose(read[2], read[4])


def test_every_code_has_rows_of_its_own_and_only_a_seen_code_s_rows_move():
    module, x = WideDeep(2, VOCABULARY, weights="torch"), table()[:1]
    variables = start(module)
    gradient = quick_jit(jax.grad(lambda v: jnp.sum(module.apply(v, x) ** 2)))(variables)["params"]
    offsets = {1: 0, 2: 5, 4: 8}
    seen = {offsets[j] + int(x[0, j]) for j in offsets}
    for name in ("embedding_table", "wide_table"):
        moved = np.flatnonzero(np.abs(gradient[name]).sum(axis=1))
        assert set(moved) == seen
    assert gradient["embedding_table"].shape == (12, 4)


def test_without_the_wide_part_only_the_deep_one_remains():
    x, both = table(), WideDeep(2, VOCABULARY)
    variables = initial(both, x)
    deep = WideDeep(2, VOCABULARY, wide=False)
    assert set(start(deep)["params"]) == {"embedding_table", "deep"}
    wide = x[:, [0, 3]] @ variables["params"]["wide"]["Dense_0"]["kernel"]  # the tables start at 0
    np.testing.assert_allclose(
        applied(both)(variables, x), applied(deep)(variables, x) + wide, rtol=1e-5, atol=1e-6
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"vocabulary": (0, 5)}, "2 columns"),
        ({"vocabulary": ()}, "0 columns"),
        ({"vocabulary": (0, 5, 3, 0, -4)}, "sizes are 0 to"),
        ({"vocabulary": (0, 5, 3, 0, 2**24 + 1)}, "sizes are 0 to"),
        ({"weights": "ones"}, "weights='ones'"),
    ],
)
def test_what_does_not_fit_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        start(WideDeep(**{"out": 2, "vocabulary": VOCABULARY, **options}))


@pytest.mark.parametrize(("weights", "deep", "wide"), [("default", 0.5, 0), ("torch", 1, 1)])
def test_initial_rows_and_layers_are_as_said(weights, deep, wide):
    module = WideDeep(3, (0, 2000), embedding=4, hidden=(8,), weights=weights)
    params = initial(module, jnp.zeros((2, 2)))["params"]
    assert stats.kstest(np.ravel(params["embedding_table"]), stats.norm(0, deep).cdf).pvalue > 1e-3
    rows = np.ravel(params["wide_table"])
    if wide:
        assert stats.kstest(rows, stats.norm(0, wide).cdf).pvalue > 1e-3
    else:
        assert not np.any(rows)
    for linear in (params["wide"]["Dense_0"], *params["deep"].values()):
        assert bool((linear["bias"] == 0).all()) == (weights == "default")


def test_dropout_acts_in_training_only_and_activations_are_those_of_layers_and_the_output():
    options = {"hidden": (40,), "activation": "tanh", "output": "relu"}
    module, x = WideDeep(2, VOCABULARY, dropout=0.5, **options), table()
    apply, variables = run(module), start(module)
    one, two = jax.random.split(jax.random.key(3))
    first = apply(variables, x, True, one)[0]
    assert np.abs(first - apply(variables, x, True, two)[0]).max() > 1e-3
    evaluated, (_, layers) = apply(variables, x, False, one)
    dry = WideDeep(2, VOCABULARY, **options)
    np.testing.assert_allclose(evaluated, applied(dry)(variables, x))
    assert evaluated.min() == 0
    (hidden,) = layers["deep"]["hidden"]
    assert hidden.min() < 0
    assert np.abs(hidden).max() < 1
