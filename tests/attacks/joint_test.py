"""The joint learner: its blocks, what its self-training adds, against the twin and at its limits."""

import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from tests import harness
from tests.attacks import cases
from tests.reference import joint as reference
from vfljax.attacks.joint import BLOCKS, TENTHS, joint, log_odds, most_confident
from vfljax.models import WideDeep

ROWS, CLASSES, KNOWN = 150, 3, 12
confident = harness.quick_jit(most_confident)


def run(seed=0, known=KNOWN, sent=None, changes=()):
    """Columns, embeddings and gradients that each tell a little of the labels."""
    rng = np.random.default_rng(seed)
    labels = rng.permutation(ROWS) % CLASSES
    hot = np.eye(CLASSES)[labels]
    parts = {
        "features": np.concatenate([hot, 0 * hot], axis=1) + 0.7 * rng.normal(size=(ROWS, 6)),
        "embeddings": 5 + hot + 1.5 * rng.normal(size=(2, ROWS, CLASSES)),
        "gradients": 1e-4 * (-hot + 1.5 * rng.normal(size=(2, ROWS, CLASSES))),
        **dict(changes),
    }
    return labels, parts, cases.make_case(labels, CLASSES, known=known, sent=sent, **parts)


def scores(case, steps=40, key=None, known=KNOWN, **changes):
    options = {k: changes.pop(k) for k in ("blocks", "scale", "hidden", "rounds") if k in changes}
    one = cases.build(joint, CLASSES, steps=steps, **options)
    return np.asarray(cases.attack(one, case, key, known=known, **changes).train)


def inputs(parts, blocks, scale):
    z, g = parts["embeddings"], np.float32(parts["gradients"])
    columns = [parts["features"]] * BLOCKS[blocks][0]
    by_epoch = np.concatenate(list(g), axis=1)
    exchange = [z[-1], g.mean(axis=0), np.sign(g).mean(axis=0), by_epoch] * BLOCKS[blocks][1]
    return reference.blocks(*columns, *exchange, divided=scale == "block")


@pytest.mark.parametrize(
    ("blocks", "scale", "ridge"), [("all", "column", 1.0), ("exchange", "block", 0.0)]
)
def test_agrees_with_the_numpy_twin(blocks, scale, ridge):
    labels, parts, case = run()
    x = inputs(parts, blocks, scale)
    expected = reference.scores(x, labels, cases.known_of(case), CLASSES, ridge, tau=0.5, steps=40)
    ours = scores(case, blocks=blocks, scale=scale, ridge=ridge)
    np.testing.assert_allclose(ours, expected, atol=2e-3)


COLUMNS = {"features": np.random.default_rng(2).normal(size=(ROWS, 6))}
NOISE = np.random.default_rng(2)
WIRE = {name: NOISE.normal(size=(2, ROWS, CLASSES)) for name in ("embeddings", "gradients")}


@pytest.mark.parametrize(
    ("changes", "blocks"), [({}, "all"), (WIRE, "columns"), (COLUMNS, "exchange")]
)
def test_the_best_blocks_are_the_numpy_twin_s_and_leave_noise_out(changes, blocks):
    labels, parts, case = run(known=90, changes=changes.items())
    every_x = [inputs(parts, b, "column") for b in BLOCKS]
    best = reference.best(every_x, labels, cases.known_of(case), CLASSES, 1.0, steps=100)
    assert list(BLOCKS)[best] == blocks
    ours, theirs = (scores(case, 100, known=90, blocks=b) for b in ("best", blocks))
    np.testing.assert_allclose(ours, theirs, atol=1e-4)


def test_a_known_row_a_class_does_not_choose_blocks():
    *_, case = run(known=CLASSES, changes=WIRE.items())
    ours, theirs = (scores(case, known=CLASSES, blocks=b) for b in ("best", "all"))
    np.testing.assert_array_equal(ours, theirs)


def test_without_rounds_it_is_scikit_learn_s_logistic_regression_on_the_known_rows():
    labels, parts, case = run()
    x, known = inputs(parts, "all", "column"), cases.known_of(case)
    model = LogisticRegression(max_iter=1000).fit(x[known], labels[known])
    ours = scores(case, rounds=0, steps=500, weight_decay=0.0, learning_rate=0.03)
    ours = ours - ours.mean(axis=1, keepdims=True)  # theirs sum to 0 over the classes
    np.testing.assert_allclose(ours, model.decision_function(x), atol=0.01)


def test_without_tau_or_rounds_it_learns_from_the_known_rows_alone():
    *_, case = run()
    plain = scores(case, rounds=0)
    np.testing.assert_allclose(scores(case, tau=0.0), plain, atol=1e-6)
    assert np.max(np.abs(scores(case, tau=0.5) - plain)) > 0.05


def test_a_round_learns_from_the_most_confident_tenths_of_each_class_called():
    rng = np.random.default_rng(0)
    logits = np.float32(3 * rng.normal(size=(80, CLASSES)))
    usable = rng.random(80) < 0.8
    for tenths in (0, *TENTHS):
        ours = set(np.flatnonzero(confident(logits, usable, tenths)))
        assert ours == reference.confident(logits, usable, tenths / 10)
    assert not confident(logits, np.zeros(80, bool), 8).any()


def test_confidence_ranks_where_probabilities_are_all_one():
    logits = jnp.float32([[40, 0, 0], [60, 0, 0], [0, 50, -1e30], [0, 3, -1e30]])
    odds = harness.quick_jit(log_odds)(logits)
    assert np.argsort(odds).tolist() == [3, 0, 2, 1]
    np.testing.assert_allclose(odds[3], 3, rtol=1e-6)


def test_columns_read_nothing_that_crossed_the_wire_and_the_exchange_no_column():
    _, parts, case = run()
    rng = np.random.default_rng(9)
    other = {name: rng.normal(size=np.shape(x)) for name, x in parts.items()}
    *_, wire = run(changes={k: other[k] for k in ("embeddings", "gradients")}.items())
    *_, columns = run(changes={"features": other["features"]}.items())
    both = scores(case)
    for blocks, changed in (("columns", wire), ("exchange", columns)):
        np.testing.assert_array_equal(scores(changed, blocks=blocks), scores(case, blocks=blocks))
        assert np.any(scores(changed) != both)


def test_rows_missing_in_an_epoch_are_scored_and_rows_never_sent_neither_score_nor_teach():
    sent = np.ones((2, ROWS), bool)
    _, parts, case = run()
    hidden = cases.known_of(case)[:3]
    sent[:, hidden], sent[1, 20:30] = False, False
    garbage = parts["gradients"].copy()
    garbage[~sent] = 1e6
    one, other = (run(sent=sent, changes=c)[-1] for c in ((), [("gradients", garbage)]))
    ours = scores(one)
    np.testing.assert_array_equal(np.isnan(ours).any(axis=1), ~sent.any(axis=0))
    np.testing.assert_array_equal(ours, scores(other))
    flipped = other.common.labels.copy()
    flipped[hidden] = (flipped[hidden] + 1) % CLASSES
    other = other._replace(common=other.common._replace(labels=flipped))
    np.testing.assert_array_equal(ours, scores(other))


def test_with_every_label_known_nothing_is_left_to_guess():
    *_, case = run(known=ROWS)
    plain, trained = (scores(case, known=ROWS, rounds=r) for r in (0, 4))
    np.testing.assert_allclose(plain, trained, atol=1e-6)


def test_logits_rank_rows_of_which_every_probability_is_one():
    *_, case = run()
    ours = np.float32(scores(case, learning_rate=10.0, ridge=0.0))
    second, best = np.sort(ours, axis=1)[:, -2:].T
    sure = best - second > 20  # their probability is 1 in float32
    assert sure.sum() > 20
    assert len(np.unique(best[sure] - second[sure])) > 0.9 * sure.sum()


@pytest.mark.slow
def test_a_rule_that_is_not_linear_needs_hidden_units():
    rng = np.random.default_rng(0)
    z = rng.normal(size=(2, 600, 2))
    labels = np.int64(z[1, :, 0] * z[1, :, 1] > 0)
    case = cases.make_case(labels, 2, embeddings=z, gradients=np.zeros((2, 600, 2)), known=100)
    hits = []
    for hidden in (0, 64):
        one = cases.build(joint, 2, blocks="exchange", hidden=hidden)
        guess = np.argmax(cases.attack(one, case, known=100).train, axis=1)
        hits.append(np.mean(guess == labels))
    assert hits[1] > 0.85 > hits[0] + 0.2


def test_bad_options_are_refused_with_the_remedy():
    with pytest.raises(ValueError, match=r"rounds=5 must be a whole number from 0 to 4"):
        joint(cases.BOTTOMS, 2, rounds=5)
    coded = (WideDeep(4, (3, 0)),)
    with pytest.raises(ValueError, match=r"codes and not numbers: choose blocks='exchange'"):
        joint(coded, 2)
    assert joint(coded, 2, blocks="exchange").steps == 2500
