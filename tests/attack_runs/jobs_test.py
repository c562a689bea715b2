"""The jobs of an attack variant; and what a stored sweep cannot serve is said in one line with the value
and the remedy, while the rest runs."""

import itertools

import pandas as pd
import pytest

from tests.sweeps import TINY, attack, by_label, plan_of, tiny, variant_on
from vfljax import store
from vfljax.attack_runs import jobs, run
from vfljax.sweep import grid


@pytest.fixture(scope="module")
def plan():
    """Ten classes, 320 training rows, epochs 0 and 2 recorded, federations split and no_split."""
    return plan_of(TINY)


def rows_of(plan, diverged=()):
    """The rows of results of a plan's trials that attacks read."""
    return [
        {
            **row,
            "status": "diverged" if row["trial"] in diverged else "ok",
            "shard": shard.name,
            "member": member,
        }
        for shard in plan.shards
        for member, row in enumerate(
            grid.trial_rows(plan.groups[shard.group].trials.iloc[[*shard.trials]])
        )
    ]


def planned(name, options, points, plan):
    """A variant on a sweep."""
    return variant_on(plan, name, options, points)


def reason_of(plan, name, options=None, **knobs):
    reason = planned(name, options or {}, [knobs], plan).skipped
    assert "\n" not in reason
    return reason


@pytest.mark.parametrize(
    ("name", "options", "knobs", "said"),
    [
        ("norm", {}, {}, ("two classes", "digits has 10")),
        ("mean", {"epoch": 1}, {"known": 40}, ("epoch 1", "[0, 2]", "config.training.record")),
        ("spectral", {"signal": "top.hidden.9"}, {"known": 40}, ("'top.hidden.9'", "party0.cut")),
        ("passive", {}, {"known": 9}, ("known=9", "10 classes")),
        ("probe", {}, {"known": 321}, ("known=321", "320 training rows")),
        ("mean", {}, {"known": 319}, ("known=319", "at most", "all 320")),
        ("active", {}, {"known": 40}, ("'malicious'", "'active' to config.attacks", "new workdir")),
        # what it can serve
        ("passive", {}, {"known": 10}, ()),
        ("passive", {}, {"known": 320}, ()),
        ("mean", {"epoch": 0}, {"known": 40}, ()),
        ("mean", {"oracle": True}, {}, ()),
        ("direct", {"epoch": 2}, {}, ()),
        ("direct", {"epoch": "votes"}, {}, ()),
        ("spectral", {"signal": "party1.hidden.0"}, {"known": 40}, ()),
    ],
)
def test_a_refusal_names_the_value_and_the_remedy(plan, name, options, knobs, said):
    reason = reason_of(plan, name, options, **knobs)
    assert bool(reason) == bool(said)
    for words in said:
        assert words in reason


def test_only_layers_that_some_attacker_does_not_own_make_an_oracle(plan):
    for signal, oracle in (("party0.cut", False), ("top.logits", True)):
        variant = planned("spectral", {"signal": signal}, [{}], plan)
        assert jobs.entry_of(variant, True)["oracle"] == oracle


def test_labels_are_limited_by_the_rarest_class_up_to_all_of_them(plan):
    """As known rows are balanced: up to C times the rarest class's training rows, or every row."""
    labels = [plan.dataset.labels[split.train] for split in plan.splits]
    most = 10 * min(sum(of_seed == c) for of_seed in labels for c in range(10))
    assert most < 320
    assert reason_of(plan, "mean", known=float(most)) == ""
    assert f"at most {most}" in reason_of(plan, "mean", known=float(most + 1))
    # each point is checked
    assert "known=5" in planned("mean", {}, [{"known": 40.0}, {"known": 5.0}], plan).skipped


def test_the_layers_are_those_of_both_parties_and_of_the_top_models_of_every_arm(plan):
    names = {"party0.hidden.0", "party0.cut", "party1.hidden.0", "party1.cut", "top.logits"}
    assert set(jobs.layers(plan)) == names | {"top.hidden.0"}
    other = {"model": {"top": "mlp", "top_hidden": ()}, "noise": {"scale": 0.1}}
    assert set(jobs.layers(plan_of(tiny(grid={"undefended": {}, "other": other})))) == names


def test_what_cannot_be_served_is_said_and_stored_and_the_others_run_on(workdir):
    attacks = {"norm": {}, "mean": {"known": 5, "epoch": 0}, "direct": {"rule": "least_negative"}}
    said = []
    attack(workdir, attacks, say=said.append)
    skipped = [line.split(":")[0] for line in said if line.startswith("skipped")]
    assert skipped == ["skipped norm", "skipped mean"]
    described = by_label(workdir)
    for name in ("norm", "mean"):
        assert described[name]["status"] == "skipped"
        assert described[name]["reason"] in "\n".join(said)
    assert described["direct/least_negative"]["status"] == "ok"
    labels = {row["label"] for row in store.load(workdir).attacks.to_pylist()}
    assert {"direct/least_negative", "passive"} <= labels  # what was stored before stays
    assert not labels & {"norm", "mean"}


def test_a_variant_s_jobs_are_its_attacks_and_its_baselines(plan):
    """A baseline is a job like another: what a seed's settings share once a seed, the rest a setting."""
    points = [{"known": 20.0}, {"known": 40.0}]
    listed = jobs.jobs_of(planned("passive", {"steps": 2}, points, plan), plan, rows_of(plan))
    seeds = {row["trial"]: row["seed"] for row in rows_of(plan)}
    places = {
        (job.group.federation, job.group.attackers, job.group.number): job.group for job in listed
    }
    assert [*places] == [("split", (0,), 0), ("no_split", (0,), 1)]
    for group, point in itertools.product(places.values(), (0, 1)):
        trials = [r["trial"] for r in rows_of(plan) if r["federation"] == group.federation]
        first = [min(t for t in trials if seeds[t] == seed) for seed in (0, 1)]
        assert sorted(
            (job.what, job.row["trial"], job.seed)
            for job in listed
            if (job.group, job.point) == (group, point)
        ) == sorted(
            (what, trial, seeds[trial])
            for what, of in (("attack", trials), ("all_labels", trials), ("untrained", first))
            for trial in of
        )
    for job in listed:
        known = 320 if job.what == "all_labels" else (20, 40)[job.point]
        assert job.knobs(320)["known"] == known
        # a stored row is known again by what it says
        assert jobs.key_of(job.figures({"success": 0.5})) == job.key


def test_the_jobs_of_blocks_are_those_of_the_whole(plan):
    """A seed's untrained baseline is in the block of its first trial alone."""
    rows = rows_of(plan)
    variant = planned("passive", {"steps": 2}, [{"known": 20.0}], plan)
    whole = jobs.jobs_of(variant, plan, rows)
    blocks = list(dict.fromkeys((row["shard"], row["method"]) for row in rows))
    assert len(blocks) > 2
    parts = [
        jobs.jobs_of(variant, plan, [row for row in rows if (row["shard"], row["method"]) == block])
        for block in blocks
    ]
    assert sorted(job.key for part in parts for job in part) == sorted(job.key for job in whole)


def test_an_attack_without_baselines_has_no_other_jobs(plan):
    listed = jobs.jobs_of(planned("direct", {}, [{}], plan), plan, rows_of(plan))
    pairs = [(job.what, job.group.federation) for job in listed]
    assert pairs == [("attack", "no_split")] * 12


@pytest.fixture(scope="module")
def colluding():
    """Two passive parties, in turn one or both of them malicious."""
    return plan_of(
        tiny(
            grid={"undefended": {}},
            attacks={"active": {"known": 20}},
            parties={"passive": 2},
            **{"malicious.parties": ((0,), (0, 1))},
        )
    )


def test_every_group_of_attackers_has_jobs_and_baselines_under_its_own_label(colluding):
    points = [{"known": 20.0}, {"known": 40.0}]
    variant = planned("active", {}, points, colluding)
    assert variant.groups == ((0,), (0, 1))
    listed = jobs.jobs_of(variant, colluding, rows_of(colluding))
    assert {(job.group.federation, job.group.attackers) for job in listed} == {
        ("malicious-0", (0,)),
        ("malicious-0-1", (0, 1)),
    }
    assert {job.figures({})["label"] for job in listed} == {"active", "active/parties=0+1"}
    assert len({job.key for job in listed}) == len(listed) == 2 * 2 * (2 + 2 * 2)


def test_a_setting_that_diverged_is_not_attacked_and_counted(colluding):
    trials = pd.concat([group.trials for group in colluding.groups])
    ids = trials.loc[trials["federation"] == "malicious-0", "trial"].tolist()
    rows = rows_of(colluding, diverged=ids[:1])
    variant = planned("active", {}, [{"known": 20.0}], colluding)
    assert run._diverged(variant, rows) == 1
    listed = jobs.jobs_of(variant, colluding, rows)
    alone = [job for job in listed if job.group.federation == "malicious-0"]
    assert [(job.what, job.seed) for job in alone] == [
        *(("untrained", 0), ("untrained", 1), ("attack", 1), ("all_labels", 1))
    ]


def test_a_variant_is_read_back_from_its_entry(colluding):
    (variant,) = jobs.planned(colluding, colluding.experiment)
    entry = jobs.entry_of(variant, skip_settled=True)
    again = jobs.from_entry(entry, colluding)
    assert again is not None
    same = ("identity", "knobs", "with_malicious", "groups", "skipped", "projected")
    assert [getattr(again, name) for name in same] == [getattr(variant, name) for name in same]
    assert jobs.from_entry({**entry, "rule": -1}, colluding) is None
