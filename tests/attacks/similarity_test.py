"""The similarity attack: nearest known rows and named clusters, against the twin and at their limits."""

import jax.numpy as jnp
import numpy as np
import pytest

from tests.attacks import cases
from tests.reference import similarity as reference
from vfljax.attacks.similarity import ROUNDS, similarity, unit

ROWS, CLASSES, WIDTH = 120, 4, 3
RULES = ("nearest", "clusters")
every_rule = pytest.mark.parametrize("rule", RULES)
FORMS = [("gradients", "mean"), ("embeddings", -1)]


def run(seed=0, spread=0.4, known=12, sent=None):
    """Signals of rows around one point of each class; gradients in units of their own."""
    rng = np.random.default_rng(seed)
    labels = rng.permutation(ROWS) % CLASSES
    points = rng.normal(size=(2, 1, CLASSES, WIDTH))
    z, g = points[:, :, labels] + spread * rng.normal(size=(2, 2, ROWS, WIDTH))
    g = 1e-5 * g * rng.uniform(0.1, 1, size=(1, ROWS, 1))
    case = cases.make_case(labels, CLASSES, embeddings=z, gradients=g, sent=sent, known=known)
    return labels, z, g, case


def scores(case, **options):
    return np.asarray(cases.attack(cases.build(similarity, CLASSES, **options), case).train)


def twin(rule, x, known, labels, cosine):
    if rule == "nearest":
        return reference.nearest(x, known, labels, CLASSES, cosine)
    return reference.clusters(x, known, labels, CLASSES, cosine, ROUNDS)


@pytest.mark.parametrize(("signal", "epoch"), FORMS)
@every_rule
def test_agrees_with_the_numpy_twin(rule, signal, epoch):
    labels, z, g, case = run(spread=0.8)
    x = z[-1] if signal == "embeddings" else g.mean(axis=0)
    expected = twin(rule, np.float32(x), cases.known_of(case), labels, signal == "gradients")
    ours = scores(case, signal=signal, rule=rule, epoch=epoch)
    np.testing.assert_allclose(ours, expected, atol=1e-4)


@every_rule
@pytest.mark.parametrize("signal", ["gradients", "embeddings"])
def test_one_known_row_of_each_class_names_every_row(signal, rule):
    labels, *_, case = run(spread=0.02, known=CLASSES)
    case = case._replace(run=case.run._replace(knobs={"known": np.float32(CLASSES)}))
    ours = scores(case, signal=signal, rule=rule)
    np.testing.assert_array_equal(ours.argmax(axis=1), labels)


@every_rule
def test_a_class_without_a_known_row_that_was_sent_leaves_finite_scores(rule):
    sent = np.ones((2, ROWS), bool)
    labels, z, g, case = run()
    lost = [k for k in cases.known_of(case) if labels[k] == 2]
    sent[:, lost] = False
    case = cases.make_case(labels, CLASSES, embeddings=z, gradients=g, sent=sent, known=12)
    ours = scores(case, rule=rule)[sent[-1]]
    assert np.all(np.isfinite(ours))
    others = labels[sent[-1]] != 2
    assert np.mean(ours.argmax(axis=1)[others] == labels[sent[-1]][others]) > 0.7
    if rule == "nearest":
        assert not np.any(ours.argmax(axis=1) == 2)


def test_zero_gradients_are_alike_to_none():
    np.testing.assert_array_equal(unit(jnp.zeros((2, 3))), 0)
    labels, z, g, _ = run()
    case = cases.make_case(labels, CLASSES, embeddings=z, gradients=0 * g, known=12)
    for rule in RULES:
        np.testing.assert_array_equal(scores(case, rule=rule), 0)


def test_embeddings_have_no_average_over_epochs():
    with pytest.raises(ValueError, match=r"epoch='mean'.*signal='gradients'"):
        similarity(cases.BOTTOMS, CLASSES, signal="embeddings", epoch="mean")
