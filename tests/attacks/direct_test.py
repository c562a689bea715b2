"""The direct attack reads labels off gradient signs; what KDk leaves of that; rows without a guess."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import harness
from tests.attacks import cases
from tests.reference import direct as reference
from tests.reference import kdk as kdk_reference
from vfljax import testing
from vfljax.attacks.batch_inversion import batch_inversion
from vfljax.attacks.direct import RULES, direct, first_negative, most_negative
from vfljax.defenses.max_norm import perturb

CLASSES = 5
JITTED = {rule: harness.quick_jit(fn) for rule, fn in RULES.items()}
every_rule = pytest.mark.parametrize("rule", RULES)
# those that read the label where its entry is the only negative one
signs = [rule for rule in RULES if rule not in ("most_positive", "largest")]
usual_rules = pytest.mark.parametrize("rule", [*signs, "largest"])


def guesses(rule, g):
    """Class guesses, None for a row without one."""
    scores = np.asarray(JITTED[rule](np.float32(g)))
    return [None if np.any(np.isnan(row)) else int(np.argmax(row)) for row in scores]


@given(seed=st.integers(0, 2**16), classes=st.sampled_from([2, 5]))
@settings(deadline=None, max_examples=30, database=None, derandomize=True)
@every_rule
def test_agrees_with_the_numpy_twin_on_any_gradients(rule, seed, classes):
    g = np.random.default_rng(seed).integers(-2, 3, size=(20, classes))  # with ties and zeros
    assert guesses(rule, g) == getattr(reference, rule)(g)


@usual_rules
def test_the_usual_rules_read_every_label_from_undefended_gradients(rule):
    rng = np.random.default_rng(0)
    labels = rng.integers(CLASSES, size=100)
    g = (rng.dirichlet(np.ones(CLASSES), 100) - np.eye(CLASSES)[labels]) / 100
    assert guesses(rule, g) == labels.tolist()


def kdk_gradients(epsilon, k, rows=600):
    """Gradients of epoch 0: predictions near uniform, targets softened."""
    rng = np.random.default_rng(1)
    labels, scores = rng.integers(CLASSES, size=rows), rng.dirichlet(np.ones(CLASSES), rows)
    targets = kdk_reference.kdk_targets(scores, labels, k, epsilon)
    return (np.full((rows, CLASSES), 1 / CLASSES) - targets) / rows, labels


def success(rule, g, labels):
    return np.mean([guess == label for guess, label in zip(guesses(rule, g), labels)])


def test_under_kdk_the_first_negative_rule_guesses_among_k_classes():
    g, labels = kdk_gradients(0.5, 3)
    assert abs(success("first_negative", g, labels) - 1 / 3) < 4 * np.sqrt(2 / 9 / 600)


def test_under_kdk_the_most_negative_rule_reads_the_label_until_its_companions_weigh_as_much():
    for epsilon, expected in ((0.3, 1.0), (0.6, 1.0), (0.75, 0.0), (0.9, 0.0)):  # k = 3: 2/3
        assert success("most_negative", *kdk_gradients(epsilon, 3)) == expected


@pytest.mark.parametrize("rule", signs)
def test_a_row_without_a_negative_entry_has_no_guess_and_counts_as_wrong(rule):
    g = jnp.float32([[0, 0], [1, 2], [3, -1]])
    scores = JITTED[rule](g)
    assert guesses(rule, g) == [None, None, 1]
    for label in (0, 1):
        hits = harness.accuracy(scores, jnp.int32([label, label, 1]))
        np.testing.assert_allclose(hits, 1 / 3, rtol=1e-6)


def code_gradients(spread, rows=600, classes=CLASSES):
    """Gradients where the targets are one fixed code a class, which gives the class itself no mass;
    the logits are normal with this spread."""
    rng = np.random.default_rng(4)
    labels = rng.integers(classes, size=rows)
    codes = rng.uniform(0.5, 1.5, size=(classes, classes)) * (1 - np.eye(classes))
    codes /= codes.sum(axis=1, keepdims=True)
    logits = np.exp(spread * rng.normal(size=(rows, classes)))
    return logits / logits.sum(axis=1, keepdims=True) - codes[labels], labels


def test_under_a_code_without_the_label_the_most_positive_entry_names_it_and_no_negative_one_does():
    g, labels = code_gradients(0.1)
    assert success("most_positive", g, labels) == 1
    for rule in ("first_negative", "most_negative", "least_negative"):
        assert success(rule, g, labels) == 0
    # predictions far from uniform hide it
    assert success("most_positive", *code_gradients(2.0)) < 0.5


def test_under_max_norm_the_largest_entry_names_every_label_and_no_sign_does():
    rng = np.random.default_rng(5)
    labels = rng.integers(CLASSES, size=400)
    g = (rng.dirichlet(0.3 * np.ones(CLASSES), 400) - np.eye(CLASSES)[labels]) / 32
    received = np.asarray(perturb(jax.random.key(0), jnp.float32(g)))
    assert success("largest", received, labels) == 1
    assert success("most_negative", received, labels) < 0.9
    assert guesses("largest", [[0, 0, 0], [1, 2, -3]]) == [None, 2]
    testing.check("direct", options={"rule": "largest"}, classes=(CLASSES,))
    for attack in (direct, batch_inversion):
        with pytest.raises(ValueError, match=r"rule='largest' is for more than two classes"):
            attack(cases.BOTTOMS, 2, rule="largest")


def test_a_negative_zero_is_not_negative():
    g = jnp.float32([[-0.0, -1.0]])
    np.testing.assert_array_equal(first_negative(g), [[0, 1]])
    assert np.all(np.isnan(most_negative(jnp.float32([[-0.0, 0.0]]))))


@usual_rules
def test_epoch_zero_is_the_first_recorded_and_minus_one_the_last(rule):
    rng = np.random.default_rng(2)
    labels = rng.integers(CLASSES, size=30)
    first = (1 / CLASSES - np.eye(CLASSES)[labels]).astype(np.float32)
    last = (1 / CLASSES - np.eye(CLASSES)[(labels + 1) % CLASSES]).astype(np.float32)
    case = cases.make_case(labels, CLASSES, gradients=[first, last])
    epochs = {0: labels, -1: (labels + 1) % CLASSES}
    forms = [cases.build(direct, CLASSES, rule=rule, epoch=epoch) for epoch in epochs]
    for scores, expected in zip(cases.attack_all(forms, case), epochs.values()):
        np.testing.assert_array_equal(np.argmax(scores.train, axis=1), expected)
        assert scores.test is None


def test_an_epoch_is_found_by_its_number_and_not_its_place():
    labels = np.arange(12) % CLASSES
    first, last = (
        np.float32(1 / CLASSES - np.eye(CLASSES)[(labels + i) % CLASSES]) for i in (0, 1)
    )
    case = cases.make_case(labels, CLASSES, gradients=[first, last])
    numbers = {**case.run.exchange, "epochs": np.int32([5, 0])}
    case = case._replace(run=case.run._replace(exchange=numbers))
    scores = cases.attack(direct(cases.BOTTOMS, CLASSES, epoch=0), case)
    np.testing.assert_array_equal(np.argmax(scores.train, axis=1), (labels + 1) % CLASSES)


@usual_rules
def test_reads_every_label_from_a_batch_of_the_protocol_without_splitting(rule):
    spec = harness.make_spec(CLASSES, split=False)
    hparams = harness.make_hparams(spec)
    batch = harness.make_batch(spec, 0)
    _, exchanges, _ = harness.run_steps(spec, hparams, [batch])
    for g in exchanges[0].gradients:
        assert guesses(rule, g) == batch.labels.tolist()
