"""Attacks on stored sweeps: what an attacker is given, baselines, halves."""

import shutil

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.sweeps import TINY, comparable, tiny, train
from vfljax import attacking, lab, servable, sight, store, suite, tables
from vfljax import judge as judging
from vfljax.attacks.centers import mean
from vfljax.attacks.spectral import spectral
from vfljax.judging import points as judging_of
from vfljax.types import Agreed, Scores


def ground(made, attackers=(0,)):
    arrays = lab.split_arrays(made.dataset.labels, made.splits)
    return sight.ground_of(made.table, arrays, attackers)


def claim(guess, known, classes=10):
    """A guess at every training row of seed 0, by somebody who knew some labels."""
    rows = jnp.arange(len(guess), dtype=jnp.int32)
    scores = Scores(jax.nn.one_hot(guess, classes))
    return judging.Claim(scores, jnp.int32(0), jnp.int32(known), rows, rows >= 0, jnp.bool(False))


def truth(made):
    return judging.truth_of(lab.split_arrays(made.dataset.labels, made.splits))


def test_known_rows_are_balanced_and_no_other_label_is_given():
    shared = ground(lab.prepare(TINY))
    known = sight.known_rows(shared, jnp.int32(1), jnp.float32(40))
    assert np.bincount(known.labels[:40]).tolist() == [4] * 10
    assert (np.asarray(known.labels[40:]) == -1).all()
    np.testing.assert_array_equal(np.sort(known.rows), np.arange(320))


def test_true_labels_do_not_enter_a_view():
    made = lab.prepare(TINY)
    shared = ground(made)
    exchange = {name: jnp.zeros((2, 320, 4)) for name in sight.EXCHANGE}
    target = sight.Target(jnp.uint32(0), jnp.int32(0), jnp.uint32(0), {}, exchange, ({},))
    other = shared._replace(labels=shared.labels[::-1])
    a, b = (sight.view_of(target, one, Agreed(32)) for one in (shared, other))
    jax.tree.map(np.testing.assert_array_equal, a, b)


def test_the_judge_counts_known_rows_only_where_it_says_so():
    made = lab.prepare(TINY)
    shared = ground(made)
    labels = np.asarray(shared.labels)[np.asarray(shared.train[0])]
    known = sight.known_rows(shared, jnp.int32(0), jnp.float32(32))
    right = np.zeros(320, bool)
    right[np.asarray(known.rows[:32])] = True  # right on the known rows, wrong elsewhere
    guess = np.where(right, labels, (labels + 1) % 10)
    found = judging.judge(claim(guess, 32), truth(made), 32)
    assert abs(float(found["success"]) - 0.1) < 1e-6
    assert float(found["success_unlabeled"]) == 0
    assert float(found["leak"]) == 0


def test_the_halves_for_choosing_and_reporting_are_disjoint():
    made = lab.prepare(TINY)
    shared = ground(made)
    labels = np.asarray(shared.labels)[np.asarray(shared.train[0])]
    half = np.asarray(truth(made).selects[0])
    guess = np.where(half, labels, (labels + 1) % 10)  # right on the choosing half only
    found = judging.judge(claim(guess, 0), truth(made), 32)
    assert float(found["leak_select"]) == 1
    assert float(found["leak_report"]) == 0


def test_every_passive_figure_stands_beside_its_baselines(tiny_sweep):
    rows = store.load(tiny_sweep).attacks.to_pylist()
    passive = [r for r in rows if r["attack"] == "passive"]
    assert len(passive) == 12
    for row in passive:
        for what in store.BASELINES:
            assert 0 <= row[f"{what}_success"] <= 1
            assert 0 <= row[f"{what}_test_success"] <= 1
    by_seed = {}
    for row in passive:
        by_seed.setdefault(row["seed"], set()).add(
            (row["untrained_success"], row["logistic_success"])
        )
    assert all(len(values) == 1 for values in by_seed.values())  # they depend on the seed alone
    assert passive[0]["all_labels_success"] != passive[0]["success"]
    direct = next(r for r in rows if r["attack"].startswith("direct"))
    assert direct["logistic_success"] is None


@pytest.mark.parametrize(("block", "width", "files_made"), [(8, None, 4), (26, 1, 1)])
def test_a_machine_with_other_blocks_continues_a_stored_attack(
    tiny_sweep, tmp_path, monkeypatch, block, width, files_made
):
    workdir = shutil.copytree(tiny_sweep, tmp_path / "w")
    before = comparable(store.load(workdir).attacks)
    files = sorted((workdir / "attacks" / "passive").glob("split-*.parquet"))
    assert len(files) == 1
    files[0].unlink()
    monkeypatch.setattr(attacking, "BLOCK", block)
    if width:  # as for a large network: the judge's own width does not divide 13 lanes of a device
        monkeypatch.setattr(attacking, "width_of", lambda *_: width)
    made = lab.prepare(TINY)
    attacking.run(made, workdir, say=lambda line: None)
    assert len(list((workdir / "attacks" / "passive").glob("split-*.parquet"))) == files_made
    attacking.run(made, workdir, say=lambda line: None)
    after = comparable(store.load(workdir).attacks)
    assert len(after) == len(before)
    for a, b in zip(after, before, strict=True):
        assert (a["attack"], a["setting"], a["seed"]) == (b["attack"], b["setting"], b["seed"])


def test_an_attack_that_diverges_is_left_out_and_said_not_taken_for_a_good_defense(tmp_path):
    stored = train(
        tmp_path,
        tiny(
            **{"grid": {"undefended": {}}, "training.epochs": 1},
            attacks={"passive": {"known": 20, "steps": 4, "learning_rate": 1e30}, "norm": {}},
        ),
    )
    own = [a for a in stored.attacks.to_pylist() if a["attack"] == "passive"]
    assert all(np.isnan(a["success"]) and np.isnan(a["leak_select"]) for a in own)
    assert all(a["logistic_success"] > 0.2 for a in own)
    found = judging_of(stored)
    assert all(p.worst.get("split") is None or p.worst["split"].attack != "passive" for p in found)
    said = " ".join(tables.not_attacked(stored, found))
    assert f"passive: {len(own)} of its {len(own)} runs diverged" in said


def test_any_recorded_epoch_can_be_attacked_and_one_that_was_not_is_said(tmp_path):
    config = tiny(
        grid={"undefended": {}},
        attacks={"direct": {"rule": "most_negative", "epoch": (0, 1)}},
        **{"training.record": (1, 0), "seeds": 1},
    )
    stored = train(tmp_path, config)
    (row,) = [r for r in stored.results.to_pylist() if r["structure"] == "no_split"]
    exchange = stored.setting(row["setting"]).exchange()
    assert exchange["epochs"].tolist() == [0, 1, 2]  # the last always
    g = exchange["party0_gradients"]
    assert np.any(g[0] != g[1])
    found = {r["attack"] for r in stored.attacks.to_pylist()}
    assert found == {"direct/most_negative/epoch=0", "direct/most_negative/epoch=1"}

    config["attacks"]["direct"]["epoch"] = 2
    config["training"]["record"] = (0,)  # 2 is the last: recorded all the same
    assert lab.prepare(config)
    form = suite.Form("direct/epoch=7", "direct", {"epoch": 7}, [{}])
    _, rows, reason = servable.servable(form, lab.prepare(config), stored)
    assert rows == []
    assert "reads epoch 7" in reason
    assert "config.training.record" in reason


def program_for(attack, **data):
    made = lab.prepare(tiny(**{f"data.{part}": count for part, count in data.items()}))
    seen = attacking.Sight("split", (0,), lab.plain(made.groups[0].spec), 0)
    arrays = lab.split_arrays(made.dataset.labels, made.splits)
    return attacking._prepared(attack, seen, made, arrays)[0]


def test_sweeps_of_other_shapes_in_one_process_have_programs_of_their_own():
    """A program is traced once: one given rows of another shape would be traced again."""
    honest, diagnostic = mean((), 10), spectral((), 10, signal="party0.cut")
    for attack in (honest, diagnostic):
        assert program_for(attack) is program_for(attack)
        assert program_for(attack, test=150) is not program_for(attack)
    assert program_for(diagnostic, validation=150) is not program_for(diagnostic)
