"""The jobs of an attack form; and what a stored sweep cannot serve is said in one line with the value
and the remedy, while the rest runs."""

import pandas as pd
import pyarrow as pa
import pytest

from tests.sweeps import TINY, by_label, plan_of, tiny
from vfljax import store
from vfljax.attacking import jobs, run
from vfljax.sweep.grid import rows_of
from vfljax.sweep.variants import AttackVariant


@pytest.fixture(scope="module")
def stored(tiny_sweep):
    """Ten classes, 320 training rows, epochs 0 and 2 recorded, federations split and no_split."""
    return plan_of(TINY), store.load(tiny_sweep)


def planned(name, options, points, plan, sweep):
    """The jobs of a variant."""
    return jobs.plan_variant(AttackVariant(name, options, points), plan, sweep)


def reason_of(stored, name, options=None, **knobs):
    variant_plan = planned(name, options or {}, [knobs], *stored)
    assert bool(variant_plan.jobs) != bool(variant_plan.skipped)
    assert "\n" not in variant_plan.skipped
    return variant_plan.skipped


@pytest.mark.parametrize(
    ("name", "options", "knobs", "said"),
    [
        ("norm", {}, {}, ("two classes", "digits has 10")),
        ("residual", {}, {}, ("two classes", "digits has 10")),
        ("mean", {"epoch": 1}, {"known": 40}, ("epoch 1", "[0, 2]", "config.training.record")),
        ("two_stage", {"epoch": 1}, {}, ("epoch 1", "[0, 2]", "config.training.record")),
        ("spectral", {"signal": "top.hidden.9"}, {"known": 40}, ("'top.hidden.9'", "party0.cut")),
        ("passive", {}, {"known": 9}, ("known=9", "10 classes")),
        ("probe", {}, {"known": 321}, ("known=321", "320 training rows")),
        ("mean", {}, {"known": 319}, ("known=319", "at most", "all 320")),
        ("active", {}, {"known": 40}, ("'malicious'", "'active' to config.attacks", "new workdir")),
    ],
)
def test_a_refusal_names_the_value_and_the_remedy(stored, name, options, knobs, said):
    reason = reason_of(stored, name, options, **knobs)
    for words in said:
        assert words in reason


@pytest.mark.parametrize(
    ("name", "options", "knobs"),
    [
        ("passive", {}, {"known": 10}),
        ("passive", {}, {"known": 320}),
        ("mean", {"epoch": 0}, {"known": 40}),
        ("mean", {"oracle": True}, {}),
        ("direct", {"epoch": 2}, {}),
        ("direct", {"epoch": "votes"}, {}),
        ("two_stage", {}, {}),
        ("spectral", {"signal": "party1.hidden.0"}, {"known": 40}),
    ],
)
def test_what_it_can_serve_is_not_refused(stored, name, options, knobs):
    assert reason_of(stored, name, options, **knobs) == ""


def test_labels_are_limited_by_the_rarest_class_up_to_all_of_them(stored):
    """As known rows are balanced: up to C times the rarest class's training rows, or every row."""
    plan, _ = stored
    labels = [plan.dataset.labels[split.train] for split in plan.splits]
    most = 10 * min(sum(of_seed == c) for of_seed in labels for c in range(10))
    assert most < 320
    assert reason_of(stored, "mean", known=float(most)) == ""
    assert f"at most {most}" in reason_of(stored, "mean", known=float(most + 1))


def test_each_point_of_known_labels_is_checked(stored):
    assert "known=5" in planned("mean", {}, [{"known": 40.0}, {"known": 5.0}], *stored).skipped


def test_the_layers_are_those_of_both_parties_and_the_top_model(stored):
    plan, _ = stored
    assert set(jobs.layers(plan)) == {
        *("party0.hidden.0", "party0.cut", "party1.hidden.0", "party1.cut"),
        *("top.hidden.0", "top.logits"),
    }


def test_layers_that_only_one_arm_has_are_not_offered():
    model = {"model": {"top": "mlp", "top_hidden": ()}}  # no hidden layer
    grid = {"undefended": {}, "other": {**model, "noise": {"scale": 0.1}}}
    names = jobs.layers(plan_of(tiny(grid=grid)))
    assert "top.logits" in names
    assert "top.hidden.0" not in names


def test_what_cannot_be_served_is_said_and_stored_and_the_others_run_on(workdir):
    config = {
        **TINY,
        "attacks": {
            "norm": {},
            "mean": {"known": 5, "epoch": 0},
            "direct": {"rule": "least_negative"},
            "active": {"steps": 2},
        },
    }
    said = []
    run.attack_sweep(plan_of(config), workdir, say=said.append)
    assert [line.split(":")[0] for line in said] == [
        *("skipped norm", "skipped mean", "skipped active")
    ]
    described = by_label(workdir)
    for name in ("norm", "mean", "active"):
        assert described[name]["status"] == "skipped"
        assert described[name]["reason"] in "\n".join(said)
    assert described["direct/least_negative"]["status"] == "ok"
    attacks = {row["label"] for row in store.load(workdir).attacks.to_pylist()}
    assert "direct/least_negative" in attacks
    assert "passive" in attacks  # what was stored before stays
    assert not attacks & {"norm", "mean", "active"}


def test_a_form_s_jobs_are_its_attacks_and_its_baselines(stored):
    """A baseline is a job like another: what a seed's settings share once a seed, the rest a setting."""
    plan, sweep = stored
    points = [{"known": 20.0}, {"known": 40.0}]
    variant_plan = planned("passive", {"steps": 2}, points, plan, sweep)
    assert [(g.federation, g.attackers, g.number) for g in variant_plan.jobs] == [
        ("split", (0,), 0),
        ("no_split", (0,), 1),
    ]
    for group, listed in variant_plan.jobs.items():
        name, number = group.federation, group.number
        trials = [r for r in sweep.results.to_pylist() if r["federation"] == name]
        assert len(trials) == 12
        first = {seed: next(r for r in trials if r["seed"] == seed)["trial"] for seed in (0, 1)}
        expected = []
        for point in (0, 1):
            expected += [(name, number, first[seed], "untrained", point, seed) for seed in (0, 1)]
            for row in trials:
                for what in ("attack", "all_labels"):
                    expected.append((name, number, row["trial"], what, point, row["seed"]))
        assert [job.key for job in listed] == expected
    assert variant_plan.diverged == 0
    for job in variant_plan.every_job:
        known = 320 if job.what == "all_labels" else (20, 40)[job.point]
        assert job.knobs(320)["known"] == known
        assert job.figures({})["label"] == "passive"
        # a stored row is known again by what it says
        assert jobs.key_of(job.figures({"success": 0.5})) == job.key


def test_settings_are_known_by_their_shard_where_the_plan_trains_other_federations(stored):
    """A config with another attack numbers the settings of the same arms anew."""
    _, sweep = stored
    more = plan_of(tiny(attacks={**TINY["attacks"], "active": {"steps": 2}}))
    variant_plan = planned("direct", {}, [{}], more, sweep)
    ((group, listed),) = variant_plan.jobs.items()
    assert (group.federation, group.spec.top) == ("no_split", None)
    rows = [r for r in sweep.results.to_pylist() if r["federation"] == "no_split"]
    assert [job.row["trial"] for job in listed] == [row["trial"] for row in rows]


def test_an_attack_without_baselines_has_no_other_jobs(stored):
    variant_plan = planned("direct", {}, [{}], *stored)
    ((_, listed),) = variant_plan.jobs.items()
    assert {job.what for job in listed} == {"attack"}
    assert len(listed) == 12


def sweep_of(plan, diverged=()):
    """A stored sweep of which only its rows of results are there."""
    rows = [
        {
            **row,
            "status": "diverged" if row["trial"] in diverged else "ok",
            "shard": group.name,
            "member": 0,
        }
        for group in plan.groups
        for row in rows_of(group.trials)
    ]
    names = ("trial", "seed", "federation", "status", "shard", "member")
    results = pa.table({name: [row[name] for row in rows] for name in names})
    shards = [{"name": group.name, "group": group.name} for group in plan.groups]
    return store.StoredSweep(None, {"shards": shards}, results, pa.table({}))


def test_where_a_config_names_its_federations_the_remedy_is_to_name_another():
    plan = plan_of(tiny(grid={"undefended": {}}, federations=("split",)))
    reason = planned("direct", {}, [{}], plan, sweep_of(plan)).skipped
    assert "add 'no_split' to config.federations" in reason


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
    variant_plan = planned("active", {}, points, colluding, sweep_of(colluding))
    assert [(g.federation, g.attackers) for g in variant_plan.jobs] == [
        ("malicious-0", (0,)),
        ("malicious-0-1", (0, 1)),
    ]
    listed = variant_plan.every_job
    assert {job.figures({})["label"] for job in listed} == {"active", "active/parties=0+1"}
    assert len({job.key for job in listed}) == len(listed) == 2 * 2 * (2 + 2 * 2)


def test_a_setting_that_diverged_is_not_attacked_and_counted(colluding):
    trials = pd.concat(group.trials for group in colluding.groups)
    first = trials[trials["federation"] == "malicious-0"]["trial"].iloc[:1]
    sweep = sweep_of(colluding, diverged=[*first])
    variant_plan = planned("active", {}, [{"known": 20.0}], colluding, sweep)
    assert variant_plan.diverged == 1
    alone = next(
        members for g, members in variant_plan.jobs.items() if g.federation == "malicious-0"
    )
    assert [(job.what, job.seed) for job in alone] == [
        *(("untrained", 0), ("untrained", 1), ("attack", 1), ("all_labels", 1))
    ]
