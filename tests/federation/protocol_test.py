"""One batch of the protocol against its NumPy twin, and what must and must not cross the wire."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests import harness
from tests.reference import compression as compression_reference
from tests.reference import kdk as kdk_reference
from tests.reference import protocol as reference
from vfljax import keys
from vfljax.federation import protocol
from vfljax.models import MLP, Head, parties

STEPS, MILESTONE = 4, 3  # the rate falls after an epoch of 3 steps


def layers_of(variables):
    """The linear layers of a flax module as the twin's layers, in float64."""
    params = variables.get("params", {})
    linear = [params[f"Dense_{i}"] for i in range(sum("Dense" in name for name in params))]
    return [reference.Dense(*map(np.float64, (dense["kernel"], dense["bias"]))) for dense in linear]


def nets_of(weights):
    return [layers_of(v) for v in weights.bottoms], layers_of(weights.active) or None


def assert_same_nets(ours, twin, tolerance):
    for layer, expected in zip(layers_of(ours), twin, strict=True):
        for a, b in zip(layer, expected):
            np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


def kdk_targets(batch):
    labels, scores = np.asarray(batch.labels), np.asarray(batch.scores)
    return kdk_reference.kdk_targets(scores, labels, 3, 0.5)


DEFENSES = {"kdk": {"epsilon": 0.5, "k": 3}, "compression": {"keep_rate": 0.25}}
FEDERATIONS = {
    "one malicious party": {
        **{"hidden": (5,), "top_hidden": (6,), "gamma": (1.0, None, None)},
        "optimizers": ("malicious_sgd", "malicious_sgd", "sgd", "sgd"),
    },
    "one passive party alone, class weights": {
        **{"aggregation": "sum", "label_features": False, "passive": 1},
        "class_weights": (0.3, 1.0, 2.0, 0.1, 5.0),
    },
    "no split, two classes": {"split": False, "num_classes": 2},
    "all gradients treated, soft targets": {"aggregation": "sum", "defenses": DEFENSES},
    "passive parties' gradients treated": {
        **{"aggregation": "mean", "scope": "passive", "defenses": DEFENSES}
    },
}


@pytest.mark.parametrize("changes", FEDERATIONS.values(), ids=FEDERATIONS)
def test_steps_and_predictions_agree_with_the_numpy_twin(changes):
    """Everything that leaves a few steps, across a milestone of the learning rate."""
    knobs, gamma = changes.get("defenses", {}), changes.get("gamma")
    changes = {k: v for k, v in changes.items() if k != "gamma"}
    spec = harness.make_spec(**{**changes, "defenses": tuple(knobs)})
    strengths = [0.0 if g is None else g for g in gamma or [None] * len(spec.bottoms)]
    numbers = {"learning_rate": 0.1, "momentum": 0.9, "weight_decay": 0.01}
    hparams = harness.make_hparams(spec, knobs, strengths, milestones=(1,), decay=0.5, **numbers)
    batches = harness.make_batches(spec, STEPS)
    initial = harness.make_state(spec, hparams, seed=1)
    final, exchanges, metrics = harness.run_steps(spec, hparams, batches, seed=1)
    bottoms, top = nets_of(initial.weights)
    state = reference.start([*bottoms, top or []])
    treated = len(spec.bottoms) if spec.scope == "all" else spec.passive

    def defend(p, g):
        return compression_reference.keep_largest(g, 0.25) if knobs and p < treated else g

    for number, (batch, exchange, seen) in enumerate(zip(batches, exchanges, metrics)):
        labels = np.asarray(batch.labels)
        bottoms, top, state, twin = reference.step(
            bottoms,
            top,
            state,
            [np.float64(x) for x in batch.features],
            kdk_targets(batch) if knobs else np.eye(spec.num_classes)[labels],
            lr=0.1 if number < MILESTONE else 0.05,
            mu=0.9,
            wd=0.01,
            gamma=gamma,
            aggregation=spec.aggregation,
            defend=defend,
            class_weights=spec.class_weights or None,
        )
        assert len(exchange.embeddings) == len(exchange.gradients) == spec.passive
        for p in range(spec.passive):
            np.testing.assert_allclose(exchange.embeddings[p], twin.embeddings[p], atol=1e-5)
            np.testing.assert_allclose(exchange.gradients[p], twin.gradients[p], atol=1e-6)
        np.testing.assert_array_equal(exchange.index, batch.index)
        np.testing.assert_allclose(seen.loss, twin.loss, rtol=1e-5)
        assert seen.correct == np.sum(twin.logits.argmax(axis=1) == labels)
    for variables, net in zip(final.weights.bottoms, bottoms):
        assert_same_nets(variables, net, 1e-5)
    if top:
        assert_same_nets(final.weights.active, top, 1e-5)
    else:
        assert final.weights.active == {}
    assert final.step == STEPS
    kept = (final.weights, final.optimizer, exchanges, metrics)
    assert {str(leaf.dtype) for leaf in jax.tree.leaves(kept)} == {"float32", "int32"}  # counts
    logits = harness.quick_jit(protocol.make_predict(spec))(final.weights, batches[0].features)
    pairs = zip(bottoms, batches[0].features)
    cut = [reference.forward(net, np.float64(x))[0] for net, x in pairs]
    f = reference.aggregate(cut, spec.aggregation if top else "sum")
    np.testing.assert_allclose(logits, reference.forward(top or [], f)[0], atol=1e-5)


def test_metrics_count_true_labels_and_what_defenses_read_whatever_targets_and_later_slots_are():
    """What class splitting draws at epsilon = 0 has nothing to do with them, and one head alone is read."""
    knobs = {"class_splitting": {"epsilon": 0.0}}
    spec = harness.make_spec(defenses=tuple(knobs))
    hparams = harness.make_hparams(spec, knobs)
    batch, state = harness.make_batch(spec, 0), harness.make_state(spec, hparams)
    predict = harness.quick_jit(protocol.make_predict(spec))
    scores = predict(state.weights, batch.features, state.defense)
    batch = batch._replace(labels=jnp.argmax(scores, axis=1).astype(jnp.int32))
    _, _, metrics = harness.jitted_step(spec)(state, batch, hparams)
    assert metrics.correct == spec.batch_size


def test_parties_and_the_steps_of_an_epoch_draw_for_themselves():
    """Dropout by party, and noise that leaves the rest of a gradient far behind by step."""
    spec = harness.make_spec(hidden=(16,), defenses=("noise",))  # 3 steps an epoch
    dropping = dataclasses.replace(spec.bottoms[0], dropout=0.5)
    spec = dataclasses.replace(spec, bottoms=(dropping,) * 3)
    hparams, batch = (
        harness.make_hparams(spec, {"noise": {"scale": 1e6}}),
        harness.make_batch(spec, 0),
    )
    state = harness.make_state(spec, hparams)
    same = state.weights._replace(bottoms=(state.weights.bottoms[0],) * 3)
    batch, step = batch._replace(features=(batch.features[0],) * 3), harness.jitted_step(spec)
    first, second = (
        step(state._replace(weights=same, step=jnp.int32(number)), batch, hparams)[1]
        for number in (0, 1)
    )
    assert np.any(first.embeddings[0] != first.embeddings[1])
    for one, two in zip(first.gradients, second.gradients, strict=True):
        assert np.all(np.abs(one - two) > 1)


def test_only_passive_parties_tensors_are_exchanged():
    """The label party's own embedding and gradient differ in width, so none can hide among them."""
    spec = harness.make_spec()
    spec = dataclasses.replace(spec, bottoms=tuple(MLP((), width) for width in (3, 4, 7)))
    hparams = harness.make_hparams(spec)
    state, batch = harness.make_state(spec, hparams), harness.make_batch(spec, 0)
    _, exchange, _ = jax.eval_shape(protocol.make_step(spec), state, batch, hparams)
    shapes = [z.shape for z in exchange.embeddings], [g.shape for g in exchange.gradients]
    assert shapes == ([(8, 3), (8, 4)],) * 2
    assert len(jax.tree.leaves(exchange)) == 5  # and the index, nothing else


def test_initial_weights_depend_on_the_seed_alone_and_differ_between_parties():
    spec = harness.make_spec()
    weights = harness.quick_jit(protocol.make_weights(spec))
    zeros, ones = ((jnp.full((3, harness.COLUMNS), x),) * 3 for x in (0.0, 1.0))
    drawn = weights(keys.run_key(0), zeros)
    harness.assert_same_bits(drawn, weights(keys.run_key(0), ones))
    other = weights(keys.run_key(1), zeros)
    kernels = [v["params"]["Dense_0"]["kernel"] for v in (*drawn.bottoms, *other.bottoms)]
    assert len({np.asarray(kernel).tobytes() for kernel in kernels}) == 6


def test_training_moves_batch_statistics_and_predictions_read_them():
    bottoms = (MLP((5,), 4, batch_norm=True),) * 2
    spec = harness.make_spec(label_features=False)
    spec = dataclasses.replace(spec, bottoms=bottoms, top=Head((), 5))
    hparams = harness.make_hparams(spec, learning_rate=0.0)
    batch, state = harness.make_batch(spec, 0), harness.make_state(spec, hparams)
    after, exchange, _ = harness.jitted_step(spec)(state, batch, hparams)
    cut = np.concatenate(exchange.embeddings, axis=1)
    statistics = after.weights.active["batch_stats"]["BatchNorm_0"]
    np.testing.assert_allclose(statistics["mean"], 0.1 * cut.mean(axis=0), atol=1e-6)
    np.testing.assert_allclose(statistics["var"], 0.9 + 0.1 * cut.var(axis=0), atol=1e-5)
    for now, before in zip(after.weights.bottoms, state.weights.bottoms):
        assert harness.differ(now["batch_stats"], before["batch_stats"])
        harness.assert_same_bits(now["params"], before["params"])
    predict = harness.quick_jit(protocol.make_predict(spec))
    before, now = (predict(s.weights, batch.features) for s in (state, after))
    assert np.any(np.abs(before - now) > 1e-3)
    others = tuple(x.at[1:].set(0.0) for x in batch.features)  # evaluation treats rows alone
    np.testing.assert_allclose(predict(after.weights, others)[0], now[0], atol=1e-5)


def test_arrays_of_other_shapes_and_numbers_of_several_settings_are_refused_in_a_trace():
    spec = harness.make_spec(defenses=("noise",))
    hparams = harness.make_hparams(spec, {"noise": {"scale": 0.1}})
    state, batch = harness.make_state(spec, hparams), harness.make_batch(spec, 0)
    step, predict = protocol.make_step(spec), protocol.make_predict(spec)
    two, fewer = jnp.ones(2), (batch.features[0][1:], *batch.features[1:])
    batches = (
        {"labels": batch.labels[1:]},
        {"labels": batch.labels.astype(jnp.float32)},
        {"features": fewer},
        {"scores": jnp.ones((8, 4))},  # of five classes
    )
    numbers = (
        {"learning_rate": two},
        {"gamma": two},  # of three bottoms
        {"defenses": {"noise": {"scale": two}}},
    )
    several = jax.vmap(keys.run_key)(jnp.arange(2, dtype=jnp.uint32))
    for program, *arguments in (
        *((step, state, batch._replace(**wrong), hparams) for wrong in batches),
        *((step, state, batch, hparams._replace(**wrong)) for wrong in numbers),
        *((predict, state.weights, wrong) for wrong in (batch.features[1:], fewer)),
        (protocol.make_weights(spec), several, batch.features),
    ):
        with pytest.raises(AssertionError):
            jax.eval_shape(program, *arguments)


def test_the_loss_refuses_targets_that_do_not_match_its_logits():
    _, top, _ = parties.parties(harness.make_spec(3))
    spec = harness.make_spec(3)
    loss, active = protocol.undefended(top, spec), harness.make_weights(spec, 0).active
    f, context = jnp.zeros((8, 12)), harness.make_context(8)  # three embeddings of 4
    for sent, targets in (((), (8, 2)), ((), (7, 3)), ((jnp.zeros((7, 4)),), (8, 3))):
        with pytest.raises(AssertionError):
            loss(active, f, sent, jnp.ones(targets), context, ())
