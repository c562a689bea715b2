"""The joint learner: its blocks, what its self-training adds, against the twin and at its limits."""

import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from tests import harness
from tests.attacks import cases
from tests.reference import joint as reference
from vfljax.attacks import softmax
from vfljax.attacks.joint import BLOCKS, joint, log_odds
from vfljax.models import WideDeep

ROWS, CLASSES, KNOWN, STEPS = 150, 3, 12, 500
TWINS = (("all", "column"), ("exchange", "block"))
FORMS = [cases.build(joint, CLASSES, blocks=b, scale=s, steps=STEPS) for b, s in TWINS]


def run(known=KNOWN, sent=None, changes=()):
    """Columns, embeddings and gradients that each tell a little of the labels."""
    rng = np.random.default_rng(0)
    labels = rng.permutation(ROWS) % CLASSES
    hot = np.eye(CLASSES)[labels]
    parts = {
        "features": np.concatenate([hot, 0 * hot], axis=1) + 0.7 * rng.normal(size=(ROWS, 6)),
        "embeddings": 5 + hot + 1.5 * rng.normal(size=(2, ROWS, CLASSES)),
        "gradients": 1e-4 * (-hot + 1.5 * rng.normal(size=(2, ROWS, CLASSES))),
        **dict(changes),
    }
    return labels, parts, cases.make_case(labels, CLASSES, known=known, sent=sent, **parts)


def inputs(parts, blocks, scale):
    z, g = parts["embeddings"], np.float32(parts["gradients"])
    columns = [parts["features"]] * BLOCKS[blocks][0]
    by_epoch = np.concatenate(list(g), axis=1)
    exchange = [z[-1], g.mean(axis=0), np.sign(g).mean(axis=0), by_epoch] * BLOCKS[blocks][1]
    return reference.blocks(*columns, *exchange, divided=scale == "block")


def test_agrees_with_the_numpy_twin():
    labels, parts, case = run()
    given = labels, cases.known_of(case), CLASSES
    for ours, twin in zip(cases.attack_all(FORMS, case, known=KNOWN), TWINS, strict=True):
        expected = reference.scores(inputs(parts, *twin), *given, ridge=1.0, tau=0.5)
        np.testing.assert_allclose(ours, expected, atol=5e-3)


def test_of_many_rows_the_known_ones_and_some_others_are_fitted(monkeypatch):
    monkeypatch.setattr(softmax, "MOST_ROWS", 40)
    labels, parts, case = run()
    attack = joint(cases.ONE_BOTTOM, CLASSES, steps=STEPS)
    ours = np.asarray(cases.attack(attack, case, known=KNOWN).train)
    given = inputs(parts, "all", "column"), labels, cases.known_of(case), CLASSES
    some = softmax.some_rows(ROWS)
    expected = reference.scores(*given, ridge=1.0, tau=0.5, some=some)
    np.testing.assert_allclose(ours, expected, atol=5e-3)
    assert np.abs(expected - reference.scores(*given, ridge=1.0, tau=0.5)).max() > 0.1


COLUMNS = {"features": np.random.default_rng(2).normal(size=(ROWS, 6))}
NOISE = np.random.default_rng(2)
WIRE = {name: NOISE.normal(size=(2, ROWS, CLASSES)) for name in ("embeddings", "gradients")}


@pytest.mark.parametrize(
    ("known", "changes", "blocks"),
    [(90, {}, "all"), (90, WIRE, "columns"), (90, COLUMNS, "exchange"), (CLASSES, WIRE, "all")],
)
def test_the_best_blocks_are_the_numpy_twin_s_and_one_known_row_a_class_chooses_none(
    known, changes, blocks
):
    labels, parts, case = run(known=known, changes=changes.items())
    if known > CLASSES:
        every_x = [inputs(parts, b, "column") for b in BLOCKS]
        best = reference.best(every_x, labels, cases.known_of(case), CLASSES, 1.0)
        assert list(BLOCKS)[best] == blocks
    forms = [cases.build(joint, CLASSES, blocks=b, steps=100, rounds=1) for b in ("best", *BLOCKS)]
    ours, *theirs = cases.attack_all(forms, case, known=known)
    np.testing.assert_allclose(ours, theirs[list(BLOCKS).index(blocks)], atol=1e-4)


def test_without_tau_it_is_scikit_learn_s_logistic_regression_on_the_known_rows():
    labels, parts, case = run()
    x, known = inputs(parts, "all", "column"), cases.known_of(case)
    model = LogisticRegression(max_iter=1000).fit(x[known], labels[known])
    one = cases.build(joint, CLASSES, rounds=1, steps=500)
    ours = np.asarray(cases.attack(one, case, known=KNOWN, tau=0.0).train)
    ours = ours - ours.mean(axis=1, keepdims=True)  # theirs sum to 0 over the classes
    np.testing.assert_allclose(ours, model.decision_function(x), atol=0.01)


def test_confidence_ranks_where_probabilities_are_all_one():
    logits = jnp.float32([[40, 0, 0], [60, 0, 0], [0, 50, -1e30], [0, 3, -1e30]])
    odds = harness.quick_jit(log_odds)(logits)
    assert np.argsort(odds).tolist() == [3, 0, 2, 1]
    np.testing.assert_allclose(odds[3], 3, rtol=1e-6)


def test_columns_of_codes_are_refused_with_the_remedy():
    coded = (WideDeep(4, (3, 0)),)
    with pytest.raises(ValueError, match=r"codes and not numbers: choose blocks='exchange'"):
        joint(coded, 2)
    assert joint(coded, 2, blocks="exchange").steps == 300
