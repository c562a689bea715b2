"""The main job: one compile a structure, pairing by seed, resume, divergence."""

import re
import shutil

import numpy as np
import pytest

from tests import sweeps
from tests.damage import Killed
from tests.sweeps import TINY, by_label, comparable, plan_of, tiny
from vfljax import store
from vfljax.errors import UserError
from vfljax.federation import training
from vfljax.launching import work
from vfljax.sweep import grid, size, train, trainer
from vfljax.sweep.grid import parse
from vfljax.sweep.progress import Progress
from vfljax.types import Federation

UNDEFENDED = {"grid": {"undefended": {}}, "attacks": {}}


def test_each_structure_compiles_once_in_a_process_whatever_the_data_s_shape(
    tmp_path, every_program
):
    """Sweeps of other rows need other programs, and none is traced twice; equal ones share them."""
    noise = {"grid": {"noise": {"noise": {"scale": (0.0, 0.1, 0.2)}}}, "attacks": {}}
    config = tiny(**noise, **{"training.epochs": 1})
    sweeps.train(tmp_path / "one", config, attack=False)
    assert len(every_program) == 2  # one training program, one evaluation
    wide = tiny(**noise, **{"training.epochs": 1, "data.train": 330, "data.validation": 150})
    sweeps.train(tmp_path / "wide", wide, attack=False)
    assert len(every_program) == 4
    louder = {"noise": {"noise": {"scale": (0.3, 0.4, 0.5)}}}
    sweeps.train(tmp_path / "again", {**config, "grid": louder}, attack=False)
    assert len(every_program) == 4
    assert [program.traces for program in every_program] == [1, 1, 1, 1]


def test_the_order_of_rows_is_made_once_an_epoch_for_all_groups(monkeypatch):
    planned = plan_of(tiny())
    orders, drawn = train.Orders(planned), []
    original = training.epoch_of
    monkeypatch.setattr(training, "epoch_of", lambda *a: drawn.append(1) or original(*a))
    first, again = orders.of(1), orders.of(1)
    assert len(drawn) == 1
    np.testing.assert_array_equal(first.order, again.order)
    monkeypatch.setattr("vfljax.sweep.trainer.ORDER_BYTES", 0)  # none fits: drawn anew, the same
    scarce = train.Orders(planned)
    np.testing.assert_array_equal(scarce.of(1).place, first.place)
    np.testing.assert_array_equal(scarce.of(1).order, first.order)
    assert len(drawn) == 3


def test_arms_with_top_models_of_their_own_train_and_resume(tmp_path):
    """Side by side in one sweep they train as each does alone."""
    wider = {"top": "mlp", "top_hidden": (8,)}
    methods = {"undefended": {}, "wide": {"model": wider}}
    split = {"attacks": {}, "training.epochs": 2, "federations": ("split",)}
    config = tiny(**{"grid": methods, **split})
    both = sweeps.train(tmp_path / "both", config, attack=False)
    again = sweeps.train(tmp_path / "both", config, attack=False)
    assert comparable(both.results) == comparable(again.results)
    alone = tiny(**{**UNDEFENDED, **split}, model={**TINY["model"], **wider})
    alone = sweeps.train(tmp_path / "alone", alone, attack=False)
    losses = [r["loss"] for r in both.results.to_pylist() if r["method"] == "wide"]
    expected = [r["loss"] for r in alone.results.to_pylist()]
    np.testing.assert_allclose(losses, expected, rtol=1e-5)


@pytest.mark.slow
def test_the_released_evaluation_pools_the_steps_of_the_last_epoch(tmp_path, tiny_sweep):
    """That it only looks, ``training_test`` says."""

    def trained(name, **changes):
        data = {"name": "breast_cancer", "train": 300, "validation": 100, "test": 100}
        fields = {f"training.{k}": v for k, v in {"epochs": 2, **changes}.items()}
        config = tiny(**UNDEFENDED, data=data, **fields)
        return sweeps.train(tmp_path / name, config, attack=False).results.to_pylist()

    # one step an epoch, and all test rows in its batch: the final model's AUC
    for row in trained("one", evaluation="released", batch_size=300):
        assert row["test_pooled_auc"] == pytest.approx(row["test_auc"], abs=1e-6)
        assert row["test_pooled_oriented_auc"] >= 0.5
    several = trained("several", evaluation="released")
    assert any(row["test_pooled_auc"] != row["test_auc"] for row in several)
    plain = store.load(tiny_sweep).results
    assert "test_pooled_auc" not in plain.column_names


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


def test_a_later_first_seed_gives_the_trials_attacks_and_baselines_of_that_seed(
    tiny_sweep, tmp_path
):
    later = sweeps.train(tmp_path / "later", tiny(seeds=1, first_seed=1))
    both = store.load(tiny_sweep)
    for table in ("results", "attacks", "local_only"):
        found, expected = (
            [row for row in comparable(getattr(sweep, table)) if row["seed"] == 1]
            for sweep in (later, both)
        )
        assert len(found) == getattr(later, table).num_rows == len(expected) > 0
        for name in ("loss", "test_loss", "leak", "known"):
            given = [[row.get(name) or 0 for row in rows] for rows in (found, expected)]
            np.testing.assert_allclose(*given, rtol=1e-5, err_msg=name)


def test_settings_of_one_seed_see_the_same_batches(tiny_sweep):
    stored = store.load(tiny_sweep)
    rows = stored.results.to_pylist()
    orders = {}
    for row in rows:
        orders.setdefault(row["seed"], []).append(stored.trial(row["trial"]).exchange()["order"])
    for of_seed in orders.values():
        assert all((of_seed[0] == other).all() for other in of_seed)
    assert (orders[0][0] != orders[1][0]).any()


def test_undefended_direct_attack_without_splitting_is_always_right(tiny_sweep):
    stored = store.load(tiny_sweep)
    plain = {r["trial"] for r in stored.results.to_pylist() if r["method"] == "undefended"}
    rows = [r for r in stored.attacks.to_pylist() if r["trial"] in plain]
    direct = [r for r in rows if r["attack"] == "direct"]
    assert len(direct) == 4
    assert all(r["success"] == 1 for r in direct)


def test_the_first_line_says_what_is_trained_and_what_it_needs(workdir, tmp_path):
    said = []
    work.begin(parse(TINY), tmp_path / "new", "test", said.append)
    assert [line.split(":")[0] for line in said[1:]] == ["skipped norm"]
    assert re.fullmatch(
        r"24 trials in 4 programs on 2 cpu devices, 4 shards, in .*/new: about \d+ MB of memory "
        r"\(.* free\) and 1.9 MB of disk \(.* free\)",
        said[0],
    )
    work.begin(parse(TINY), workdir, "test", said.append)
    assert said[2].endswith(f"in {workdir}: all of them are stored")


def test_a_sweep_that_does_not_fit_is_refused_before_anything_is_written(tmp_path, monkeypatch):
    monkeypatch.setattr(size, "free_disk", lambda path: 1e6)
    with pytest.raises(UserError, match="training 24 trials needs about .* of disk"):
        work.begin(parse(TINY), tmp_path / "new", "test")
    assert not (tmp_path / "new").exists()


def test_an_attack_the_sweep_cannot_serve_is_skipped_with_its_reason(workdir):
    summary = by_label(workdir)
    assert summary["norm"]["status"] == "skipped"
    assert "two classes" in summary["norm"]["reason"]
    said = []
    sweeps.attack(workdir, ["active"], say=said.append)
    assert len(said) == 1
    assert "malicious" in said[0]


def test_a_diverging_setting_is_reported_and_changes_no_other(tmp_path):
    grid = {"noise": {"noise": {"scale": (0.0, 0.01)}}}
    changes = {"grid": grid, "attacks": {"direct": {}}}
    calm = tiny(**changes, **{"training.learning_rate": (0.05, 0.06)})
    wild = tiny(**changes, **{"training.learning_rate": (0.05, 1e30)})
    calm = sweeps.train(tmp_path / "calm", calm, attack=False)
    wild = sweeps.train(tmp_path / "wild", wild)
    before, after = comparable(calm.results), comparable(wild.results)
    broken = [row for row in after if row["learning_rate"] > 1]
    assert broken
    assert {row["status"] for row in broken} == {"diverged"}
    assert all(row["test_accuracy"] is None for row in broken)
    kept = [(a, b) for a, b in zip(before, after, strict=True) if b["learning_rate"] < 1]
    assert kept
    for a, b in kept:
        assert b == a
    attacked = {row["trial"] for row in wild.attacks.to_pylist()}
    assert attacked
    assert not attacked & {row["trial"] for row in broken}


def test_divergence_is_dated_to_the_first_epoch_whose_loss_is_not_finite():
    """And to the last epoch where all losses are finite, but not the weights."""
    (trial,) = grid.rows_of(grid.trials(parse(tiny(**UNDEFENDED, seeds=1)), [Federation()]))
    loss = np.float32([[0.7, np.inf, np.nan, np.nan], [0.7, 0.6, 0.5, 0.4], [0.7, 0.6, 0.5, 0.4]])
    nothing = np.zeros(0)
    record = training.Record((), (), nothing, nothing, (), loss, loss, np.full_like(loss, np.nan))
    rows = [
        trainer._row(trial, "0", member, {}, record, finite, 1.0)
        for member, finite in enumerate((False, False, True))
    ]
    assert [row["diverged_epoch"] for row in rows] == [1, 3, None]
    assert [row["status"] for row in rows] == ["diverged", "diverged", "ok"]


def test_a_lost_shard_is_trained_again_to_the_same_rows(workdir):
    before = comparable(store.load(workdir).results)
    shutil.rmtree(next((workdir / "shards").iterdir()))
    assert len(store.load(workdir).results) < len(before)
    assert comparable(sweeps.train(workdir, TINY, attack=False).results) == before


FIVE = tiny(**UNDEFENDED, **{"training.epochs": 5})


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The results of five epochs without an interruption."""
    return comparable(sweeps.train(tmp_path_factory.mktemp("whole") / "w", FIVE).results)


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
        sweeps.train(tmp_path / "w", FIVE)
    assert [path.name for path in (tmp_path / "w" / "partial").glob("shards/*/*")] == ["2"]
    assert comparable(sweeps.train(tmp_path / "w", FIVE).results) == whole


@pytest.fixture
def interrupted(whole, tmp_path, monkeypatch):
    """A sweep of five epochs that was killed after its third save, and the epochs of all saves."""
    monkeypatch.setattr(trainer, "SAVE_SECONDS", 0.0)
    original, saves = store.write_partial, []

    def killed(workdir, name, done, *rest):
        original(workdir, name, done, *rest)
        saves.append(done)
        if saves == [1, 2, 3]:
            raise Killed

    monkeypatch.setattr(store, "write_partial", killed)
    with pytest.raises(Killed):
        sweeps.train(tmp_path / "w", FIVE)
    return tmp_path / "w", saves


def test_an_unfinished_shard_continues_from_its_last_save(interrupted, whole):
    workdir, saves = interrupted
    assert comparable(sweeps.train(workdir, FIVE).results) == whole
    assert saves == [1, 2, 3, 4]  # epochs 0..2 were not trained again
    assert not any(path.is_file() for path in (workdir / "partial").rglob("*"))


def test_damaged_progress_is_refused_and_the_remedy_starts_the_shard_again(interrupted, whole):
    workdir, saves = interrupted
    (save,) = (workdir / "partial" / "shards").glob("*/3")
    name = save.parent.name
    shutil.rmtree(save / "checkpoint")
    with pytest.raises(UserError, match=r"is damaged .*--mend` sets it aside") as error:
        sweeps.train(workdir, FIVE)
    assert f"{save} " in str(error.value)
    assert [finding.unit for finding in store.mend(workdir)] == [f"partial/shards/{name}/3"]
    assert store.read_partial(workdir, name) is None
    assert comparable(sweeps.train(workdir, FIVE).results) == whole
    assert saves == [1, 2, 3, 1, 2, 3, 4]


def test_another_configs_workdir_is_refused_and_left_alone(tiny_sweep):
    before = (tiny_sweep / "sweep.json").read_bytes()
    with pytest.raises(UserError, match=r"training.epochs: 3 -> 4"):
        sweeps.train(tiny_sweep, tiny(**{"training.epochs": 4}))
    assert (tiny_sweep / "sweep.json").read_bytes() == before


def test_one_setting_reads_back_as_it_was_trained(tiny_sweep):
    stored = store.load(tiny_sweep)
    trial = stored.trial(5)
    weights, exchange = trial.weights(), trial.exchange()
    kernel = weights["bottoms"]["0"]["params"]["Dense_0"]["kernel"]
    assert kernel.shape == (32, 8)
    assert np.isfinite(kernel).all()
    assert exchange["party0_gradients"].shape[:2] == (2, 320)  # first and last epoch
    assert exchange["epochs"].tolist() == [0, 2]
    # the sums over epochs hold every epoch: more than the two recorded ones
    assert (exchange["party0_sum_count"] == 3).all()
