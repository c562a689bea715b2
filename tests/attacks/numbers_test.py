"""Attacks on labels that are numbers: what each reads, and that it reads nothing but what it is given."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate

from tests import harness
from tests.attacks import cases
from vfljax import attacks, testing
from vfljax.attacks import learners
from vfljax.attacks.direct import direct
from vfljax.attacks.posterior import bins_mean, laplace_mean
from vfljax.attacks.softmax import least_squares
from vfljax.testing import exchanges, of_attacks
from vfljax.types import NO_SPLIT

pytestmark = pytest.mark.usefixtures("real_learners")
ROWS, KNOWN, BATCH = 200, 40, cases.BATCH  # as in the contract, whose programs serve these tests
QUICK = {"steps": 100, "batch_size": 8}
FAST = {"learning_rate": 0.05, "ema": 0.95, "lambda_u": 1.0}
RULES = [rule for rule in of_attacks.RULES if rule != of_attacks.MEMBERS]
# options, knobs, the concordance that is read at least, and whether the scores have a direction
OF_NUMBERS = {
    "passive": (QUICK, FAST, 0.8, True),
    "active": (QUICK, FAST, 0.8, True),
    "direct": ({}, {}, 0.9, True),
    "norm": ({}, {}, 0.5, False),  # of residuals: not of labels that are as often below
    "cosine": ({}, {}, 0.7, True),  # half of the rows point one way
    "inner": ({}, {}, 0.9, True),
    "spectral": ({"signal": "gradients"}, {}, 0.9, False),
    "residual": ({}, {}, 0.75, False),
    "probe": ({}, {}, 0.9, True),
    "joint": ({"blocks": "best", "steps": 30}, {}, 0.9, True),
    "ranks": ({}, {}, 0.9, True),
    "reader": ({"learner": "ridge"}, {}, 0.9, True),
    "posterior": ({}, {"epsilon": 8.0}, 0.9, True),
    "cohabitation": ({}, {}, 0.9, True),
    "node_spreading": ({"blocks": "exchange"}, {}, 0.9, True),
    "surrogate": ({"steps": 150}, {"learning_rate": 0.1, "anchor": 1.0}, 0.8, True),
}


def kind_of(name):
    """What an attack is given: the exchange with a top model (True) or without, or the nodes of trees."""
    attack = attacks.TABLE[name](cases.ONE_BOTTOM, 1)
    return "nodes" if "nodes" in attack.reads else attack.federations[0] != NO_SPLIT


@functools.cache
def drawn(split, rows=ROWS):
    """Standardized labels, and what crosses the wire: g = 2 (f - y) / B along one direction, and z."""
    if split == "nodes":
        y = exchanges.drawn_numbers(np.random.default_rng(3), rows)
        nodes = exchanges.LEAKS_OF_NUMBERS["nodes"](None, y, 1)
        return y, {**nodes, "gradients": np.zeros((2, rows, 1)), "features": np.zeros((rows, 6))}
    rng = np.random.default_rng(3)
    y, width = exchanges.drawn_numbers(rng, rows), of_attacks.OF_NUMBERS if split else 1
    arrays = exchanges.LEAKS_OF_NUMBERS["residuals_and_columns"](rng, y, width)
    # the rows beyond full batches are in a batch of their own
    size = np.where(np.arange(rows) < rows // BATCH * BATCH, BATCH, rows % BATCH)
    g = np.asarray(arrays["gradients"]) * (BATCH / size)[:, None]
    return y, {**arrays, "gradients": g, "inputs": rng.normal(size=(2, rows, BATCH + 10))}


def case_of(split, labels=None, sent=None):
    y, arrays = drawn(split)
    y = y if labels is None else labels
    cut = arrays["gradients"].shape[-1]
    return cases.make_case(y, 1, known=KNOWN, cut=cut, sent=sent, **arrays)


def concordance(scores, labels):
    """The share of pairs of different labels that one column of scores orders rightly, pair by pair."""
    apart = np.sign(labels[:, None] - labels[None])
    named = np.sign(scores[:, 0][:, None] - scores[:, 0][None]) * apart
    return (named[apart != 0].mean() + 1) / 2


def scores_of(name, split, **changes):
    options, knobs, *_ = OF_NUMBERS[name]
    attack = of_attacks.built(name, tuple(options.items()), 1, 4 if split is True else 1)
    case = case_of(split, **changes)
    knobs = {**attack.knobs, **knobs}
    return of_attacks.scores_of(attack, case, 1, jax.random.key(0), knobs, of_attacks.mapped)


def test_every_attack_says_whether_it_is_defined_for_numbers_and_refuses_in_one_line():
    assert {name for name, row in attacks.TABLE.items() if not row.not_for_numbers} == {*OF_NUMBERS}
    for name in attacks.TABLE.keys() - OF_NUMBERS:
        with pytest.raises(ValueError, match=r"^not for labels that are numbers: .+\.$"):
            attacks.TABLE[name](cases.ONE_BOTTOM, 1)


@pytest.mark.parametrize("name", OF_NUMBERS)
def test_keeps_every_rule_of_the_contract(name):
    options, knobs, *_ = OF_NUMBERS[name]
    for rule in RULES:
        testing.check(name, rule, options=options, classes=(1,), knobs=knobs)
    tested = of_attacks.TestedAttack(name, options, 1)
    attack = tested.attack()
    unseen = {"", "embeddings"} if name == "node_spreading" else {""}  # of which it reads the width
    assert of_attacks.fields_read(tested) == {*attack.reads, attack.diagnostic} - unseen


@pytest.mark.parametrize("name", OF_NUMBERS)
def test_numbers_that_are_given_away_are_read_and_others_enter_no_score(name):
    least, directed = OF_NUMBERS[name][2:]
    split = kind_of(name)
    scores = scores_of(name, split).train
    assert scores.shape == (ROWS, 1)
    labels, _ = drawn(split)
    known = np.zeros(ROWS, bool)
    known[case_of(split).common.known_order[0][:KNOWN]] = True
    found = concordance(scores[~known], labels[~known])
    assert (found if directed else max(found, 1 - found)) >= least
    other = np.where(known, labels, labels[::-1].copy())
    order = case_of(split).common.known_order
    case = case_of(split, labels=other)
    case = case._replace(common=case.common._replace(known_order=order))
    options, knobs, *_ = OF_NUMBERS[name]
    attack = of_attacks.built(name, tuple(options.items()), 1, 4 if split is True else 1)
    knobs = {**attack.knobs, **knobs}
    again = of_attacks.scores_of(attack, case, 1, jax.random.key(0), knobs, of_attacks.mapped)
    np.testing.assert_array_equal(again.train, scores)


@pytest.mark.parametrize("name", [n for n in OF_NUMBERS if n not in ("passive", "active")])
def test_rows_that_were_never_sent_have_no_score(name):
    split = kind_of(name)
    sent = np.tile(np.arange(ROWS) % 7 != 3, (2, 1))
    scores = scores_of(name, split, sent=sent).train
    np.testing.assert_array_equal(np.isfinite(scores[:, 0]), sent[0])


def read(attack, view, known):
    """The scores of an attack without knobs."""
    return harness.quick_jit(attack.run)(jax.random.key(0), view, known, {}).train[:, 0]


def test_the_residual_and_the_own_output_are_the_label_exactly():
    """With one passive party whose output alone is f, in every batch, however short."""
    y, arrays = drawn(False, 205)
    arrays = {**arrays, "embeddings": 2 * np.asarray(arrays["embeddings"])}  # f itself
    case = cases.make_case(y, 1, known=0, cut=1, **arrays)
    view, known = cases.seen_of(case)
    for options, expected in ({"own": True}, y), ({}, y - np.ravel(arrays["embeddings"][0])):
        scores = read(direct(cases.ONE_BOTTOM, 1, **options), view, known)
        np.testing.assert_allclose(scores, expected, atol=1e-5)
    # what two colluding parties sent adds up, and both received the same
    both = view._replace(
        embeddings=jnp.concatenate([view.embeddings, view.embeddings], -1) / 2,
        gradients=jnp.concatenate([view.gradients, view.gradients], -1),
    )
    scores = read(direct(cases.ONE_BOTTOM * 2, 1, own=True), both, known)
    np.testing.assert_allclose(scores, y, atol=1e-5)


def test_gradients_of_several_epochs_are_of_full_batches():
    """Whoever is in the short batch of the last epoch was in full ones before."""
    y, arrays = drawn(False, 205)
    case = cases.make_case(y, 1, known=0, cut=1, **arrays)
    view, known = cases.seen_of(case)
    full = jnp.float32(-2 * y[:, None] / BATCH)
    sums = view.sums._replace(gradient=full * view.sums.count[:, None])
    attack = of_attacks.built("direct", (("epoch", "mean"),), 1, 1)
    scores = read(attack, view._replace(sums=sums), known)
    np.testing.assert_allclose(scores, y, atol=1e-5)


@pytest.mark.parametrize("huber", [0.0, 0.5])
def test_the_protocol_sends_what_the_direct_attack_reads(huber):
    """g of a batch of the squared loss, or of Huber's, whose residual is clipped."""
    spec = harness.make_spec(1, passive=1, label_features=False, split=False, huber=huber)
    state = harness.make_state(spec, harness.make_hparams(spec))
    batch = harness.make_batch(spec, 0)
    _, exchange, metrics = harness.jitted_step(spec)(state, batch, harness.make_hparams(spec))
    f, y = np.asarray(exchange.embeddings[0])[:, 0], np.asarray(batch.labels)
    residual = -np.asarray(exchange.gradients[0])[:, 0] * len(y) / 2
    clipped = np.clip(y - f, -huber, huber) if huber else y - f
    np.testing.assert_allclose(residual, clipped, atol=1e-5)
    np.testing.assert_allclose(metrics.correct, len(y) - ((f - y) ** 2).sum(), rtol=1e-4)


@pytest.mark.parametrize("name", learners.REGRESSORS)
def test_regressors_do_not_depend_on_the_unit_of_the_labels(name):
    y, arrays = drawn(True)
    columns = np.float32(arrays["features"])
    known = np.arange(KNOWN)
    own = learners.OwnColumns(columns, known, y[known], 1, 0)
    scores = learners.learn(name, own)
    other = learners.learn(name, own._replace(labels=1000 + 50 * y[known]))
    assert scores.shape == (ROWS, 1)
    slope, at = np.polyfit(scores[:, 0], other[:, 0], 1)
    assert slope == pytest.approx(50, rel=1e-2)
    np.testing.assert_allclose(slope * scores + at, other, atol=1.0)
    assert concordance(scores[KNOWN:], y[KNOWN:]) > 0.75


def test_least_squares_ends_at_the_ridge_solution():
    rng = np.random.default_rng(5)
    x, y, w = rng.normal(size=(3, 50)), rng.normal(size=(1, 50)), rng.random(50)
    found = harness.quick_jit(least_squares, static_argnums=4)(
        *map(np.float32, (x, y, w)), 0.3, 400
    )
    ones = np.concatenate([x, np.ones((1, 50))])
    penalty = 0.3 * np.diag([1, 1, 1, 0])
    expected = np.linalg.solve(ones * w @ ones.T + penalty, ones * w @ y.T)
    np.testing.assert_allclose(found.weights[:, 0], expected[:3, 0], atol=1e-4)
    np.testing.assert_allclose(found.bias[0], expected[3, 0], atol=1e-4)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("direct", {"rule": "most_negative"}),
        ("direct", {"own": True, "epoch": "votes"}),
        ("ranks", {"learner": "lda"}),
        ("reader", {"learner": "naive Bayes on ranks"}),
        ("spectral", {"oracle": True}),
        ("passive", {"threshold": "known_share"}),
        ("posterior", {"signal": "signs"}),
        ("posterior", {"epoch": "votes"}),
    ],
)
def test_options_that_need_classes_are_refused(name, options):
    with pytest.raises(ValueError, match="=") as error:
        attacks.TABLE[name](cases.ONE_BOTTOM, 1, **options)
    assert "\n" not in str(error.value)


def test_the_posterior_of_laplace_noise_is_the_mean_of_its_density():
    """By quadrature of SciPy, and without noise or doubt nothing moves or all is the noise."""
    away, tau, b = np.linspace(-3, 3, 7), 0.7, 0.5
    mean_of = harness.quick_jit(laplace_mean)
    log_f, found = mean_of(np.float32(away), tau, b)

    def density(delta, a):
        normal = np.exp(-(delta**2) / 2 / tau**2) / np.sqrt(2 * np.pi) / tau
        return normal * np.exp(-abs(a - delta) / b) / 2 / b

    def moments(a):
        limits = {"a": -8 * tau, "b": 8 * tau, "points": [a]}
        top, _ = integrate.quad(lambda d: d * density(d, a), **limits)
        seen = integrate.quad(density, args=(a,), **limits)[0]
        return np.log(seen), top / seen

    np.testing.assert_allclose([log_f, found], np.transpose([moments(a) for a in away]), atol=1e-4)
    near, far = (mean_of(np.float32(away), tau, scale)[1] for scale in (1e-4, 1e4))
    np.testing.assert_allclose(near, away, atol=0.05)
    np.testing.assert_allclose(far, 0, atol=1e-3)


def test_the_posterior_of_a_bin_is_the_mean_of_the_normal_law_within_it_and_beyond():
    mean, t, odds = np.float32([-1, 0.2, 3]), 0.8, 5.0
    low, high = np.float32([-np.inf, 0, 1]), np.float32([-0.5, 0.5, np.inf])
    seen, found = harness.quick_jit(bins_mean)(mean, low, high, t, odds)
    theta = np.linspace(-8, 10, 200_001)
    density = np.exp(-((theta - mean[:, None]) ** 2) / 2 / t**2)
    inside = (low[:, None] < theta) & (theta < high[:, None])
    joint = density * (1 + odds * inside)
    np.testing.assert_allclose(seen, np.log(joint.sum(1) / density.sum(1)), atol=1e-4)
    np.testing.assert_allclose(found, (joint * theta).sum(1) / joint.sum(1), atol=1e-4)
