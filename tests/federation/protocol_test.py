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
from vfljax.models import MLP, Head

STEPS = 4


def layers_of(variables):
    """A flax MLP's variables as the twin's layers, in float64."""
    params = variables.get("params", {})
    return [
        reference.Dense(
            np.float64(params[f"Dense_{i}"]["kernel"]), np.float64(params[f"Dense_{i}"]["bias"])
        )
        for i in range(len(params))
    ]


def nets_of(weights):
    return [layers_of(v) for v in weights.bottoms], layers_of(weights.active) or None


def assert_same_nets(ours, twin, tolerance):
    for layer, expected in zip(layers_of(ours), twin, strict=True):
        for a, b in zip(layer, expected):
            np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


def agree(spec, *, gamma=None, defenses=None, targets=None, defend=lambda p, g: g, **numbers):
    """Run both for a few steps and compare everything that leaves a step."""
    numbers = {"learning_rate": 0.1, "momentum": 0.9, "weight_decay": 0.01, **numbers}
    strengths = [0.0 if g is None else g for g in gamma or [None] * len(spec.bottoms)]
    hparams = harness.make_hparams(spec, defenses, strengths, **numbers)
    batches = [harness.make_batch(spec, i) for i in range(STEPS)]
    initial = harness.make_state(spec, hparams, seed=1)
    final, exchanges, metrics = harness.run_steps(spec, hparams, batches, seed=1)
    bottoms, top = nets_of(initial.weights)
    state = reference.start([*bottoms, top or []])
    for batch, exchange, seen in zip(batches, exchanges, metrics):
        labels = np.asarray(batch.labels)
        goal = np.eye(spec.num_classes)[labels] if targets is None else targets(batch)
        bottoms, top, state, twin = reference.step(
            bottoms,
            top,
            state,
            [np.float64(x) for x in batch.features],
            goal,
            lr=numbers["learning_rate"],
            mu=numbers["momentum"],
            wd=numbers["weight_decay"],
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


FEDERATIONS = {
    "concatenated": {},
    "summed": {"aggregation": "sum"},
    "averaged": {"aggregation": "mean"},
    "hidden layers": {"hidden": (5,), "top_hidden": (6,), "passive": 1},
    "no split": {"split": False},
    "no split, two classes": {"split": False, "num_classes": 2},
    "label party without features": {"label_features": False},
    "class weights": {"class_weights": (0.3, 1.0, 2.0, 0.1, 5.0)},
    "one passive party alone": {"label_features": False, "passive": 1},
}


@pytest.mark.parametrize("changes", FEDERATIONS.values(), ids=FEDERATIONS)
def test_steps_agree_with_the_numpy_twin(changes):
    agree(harness.make_spec(**changes))


def test_equal_class_weights_change_nothing_but_rounding():
    plain = harness.make_spec()
    weighted = dataclasses.replace(plain, class_weights=(0.3,) * 5)
    hparams, batches = harness.make_hparams(plain), [harness.make_batch(plain, i) for i in range(2)]
    one, two = (harness.run_steps(spec, hparams, batches, seed=1) for spec in (plain, weighted))
    for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(two), strict=True):
        if jnp.issubdtype(a.dtype, jnp.floating):
            np.testing.assert_allclose(a, b, atol=1e-6)


def test_a_malicious_party_agrees_with_the_twin_and_so_does_the_honest_rest():
    spec = harness.make_spec(
        optimizers=("malicious_sgd", "malicious_sgd", "sgd", "sgd"), aggregation="sum"
    )
    agree(spec, gamma=[1.0, None, None])


def test_a_malicious_party_moves_further_in_its_own_model_only():
    spec = harness.make_spec(optimizers=("malicious_sgd", "malicious_sgd", "sgd", "sgd"))
    batches = [harness.make_batch(spec, 0)] * 2
    runs = [
        harness.run_steps(spec, harness.make_hparams(spec, gamma=gamma), batches, seed=1)
        for gamma in ([0.0, 0.0, 0.0], [1.0, 0.0, 0.0])
    ]
    (honest, _, _), (malicious, _, _) = runs
    # the first step is honest and the second one's gradients do not depend on its own update
    harness.assert_close(honest.weights.bottoms[1:], malicious.weights.bottoms[1:], 1e-6)
    harness.assert_close(honest.weights.active, malicious.weights.active, 1e-6)
    start = harness.make_state(spec, harness.make_hparams(spec), seed=1).weights.bottoms[0]

    def way(run):
        moved = jax.tree.map(lambda a, b: np.abs(a - b).sum(), run.weights.bottoms[0], start)
        return sum(jax.tree.leaves(moved))

    assert way(malicious) > 1.2 * way(honest)


def test_soft_targets_and_treated_gradients_agree_with_the_twin():
    spec = harness.make_spec(defenses=("kdk", "compression"))

    def targets(batch):
        labels, scores = np.asarray(batch.labels), np.asarray(batch.scores)
        return kdk_reference.kdk_targets(scores, labels, 3, 0.5)

    agree(
        spec,
        defenses={"kdk": {"epsilon": 0.5, "k": 3}, "compression": {"keep_rate": 0.25}},
        targets=targets,
        defend=lambda p, g: compression_reference.keep_largest(g, 0.25),
    )


@pytest.mark.parametrize(
    "chain", [{"kdk": {"epsilon": 1.0, "k": 2}}, {"label_dp": {"epsilon": 0.0}}], ids=str
)
def test_metrics_count_true_labels_whatever_targets_and_later_slots_are(chain):
    """KDk at epsilon = 1 puts no mass on the label; what label DP draws at 0 has nothing to do with it."""
    spec = harness.make_spec(defenses=tuple(chain))
    hparams = harness.make_hparams(spec, chain)
    batch, state = harness.make_batch(spec, 0), harness.make_state(spec, hparams)
    logits = harness.quick_jit(protocol.make_predict(spec))(state.weights, batch.features)
    batch = batch._replace(labels=jnp.argmax(logits, axis=1).astype(jnp.int32))
    _, _, metrics = harness.jitted_step(spec)(state, batch, hparams)
    assert metrics.correct == spec.batch_size


def test_parties_drop_units_by_draws_of_their_own():
    spec = harness.make_spec(hidden=(16,))
    dropping = dataclasses.replace(spec.bottoms[0], dropout=0.5)
    spec = dataclasses.replace(spec, bottoms=(dropping,) * 3)
    hparams, batch = harness.make_hparams(spec), harness.make_batch(spec, 0)
    state = harness.make_state(spec, hparams)
    same = state.weights._replace(bottoms=(state.weights.bottoms[0],) * 3)
    batch = batch._replace(features=(batch.features[0],) * 3)
    _, exchange, _ = harness.jitted_step(spec)(state._replace(weights=same), batch, hparams)
    assert np.any(exchange.embeddings[0] != exchange.embeddings[1])


@pytest.mark.parametrize("label_features", [True, False])
def test_only_passive_parties_tensors_are_exchanged(label_features):
    """The label party's own embedding and gradient differ in width, so none can hide among them."""
    count = 2 + label_features
    spec = harness.make_spec(label_features=label_features)
    spec = dataclasses.replace(spec, bottoms=tuple(MLP((), width) for width in (3, 4, 7)[:count]))
    hparams = harness.make_hparams(spec)
    _, exchanges, _ = harness.run_steps(spec, hparams, [harness.make_batch(spec, 0)])
    shapes = [z.shape for z in exchanges[0].embeddings], [g.shape for g in exchanges[0].gradients]
    assert shapes == ([(8, 3), (8, 4)],) * 2
    assert len(jax.tree.leaves(exchanges[0])) == 5  # and the index, nothing else


def test_cut_gradients_carry_one_over_the_batch_size():
    """Without splitting they are (softmax - target) / B; every batch row twice halves them."""
    spec = harness.make_spec(split=False)
    hparams = harness.make_hparams(spec)
    batch = harness.make_batch(spec, 0)
    twice = jax.tree.map(lambda a: jnp.concatenate([a, a]), batch)
    (_, one, _), (_, two, _) = (
        harness.run_steps(spec, hparams, [one_batch]) for one_batch in (batch, twice)
    )
    z = sum(np.float64(z) for z in one[0].embeddings)
    state = harness.make_state(spec, hparams)
    z = np.float64(harness.quick_jit(protocol.make_predict(spec))(state.weights, batch.features))
    p = np.exp(reference.log_softmax(z))
    expected = (p - np.eye(5)[np.asarray(batch.labels)]) / 8
    for small, large in zip(one[0].gradients, two[0].gradients):
        np.testing.assert_allclose(small, expected, atol=1e-6)
        np.testing.assert_allclose(large[:8], small / 2, atol=1e-7)
        np.testing.assert_allclose(large[8:], small / 2, atol=1e-7)


@pytest.mark.parametrize("scope", ["passive", "all"])
def test_scope_decides_whether_the_label_partys_gradient_is_treated_and_the_tops_is_not(scope):
    """Compression to nothing stops a treated bottom; weight decay is off."""
    spec = harness.make_spec(defenses=("compression",), scope=scope)
    plain = harness.make_spec()
    batch = harness.make_batch(spec, 0)
    nothing = {"compression": {"keep_rate": 0.0}}
    silent = harness.make_hparams(spec, nothing, weight_decay=0.0)
    initial = harness.make_state(spec, silent).weights.bottoms
    stopped, exchanges, _ = harness.run_steps(spec, silent, [batch])
    free, _, _ = harness.run_steps(plain, harness.make_hparams(plain, weight_decay=0.0), [batch])
    harness.assert_same_bits(stopped.weights.bottoms[:2], initial[:2])
    harness.assert_same_bits(stopped.weights.active, free.weights.active)  # is never treated
    assert not np.any(exchanges[0].gradients)
    label_party = stopped.weights.bottoms[2]
    harness.assert_same_bits(
        label_party, free.weights.bottoms[2] if scope == "passive" else initial[2]
    )
    assert np.any(np.asarray(free.weights.bottoms[2]["params"]["Dense_0"]["bias"]) != 0)


def test_the_learning_rate_falls_at_each_milestone():
    spec = harness.make_spec()  # 3 steps an epoch
    batch = harness.make_batch(spec, 0)
    plain = {"momentum": 0.0, "weight_decay": 0.0}
    hparams = harness.make_hparams(spec, milestones=(1, 2), decay=0.5, **plain)
    state = harness.make_state(spec, hparams)
    step = harness.jitted_step(spec)
    for number, rate in ((0, 0.1), (2, 0.1), (3, 0.05), (5, 0.05), (6, 0.025), (8, 0.025)):
        moved, _, _ = step(state._replace(step=jnp.int32(number)), batch, hparams)
        first, _, _ = step(state, batch, hparams)
        ratio = rate / 0.1
        for a, b, start in zip(
            *map(harness.numbers, (moved.weights, first.weights, state.weights))
        ):
            np.testing.assert_allclose(a - start, ratio * (b - start), rtol=1e-4, atol=1e-7)


def test_a_step_is_a_pure_function_of_state_batch_and_numbers():
    spec = harness.make_spec(defenses=("noise",))
    hparams = harness.make_hparams(spec, {"noise": {"scale": 0.1}})
    batch, state = harness.make_batch(spec, 0), harness.make_state(spec, hparams)
    step = harness.jitted_step(spec)
    harness.assert_same_bits(step(state, batch, hparams), step(state, batch, hparams))


def test_two_steps_of_an_epoch_draw_different_noise():
    spec = harness.make_spec(defenses=("noise",))  # 3 steps an epoch
    hparams = harness.make_hparams(spec, {"noise": {"scale": 0.1}})
    batch, state = harness.make_batch(spec, 0), harness.make_state(spec, hparams)
    step = harness.jitted_step(spec)
    first, second = (
        step(state._replace(step=jnp.int32(number)), batch, hparams)[1] for number in (0, 1)
    )
    for one, two in zip(first.gradients, second.gradients, strict=True):
        assert np.all(np.asarray(one) != np.asarray(two))


def test_initial_weights_depend_on_the_seed_alone_and_differ_between_parties():
    spec = harness.make_spec()
    with_noise = harness.make_spec(defenses=("noise",), scope="passive", batch_size=4)
    weights = harness.quick_jit(protocol.make_weights(spec))
    rng = np.random.default_rng(0)
    features = tuple(jnp.float32(rng.normal(size=(3, harness.COLUMNS))) for _ in spec.bottoms)
    one = weights(keys.run_key(0), features)
    zeros = tuple(jnp.zeros((3, harness.COLUMNS)) for _ in spec.bottoms)
    noisy = harness.quick_jit(protocol.make_weights(with_noise))
    harness.assert_same_bits(one, noisy(keys.run_key(0), zeros))
    kernels = [v["params"]["Dense_0"]["kernel"] for v in one.bottoms]
    assert np.all(np.asarray(kernels[0]) != np.asarray(kernels[1]))
    assert np.all(np.asarray(kernels[1]) != np.asarray(kernels[2]))
    other = weights(keys.run_key(1), features).bottoms[0]["params"]["Dense_0"]["kernel"]
    assert np.all(np.asarray(other) != np.asarray(kernels[0]))


@pytest.mark.parametrize("changes", [{}, {"aggregation": "mean"}, {"split": False}], ids=str)
def test_predictions_are_the_twins_logits(changes):
    spec = harness.make_spec(**changes)
    state = harness.make_state(spec, harness.make_hparams(spec))
    batch = harness.make_batch(spec, 3)
    logits = harness.quick_jit(protocol.make_predict(spec))(state.weights, batch.features)
    bottoms, top = nets_of(state.weights)
    features = [np.float64(x) for x in batch.features]
    expected = reference.logits_of(bottoms, top, features, spec.aggregation)
    np.testing.assert_allclose(logits, expected, atol=1e-5)


def test_training_moves_the_tops_batch_statistics_and_predictions_read_them():
    spec = dataclasses.replace(harness.make_spec(passive=1), top=Head((), 5))
    hparams = harness.make_hparams(spec, learning_rate=0.0)
    batch, state = harness.make_batch(spec, 0), harness.make_state(spec, hparams)
    after, _, _ = harness.jitted_step(spec)(state, batch, hparams)
    embed = harness.quick_jit(protocol.make_embed(spec))
    cut = np.concatenate(embed(state.weights, batch.features), axis=1)
    statistics = after.weights.active["batch_stats"]["BatchNorm_0"]
    np.testing.assert_allclose(statistics["mean"], 0.1 * cut.mean(axis=0), atol=1e-6)
    np.testing.assert_allclose(statistics["var"], 0.9 + 0.1 * cut.var(axis=0), atol=1e-5)
    harness.assert_same_bits(after.weights.active["params"], state.weights.active["params"])
    predict = harness.quick_jit(protocol.make_predict(spec))
    before, now = (predict(s.weights, batch.features) for s in (state, after))
    assert np.any(np.abs(before - now) > 1e-3)
    rows = tuple(x[:1] for x in batch.features)  # evaluation treats rows alone
    np.testing.assert_allclose(predict(after.weights, rows), now[:1], atol=1e-5)
