"""CAE: its training, what its codebooks are like, how predictions are read, and who reads the codes."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests import harness, sweeps
from tests.federation.protocol_test import nets_of
from tests.reference import cae as reference
from tests.reference import protocol as twin
from tests.reference.common import softmax
from vfljax import store
from vfljax.attacks.direct import RULES
from vfljax.defenses import cae
from vfljax.errors import UserError
from vfljax.federation import protocol, training
from vfljax.sweep import codebooks
from vfljax.types import DefenseSpec, Weights

KEY = jax.random.key(3)


def test_training_agrees_with_the_twin(monkeypatch):
    monkeypatch.setattr(cae, "BATCH", 5)
    monkeypatch.setattr(cae, "DEVIATION", 0.5)  # steps of 1e-2 would drown gradients of .01 weights
    drawn = []
    rows = cae.random_rows

    def kept(*arguments):
        y = rows(*arguments)
        jax.debug.callback(lambda y: drawn.append(np.asarray(y)), y, ordered=True)
        return y

    monkeypatch.setattr(cae, "random_rows", kept)
    networks = cae.train(KEY, 3, 0.7, 1e-2, 4, 3, 0.05)
    jax.effects_barrier()
    start = {
        name: cae.init_network(cae.keys.fold(KEY, name), 3, 4) for name in ("encoder", "decoder")
    }
    assert len(drawn) == 3
    expected = reference.train(start, drawn, 0.7, 1e-2)
    harness.assert_close(networks, expected, 1e-4)
    assert np.max(np.abs(networks["encoder"]["kernel_0"] - start["encoder"]["kernel_0"])) > 0.02


def test_rows_are_sharpened_probabilities():
    y = np.asarray(cae.random_rows(KEY, 4, 0.025), np.float64)
    np.testing.assert_allclose(y.sum(axis=1), 1, rtol=1e-5)
    flat = np.asarray(cae.random_rows(KEY, 4, 1.0), np.float64)
    sharp = flat ** (1 / 0.025)
    np.testing.assert_allclose(y, sharp / sharp.sum(axis=1, keepdims=True), rtol=1e-3, atol=1e-6)
    assert np.ptp(flat.argmax(axis=1)) == 3


def test_a_step_agrees_with_the_protocols_twin_on_codes():
    spec = harness.make_spec(5, (DefenseSpec("cae", (("steps", 100),)),))
    hparams = harness.make_hparams(spec, {"cae": {"confusion": 1.0, "learning_rate": 1e-2}})
    state, batch = harness.make_state(spec, hparams), harness.make_batch(spec, 0)
    book = np.float64(state.defense["cae"]["codebook"])
    features = [np.float64(x) for x in batch.features]
    bottoms, top = nets_of(state.weights)
    goal = book[np.asarray(batch.labels)]
    *_, expected = twin.step(
        bottoms, top, twin.start([*bottoms, top]), features, goal, lr=0.1, mu=0.9, wd=5e-4
    )
    _, (exchange,), (metrics,) = harness.run_steps(spec, hparams, [batch])
    for p in range(spec.passive):
        np.testing.assert_allclose(exchange.gradients[p], expected.gradients[p], atol=1e-6)
    decoder = state.defense["cae"]["decoder"]
    scores = reference.logits(decoder, softmax(expected.logits))
    assert metrics.correct == np.sum(scores.argmax(axis=1) == np.asarray(batch.labels))
    read = cae.decode(decoder, jnp.asarray(expected.logits, jnp.float32))
    np.testing.assert_allclose(read, scores, rtol=1e-3, atol=1e-4)


def test_networks_too_large_to_train_are_refused_when_planned():
    assert cae.cae(1.0, width=0).codebook  # for which classes is not known yet
    with pytest.raises(ValueError, match="145,686,608 numbers at width 362,404.*at most 248,755"):
        jax.eval_shape(lambda: cae.cae(1.0, width=0).codebook(KEY, 100))
    jax.eval_shape(lambda: cae.cae(1.0, width=202**2).codebook(KEY, 100))  # what was released
    chain = {"cae": {"confusion": 1.0, "width": 3_000_000}}
    with pytest.raises(UserError, match=r"config\.grid\.x: cae's networks for 10 classes"):
        sweeps.plan_of(sweeps.tiny(grid={"x": chain}, attacks={}))


def test_a_sweep_trains_each_codebook_once_and_stores_what_reads_its_predictions(
    tmp_path, monkeypatch
):
    made = []
    train = codebooks._train

    def counted(maker, identities, num_classes):
        made.extend(identities)
        return train(maker, identities, num_classes)

    monkeypatch.setattr(codebooks, "_train", counted)
    code = {"confusion": (0.0, 1.0), "steps": 50, "width": 8}
    config = sweeps.tiny(
        grid={"code": {"cae": code, "noise": {"scale": (0.0, 0.01)}}},
        attacks={},
        seeds=1,
        **{"training.epochs": 1, "model.hidden": ()},
    )
    stored = sweeps.train(tmp_path, config, attack=False)
    plan = sweeps.plan_of(config)
    assert sorted(knobs for _, knobs in made) == sorted({knobs for _, knobs in made})
    assert len(made) == 2  # confusions, whatever else is in the chain
    arrays = store.read_keyed(tmp_path, codebooks.CODEBOOKS)

    (group,) = plan.groups
    test = plan.table.test[0]
    features = training.rows_of(plan.table, jnp.int32(0), test)
    predict = harness.quick_jit(protocol.make_predict(group.spec))
    for row in stored.results.to_pylist():
        weights = stored.trial(row["trial"]).weights()
        states = weights["defenses"]
        assert any(np.array_equal(states["cae"]["codebook"], array) for array in arrays.values())
        assert sum(a.size for a in jax.tree.leaves(states)) == codebooks.numbers(group.spec)
        bottoms = tuple(weights["bottoms"][str(p)] for p in range(len(weights["bottoms"])))
        scores = predict(Weights(bottoms, weights["active"]), features, states)
        again = np.mean(np.argmax(scores, -1) == plan.table.labels[test])
        assert row["test_accuracy"] == pytest.approx(float(again), abs=1e-6)
    assert len(stored.results) == 4
    # what is stored is read again, and one that is not there yet is trained beside
    assert set(codebooks.codebooks(plan.groups, tmp_path)) == {*group.trials["trial"]}
    code = {**code, "confusion": (0.0, 1.0, 2.0)}
    more = sweeps.plan_of({**config, "grid": {"cae": {"cae": code}}})
    codebooks.train(more.groups, tmp_path)
    assert [dict(knobs)["confusion"] for _, knobs in made[2:]] == [2.0]
    for name, array in arrays.items():
        np.testing.assert_array_equal(store.read_keyed(tmp_path, codebooks.CODEBOOKS)[name], array)


@pytest.mark.slow
@pytest.mark.parametrize("classes", [2, 10])
def test_measured_codebooks(classes):
    """Prints the table of the docstring. An attacker at epoch 0 reads the codes of confusion 1 by their most
    positive entry, and the published rule misses them."""
    confusions = jnp.float32([0.0, 0.1, 0.5, 1.0, 2.0])

    def one(key, confusion):
        return cae.cae(confusion).codebook(key, classes)

    over = jax.vmap(jax.vmap(one, in_axes=(None, 0)), in_axes=(0, None))
    trained = jax.jit(over)(jax.vmap(jax.random.key)(jnp.arange(3)), confusions)
    books, decoders = np.asarray(trained["codebook"]), trained["decoder"]
    wrong = ~np.eye(classes, dtype=bool)
    for i, confusion in enumerate(confusions):
        some = books[:, i]
        own = np.mean([np.diag(b) for b in some])
        argmax = np.mean([len(set(b.argmax(axis=1))) for b in some])
        least = np.mean([b[wrong].min() for b in some])
        read = [
            cae.forward(jax.tree.map(lambda a, s=s, i=i: a[s, i], decoders), b)
            for s, b in enumerate(some)
        ]
        decoded = np.mean(np.argmax(read, axis=-1) == np.arange(classes))
        print(f"    {classes:<2} {confusion:<4} {own:.0e} {argmax:.1f} {least:.2f} {decoded:.2f}")
        assert decoded > (0.9 if confusion == 0 else 0.99)
        np.testing.assert_allclose(some.sum(axis=-1), 1, rtol=1e-5)
    assert np.max([np.diag(b) for b in books[:, 0]]) < 1e-3

    rng = np.random.default_rng(0)  # logits at random: the state at epoch 0
    labels = rng.integers(classes, size=4000)
    p = jax.nn.softmax(jnp.asarray(rng.normal(size=(4000, classes)) * 0.1, jnp.float32))
    g = p - books[0, 3][labels]
    rules = ("most_positive", "first_negative", "most_negative")
    best, *published = (np.mean(np.argmax(RULES[rule](g), axis=1) == labels) for rule in rules)
    assert best > 0.9
    assert max(published) < 0.1
