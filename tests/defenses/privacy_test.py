"""Defenses that randomize labels: drawn once a row, and seen alike by later slots and by the teacher."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests import harness
from vfljax.defenses import TABLE, TrainingData, chain

ROWS, CLASSES = 12, 3
LABELS = jnp.arange(ROWS) % CLASSES
KEY = jax.random.key(3)


def over_steps(name, options):
    """(the targets [2, B, C] that the loss gets of the same rows, at equal logits, in two steps; the labels
    [2, B] that later slots see; those that the teacher is taught [B]; those of ``init`` of later members)."""
    defense = chain(**{name: TABLE[name](1.5, **options)})

    def run():
        state = defense.init(KEY, TrainingData(LABELS, None, CLASSES))
        targets_of, labels_of = [], []
        for step in range(2):
            context = harness.make_context(ROWS, step)._replace(labels=LABELS)
            one_hot = jax.nn.one_hot(LABELS, CLASSES)
            targets, context, _ = defense.targets(one_hot, context, state)
            received = [targets]

            def inner(active, f, embeddings, targets, context, state, received=received):
                received.append(targets)
                return jnp.float32(0), (0 * targets, active, state)

            if name == "alibi":  # which makes its targets in the loss
                defense.loss(inner)({}, None, (), targets, context, state)
            targets_of.append(received[-1])
            labels_of.append(context.labels)
        later = TABLE[name](1.5, **options).labels(state[name], LABELS)
        taught, _ = defense.teach(KEY, LABELS, CLASSES)
        return jnp.stack(targets_of), jnp.stack(labels_of), taught, later

    return map(np.asarray, harness.quick_jit(run)())


@pytest.mark.parametrize(
    ("name", "options"),
    [
        *(("label_dp", {}), ("label_dp", {"mechanism": "block_rr"}), ("grad_perturb", {})),
        *(("alibi", {}), ("vlp", {}), ("class_splitting", {})),
    ],
)
def test_under_the_guarantee_a_row_is_drawn_once_and_nobody_sees_more_than_the_draw(name, options):
    targets, seen, taught, later = over_steps(name, options)
    np.testing.assert_array_equal(targets[0], targets[1])
    np.testing.assert_array_equal(seen, [later, later])
    assert np.any(later != LABELS)
    if name != "class_splitting":  # whose teacher has the true labels, as its true head does
        np.testing.assert_array_equal(taught, later)
        # entries of ALIBI that are beyond 0 or 1 tie
        np.testing.assert_array_equal(targets[0, np.arange(ROWS), later], targets[0].max(axis=-1))


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("grad_perturb", {"draw": "step"}),
        ("grad_perturb", {"reach": "cut"}),
        ("alibi", {"draw": "step"}),
    ],
)
def test_forms_without_a_guarantee_draw_anew_or_on_the_cut_alone_and_hide_no_label(name, options):
    targets, *labels = over_steps(name, options)
    for seen in (*labels[0], *labels[1:]):
        np.testing.assert_array_equal(seen, LABELS)
    if options == {"reach": "cut"}:
        np.testing.assert_array_equal(targets[0], np.eye(CLASSES)[LABELS])
    else:
        assert np.all(np.any(targets[0] != targets[1], axis=-1))
