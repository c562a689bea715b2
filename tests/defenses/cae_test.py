"""CAE: its training, what its codebooks are like, how predictions are read, and who reads the codes."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests import harness, sweeps
from tests.federation.protocol_test import nets_of
from tests.reference import cae as reference
from tests.reference import protocol as twin
from vfljax import defenses, store
from vfljax.attacks.direct import RULES
from vfljax.defenses import cae
from vfljax.defenses.core import TrainingData
from vfljax.errors import UserError
from vfljax.sweep import codebooks

KEY = jax.random.key(3)


def test_the_loss_agrees_with_the_twin():
    networks = {
        name: jax.tree.map(lambda a: 50 * a + 0.1, cae.init_network(jax.random.key(i), 3, 4))
        for i, name in enumerate(("encoder", "decoder"))
    }
    y = cae.random_rows(KEY, 3, 0.05)
    for confusion in (0.0, 0.7):
        expected = reference.loss(networks, np.float64(y), confusion)
        np.testing.assert_allclose(cae.loss(networks, y, confusion), expected, rtol=1e-5)


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


@functools.cache
def trained(classes, confusions, seeds=1):
    """Codebooks [seeds, confusions, C, C] of the default set-up, and their decoders."""

    def one(key, confusion):
        return cae.cae(confusion).codebook(key, classes)

    over = jax.vmap(jax.vmap(one, in_axes=(None, 0)), in_axes=(0, None))
    keys = jax.vmap(jax.random.key)(jnp.arange(seeds))
    out = jax.jit(over)(keys, jnp.asarray(confusions, jnp.float32))
    return np.asarray(out["codebook"]), out["decoder"]


def decodes(book, decoder):
    """The share of classes that V names from their code."""
    return np.mean(np.argmax(cae.forward(decoder, book), -1) == np.arange(len(book)))


def member(tree, *place):
    return jax.tree.map(lambda a: a[place], tree)


@pytest.mark.parametrize("classes", [2, pytest.param(10, marks=pytest.mark.slow)])
def test_the_default_codebook_is_what_the_docstring_says(classes):
    books, decoders = trained(classes, (0.0, 1.0))
    plain, confused = books[0]
    for i, book in enumerate(books[0]):
        np.testing.assert_allclose(book.sum(axis=1), 1, rtol=1e-5)
        assert decodes(book, member(decoders, 0, i)) == 1
    assert np.diag(plain).max() < 1e-3
    if classes == 2:
        np.testing.assert_allclose(plain, [[0, 1], [1, 0]], atol=1e-3)
        assert 0.04 < np.diag(confused).mean() < 0.08
    else:
        assert np.sort(plain, axis=1)[:, -1].mean() > 0.8  # nearly a permutation
        assert np.diag(confused).max() < 2e-3
        assert confused.max() < 0.5


@pytest.mark.parametrize(
    ("classes", "spread", "least"),
    [pytest.param(10, 0.1, 0.9, marks=pytest.mark.slow), (2, 1.0, 0.9)],
)
def test_at_epoch_0_the_most_positive_entry_names_the_label_and_the_published_rule_misses_it(
    classes, spread, least
):
    """Random logits are the state at epoch 0; gradients are softmax(logits) - code."""
    books, _ = trained(classes, (0.0, 1.0))
    rng = np.random.default_rng(0)
    labels = rng.integers(classes, size=4000)
    p = jax.nn.softmax(jnp.asarray(rng.normal(size=(4000, classes)) * spread, jnp.float32))
    g = p - books[0, 1][labels]

    def right(rule):
        return np.mean(np.argmax(RULES[rule](g), axis=1) == labels)

    assert right("most_positive") > least
    assert max(right("first_negative"), right("most_negative")) < (0.05 if classes == 10 else 0.1)
    # and known rows undo the code: the nearest mean gradient of 4 rows a class
    known = np.concatenate([np.flatnonzero(labels == c)[:4] for c in range(classes)])
    means = np.stack(
        [np.asarray(g)[known][labels[known] == c].mean(axis=0) for c in range(classes)]
    )
    distances = np.linalg.norm(np.asarray(g)[:, None] - means[None], axis=-1)
    assert np.mean(distances.argmin(axis=1) == labels) > (0.9 if classes == 10 else 0.75)


@pytest.mark.parametrize("classes", [2, pytest.param(10, marks=pytest.mark.slow)])
def test_a_model_that_predicts_codes_is_read_as_predicting_labels(classes):
    books, decoders = trained(classes, (0.0, 1.0))
    labels = jnp.arange(classes)
    for i in range(2):
        state = {"codebook": jnp.asarray(books[0, i]), "decoder": member(decoders, 0, i)}
        logits = jnp.log(state["codebook"][labels] + 1e-9) + 3.0  # up to a constant
        scores = cae.cae(1.0).read(state, logits)
        np.testing.assert_array_equal(np.argmax(scores, axis=1), labels)
        assert np.mean(np.argmax(logits, axis=1) == labels) < 0.1


def test_a_step_agrees_with_the_protocols_twin_on_codes():
    spec = harness.make_spec(5, ("cae",))
    hparams = harness.make_hparams(spec, {"cae": {"confusion": 1.0, "learning_rate": 1e-2}})
    state, batch = harness.make_state(spec, hparams), harness.make_batch(spec, 0)
    book = np.float64(state.defense["cae"]["codebook"])
    features = [np.float64(x) for x in batch.features]
    bottoms, top = nets_of(state.weights)
    goal = book[np.asarray(batch.labels)]
    *_, expected = twin.step(
        *(bottoms, top, twin.start([*bottoms, top]), features, goal), lr=0.1, mu=0.9, wd=5e-4
    )
    _, (exchange,), (metrics,) = harness.run_steps(spec, hparams, [batch])
    for p in range(spec.passive):
        np.testing.assert_allclose(exchange.gradients[p], expected.gradients[p], atol=1e-6)
    decoder = state.defense["cae"]["decoder"]
    scores = reference.logits(decoder, reference.softmax(expected.logits))
    assert metrics.correct == np.sum(scores.argmax(axis=1) == np.asarray(batch.labels))


def test_init_takes_the_codebook_it_is_given_and_else_trains_the_same():
    defense = defenses.chain(cae=cae.cae(0.5, steps=20, width=8))
    data = TrainingData(jnp.zeros(4, jnp.int32), None, 3)
    alone = defense.init(KEY, data)
    book = defense.codebook(KEY, 3)
    harness.assert_close(alone, book, 1e-6)
    other = jax.tree.map(lambda a: a + 1, book)
    harness.assert_same_bits(defense.init(KEY, data._replace(codebook=other)), other)


def test_networks_too_large_to_train_are_refused_when_planned():
    assert cae.cae(1.0, width=0).codebook  # for which classes is not known yet
    with pytest.raises(ValueError, match="145,686,608 numbers at width 362,404.*at most 248,755"):
        jax.eval_shape(lambda: cae.cae(1.0, width=0).codebook(KEY, 100))
    jax.eval_shape(lambda: cae.cae(1.0, width=202**2).codebook(KEY, 100))  # what was released
    chain = {"cae": {"confusion": 1.0, "width": 3_000_000}}
    with pytest.raises(UserError, match=r"config\.grid\.x: cae's networks for 10 classes"):
        sweeps.plan_of(sweeps.tiny(grid={"x": chain}, attacks={}))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"width": -1}, "width=-1 is out of range: give a whole number"),
        ({"steps": 0}, "steps=0 is out of range: give a whole number from 1"),
        ({"steps": 1.5}, "steps=1.5 is no whole"),
        ({"temperature": 0.0}, "temperature=0.0 is out of range"),
    ],
)
def test_options_out_of_range_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        cae.cae(1.0, **options)


def test_a_sweep_trains_each_codebook_once_and_stores_it_and_what_reads_predictions(
    tmp_path, monkeypatch
):
    made = []
    train = codebooks._train

    def counted(maker, identities, num_classes):
        made.extend(identities)
        return train(maker, identities, num_classes)

    monkeypatch.setattr(codebooks, "_train", counted)
    code = {"confusion": (0.0, 1.0), "steps": 300, "width": 16}
    config = sweeps.tiny(
        grid={"dcae": {"cae": code, "discrete_sgd": {"intervals": (6, 12)}}},
        attacks={},
        **{"data.train": 160, "training.epochs": 2},
    )
    stored = sweeps.train(tmp_path, config)
    plan = sweeps.plan_of(config)
    assert sorted(made) == sorted({*made})
    assert len(made) == 4  # 2 seeds, 2 confusions, whatever else is in the chain
    arrays = store.read_keyed(tmp_path, codebooks.CODEBOOKS)
    books = [array for array in arrays.values() if array.shape == (10, 10)]
    assert len(books) == 4
    by_identity = {}
    for row in stored.results.to_pylist():
        held = stored.trial(row["trial"]).weights()["defenses"]["cae"]
        first = by_identity.setdefault((row["seed"], row["cae.confusion"]), held)
        harness.assert_same_bits(first, held)
        assert any(np.array_equal(held["codebook"], book) for book in books)
        assert sum(a.size for a in jax.tree.leaves(held)) == codebooks.numbers(plan.groups[0].spec)
    assert len(by_identity) == 4
    # what is stored is read again, and the same
    again = codebooks.codebooks(plan.groups, tmp_path)
    assert len(made) == 4
    assert set(again) == {row["trial"] for row in stored.results.to_pylist()}
    # and one that is not there yet is trained beside
    code = {**code, "confusion": (0.0, 1.0, 2.0)}
    more = sweeps.plan_of({**config, "grid": {"cae": {"cae": code}}})
    codebooks.train(more.groups, tmp_path)
    assert sorted(dict(knobs)["confusion"] for _, knobs in made[4:]) == [2.0, 2.0]
    for name, array in arrays.items():
        np.testing.assert_array_equal(store.read_keyed(tmp_path, codebooks.CODEBOOKS)[name], array)


@pytest.mark.slow
@pytest.mark.parametrize("classes", [2, 10])
def test_measured_codebooks(classes):
    """Prints the table of the docstring."""
    confusions = (0.0, 0.1, 0.5, 1.0, 2.0)
    books, decoders = trained(classes, confusions, seeds=3)
    wrong = ~np.eye(classes, dtype=bool)
    for i, confusion in enumerate(confusions):
        some = books[:, i]
        own = np.mean([np.diag(b) for b in some])
        argmax = np.mean([len(set(b.argmax(axis=1))) for b in some])
        least = np.mean([b[wrong].min() for b in some])
        decoded = np.mean([decodes(b, member(decoders, s, i)) for s, b in enumerate(some)])
        print(f"    {classes:<2} {confusion:<4} {own:.0e} {argmax:.1f} {least:.2f} {decoded:.2f}")
        assert decoded > (0.9 if confusion == 0 else 0.99)
