"""The posterior under label DP: against the twin, at its limits, and what the columns add."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests import harness
from tests.attacks import cases
from tests.reference import label_dp, vlp
from tests.reference import posterior as reference
from tests.reference.fusion import zeta
from tests.reference.ranks import ranked
from vfljax.attacks.posterior import SPREADS, posterior
from vfljax.defenses.label_dp import laplace, response_on_bins
from vfljax.defenses.rr_on_bins import prior_of
from vfljax.models import WideDeep
from vfljax.testing import of_attacks

ROWS, CLASSES, STEPS = 400, 3, 400  # which come near the minimum that SciPy finds


def columns_and_labels(epsilon, classes):
    """Columns around a point of each class, labels, and these flipped by randomized response."""
    rng = np.random.default_rng(0)
    labels = np.arange(ROWS) % classes
    x = rng.normal(size=(ROWS, cases.OWN_COLUMNS))
    x[:, :classes] += 1.5 * np.eye(classes)[labels]
    law = label_dp.response(classes, epsilon)
    return x, labels, np.array([rng.choice(classes, p=law[y]) for y in labels])


def run(epsilon, sent=None, unnamed=(), later=1):
    """What the federation sends back without splitting, in the second epoch ``later`` times as much; of rows
    ``unnamed`` it is 0."""
    x, labels, noisy = columns_and_labels(epsilon, CLASSES)
    softmax = np.random.default_rng(1).dirichlet(np.ones(CLASSES), size=(2, ROWS))
    g = (softmax - np.eye(CLASSES)[noisy]) / 50
    g[1] *= later
    g[:, unnamed] = 0
    case = cases.make_case(labels, CLASSES, gradients=g, features=x, sent=sent, known=0)
    return labels, noisy, x, case


def scores(case, epoch="mean", **knobs):
    one = cases.build(posterior, CLASSES, steps=STEPS, epoch=epoch)
    return np.asarray(cases.attack(one, case, **knobs).train)


# where later gradients say the opposite, the first epoch's still name the noisy labels
@pytest.mark.parametrize(("epoch", "later"), [("mean", 1), (0, -2)])
def test_agrees_with_the_numpy_twin(epoch, later):
    _, noisy, x, case = run(0.5, later=later)
    expected = reference.scores(zeta(x), noisy, CLASSES, 0.5)
    np.testing.assert_allclose(scores(case, epoch, epsilon=0.5), expected, rtol=1e-3, atol=5e-3)


@pytest.mark.parametrize("classes", [2, CLASSES])
def test_noise_of_a_known_law_weighs_each_row_as_in_the_numpy_twin(classes):
    """Entries with noise, of two rows alone in one epoch: their average holds more of it."""
    x, labels, noisy = columns_and_labels(1.0, classes)
    rng, scale = np.random.default_rng(1), 0.01
    hot = np.eye(classes)[noisy]
    g = (1 / classes - hot) / 50 + scale * rng.normal(size=(2, ROWS, classes))
    sent = np.ones((2, ROWS), bool)
    sent[0, :2] = False
    g[~sent] = 0
    case = cases.make_case(labels, classes, gradients=g, features=x, sent=sent, known=0)
    one = cases.build(posterior, classes, steps=STEPS)
    found = np.asarray(cases.attack(one, case, epsilon=1.0, noise=scale).train)
    count = sent.sum(axis=0)
    tau = scale / np.sqrt(count)
    expected = reference.scores_with_noise(zeta(x), g.sum(axis=0) / count[:, None], tau, 1.0)
    by_class = [s - s.mean(axis=1, keepdims=True) for s in (found, expected)]
    np.testing.assert_allclose(*by_class, atol=0.01)
    g = np.where(sent[:, :, None], (1 / classes - hot) / 50, 0)
    case = cases.make_case(labels, classes, gradients=g, features=x, sent=sent, known=0)
    plain, faint = (
        np.asarray(cases.attack(one, case, epsilon=1.0, noise=tau).train) for tau in (0, 1e-9)
    )
    by_class = [s - s.mean(axis=1, keepdims=True) for s in (plain, faint)]
    np.testing.assert_allclose(*by_class, atol=1e-3)


def test_a_large_epsilon_is_the_direct_attack_and_0_says_nothing():
    _, noisy, _, case = run(1.0)
    large = scores(case, epsilon=1e4)
    np.testing.assert_array_equal(large.argmax(axis=1), noisy)
    assert np.all(np.isfinite(large))
    np.testing.assert_allclose(scores(case, epsilon=0.0), -np.log(CLASSES), rtol=1e-5)


def test_a_row_whose_gradients_name_no_class_is_scored_by_its_columns_and_one_never_sent_not():
    sent = np.ones((2, ROWS), bool)
    sent[:, 0] = False
    *_, case = run(1.0, sent=sent, unnamed=[1])
    s = scores(case, epsilon=2.0)
    assert np.isnan(s[0]).all()
    assert np.isfinite(s[1:]).all()
    np.testing.assert_allclose(np.exp(s[1]).sum(), 1, rtol=1e-5)


def test_under_vlp_signs_name_the_bits_and_the_posterior_is_that_of_the_twin():
    """A row of no bit, and one that was never sent, are known by their columns alone, or not."""
    x, labels, _ = columns_and_labels(1.0, CLASSES)
    rng = np.random.default_rng(1)
    laws = vlp.law(vlp.every_vector(CLASSES), 1.0)
    z = vlp.every_vector(CLASSES)[[rng.choice(len(laws), p=laws[:, y]) for y in labels]]
    z[1] = 0
    g = (rng.uniform(0.01, 0.99, size=(2, ROWS, CLASSES)) - z) / 50
    sent = np.ones((2, ROWS), bool)
    sent[:, 0] = False
    case = cases.make_case(labels, CLASSES, gradients=g, features=x, sent=sent, known=0)
    one = cases.build(posterior, CLASSES, steps=STEPS, signal="signs")
    found = np.asarray(cases.attack(one, case, epsilon=1.0).train)
    likelihood = np.where(sent[0][:, None], vlp.law(z, 1.0), 1.0)
    expected = reference.columns(zeta(x), likelihood)
    assert np.isnan(found[0]).all()
    np.testing.assert_allclose(found[1], expected[1], atol=5e-3)
    expected += np.log(likelihood)
    by_class = [s[1:] - s[1:].mean(axis=1, keepdims=True) for s in (found, expected)]
    np.testing.assert_allclose(*by_class, atol=5e-3)


def test_with_a_top_model_the_direction_names_the_noisy_labels_as_in_the_numpy_twin():
    """Gradients (p - y~) times a slope of each row; columns are read by their ranks."""
    x, labels, noisy = columns_and_labels(1.0, 2)
    rng = np.random.default_rng(1)
    slopes = np.array([2.0, -1, 0.5, 0]) + 0.4 * rng.normal(size=(ROWS, 4))
    g = (rng.uniform(0.1, 0.9, size=ROWS) - noisy)[:, None] * slopes / 50
    case = cases.make_case(labels, 2, gradients=[g, g], features=np.exp(3 * x), known=0, cut=4)
    named = reference.noisy_by_direction(g)
    assert np.mean(named == noisy) in (0, 1)  # the sign is nobody's
    one = cases.build(posterior, 2, steps=STEPS, signal="direction", columns="ranks")
    found = cases.attack(one, case, epsilon=1.0).train
    columns = ranked(x, np.ones(ROWS, bool))
    expected = [reference.scores(columns, y, 2, 1.0) for y in (named, 1 - named)]
    assert min(np.abs(found - e).max() for e in expected) < 5e-3


def test_under_vlp_rows_across_the_direction_name_no_class_as_in_the_numpy_twin():
    """Gradients (p - Z) times the slopes of two logits. Rows of equal bits are told from the others."""
    x, labels, _ = columns_and_labels(1.0, 2)
    rng, epsilon = np.random.default_rng(1), 2.0
    laws = vlp.law(vlp.every_vector(2), epsilon)
    z = vlp.every_vector(2)[[rng.choice(4, p=laws[:, y]) for y in labels]]
    slopes = np.array([[2.0, -1, 0.5, 0], [-1.5, 0.5, 0.5, 1]])
    g = (rng.uniform(0.3, 0.7, size=(ROWS, 2)) - z) @ slopes / 50
    named = reference.opposed_by_direction(g, epsilon)
    differ = z[:, 0] != z[:, 1]
    both = differ & (named >= 0)
    assert np.mean(named[both] == z[both, 1]) in (0, 1)
    assert np.mean((named >= 0) == differ) > 0.9
    case = cases.make_case(labels, 2, gradients=[g, g], features=x, known=0, cut=4)
    one = cases.build(posterior, 2, steps=STEPS, signal="opposed")
    found = cases.attack(one, case, epsilon=epsilon).train
    off = []
    for y in (named, 1 - named):
        bits = np.eye(2)[y % 2] * (named >= 0)[:, None]
        expected = reference.columns(zeta(x), np.exp(epsilon * bits)) + epsilon * bits
        off.append(np.abs(found - expected).max())
    assert min(off) < 5e-3


def test_directions_of_many_classes_and_columns_of_codes_are_refused_with_the_remedy():
    for signal in ("direction", "opposed"):
        with pytest.raises(ValueError, match=rf"signal='{signal}' is for two classes"):
            posterior(cases.ONE_BOTTOM, 3, signal=signal)
    with pytest.raises(ValueError, match=r"WideDeep reads are codes.*leave this attack out"):
        posterior((WideDeep(4, (3, 0)),), 2)


MANY = 1000


@functools.cache
def numbers(mechanism, wide, epsilon):
    """Columns, labels of variance 1 that these tell a third of, noisy ones of a range of ``wide`` standard
    deviations, and what a federation sends back whose outputs are 0."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(MANY, cases.OWN_COLUMNS))
    y = 0.55 * x[:, 0] + 0.83 * rng.normal(size=MANY)
    u = jnp.float32(np.clip(y / wide + 0.5, 0, 1))
    if mechanism == "laplace":
        noisy = harness.quick_jit(laplace)(jax.random.key(1), u, epsilon)
    else:
        noisy = harness.quick_jit(response_on_bins)(jax.random.key(1), u, prior_of(""), epsilon)
    noisy = np.asarray(noisy, np.float64)
    noisy = (noisy - noisy.mean()) / noisy.std()
    g = np.float32(-2 * noisy[:, None] / cases.BATCH)
    case = cases.make_case(np.float32(y), 1, gradients=[g, g], features=x, known=0, cut=1)
    return x, y, noisy, case


def of_numbers(case, epsilon, own=True):
    attack = cases.build(posterior, 1, 1, epoch=0, steps=STEPS, own=own)
    knobs = {**attack.knobs, "epsilon": epsilon}
    scores = of_attacks.scores_of(attack, case, 1, jax.random.key(0), knobs)
    return np.asarray(scores.train)[:, 0]


def ordered(scores, y):
    """The share of pairs that scores order as labels."""
    pairs = np.sign(scores[:, None] - scores) * np.sign(y[:, None] - y)
    return 0.5 + pairs.sum() / (2 * len(y) * (len(y) - 1))


# without the right spread of labels in their range, .02 to .1 less is read
@pytest.mark.parametrize(
    ("mechanism", "wide", "epsilon"),
    [("laplace", 6, 4.0), ("laplace", 20, 8.0), ("rr_on_bins", 6, 4.0), ("rr_on_bins", 50, 8.0)],
)
def test_of_numbers_the_spread_is_told_from_the_noisy_ones_as_in_the_numpy_twin(
    mechanism, wide, epsilon
):
    x, y, noisy, case = numbers(mechanism, wide, epsilon)
    law = {"laplace": reference.of_laplace, "rr_on_bins": reference.of_bins}[mechanism]
    found = of_numbers(case, epsilon)
    expected, spread = reference.of_numbers(zeta(x), noisy, epsilon, SPREADS, law)
    np.testing.assert_allclose(found, expected, atol=0.02)
    assert 1 / 3 < spread * wide < 3
    right, _ = law(zeta(x), noisy, epsilon, 1 / wide)
    read = ordered(found, y)
    assert read > ordered(right, y) - 0.01
    columns = reference.ridge_of_numbers(zeta(x), noisy)
    assert read > max(ordered(columns, y), ordered(noisy, y)) + 0.005


def test_numbers_of_trees_are_read_without_what_was_sent_and_classes_have_no_such_option():
    """There paths are in place of outputs, and are no part of the score of a row."""
    *_, case = numbers("laplace", 6, 4.0)
    paths = np.ones_like(case.run.exchange["embeddings"]) * np.arange(MANY)[None, :, None]
    exchange = case.run.exchange | {"embeddings": np.float32(paths)}
    other = case._replace(run=case.run._replace(exchange=exchange))
    np.testing.assert_array_equal(
        of_numbers(other, 4.0, own=False), of_numbers(case, 4.0, own=False)
    )
    np.testing.assert_allclose(of_numbers(case, 4.0, own=False), of_numbers(case, 4.0), atol=1e-5)
    assert np.abs(of_numbers(other, 4.0) - of_numbers(case, 4.0)).max() > 0.1
    with pytest.raises(ValueError, match="own=False is of labels that are numbers"):
        posterior(cases.ONE_BOTTOM, 2, own=False)
