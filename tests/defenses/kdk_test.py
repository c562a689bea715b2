"""KDk: its twin, its limits, and what it refuses."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests import harness
from tests.reference import kdk as reference
from vfljax.defenses.core import TrainingData
from vfljax.defenses.kdk import kdk, kdk_targets

ROWS, CLASSES = 16, 5
RNG = np.random.default_rng(0)
SCORES = RNG.dirichlet(np.ones(CLASSES), ROWS).astype(np.float32)
SCORES[:4] = 0.2  # ties go to the lower class
LABELS = RNG.integers(CLASSES, size=ROWS)
targets_fn = harness.quick_jit(kdk_targets, static_argnames="anchor")


def targets_of(labels, k, epsilon, anchor="label"):
    hot = np.eye(CLASSES, dtype=np.float32)[labels]
    return np.asarray(targets_fn(SCORES, hot, k, epsilon, anchor=anchor))


@pytest.mark.parametrize("anchor", ["label", "teacher"])
def test_targets_agree_with_the_numpy_twin(anchor):
    for k, epsilon in ((1, 0.4), (2, 0.0), (2, 0.4), (3, 0.9), (5, 1.0)):
        twin = reference.kdk_targets(SCORES, LABELS, k, epsilon, anchor)
        np.testing.assert_allclose(targets_of(LABELS, k, epsilon, anchor), twin, atol=1e-6)


def test_more_classes_than_there_are_and_no_teacher_are_refused_with_what_to_change():
    data = TrainingData(jnp.zeros(2, jnp.int32), None, 3)
    with pytest.raises(ValueError, match=r"k=4.*3 classes"):
        kdk(0.5, 4).init(jax.random.key(0), data._replace(scores=jnp.zeros((2, 3))))
    with pytest.raises(ValueError, match="label_features=True"):
        kdk(0.5, 2).init(jax.random.key(0), data)
