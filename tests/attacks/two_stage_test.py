"""Two-stage: the labels the direct attack reads are the known rows of a model completion."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests import harness
from tests.attacks import cases
from vfljax import keys
from vfljax.attacks import core
from vfljax.attacks import two_stage as module
from vfljax.types import Scores

ROWS, CLASSES = 60, 3
SENT = np.arange(ROWS) < 50


@pytest.mark.parametrize(("readable", "sent"), [(60, None), (20, None), (60, SENT), (0, None)])
def test_rows_with_a_guess_come_first_in_random_order_and_only_their_labels_are_known(
    readable, sent, monkeypatch
):
    rng = np.random.default_rng(0)
    labels = rng.integers(0, CLASSES, ROWS)
    g = rng.dirichlet(np.ones(CLASSES), ROWS) - np.eye(CLASSES)[labels]
    guessed = rng.permutation(ROWS) < readable
    g = np.where(guessed[:, None], g, 1.0)  # no negative entry
    if sent is not None:
        guessed, sent = guessed & sent, sent[None]
    case = cases.make_case(labels, CLASSES, gradients=g[None], sent=sent, known=0)
    key = keys.run_key(3)

    def stub(*options):  # of the completion: it returns what it is given
        return lambda key, view, known, knobs: Scores(
            jnp.stack([known.rows, known.labels], 1), known.count
        )

    monkeypatch.setattr(module, "completion_run", stub)
    attack = module.two_stage(cases.ONE_BOTTOM, CLASSES, steps=12, batch_size=4)
    given, count = cases.attack(attack, case, key)
    draw = jax.random.uniform(keys.fold(key, "rows"), guessed.shape)
    rows = np.argsort(np.where(guessed, draw, 2.0), kind="stable")
    np.testing.assert_array_equal(given[:, 0], rows)
    np.testing.assert_array_equal(given[:, 1], np.where(guessed, labels, -1)[rows])
    assert count == guessed.sum()
    assert "known" not in attack.knobs


def test_variants_of_one_completion_are_computed_side_by_side_with_the_scores_of_each_alone():
    rng = np.random.default_rng(1)
    labels = rng.integers(0, CLASSES, ROWS)
    gradients = rng.normal(size=(2, ROWS, CLASSES))  # most rows have several negative entries
    case = cases.make_case(labels, CLASSES, gradients=gradients, known=0)
    options = ({"rule": "most_negative"}, {"rule": "least_negative"}, {"epoch": 1})
    forms = [
        module.two_stage(cases.ONE_BOTTOM, CLASSES, steps=5, batch_size=4, **of) for of in options
    ]
    assert len({form.stages[1] for form in forms}) == 1
    key, (view, known) = keys.run_key(0), cases.seen_of(case)
    knobs = {name: np.float32(value) for name, value in forms[0].knobs.items()}
    knobs["learning_rate"] = np.float32(0.1)

    @harness.quick_jit
    def both(*given):
        return core.scores_of(forms, *given), tuple(form.run(*given) for form in forms)

    together, alone = both(key, view, known, knobs)
    for one, other in zip(together, alone, strict=True):
        np.testing.assert_allclose(one.train, other.train, atol=1e-5)
    assert np.abs(alone[0].train - alone[1].train).max() > 1e-3
