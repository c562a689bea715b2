"""Class splitting: its draws, losses and gradients against the twin, what crosses the wire, and its limits."""

import dataclasses

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
from vfljax.federation import protocol
from vfljax.models import MLP
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


@pytest.mark.parametrize("epsilon", [0.0, 1.0, 3.0])
def test_draws_have_the_law_of_the_twin_once_a_row(epsilon):
    rows, counts = 60_000, (1, 3, 2)
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
    # label DP: no pseudo class is likelier under one label than under another by more than e^epsilon
    assert np.log(law.max(axis=0) / law.min(axis=0)).max() <= epsilon + 1e-9


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


@pytest.mark.parametrize("changes", [{}, {"class_weights": (0.5, 1.0, 2.0)}, {"top_hidden": (5,)}])
def test_without_flips_and_one_pseudo_class_each_it_is_no_defense(changes):
    """Bit for bit of all that the parties do; with head="sum" of the top model too."""
    plain = harness.make_spec(CLASSES, **changes)
    undefended = harness.run_steps(
        plain, harness.make_hparams(plain), harness.make_batches(plain, 4)
    )
    for head in ("true", "sum"):
        spec, hparams = federation(INFINITE, changes=changes, pseudo=CLASSES, head=head)
        state, exchanges, seen = harness.run_steps(spec, hparams, harness.make_batches(spec, 4))
        harness.assert_same_bits(state.weights.bottoms, undefended[0].weights.bottoms)
        harness.assert_same_bits(exchanges, undefended[1])
        if head == "sum":
            harness.assert_same_bits((state.weights, seen), (undefended[0].weights, undefended[2]))


@pytest.mark.parametrize("head", ["true", "sum"])
def test_nothing_on_the_wire_depends_on_a_label_but_by_the_draws_before_training(head):
    """Labels of batches may be anything; the true head alone learns them."""
    spec, hparams = federation(head=head)
    true = harness.make_batches(spec, 4)
    false = [batch._replace(labels=(batch.labels + 1) % CLASSES) for batch in true]
    a, b = (harness.run_steps(spec, hparams, batches) for batches in (true, false))
    harness.assert_same_bits((a[0].weights.bottoms, a[1]), (b[0].weights.bottoms, b[1]))
    assert harness.differ(a[0].weights.active, b[0].weights.active) == (head == "true")


@pytest.mark.parametrize("head", ["true", "sum"])
def test_predictions_are_scores_of_the_classes(head):
    spec, hparams = federation(head=head)
    state, features = harness.make_state(spec, hparams), harness.make_batch(spec, 0).features
    scores = protocol.make_predict(spec)(state.weights, features, state.defense)
    assert scores.shape == (spec.batch_size, CLASSES)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"pseudo": 1}, "pseudo=1 is less than the 2 classes"),
        ({"pseudo": 2.5}, r"pseudo=2.5 is no whole number"),
        ({"shares": "1:2:3"}, "has 3 numbers: give 2"),
        ({"shares": "1:no"}, "choose 'equal' or positive numbers"),
        ({"shares": "1:-2"}, "choose 'equal' or positive numbers"),
        ({"head": "both"}, "choose one of true, sum"),
        ({"normalize": "yes"}, "must be True or False"),
    ],
)
def test_what_it_cannot_be_is_refused_when_planned(options, message):
    with pytest.raises(UserError, match=message):
        groups_beside({"class_splitting": {"epsilon": 1.0, **options}})


def test_it_stands_before_mid_and_not_after():
    members = {"class_splitting": {"epsilon": 1.0}, "mid": {"lambda_kl": 0.1}}
    assert groups_beside(members)
    with pytest.raises(UserError, match="list class_splitting before"):
        groups_beside(dict(reversed(members.items())))
    spec = harness.make_spec(CLASSES, tuple(members))
    hparams = harness.make_hparams(spec, members)
    harness.assert_finite(harness.run_steps(spec, hparams, harness.make_batches(spec, 4)))


@pytest.mark.parametrize("head", ["true", "sum"])
def test_a_top_model_of_two_logits_has_an_mlp_beside_it(head):
    chain = {"class_splitting": {"epsilon": 1.0, "head": head}}
    changes = {"model.top": "generator", "model.top_hidden": (3,)}
    (spec,) = {
        g.name: g.spec for g in groups_beside(chain, **changes) if "class" in g.name
    }.values()
    weights = harness.make_weights(dataclasses.replace(spec, bottoms=(MLP((), 4),) * 2), 0)
    assert weights.active["params"]["Dense_1"]["kernel"].shape == (3, 4)
    assert ("second" in weights.active["params"]) == (head == "true")


def test_known_rows_read_planted_labels_of_a_fitted_head_from_epsilon_1_on():
    """Flips are learned away: gradients of a class agree whatever was drawn, so that means tell classes."""
    rows, rng = 256, np.random.default_rng(0)
    labels = np.arange(rows) % 2
    data = defenses.TrainingData(jnp.asarray(labels, jnp.int32), None, 2)
    for epsilon in (8.0, 4.0, 2.0, 1.0):
        drawn = ours.class_splitting(epsilon).init(jax.random.key(1), data)["pseudo"]
        x = np.eye(2)[labels] + 0.1 * rng.normal(size=(rows, 2))  # a party that can tell classes
        weights = np.linalg.lstsq(x, np.eye(4)[np.asarray(drawn)], rcond=None)[0]
        sent = x @ weights
        means = [sent[labels == c][:5].mean(axis=0) for c in (0, 1)]  # ten known rows
        distance = [np.square(sent - m).sum(axis=1) for m in means]
        assert np.mean((distance[1] < distance[0]) == labels) > 0.85
