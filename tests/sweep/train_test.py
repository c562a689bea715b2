"""The main job: one compile a structure, pairing by seed, resume, divergence, exhausted memory."""

import threading
from concurrent.futures import ThreadPoolExecutor

import jax
import numpy as np
import pytest

from tests import sweeps
from tests.sweeps import comparable, plan_of, tiny
from vfljax import store
from vfljax.attack_runs import batching
from vfljax.federation import training
from vfljax.sweep import grid, programs, shard_trainer, train
from vfljax.sweep.grid import parse
from vfljax.sweep.progress import Progress
from vfljax.types import Federation

# most sweeps of this file are of one program, of four trials or of two
DIRECT = {"direct": {"rule": "most_negative"}}
SMALL = {"grid": {"undefended": {}}, "federations": ("no_split",), "attacks": DIRECT}
FOUR = tiny(**SMALL, **{"training.learning_rate": (0.05, 0.06)})


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Four trials, two at once on each device, which nothing happened to."""
    return sweeps.train(tmp_path_factory.mktemp("whole") / "w", FOUR)


def test_the_order_of_rows_is_made_once_an_epoch_for_all_groups(monkeypatch):
    planned = plan_of(tiny())
    orders, drawn = train.Orders(planned), []
    original = training.epoch_of
    monkeypatch.setattr(training, "epoch_of", lambda *a: drawn.append(1) or original(*a))
    first, again = orders.of(1), orders.of(1)
    assert len(drawn) == 1
    np.testing.assert_array_equal(first.order, again.order)
    monkeypatch.setattr(
        "vfljax.sweep.shard_trainer.ORDER_BYTES", 0
    )  # none fits: drawn anew, the same
    scarce = train.Orders(planned)
    np.testing.assert_array_equal(scarce.of(1).place, first.place)
    np.testing.assert_array_equal(scarce.of(1).order, first.order)
    assert len(drawn) == 3


@pytest.mark.parametrize(
    ("precision", "fails", "in_its_turn"),
    [(None, False, [False]), (None, True, [False, True]), ("highest", False, [True])],
)
def test_what_fails_ahead_or_would_miss_a_context_is_made_in_its_own_turn(
    precision, fails, in_its_turn, tmp_path, monkeypatch
):
    planned, calls, trained = plan_of(tiny()), [], []
    first, second = planned.shards[0], next(s for s in planned.shards if s.group)

    def trainer_of(plan, shard, *_):
        calls.append((shard, threading.current_thread() is threading.main_thread()))
        if fails and len(calls) == 2:
            raise ValueError("as the code of a defense")
        return shard

    monkeypatch.setattr(train, "Trainer", trainer_of)
    monkeypatch.setattr(train, "train_shard", lambda shard, *_: trained.append(shard))
    monkeypatch.setattr(train.Training, "_stored_width", lambda *_: None)
    with ThreadPoolExecutor(1) as pool, jax.default_matmul_precision(precision):
        training = train.Training(planned, tmp_path, pool)
        training.train(first, second, Progress("", 1, 1))
        training.train(second, None, Progress("", 1, 1))
    assert calls == [(first, True), *((second, turn) for turn in in_its_turn)]
    assert trained == [first, second]


def test_epsilon_zero_and_k_one_are_the_undefended_run_bit_for_bit(tiny_sweep):
    rows = store.load(tiny_sweep).results.to_pylist()
    assert [row["trial"] for row in rows] == list(range(24))
    assert {row["status"] for row in rows} == {"ok"}
    plain = {(r["federation"], r["seed"]): r for r in rows if r["method"] == "undefended"}
    neutral = [r for r in rows if r["kdk.epsilon"] == 0 or r["kdk.k"] == 1]
    assert len(neutral) == 3 * 4
    for row in neutral:
        twin = plain[row["federation"], row["seed"]]
        assert row["loss"] == twin["loss"]
        assert row["test_loss"] == twin["test_loss"]
    changed = next(r for r in rows if r["kdk.epsilon"] == 0.45 and r["kdk.k"] == 3)
    assert changed["loss"] != plain[changed["federation"], changed["seed"]]["loss"]


def undefended_in(sweep, federation="no_split"):
    """The rows of a sweep's undefended trials in a federation, by seed."""
    rows = sweep.results.to_pylist()
    of = [r for r in rows if (r["method"], r["federation"]) == ("undefended", federation)]
    return {row["seed"]: row for row in of}


def test_a_later_first_seed_gives_the_trial_and_the_attack_of_that_seed(tiny_sweep, tmp_path):
    both = store.load(tiny_sweep)
    later = sweeps.train(tmp_path / "later", FOUR | {"first_seed": 1})
    rows = [row for row in later.results.to_pylist() if row["learning_rate"] == 0.05]
    assert [row["seed"] for row in rows] == [1, 2]
    row, expected = rows[0], undefended_in(both)[1]
    np.testing.assert_allclose(row["loss"], expected["loss"], rtol=1e-5)
    assert row["test_loss"] == pytest.approx(expected["test_loss"], rel=1e-5)
    (attacked,) = (r for r in later.attacks.to_pylist() if r["trial"] == row["trial"])
    place = {"trial": expected["trial"], "label": attacked["label"]}
    (expected,) = (r for r in both.attacks.to_pylist() if place.items() <= r.items())
    assert attacked["leak"] == pytest.approx(expected["leak"], rel=1e-5)


def test_settings_of_one_seed_see_the_same_batches(tiny_sweep):
    stored = store.load(tiny_sweep)
    orders = {}
    for row in stored.results.to_pylist():
        orders.setdefault(row["seed"], []).append(stored.trial(row["trial"]).exchange()["order"])
    for of_seed in orders.values():
        assert all((of_seed[0] == other).all() for other in of_seed)
    assert (orders[0][0] != orders[1][0]).any()


def test_undefended_direct_attack_without_splitting_is_always_right(tiny_sweep):
    stored = store.load(tiny_sweep)
    plain = {row["trial"] for row in undefended_in(stored).values()}
    rows = [r for r in stored.attacks.to_pylist() if r["trial"] in plain]
    direct = [r for r in rows if r["attack"] == "direct"]
    assert len(direct) == 4
    assert all(r["success"] == 1 for r in direct)


def test_a_diverging_setting_is_reported_not_attacked_and_changes_no_other(whole, tmp_path):
    """And a sweep of other knobs shares all programs of an earlier one; a second trace would raise."""
    before = {*programs._PROGRAMS}
    wild = sweeps.train(tmp_path / "w", tiny(**SMALL, **{"training.learning_rate": (0.05, 1e30)}))
    assert before >= {*programs._PROGRAMS}
    rows = wild.results.to_pylist()
    kept = [row for row in rows if row["learning_rate"] < 1]
    calm = {r["seed"]: r for r in whole.results.to_pylist() if r["learning_rate"] == 0.05}
    assert len(kept) == len(calm) == 2
    for row in kept:
        np.testing.assert_allclose(row["loss"], calm[row["seed"]]["loss"], rtol=1e-5)
    broken = [row for row in rows if row["learning_rate"] > 1]
    assert {row["status"] for row in broken} == {"diverged"}
    assert all(row["test_accuracy"] is None for row in broken)
    assert {*wild.attacks["trial"].to_pylist()} == {row["trial"] for row in kept}


def test_divergence_is_dated_to_the_first_epoch_whose_loss_is_not_finite():
    """And to the last epoch where all losses are finite, but not the weights."""
    config = parse(tiny(**SMALL, seeds=1))
    (trial,) = grid.trial_rows(grid.trials(config, [Federation()]))
    loss = np.float32([[0.7, np.inf, np.nan, np.nan], [0.7, 0.6, 0.5, 0.4], [0.7, 0.6, 0.5, 0.4]])
    nothing, pooled = np.zeros(0), np.full_like(loss, 0.3)
    record = training.Record((), (), nothing, nothing, (), loss, loss, pooled)
    figures = {"inverted": np.array([0, 0, 1])}
    rows = [
        shard_trainer._row(trial, "0", member, figures, record, finite, 1.0, "train_accuracy")
        for member, finite in enumerate((False, False, True))
    ]
    assert [row["diverged_epoch"] for row in rows] == [1, 3, None]
    assert [row["status"] for row in rows] == ["diverged", "diverged", "ok"]
    # the evaluation of the released code, as it is and oriented as the final model on validation rows
    assert "test_pooled_auc" not in rows[0]
    assert rows[2]["test_pooled_auc"] == pytest.approx(0.3)
    assert rows[2]["test_pooled_oriented_auc"] == pytest.approx(0.7)


@pytest.mark.parametrize("ends", [KeyboardInterrupt, SystemExit])
def test_an_interrupt_saves_what_is_trained(whole, tmp_path, monkeypatch, ends):
    original, epochs = Progress.update, []

    def update(self, *arguments):
        epochs.append(1)
        if len(epochs) == 3:
            raise ends
        original(self, *arguments)

    monkeypatch.setattr(Progress, "update", update)
    with pytest.raises(ends):
        sweeps.train(tmp_path / "w", FOUR, attack=False)
    assert [path.name for path in (tmp_path / "w" / "partial").glob("shards/*/*")] == ["2"]
    found = sweeps.train(tmp_path / "w", FOUR, attack=False)
    assert comparable(found.results) == comparable(whole.results)
    assert len(epochs) == 3 + 2  # the epoch that is left, and the end of its shard


def test_exhausted_memory_halves_the_settings_at_once_for_good_and_the_figures_stay(
    whole, tmp_path, monkeypatch, capsys
):
    workdir = tmp_path / "narrow"
    (shard,) = (s["name"] for s in whole.header["shards"])
    assert store.width_of_shard(whole.workdir, shard) == 2
    run, written = programs.Program.__call__, store.write_shard

    def at_most_one(self, *arguments, **rest):
        if self.layout.width > 1:
            raise jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: Out of memory allocating")
        return run(self, *arguments, **rest)

    def killed(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(programs.Program, "__call__", at_most_one)
    monkeypatch.setattr(batching, "mapped_at_once", lambda *_: 6)  # attacks are as wide as training
    monkeypatch.setattr(shard_trainer, "SAVE_SECONDS", 0.0)
    monkeypatch.setattr(store, "write_shard", killed)
    with pytest.raises(KeyboardInterrupt):
        sweeps.train(workdir, FOUR)
    why = "RESOURCE_EXHAUSTED: Out of memory allocating"
    exhausts = f"{{}}: 4 trials at once do not fit ({why}), goes on with 2\n".format
    assert exhausts("undefended-no_split") in capsys.readouterr().err
    assert store.width_of_shard(workdir, shard) == 1
    monkeypatch.setattr(store, "write_shard", written)
    found = sweeps.train(workdir, FOUR)
    said = capsys.readouterr().err
    assert exhausts("undefended-no_split") not in said  # a shard that goes on keeps its width
    assert exhausts("direct/most_negative") in said
    assert store.width_of_shard(workdir, shard) == 1
    for table in ("results", "attacks"):
        pairs = zip(*(comparable(getattr(s, table)) for s in (found, whole)), strict=True)
        for row, expected in pairs:
            figures = {n: v for n, v in row.items() if isinstance(v, float | list)}
            assert row == expected | figures
            for name, value in figures.items():
                assert value == pytest.approx(expected[name], abs=1e-4)
