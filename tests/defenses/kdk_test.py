"""KDk: its limits, its twin, and what it refuses."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import harness
from tests.reference import kdk as reference
from vfljax.defenses.core import TrainingData
from vfljax.defenses.kdk import kdk, kdk_targets
from vfljax.federation import protocol

ROWS = 16
targets_fn = harness.quick_jit(kdk_targets, static_argnames="anchor")


def problem(classes: int, seed: int):
    rng = np.random.default_rng(seed)
    scores = rng.dirichlet(np.ones(classes), ROWS).astype(np.float32)
    return scores, rng.integers(classes, size=ROWS)


def targets_of(scores, labels, k, epsilon, anchor="label"):
    classes = scores.shape[1]
    hot = jax.nn.one_hot(jnp.asarray(labels), classes)
    return np.asarray(targets_fn(jnp.asarray(scores), hot, k, epsilon, anchor=anchor))


@given(
    classes=st.sampled_from([2, 5]),
    seed=st.integers(0, 2**16),
    k=st.integers(1, 5),
    epsilon=st.floats(0, 1, width=32),
    anchor=st.sampled_from(["label", "teacher"]),
)
@settings(deadline=None, max_examples=40, database=None, derandomize=True)
def test_targets_agree_with_the_numpy_twin_and_sum_to_one(classes, seed, k, epsilon, anchor):
    k = min(k, classes)
    scores, labels = problem(classes, seed)
    ours = targets_of(scores, labels, k, epsilon, anchor)
    twin = reference.kdk_targets(scores, labels, k, epsilon, anchor)
    np.testing.assert_allclose(ours, twin, atol=1e-6)
    np.testing.assert_allclose(ours.sum(axis=1), 1, atol=1e-6)


def test_ties_go_to_the_lower_class():
    scores = np.full((1, 5), 0.2, np.float32)
    np.testing.assert_allclose(targets_of(scores, [3], 3, 0.5), [[0.25, 0.25, 0, 0.5, 0]])


def test_a_teacher_anchor_hides_the_label_altogether():
    scores, labels = problem(5, 5)
    one = targets_of(scores, labels, 3, 0.4, "teacher")
    other = targets_of(scores, (labels + 1) % 5, 3, 0.4, "teacher")
    np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(
        targets_of(scores, labels, 3, 0.0, "teacher"), np.eye(5)[scores.argmax(axis=1)]
    )


def test_the_protocol_descends_the_cross_entropy_of_the_soft_targets():
    spec = harness.make_spec(num_classes=5, defenses=("kdk",))
    hparams = harness.make_hparams(spec, {"kdk": {"epsilon": 0.6, "k": 3}})
    batch = harness.make_batch(spec, 0)
    state = harness.make_state(spec, hparams)
    _, _, metrics = harness.jitted_step(spec)(state, batch, hparams)
    targets = reference.kdk_targets(np.asarray(batch.scores), np.asarray(batch.labels), 3, 0.6)
    logits = harness.quick_jit(protocol.make_predict(spec))(state.weights, batch.features)
    expected = -np.mean(np.sum(targets * np.asarray(jax.nn.log_softmax(logits)), axis=1))
    np.testing.assert_allclose(metrics.loss, expected, rtol=1e-5)


def test_more_classes_than_the_data_has_are_refused_with_the_number_there_are():
    defense = kdk(0.5, 4)
    data = TrainingData(jnp.zeros(2, jnp.int32), jnp.zeros((2, 3)), 3)
    with pytest.raises(ValueError, match=r"k=4.*3 classes"):
        defense.init(jax.random.key(0), data)


def test_a_label_party_without_a_teacher_is_told_what_to_change():
    data = TrainingData(jnp.zeros(2, jnp.int32), None, 3)
    with pytest.raises(ValueError, match="label_features=True"):
        kdk(0.5, 2).init(jax.random.key(0), data)
