"""The main job: one compile a structure, pairing by seed, resume, divergence."""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from tests.sweeps import TINY, comparable, tiny, train
from vfljax import attacking, lab, lanes, store, sweep, training
from vfljax.errors import UserError

ROOT = pathlib.Path(__file__).parents[1]


def test_a_row_for_every_setting_in_every_structure(tiny_sweep):
    rows = store.load(tiny_sweep).results.to_pylist()
    # 6 points x 2 federations (no attack asks for malicious parties) x 2 seeds
    assert len(rows) == 6 * 2 * 2
    assert [row["setting"] for row in rows] == list(range(24))
    assert {row["structure"] for row in rows} == {"split", "no_split"}
    assert {row["status"] for row in rows} == {"ok"}


def test_each_structure_compiles_once_for_its_whole_grid(tmp_path, monkeypatch):
    programs = []
    original = lanes.Program.__init__

    def counting(self, *args, **kwargs):
        original(self, *args, **kwargs)
        programs.append(self)

    monkeypatch.setattr(lanes.Program, "__init__", counting)
    config = tiny(**{"grid": {"noise": {"noise": {"scale": (0.0, 0.1, 0.2)}}}, "attacks": {}})
    train(tmp_path / "w", config, attack=False)
    assert len(programs) == 2  # one training program, one evaluation
    assert [program.traces for program in programs] == [1, 1]


def test_the_order_of_rows_is_made_once_an_epoch_for_all_groups(monkeypatch):
    made = lab.prepare(tiny())
    orders, drawn = sweep.Orders(made), []
    original = training.epoch_of
    monkeypatch.setattr(training, "epoch_of", lambda *a: drawn.append(1) or original(*a))
    first, again = orders.of(1), orders.of(1)
    assert len(drawn) == 1
    np.testing.assert_array_equal(first.order, again.order)
    monkeypatch.setattr(sweep, "ORDER_BYTES", 0)  # none fits: made anew, the same
    scarce = sweep.Orders(made)
    np.testing.assert_array_equal(scarce.of(1).place, first.place)
    np.testing.assert_array_equal(scarce.of(1).order, first.order)
    assert len(drawn) == 3


def test_arms_with_top_models_of_their_own_train_and_resume(tmp_path):
    """Side by side in one sweep they train as each does alone."""
    own = {"top": "mlp", "top_hidden": (8,)}
    arms = {"undefended": {}, "wide": {"model": own}}
    both = train(tmp_path / "both", tiny(**{"grid": arms, "attacks": {}}), attack=False)
    again = train(tmp_path / "both", tiny(**{"grid": arms, "attacks": {}}), attack=False)
    assert comparable(both.results) == comparable(again.results)
    model = {**TINY["model"], **own}
    alone = train(tmp_path / "alone", tiny(**{"grid": {"undefended": {}}, "model": model}), False)
    found = [r["loss"] for r in both.results.to_pylist() if r["arm"] == "wide"]
    expected = [r["loss"] for r in alone.results.to_pylist() if r["structure"] == "split"]
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_the_released_evaluation_pools_the_steps_of_the_last_epoch(tmp_path):
    def trained(name, **changes):
        data = {"name": "breast_cancer", "train": 300, "validation": 100, "test": 100}
        arms = {"grid": {"undefended": {}}, "attacks": {}, "data": data}
        config = tiny(**arms, **{f"training.{k}": v for k, v in changes.items()})
        return train(tmp_path / name, config, attack=False).results.to_pylist()

    # one step an epoch, and all test rows in its batch: the final model's AUC
    for row in trained("one", evaluation="released", batch_size=300):
        assert row["test_pooled_auc"] == pytest.approx(row["test_auc"], abs=1e-6)
        assert row["test_pooled_oriented_auc"] >= 0.5
    several = trained("several", evaluation="released")
    plain = trained("plain")
    assert any(row["test_pooled_auc"] != row["test_auc"] for row in several)
    assert not any("test_pooled_auc" in row for row in plain)
    assert [r["loss"] for r in several] == [r["loss"] for r in plain]  # it only looks


def test_epsilon_zero_and_k_one_are_the_undefended_run_bit_for_bit(tiny_sweep):
    rows = store.load(tiny_sweep).results.to_pylist()
    plain = {(r["structure"], r["seed"]): r for r in rows if r["arm"] == "undefended"}
    neutral = [r for r in rows if r["kdk.epsilon"] == 0 or r["kdk.k"] == 1]
    assert len(neutral) == 3 * 4
    for row in neutral:
        twin = plain[row["structure"], row["seed"]]
        assert row["loss"] == twin["loss"]
        assert row["test_loss"] == twin["test_loss"]
    changed = next(r for r in rows if r["kdk.epsilon"] == 0.45 and r["kdk.k"] == 3)
    assert changed["loss"] != plain[changed["structure"], changed["seed"]]["loss"]


def test_settings_of_one_seed_see_the_same_batches(tiny_sweep):
    stored = store.load(tiny_sweep)
    rows = stored.results.to_pylist()
    orders = {}
    for row in rows:
        orders.setdefault(row["seed"], []).append(
            stored.setting(row["setting"]).exchange()["order"]
        )
    for found in orders.values():
        assert all((found[0] == other).all() for other in found)
    assert (orders[0][0] != orders[1][0]).any()


def test_undefended_direct_attack_without_splitting_is_always_right(tiny_sweep):
    stored = store.load(tiny_sweep)
    plain = {r["setting"] for r in stored.results.to_pylist() if r["arm"] == "undefended"}
    rows = [r for r in stored.attacks.to_pylist() if r["setting"] in plain]
    direct = [r for r in rows if r["attack"].startswith("direct")]
    assert len(direct) == 4
    assert all(r["success"] == 1 for r in direct)


def test_an_attack_the_sweep_cannot_serve_is_skipped_with_its_reason(tiny_sweep):
    summary = json.loads((tiny_sweep / "attacks.json").read_text())
    assert summary["norm"]["status"] == "skipped"
    assert "two classes" in summary["norm"]["reason"]
    made = lab.prepare(TINY)
    said = []
    attacking.run(
        made, shutil.copytree(tiny_sweep, tiny_sweep.parent / "active"), ["active"], said.append
    )
    assert len(said) == 1
    assert "malicious" in said[0]


def test_a_diverging_setting_is_reported_and_changes_no_other(tmp_path):
    grid = {"noise": {"noise": {"scale": (0.0, 0.01)}}}
    calm = tiny(**{"grid": grid, "attacks.direct": {}, "training.learning_rate": (0.05, 0.05)})
    wild = tiny(**{"grid": grid, "attacks.direct": {}, "training.learning_rate": (0.05, 1e30)})
    calm, wild = train(tmp_path / "calm", calm), train(tmp_path / "wild", wild)
    before, after = comparable(calm.results), comparable(wild.results)
    broken = [row for row in after if row["learning_rate"] > 1]
    assert broken
    assert {row["status"] for row in broken} == {"diverged"}
    assert all(row["test_accuracy"] is None for row in broken)
    kept = [(a, b) for a, b in zip(before, after, strict=True) if b["learning_rate"] < 1]
    assert kept
    for a, b in kept:
        assert b == a
    attacked = {row["setting"] for row in wild.attacks.to_pylist()}
    assert not attacked & {row["setting"] for row in broken}


def test_a_lost_shard_is_trained_again_to_the_same_rows(tiny_sweep, tmp_path):
    workdir = shutil.copytree(tiny_sweep, tmp_path / "w")
    before = comparable(store.load(workdir).results)
    shutil.rmtree(next((workdir / "shards").iterdir()))
    assert len(store.load(workdir).results) < len(before)
    assert comparable(train(workdir, TINY).results) == before


def test_an_unfinished_shard_continues_from_its_last_save(tmp_path, monkeypatch):
    config = tiny(**{"training.epochs": 5, "attacks": {}, "grid": {"undefended": {}}})
    whole = comparable(train(tmp_path / "whole", config).results)
    monkeypatch.setattr(sweep, "SAVE_SECONDS", 0.0)
    original, saves = store.write_partial, []

    def killed(workdir, name, done, tree):
        original(workdir, name, done, tree)
        saves.append(done)
        if done == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(store, "write_partial", killed)
    with pytest.raises(KeyboardInterrupt):
        train(tmp_path / "w", config)
    assert saves == [1, 2, 3]
    saves.clear()
    assert comparable(train(tmp_path / "w", config).results) == whole
    assert saves == [4]  # epochs 0..2 were not trained again
    assert not (tmp_path / "w" / "partial").exists() or not any(
        (tmp_path / "w" / "partial").iterdir()
    )


def test_damaged_progress_starts_the_shard_again(tmp_path):
    config = tiny(**{"attacks": {}, "grid": {"undefended": {}}})
    made = lab.prepare(config)
    name = made.shards[0].name
    (tmp_path / "partial" / name / "2").mkdir(parents=True)
    assert store.read_partial(tmp_path, name) is None
    assert train(tmp_path, config).results.num_rows == 2


def test_killed_at_random_moments_it_ends_with_the_same_table(tmp_path, tiny_sweep):
    """SIGKILL, then the same command: every column but times equals an uninterrupted run."""
    script = (
        "import sys, pathlib\n"
        "import jax; jax.config.update('jax_num_cpu_devices', 2)\n"
        "from tests.sweeps import TINY, train\n"
        "train(pathlib.Path(sys.argv[1]), TINY)\n"
    )
    workdir = tmp_path / "killed"
    command = [sys.executable, "-c", script, str(workdir)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    kills = 0
    for delay in (6.0, 9.0):
        process = subprocess.Popen(
            command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        time.sleep(delay)
        if process.poll() is None:
            os.kill(process.pid, signal.SIGKILL)
            kills += 1
        process.wait()
    assert kills
    subprocess.run(command, env=environment, check=True, capture_output=True)
    whole, killed = store.load(tiny_sweep), store.load(workdir)
    assert comparable(killed.results) == comparable(whole.results)
    assert comparable(killed.attacks) == comparable(whole.attacks)


def test_another_configs_workdir_is_refused_and_left_alone(tiny_sweep):
    before = (tiny_sweep / "sweep.json").read_bytes()
    with pytest.raises(UserError, match=r"training.epochs: 3 -> 4"):
        train(tiny_sweep, tiny(**{"training.epochs": 4}))
    assert (tiny_sweep / "sweep.json").read_bytes() == before


def test_one_setting_reads_back_as_it_was_trained(tiny_sweep):
    stored = store.load(tiny_sweep)
    setting = stored.setting(5)
    weights, exchange = setting.weights(), setting.exchange()
    kernel = weights["bottoms"]["0"]["params"]["Dense_0"]["kernel"]
    assert kernel.shape == (32, 8)
    assert np.isfinite(kernel).all()
    assert exchange["party0_gradients"].shape[:2] == (2, 320)  # first and last epoch
    assert exchange["epochs"].tolist() == [0, 2]
    # the sums over epochs hold every epoch: more than the two recorded ones
    assert (exchange["party0_sum_count"] == 3).all()
