"""The read slot: predictions are judged as the label party reads them, in training, after it and from disk."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests import harness, sweeps
from vfljax import defenses
from vfljax.defenses import Defense, DefenseRow
from vfljax.federation import protocol, training
from vfljax.types import DefenseSpec, Weights


def turned(shift, *, back=False):
    """Reads class c where the model says c + shift; ``back`` reads it the other way."""
    del shift

    def read(state, logits):
        return jnp.take(logits, state["order"], axis=-1)

    def init(key, data):
        order = jnp.roll(jnp.arange(data.num_classes), 1 if back else -1)
        return {"order": order.astype(jnp.int32)}

    return Defense(init=init, read=read)


@pytest.fixture
def table(monkeypatch):
    for name in ("turned", "turned_back"):
        row = DefenseRow(turned, example={"shift": 1.0}, known_by={})
        monkeypatch.setitem(defenses.TABLE, name, row)


TURNED = DefenseSpec("turned")
BACK = DefenseSpec("turned_back", (("back", True),))


def test_predictions_are_read_in_reverse_order():
    doubled = Defense(read=lambda state, logits: 2 * logits)
    raised = Defense(read=lambda state, logits: logits + 1)
    states = {"first": (), "second": (), "idle": ()}
    both = defenses.chain(first=doubled, idle=Defense(), second=raised)
    np.testing.assert_array_equal(both.read(states, jnp.ones(2)), [4, 4])  # 2 (x + 1)


def test_the_readers_of_a_chain_are_those_with_a_read_slot(table):
    chain = (DefenseSpec("noise"), TURNED, DefenseSpec("kdk"), BACK)
    assert defenses.readers(chain) == (TURNED, BACK)
    assert defenses.readers(chain[:1]) == ()
    logits = jnp.ones((2, 3))
    assert defenses.reader(chain[:1])({}, logits) is logits


def test_a_batch_s_hits_are_counted_as_read_and_nothing_else_changes(table):
    plain = harness.make_spec(5)
    batch = harness.make_batch(plain, 0)

    def seen(specs, knobs):
        spec = dataclasses.replace(plain, defenses=specs)
        return harness.run_steps(spec, harness.make_hparams(spec, knobs), [batch])

    one = {"shift": 1.0}
    state, exchanges, (metrics,) = seen((), {})
    turned_state, turned_exchanges, (turned_metrics,) = seen((TURNED,), {"turned": one})
    harness.assert_same_bits(
        (state.weights, exchanges, metrics.loss),
        (turned_state.weights, turned_exchanges, turned_metrics.loss),
    )
    initial = harness.make_state(plain, harness.make_hparams(plain))
    logits = protocol.make_predict(plain)(initial.weights, batch.features)
    guesses = (np.argmax(logits, -1) - 1) % 5
    assert turned_metrics.correct == np.sum(guesses == batch.labels)
    _, _, (there_and_back,) = seen((TURNED, BACK), {"turned": one, "turned_back": one})
    assert there_and_back.correct == metrics.correct


def test_what_a_sweep_stores_makes_its_figures_again(table, tmp_path):
    config = sweeps.tiny(
        attacks={},
        seeds=1,
        grid={"undefended": {}, "turned": {"noise": {"scale": 0.0}, "turned": {"shift": 1.0}}},
    )
    stored = sweeps.train(tmp_path, config, attack=False)
    plan = sweeps.plan_of(config)
    rows = {row["method"]: row for row in stored.results.to_pylist()}
    weights = {arm: stored.trial(row["trial"]).weights() for arm, row in rows.items()}
    assert "defenses" not in weights["undefended"]
    np.testing.assert_array_equal(
        weights["turned"]["defenses"]["turned"]["order"], np.roll(np.arange(10), -1)
    )
    parts = ("bottoms", "active")
    harness.assert_close(*([weights[arm][part] for part in parts] for arm in rows), 1e-4)

    (group,) = [group for group in plan.groups if group.spec.defenses[-1:] == (TURNED,)]
    predict = jax.jit(protocol.make_predict(group.spec))
    test = plan.table.test[0]
    features = training.rows_of(plan.table, jnp.int32(0), test)
    held = weights["turned"]
    bottoms = tuple(held["bottoms"][str(p)] for p in range(len(held["bottoms"])))
    scores = predict(Weights(bottoms, held["active"]), features, held["defenses"])
    again = np.mean(np.argmax(scores, -1) == plan.table.labels[test])
    assert rows["turned"]["test_accuracy"] == pytest.approx(float(again), abs=1e-6)
    assert rows["turned"]["test_accuracy"] < 0.2 < rows["undefended"]["test_accuracy"]
    assert rows["turned"]["train_accuracy"][-1] < 0.2 < rows["undefended"]["train_accuracy"][-1]
