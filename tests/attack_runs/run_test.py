"""Attacks on stored sweeps: what an attacker is given, baselines, and what a resume computes."""

import collections
import dataclasses
import itertools
import shutil

import numpy as np
import pytest

from tests.sweeps import (
    TINY,
    attack,
    attack_units,
    comparable,
    drop_units,
    plan_of,
    tiny,
    variant_on,
)
from vfljax import store
from vfljax.attack_runs import batching, bundles, jobs, local_only, run, view
from vfljax.attacks.core import BASELINES
from vfljax.errors import UserError
from vfljax.report.sweep_answers import judge_sweep
from vfljax.scheduling import running, work
from vfljax.sweep import batch_layout, programs
from vfljax.sweep.grid import parse
from vfljax.sweep.initial import without_defenses
from vfljax.sweep.known import split_arrays

DIRECT = "direct/most_negative"


@pytest.fixture(scope="module")
def plan():
    return plan_of(TINY)


def test_every_passive_figure_stands_beside_its_baselines(tiny_sweep):
    rows = store.load(tiny_sweep).attacks.to_pylist()
    passive = [r for r in rows if r["label"] == "passive"]
    assert [row["federation"] for row in passive].count("split") == 12
    assert [row["federation"] for row in passive].count("no_split") == 12
    passive = [row for row in passive if row["settled_by"] is None]
    for row, what in itertools.product(passive, BASELINES):
        assert 0 <= row[f"{what}_success"] <= 1
        assert 0 <= row[f"{what}_test_success"] <= 1
    untrained, logistic = {}, {}
    for row in passive:  # they depend on the seed and the federation's bottoms, or the seed alone
        of_seed = untrained.setdefault((row["federation"], row["seed"]), set())
        of_seed.add(row["untrained_success"])
        logistic.setdefault(row["seed"], set()).add(row["logistic_success"])
    assert [len(values) for values in untrained.values()] == [1] * 4
    assert [len(values) for values in logistic.values()] == [1] * 2
    assert untrained["split", 0] != untrained["no_split", 0]
    assert passive[0]["all_labels_success"] != passive[0]["success"]
    direct = next(r for r in rows if r["attack"] == "direct")
    assert direct["logistic_success"] is None
    assert "what" not in direct
    learners = {store.learner_of(row) for row in store.load(tiny_sweep).local_only.to_pylist()}
    assert {"logistic", "passive on an untrained bottom"} <= learners


def test_a_resumed_attack_computes_only_what_is_missing(workdir, monkeypatch):
    before = comparable(store.load(workdir).attacks)
    (unit,) = attack_units(workdir, "passive")
    rows = store.read_rows(workdir, [unit]).to_pylist()
    computes = [row for row in rows if row["settled_by"] is None]
    removed = list({row["what"]: row for row in computes}.values())  # one of each kind
    assert len(removed) == 3
    drop_units(workdir, "passive")
    store.write_partial_rows(workdir, unit, [row for row in rows if row not in removed])
    computed, run_bundle = [], run._run_bundle

    def counted(bundle, *rest):
        computed.extend(job.key for job in bundle.jobs.values())
        return run_bundle(bundle, *rest)

    def fitted(*_):
        raise AssertionError("the baseline on the host was fitted before")

    monkeypatch.setattr(run, "_run_bundle", counted)
    monkeypatch.setattr(local_only, "learn_draws", fitted)
    attack(workdir)
    assert sorted(computed) == sorted(map(jobs.key_of, removed))
    assert comparable(store.load(workdir).attacks) == before


def test_an_interrupted_attack_is_saved_and_continued_by_a_machine_with_other_batches(
    workdir, monkeypatch
):
    before = comparable(store.load(workdir).attacks)
    (unit,) = drop_units(workdir, DIRECT)
    monkeypatch.setattr(batching, "BATCH_SIZE", 8)
    with monkeypatch.context() as patched:
        once, calls = run.run_attack_batch, itertools.count()

        def interrupted(*arguments):
            if next(calls):
                raise KeyboardInterrupt
            return once(*arguments)

        patched.setattr(run, "run_attack_batch", interrupted)
        with pytest.raises(KeyboardInterrupt):
            attack(workdir, ["direct"])
    assert len(store.read_partial_rows(workdir, unit)) == 8  # of 12
    assert f"the attack {DIRECT} was not run" in store.load(workdir).unfinished[0]
    # as for a large network: scoring's own width does not divide 13 lanes of a device
    monkeypatch.setattr(batching, "BATCH_SIZE", 26)
    monkeypatch.setattr(batching, "mapped_at_once", lambda *_: 1)
    attack(workdir, ["direct"])
    assert comparable(store.load(workdir).attacks) == before


def test_the_program_of_an_attack_is_compiled_in_the_background_and_counts_as_its_own(
    workdir, monkeypatch
):
    before = comparable(store.load(workdir).attacks)
    drop_units(workdir, DIRECT)
    monkeypatch.setattr(programs, "_PROGRAMS", collections.OrderedDict())
    ahead, begin = [], programs.Program.compile

    def noted(program, *arguments, pool=None):
        ahead.append((program.name, pool is not None))
        begin(program, *arguments, pool=pool)

    monkeypatch.setattr(programs.Program, "compile", noted)
    attack(workdir, ["direct"])
    assert ahead == [("attack_direct", True), ("score_member", False)]
    entries = store.attack_summary(workdir).values()
    assert [entry["compiles"] for entry in entries if entry["label"] == DIRECT] == [2]
    assert comparable(store.load(workdir).attacks) == before


def test_dear_attacks_are_not_run_on_what_cheap_ones_have_rejected(workdir, monkeypatch):
    plan, computed, rejected = running.stored_plan(workdir), set(), {(2, "split")}
    for label in ("passive", DIRECT):
        drop_units(workdir, label)

    def noted(bundle, works, *_):
        for job in bundle.jobs.values():
            name, configuration = job.variant.name, job.row["configuration"]
            computed.add((name, configuration, job.group.federation))
            (work,) = works.values()
            work.rows[job.key] = job.figures({"leak": 0.7})

    monkeypatch.setattr(run, "_run_bundle", noted)
    begun = work.Begun(plan, workdir, store.read_header(workdir), lambda shards: rejected)
    running.exported(begun.workdir, work.work(begun, print), print).check()
    assert ("direct", 2, "no_split") in computed  # it is cheap
    assert {("passive", 0, "split"), ("passive", 1, "split")} <= computed
    assert ("passive", 2, "split") not in computed
    verdicts = judge_sweep(workdir).verdicts.set_index(["configuration", "panel"])
    assert {*verdicts.index[verdicts["at_least"]]} == rejected


def test_an_attack_that_is_stored_with_other_options_is_refused_and_left_alone(workdir):
    before = (workdir / "sweep.json").read_bytes()
    with pytest.raises(UserError, match="passive is stored with .* and now asks for .*: give it"):
        attack(workdir, {"passive": {**TINY["attacks"]["passive"], "known": 30}})
    assert (workdir / "sweep.json").read_bytes() == before


def test_an_attack_that_diverges_is_left_out_and_said_not_taken_for_a_good_defense(workdir):
    running.drop_attacks(workdir, ["passive"])
    options = {**TINY["attacks"]["passive"], "learning_rate": 1e30}
    attacks, both = {"passive": options, "norm": {}}, ("split", "no_split")
    wild = parse(tiny(attacks=attacks, federations=both), beyond_limits=True)
    attack(workdir, plan=running.stored_plan(workdir)._replace(experiment=wild))
    stored = store.load(workdir)
    passive = [a for a in stored.attacks.to_pylist() if a["label"] == "passive"]
    assert len(passive) == 24
    passive = [row for row in passive if row["settled_by"] is None]
    assert all(np.isnan(a["success"]) and np.isnan(a["leak"]) for a in passive)
    assert all(a["logistic_success"] > 0.2 for a in passive)
    verdicts = judge_sweep(workdir).verdicts
    assert "passive" not in {*verdicts["leader"]}
    split = verdicts[verdicts["panel"] == "split"]
    assert all(missing.startswith("passive") for missing in split["missing"])
    assert split["incomplete"].all()


def program_for(name, options, plan):
    variant = variant_on(plan, name, options)
    spec = without_defenses(plan.groups[0].spec)
    group = jobs.ViewGroup("split", (0,), spec, 0)
    arrays = split_arrays(plan.dataset.labels, plan.splits)
    stored = bundles.Stored(bundles.Begun(plan, None, {}), plan, arrays, None, {})
    job = jobs.Job(jobs.ATTACK, variant, group, 0, 0, {"trial": 0})
    (bundle,) = bundles.bundles_of([(variant, [job])])
    batch = batching.make_attack_batch(bundle, stored)
    inputs, layout = np.zeros(2, np.int32), batch_layout.layout(2)  # of as many training rows
    return programs.program(
        batching.make_attack_member, (batch.static,), layout, (inputs, batch.common)
    )


def test_sweeps_of_other_seeds_share_programs_and_those_of_other_shapes_do_not(plan):
    """A program is traced once: one given rows of another shape would be traced again."""
    other_seeds = plan_of(tiny(seeds=3, first_seed=2))
    fewer_test = plan_of(tiny(**{"data.test": 150}))
    fewer_validation = plan_of(tiny(**{"data.validation": 150}))
    honest, diagnostic = ("mean", {}), ("spectral", {"signal": "party0.cut"})
    for of in (honest, diagnostic):
        assert program_for(*of, other_seeds) is program_for(*of, plan)
        assert program_for(*of, fewer_validation) is program_for(*of, plan)
        assert program_for(*of, fewer_test) is not program_for(*of, plan)
    padded = view.with_places(np.arange(18), 9)  # two draws
    np.testing.assert_array_equal(padded, [*range(9), *[8] * 7, *range(9, 18), *[17] * 7])


def test_attacks_that_compute_the_same_share_a_program_and_groups_of_equal_shapes_calls(plan):
    options = {"finetune_bottom": True, "steps": 3}
    passive, active, longer = (
        program_for(name, {**options, "steps": steps}, plan)
        for name, steps in (("passive", 3), ("active", 3), ("passive", 4))
    )
    assert active is passive
    assert longer is not passive
    trees, bayes, exchange = (
        program_for("reader", options, plan)
        for options in ({}, {"learner": "naive Bayes on ranks"}, {"blocks": "exchange"})
    )
    assert trees is bayes
    assert trees is not exchange
    spec, variant = without_defenses(plan.groups[0].spec), variant_on(plan, "mean")
    other = dataclasses.replace(spec, batch_size=spec.batch_size + 1)
    places = ("split", spec, 0), ("malicious-0", spec, 0), ("split", other, 1)
    groups = [jobs.ViewGroup(name, (0,), of_group, number) for name, of_group, number in places]
    made = [
        jobs.Job(jobs.ATTACK, variant, group, 0, 0, {"trial": k}) for k, group in enumerate(groups)
    ]
    assert [of.members for of in bundles.bundles_of([(variant, made)])] == [made[:2], made[2:]]


def test_variants_and_points_are_one_program_and_each_reads_what_it_reads_alone(
    workdir, tiny_sweep, tmp_path, monkeypatch
):
    made, make = [], batching.make_attack_member
    monkeypatch.setattr(
        batching, "make_attack_member", lambda static: made.append(static.name) or make(static)
    )
    every = {"known": (10, 40), "inputs": ("both", "gradients"), "epoch": (-1, 0)}
    attack(workdir, {"probe": every})
    # each federation has a width of its own, and the upper bound learns from other numbers of rows
    assert made == ["probe"] * 4
    alone = shutil.copytree(tiny_sweep, tmp_path / "alone")
    attack(alone, {"probe": {"known": 40, "inputs": "gradients", "epoch": 0}})
    options = {"inputs": "gradients", "epoch": 0}
    together, single = (
        {
            (row["trial"], what): row[f"{what}_leak" if what else "leak"]
            for row in store.load(folder).attacks.to_pylist()
            if row["attack"] == "probe" and row["attack.known"] == 40
            if dict(store.identity_of(row).options) == options
            for what in ("", "all_labels")
        }
        for folder in (workdir, alone)
    )
    assert len(single) == 48
    assert together == pytest.approx(single, abs=1e-5)


def test_a_reader_on_the_host_scores_the_features_of_its_own_trial_and_labels(workdir):
    attack(workdir, {"reader": {"known": (10, 40), "learner": "logistic C=.1"}})
    rows = store.load(workdir).attacks.to_pylist()
    leaks = {(r["trial"], r["attack.known"]): r["leak"] for r in rows if r["attack"] == "reader"}
    assert all(0.25 < leaks[trial, 10] < leaks[trial, 40] for trial in (0, 1))
