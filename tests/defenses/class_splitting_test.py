"""Class splitting: its draws, losses and gradients against the twin, what crosses the wire, and its limits."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests import harness
from tests.reference import class_splitting as reference
from tests.sweeps import groups_beside
from vfljax import defenses
from vfljax.defenses import class_splitting as ours
from vfljax.errors import UserError
from vfljax.testing import of_defenses
from vfljax.types import DefenseSpec

CLASSES, INFINITE = 3, float("inf")


def federation(epsilon=1.0, classes=CLASSES, changes=None, **options):
    chain = (DefenseSpec("class_splitting", tuple(options.items())),)
    spec = harness.make_spec(classes, chain, **(changes or {}))
    return spec, harness.make_hparams(spec, {"class_splitting": {"epsilon": epsilon}})


def of_head(params):
    return tuple(np.asarray(params[name], np.float64) for name in ("kernel", "bias"))


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ((2,), (2, 2)),
        ((3, 7), (3, 2, 2)),
        ((2, 10, "1:3"), (3, 7)),  # 2.5 and 7.5: the lower class first
        ((2, 10, "0.16:0.84"), (2, 8)),
        ((3, 4, "1:1:98"), (1, 1, 2)),
        ((3, 3, "1:1:98"), (1, 1, 1)),
    ],
)
def test_pseudo_classes_are_shared_by_prior_and_every_class_has_some(arguments, expected):
    assert ours.counts_of(*arguments) == expected


def test_draws_have_the_law_of_the_twin_once_a_row():
    rows, counts, epsilon = 60_000, (1, 3, 2), 1.0
    labels = jnp.arange(rows, dtype=jnp.int32) % CLASSES
    data = defenses.TrainingData(labels, None, CLASSES)
    state = ours.class_splitting(epsilon, pseudo=6, shares="1:3:2").init(jax.random.key(0), data)
    assert tuple(state["counts"].tolist()) == counts
    law = reference.law(counts, epsilon)
    for label in range(CLASSES):
        seen = np.bincount(np.asarray(state["pseudo"])[label::CLASSES], minlength=6)
        np.testing.assert_allclose(seen / (rows / CLASSES), law[label], atol=0.015)
    owner = np.repeat(np.arange(CLASSES), counts)
    np.testing.assert_array_equal(owner[np.asarray(state["pseudo"])], state["flipped"])


def test_a_step_is_the_twin_s_and_the_true_head_sends_no_gradient():
    spec, hparams = federation(changes={"label_features": False})
    batch, before = harness.make_batch(spec, 0), harness.make_state(spec, hparams)
    after, exchanges, seen = harness.run_steps(spec, hparams, [batch])
    h = np.concatenate([np.asarray(z, np.float64) for z in exchanges[0].embeddings], axis=1)
    params = before.weights.active["params"]
    first, second = of_head(params["Dense_0"]), of_head(params["second"]["Dense_0"])
    assert (first[0].shape[1], second[0].shape[1]) == (2 * CLASSES, CLASSES)
    pseudo = np.asarray(before.defense["class_splitting"]["pseudo"])[np.asarray(batch.index)]
    labels = np.asarray(batch.labels)
    expected = reference.loss(h, first, second, pseudo, labels)
    np.testing.assert_allclose(seen[0].loss, expected, rtol=1e-5)
    received = np.concatenate([np.asarray(g) for g in exchanges[0].gradients], axis=1)
    np.testing.assert_allclose(received, reference.cut_gradient(h, first, pseudo), atol=1e-6)
    trained = after.weights.active["params"]["second"]["Dense_0"]["kernel"]
    slope = reference.head_gradient(h, second, labels) + 5e-4 * second[0]  # and weight decay
    np.testing.assert_allclose(trained, second[0] - 0.1 * slope, atol=1e-5)
    assert int(seen[0].correct) == np.sum((h @ second[0] + second[1]).argmax(axis=1) == labels)


def test_the_sum_and_the_norms_are_the_twin_s():
    rng = np.random.default_rng(1)
    logits, g = rng.normal(size=(9, 6)), rng.normal(size=(9, 4))
    g[2] = 0
    counts = jnp.array([1, 3, 2])
    expected = reference.summed(logits, (1, 3, 2))
    np.testing.assert_allclose(ours.summed(jnp.float32(logits), counts), expected, atol=1e-5)
    sent = ours.to_mean_norm(jnp.float32(g))
    np.testing.assert_allclose(sent, reference.to_mean_norm(g), atol=1e-5)


def test_with_head_sum_it_may_be_no_defense_and_else_nothing_depends_on_a_label_but_by_the_draws():
    """No defense bit for bit without flips and with one pseudo class each. With flips the labels of batches may
    be anything. (With head="true" the true head alone learns them: combinations_test.)"""
    changes = {"class_weights": (0.5, 1.0, 2.0), "top_hidden": (5,)}
    plain = harness.make_spec(CLASSES, **changes)
    undefended, (received, _) = of_defenses.run_members(plain, [harness.make_hparams(plain)])
    spec, without = federation(INFINITE, changes=changes, pseudo=CLASSES, head="sum")
    _, flips = federation(1.0, changes=changes, pseudo=CLASSES, head="sum")
    true = of_defenses.random_batches(spec)
    false = true._replace(labels=(true.labels + 1) % CLASSES)
    state, (exchange, _) = of_defenses.run_members(
        spec, [without, flips, flips], [true, true, false]
    )
    same, one, other = (of_defenses.member((state.weights, exchange), i) for i in range(3))
    harness.assert_same_bits(same, of_defenses.member((undefended.weights, received), 0))
    harness.assert_same_bits(one, other)
    assert harness.differ(same, one)


def test_what_does_not_fit_the_classes_is_refused_when_planned():
    for options, message in (
        ({"pseudo": 1}, "pseudo=1 is less than the 2 classes"),
        ({"shares": "1:2:3"}, "has 3 numbers: give 2"),
    ):
        with pytest.raises(UserError, match=message):
            groups_beside({"class_splitting": {"epsilon": 1.0, **options}})


def test_it_stands_before_mid_and_not_after():
    members = {"class_splitting": {"epsilon": 1.0}, "mid": {"lambda_kl": 0.1}}
    assert groups_beside(members)
    with pytest.raises(UserError, match="list class_splitting before"):
        groups_beside(dict(reversed(members.items())))


def test_a_top_model_of_two_logits_has_an_mlp_beside_it():
    changes = {"model.top": "generator", "model.top_hidden": (3,)}
    groups = groups_beside({"class_splitting": {"epsilon": 1.0}}, **changes)
    tops = {group.name: group.spec.top for group in groups}
    top = tops["class_splitting"]
    assert (top.first.hidden, top.first.out) == ((3,), 4)
    assert top.second == tops["undefended"]
