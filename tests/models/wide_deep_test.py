"""Wide & deep: PyTorch's numbers, codes that fit no table, published sizes."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from tests.harness import quick_jit
from tests.models.drawing import applied, draw, run
from vfljax.models import BOTTOMS, WideDeep
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


def variables_of(nets, net):
    def rows(tables):
        return np.concatenate([one.weight.detach().numpy() for one in tables])

    deep = nets.variables_of(net.deep)
    params = {
        "embedding_table": rows(net.deep_tables),
        "wide_table": rows(net.wide_tables),
        "wide": nets.variables_of([net.wide])["params"],
        "deep": deep["params"],
    }
    statistics = {"batch_stats": {"deep": deep["batch_stats"]}} if "batch_stats" in deep else {}
    return {"params": params, **statistics}


@pytest.mark.parametrize("batch_norm", [False, True])
@pytest.mark.parametrize("out", [1, 6])
def test_value_gradients_and_statistics_are_pytorch_s(out, batch_norm):
    nets = pytest.importorskip("tests.reference.torch_nets")
    net = nets.WideDeep(VOCABULARY, 3, (8, 7), out, batch_norm)
    net = nets.randomize(net, 2)
    module = WideDeep(out, VOCABULARY, embedding=3, hidden=(8, 7), batch_norm=batch_norm)
    variables = variables_of(nets, net)
    assert jax.tree.map(jnp.shape, variables) == jax.tree.map(jnp.shape, dict(start(module)))
    x = table(1)
    tensor = nets.torch.from_numpy(np.array(x))
    expected = net.eval()(tensor).detach().numpy()
    np.testing.assert_allclose(applied(module)(variables, x), expected, rtol=1e-4, atol=1e-4)

    weights = jnp.asarray(np.random.default_rng(5).normal(size=(ROWS, out)), jnp.float32)
    (nets.in_training(net, tensor) * nets.torch.from_numpy(np.array(weights))).sum().backward()

    def loss(params):
        z, moved = module.apply(
            {**variables, "params": params}, x, train=True, mutable=["batch_stats"]
        )
        return jnp.sum(z * weights), moved

    gradients, moved = quick_jit(jax.grad(loss, has_aux=True))(variables["params"])
    expected = variables_of(nets, nets.gradients_of(net))
    for a, b in zip(jax.tree.leaves(gradients), jax.tree.leaves(expected["params"]), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-3 * np.abs(b).max() + 1e-5)
    if batch_norm:
        for a, b in zip(
            jax.tree.leaves(moved["batch_stats"]), jax.tree.leaves(expected["batch_stats"])
        ):
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("code", "read_as"),
    [(-1, 0), (5, 4), (1e9, 4), (np.inf, 4), (-np.inf, 0), (np.nan, 0), (2.7, 2)],
)
def test_a_code_without_a_row_is_read_as_the_nearest(code, read_as):
    module = WideDeep(2, VOCABULARY, weights="torch")
    variables, x = start(module), table()
    bad, good = x.at[:, 1].set(code), x.at[:, 1].set(read_as)
    apply = applied(module)
    np.testing.assert_array_equal(apply(variables, bad), apply(variables, good))
    for other in {0, 2, 4} - {read_as}:
        assert not np.allclose(apply(variables, x.at[:, 1].set(other)), apply(variables, good))


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


def test_numbers_are_read_as_they_are_and_tables_of_one_kind_work():
    x = table()[:, [0, 3]]
    numbers = WideDeep(2, (0, 0))
    variables = start(numbers, x)
    assert "embedding_table" not in variables["params"]
    assert not np.allclose(*(applied(numbers)(variables, a) for a in (x, x + 0.5)))
    codes, c = WideDeep(2, (5, 3)), table()[:, [1, 2]]
    assert set(start(codes, c)["params"]) == {"embedding_table", "wide_table", "deep"}


def test_without_the_wide_part_only_the_deep_one_remains():
    x, both = table(), WideDeep(2, VOCABULARY)
    variables = initial(both, x)
    deep = WideDeep(2, VOCABULARY, wide=False)
    assert set(start(deep)["params"]) == {"embedding_table", "deep"}
    wide = x[:, [0, 3]] @ variables["params"]["wide"]["Dense_0"]["kernel"]  # the tables start at 0
    np.testing.assert_allclose(
        applied(both)(variables, x), applied(deep)(variables, x) + wide, rtol=1e-5, atol=1e-6
    )


def test_sun_et_al_s_bottom_is_five_relu_layers_of_128():
    module = BOTTOMS["wide_deep"](
        out=128, vocabulary=VOCABULARY, embedding=4, hidden=(128,) * 4, output="relu", wide=False
    )
    variables = start(module)
    kernels = [layer["kernel"].shape for layer in variables["params"]["deep"].values()]
    assert kernels == [(4 * 3 + 2, 128)] + 4 * [(128, 128)]
    z, (_, layers) = run(module)(variables, table(), False, None)
    assert z.min() == 0
    assert len(layers["deep"]["hidden"]) == 4


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
    module = WideDeep(3, (0, 4000), embedding=4, hidden=(50,), weights=weights)
    params = initial(module, jnp.zeros((2, 2)))["params"]
    assert stats.kstest(np.ravel(params["embedding_table"]), stats.norm(0, deep).cdf).pvalue > 1e-3
    if wide:
        rows = np.ravel(params["wide_table"])
        assert stats.kstest(rows, stats.norm(0, wide).cdf).pvalue > 1e-3
    else:
        assert not np.any(params["wide_table"])
    for linear in (params["wide"]["Dense_0"], *params["deep"].values()):
        assert bool((linear["bias"] == 0).all()) == (weights == "default")


def test_dropout_acts_on_the_deep_part_in_training_only():
    module, x = WideDeep(2, VOCABULARY, hidden=(40,), dropout=0.5), table()
    apply, variables = run(module), start(module)
    one, two = jax.random.split(jax.random.key(3))
    first = apply(variables, x, True, one)[0]
    assert np.abs(first - apply(variables, x, True, two)[0]).max() > 1e-3
    np.testing.assert_array_equal(first, apply(variables, x, True, one)[0])
    dry = WideDeep(2, VOCABULARY, hidden=(40,))
    np.testing.assert_allclose(apply(variables, x, False, one)[0], applied(dry)(variables, x))


def test_the_activation_is_that_of_the_deep_layers():
    x = table()
    variables = start(WideDeep(2, VOCABULARY, hidden=(6,), wide=False))
    module = WideDeep(2, VOCABULARY, hidden=(6,), wide=False, activation="tanh")
    _, (_, layers) = run(module)(variables, x, False, None)
    (hidden,) = layers["deep"]["hidden"]
    assert hidden.min() < 0
    assert np.abs(hidden).max() < 1
