"""The attacker who stays away: scored as attacks are, once a seed, stored with the sweep."""

import itertools

import pytest

from tests.damage import silent
from tests.sweeps import TINY, by_label, comparable, plan_of, tiny
from vfljax import store
from vfljax.attacking import jobs, local_only, run
from vfljax.attacks.learners import LEARNERS
from vfljax.report import not_run
from vfljax.report.judged import judge_sweep
from vfljax.report.rows import read
from vfljax.sweep import variants

pytestmark = pytest.mark.usefixtures("real_learners")


@pytest.fixture(scope="module")
def plan():
    return plan_of(TINY)


def test_he_is_everybody_who_attacks_with_every_number_of_labels_once_a_seed(tiny_sweep, plan):
    sweep = store.load(tiny_sweep)
    known = [{"known": 20.0}, {"known": 40.0}, {"known": 20.0, "learning_rate": 1.0}]
    plans = [
        jobs.plan_variant(variants.AttackVariant(name, {}, points), plan, sweep)
        for name, points in (("mean", known), ("direct", [{}]))
    ]
    assert local_only.jobs(plans, plan) == [
        ((0,), n, seed, learner, 1) for n in (20, 40) for seed in (0, 1) for learner in LEARNERS
    ]
    # who knows nothing has nothing to learn from
    assert local_only.jobs(plans[1:], plan) == []
    together = plans[0]._replace(
        jobs={group._replace(attackers=(0, 1)): [] for group in plans[0].jobs}
    )
    jobs_of = local_only.jobs([*plans, together], plan)
    assert {job.attackers for job in jobs_of} == {(0,), (0, 1)}


def test_he_is_scored_on_the_rows_that_attacks_with_as_many_labels_are_scored_on(tiny_sweep):
    sweep = store.load(tiny_sweep)
    rows = sweep.local_only.to_pylist()
    learners = {(row["seed"], store.learner_of(row)) for row in rows}
    assert {*itertools.product((0, 1), LEARNERS)} < learners  # and attacks on an untrained bottom
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


def test_he_is_computed_once_and_what_is_missing_alone_on_a_resume(workdir, monkeypatch):
    before, fitted = comparable(store.load(workdir).local_only), []
    learn = local_only.learn_draws

    def counted(learner, drawn):
        fitted.extend((columns.seed, len(columns.known), learner) for columns in drawn)
        return learn(learner, drawn)

    monkeypatch.setattr(local_only, "learn_draws", counted)
    run.attack_sweep(plan_of(TINY), workdir, say=silent)
    assert fitted == []
    more = tiny(attacks={"mean": {"known": (20, 30)}}, federations=("split", "no_split"))
    run.attack_sweep(plan_of(more), workdir, say=silent)
    assert fitted == [(seed, 30, learner) for seed in (0, 1) for learner in LEARNERS]
    sweep = store.load(workdir)
    about = by_label(workdir)[local_only.LABEL]
    assert (about["rows"], about["knobs"]) == (
        4 * len(LEARNERS),
        [{"known": 20.0}, {"known": 30.0}],
    )
    rows = comparable(sweep.local_only)
    assert [row for row in rows if row["known"] == 20] == before
    assert not sweep.unfinished
    frame = read(sweep).rows
    assert {*frame.loc[frame["role"] == "learner", "known"]} == {20, 30}


def test_a_sweep_killed_before_he_was_scored_is_not_finished(workdir, monkeypatch):
    killed = tiny(attacks={"mean": {"known": 30}}, federations=("split", "no_split"))
    monkeypatch.setattr(local_only, "run", lambda *_: None)
    run.attack_sweep(plan_of(killed), workdir, say=silent)
    sweep = store.load(workdir)
    assert (
        f"the attack logistic has {2 * len(LEARNERS)} of {4 * len(LEARNERS)} rows"
        in sweep.unfinished
    )
    said = not_run.not_attacked(judge_sweep(workdir))
    assert any("with 30 known labels" in line for line in said)
