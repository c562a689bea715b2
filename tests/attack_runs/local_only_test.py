"""The attacker who stays away: scored as attacks are, once a seed, stored with the sweep."""

import itertools
import shutil

import msgspec
import pytest

from tests.sweeps import TINY, attack, comparable, plan_of, variant_on
from vfljax import store
from vfljax.attack_runs import local_only, planning, run
from vfljax.attacks import learners
from vfljax.attacks.learners import LEARNERS
from vfljax.report import not_run
from vfljax.report.frames import read_frames
from vfljax.report.sweep_answers import judge_sweep


def test_he_is_everybody_who_attacks_with_every_number_of_labels_once_a_seed():
    plan = plan_of(TINY)
    known = [{"known": 20.0}, {"known": 40.0}, {"known": 20.0, "learning_rate": 1.0}]
    mean, direct, joint = (
        variant_on(plan, name, {}, points)
        for name, points in (("mean", known), ("direct", [{}]), ("joint", known[:1]))
    )
    units = planning._local_only([], plan, [mean, direct])
    one = {"attackers": [0], "points": [[20, 1], [40, 1]], "rule": learners.RULE, "outdated": False}
    assert units == [{**one, "seeds": [seed]} for seed in (0, 1)]
    # who knows nothing has nothing to learn from, and what is there is not made again
    assert planning._local_only([], plan, [direct]) == []
    assert planning._local_only(units[:1], plan, [mean]) == units[1:]
    both = planning._local_only([], plan, [mean, mean._replace(groups=((0, 1),))])
    assert {tuple(unit["attackers"]) for unit in both} == {(0,), (0, 1)}
    # an attack is compared with him on the same draws, of which a costly one affords two
    drawn = plan._replace(experiment=msgspec.structs.replace(plan.experiment, known_draws=3))
    for unit in planning._local_only([], drawn, [joint]):
        assert unit["points"] == [[20, 3], [20, 2]]
    # all learners of another rule are fitted anew, whatever the attacks of the command need
    earlier = [{**unit, "rule": learners.RULE - 1, "points": [[30, 3], [20, 2]]} for unit in units]
    again = [{**unit, "points": [[30, 3], [20, 2]]} for unit in units]
    assert planning._local_only(earlier, plan, [direct]) == again
    assert planning._local_only([*earlier, *again], plan, [direct]) == []


def test_he_is_scored_on_the_rows_that_attacks_with_as_many_labels_are_scored_on(tiny_sweep):
    sweep = store.load(tiny_sweep)
    rows = sweep.local_only.to_pylist()
    found = {(row["seed"], store.learner_of(row)) for row in rows}
    assert {*itertools.product((0, 1), LEARNERS)} < found  # and attacks on an untrained bottom
    rows = {row["seed"]: row for row in rows if store.learner_of(row) == "logistic"}
    for seed, row in rows.items():
        assert (row["label"], row["attackers"], row["known"]) == ("logistic", "[0]", 20)
        beside = [
            a for a in sweep.attacks.to_pylist() if a["label"] == "passive" and a["seed"] == seed
        ]
        # the same regression as the baseline beside attacks with as many labels
        assert {a["logistic_leak"] for a in beside} == {row["leak"]}
        assert beside[0]["logistic_success"] == pytest.approx(row["success"], abs=1e-6)
        for name in ("leak", "success_unlabeled", "test_leak"):
            assert 0 < row[name] < 1


def test_he_is_computed_once_and_a_sweep_is_unfinished_without_him(workdir, monkeypatch):
    before, fitted = comparable(store.load(workdir).local_only), []
    learn = local_only.learn_draws

    def counted(learner, drawn):
        fitted.extend((columns.seed, len(columns.known), learner) for columns in drawn)
        return learn(learner, drawn)

    monkeypatch.setattr(local_only, "learn_draws", counted)
    attack(workdir, {"mean": {"known": (20, 30)}})
    assert fitted == [(seed, 30, learner) for seed in (0, 1) for learner in LEARNERS]
    sweep = store.load(workdir)
    about = store.attack_summary(workdir)[store.LOCAL_ONLY_VARIANT]
    assert about["knobs"] == [{"known": 20}, {"known": 30}]
    rows = comparable(sweep.local_only)
    assert [row for row in rows if row["known"] == 20] == before
    assert not sweep.unfinished
    frame = read_frames(sweep).rows
    assert {*frame.loc[frame["role"] == "learner", "known"]} == {20, 30}
    for number, entry in enumerate(store.read_header(workdir)["local_only"]):
        if entry["points"] == [[30, 1]]:
            shutil.rmtree(workdir / "local_only" / f"{number:03d}")
    assert "the local-only baseline is not finished" in store.load(workdir).unfinished
    said = not_run.not_attacked(judge_sweep(workdir))
    assert any("with 30 known labels" in line for line in said)


def test_learners_of_another_rule_are_fitted_anew_and_never_mixed_with_those_before(
    workdir, monkeypatch
):
    def learned():
        table = store.load(workdir).local_only  # attacks on untrained bottoms stand there too
        return [row for row in comparable(table) if row["variant"] == store.LOCAL_ONLY_VARIANT]

    attack(workdir, {"mean": {"known": (20, 30)}})
    before, learn, later = learned(), local_only.learn_draws, learners.RULE + 1
    assert {row["rule"] for row in before} == {learners.RULE}
    monkeypatch.setattr(learners, "RULE", later)
    monkeypatch.setattr(local_only, "learn_draws", lambda *of: 1 - learn(*of))
    attack(workdir, {"median": {"known": 20}})
    rows = learned()
    # the command asked for an attack with 20 labels, and all learners are fitted anew
    assert {(row["known"], row["rule"]) for row in rows} == {(20, later), (30, later)}
    assert len(rows) == len(before)
    assert all(new["leak"] != old["leak"] for new, old in zip(rows, before, strict=True))
    assert not store.load(workdir).unfinished
    header = store.read_header(workdir)
    units = [unit for unit in store.units_of(header) if unit.kind == "local_only"]
    assert {unit.of["rule"] for unit in units} == {later}
    # until all are made, none counts: the earlier rule has all seeds and numbers of labels
    shutil.rmtree(workdir / units[0].name)
    assert learned() == before
    assert "the local-only baseline is not finished" in store.load(workdir).unfinished
    monkeypatch.setattr(learners, "RULE", later - 1)
    assert not any(run.can_run(unit, header) for unit in units)
