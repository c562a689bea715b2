"""Attacks on stored sweeps: what an attacker is given, baselines, halves, and what a resume computes."""

import dataclasses
import itertools
import shutil

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.damage import killed
from tests.sweeps import TINY, attack, attack_units, comparable, drop_units, plan_of, tiny, train
from vfljax import store
from vfljax.attacking import batching, jobs, local_only, run, view
from vfljax.attacks.core import BASELINES
from vfljax.attacks.learners import LEARNERS
from vfljax.errors import UserError
from vfljax.launching import running
from vfljax.report.judged import judge_sweep
from vfljax.store import exchange as wire
from vfljax.sweep import batch_layout, programs, variants
from vfljax.sweep.grid import parse
from vfljax.sweep.initial import plain
from vfljax.sweep.plan import split_arrays
from vfljax.types import Agreed

DIRECT, RULE = "direct/most_negative", {"rule": "most_negative"}
PROBE = {"probe": {"inputs": "embeddings", "steps": 2, "known": 20}}


@pytest.fixture(scope="module")
def plan():
    return plan_of(TINY)


def common_of(plan):
    return view.common_data(plan.table, split_arrays(plan.dataset.labels, plan.splits), (0,))


def test_known_rows_are_balanced_and_no_other_label_is_given(plan):
    known = view.known_rows(common_of(plan), jnp.int32(1), jnp.float32(40))
    assert np.bincount(known.labels[:40]).tolist() == [4] * 10
    assert (np.asarray(known.labels[40:]) == -1).all()
    np.testing.assert_array_equal(np.sort(known.rows), np.arange(320))


def test_sweeps_of_other_seeds_share_the_programs_of_attacks(tmp_path, every_program):
    for seeds, first in ((2, 0), (3, 2)):
        changes = {"seeds": seeds, "first_seed": first, "attacks": {"direct": RULE}}
        train(tmp_path / str(first), tiny(grid={"undefended": {}}, **changes))
    names = [program.name for program in every_program]
    assert (names.count("attack_direct"), names.count("score_member")) == (1, 1)
    padded = view.with_places(np.arange(18), 9)  # two draws
    np.testing.assert_array_equal(padded, [*range(9), *[8] * 7, *range(9, 18), *[17] * 7])


def test_true_labels_do_not_enter_a_view(plan):
    common = common_of(plan)
    exchange = {name: jnp.zeros((2, 320, 4)) for name in wire.FIELDS}
    one = view.AttackInput(jnp.int32(0), jnp.uint32(0), {}, exchange, ({},))
    other = common._replace(labels=common.labels[::-1])
    a, b = (view.view_of(one, shared, Agreed(32)) for shared in (common, other))
    jax.tree.map(np.testing.assert_array_equal, a, b)


def test_every_passive_figure_stands_beside_its_baselines(tiny_sweep):
    rows = store.load(tiny_sweep).attacks.to_pylist()
    passive = [r for r in rows if r["label"] == "passive"]
    assert [row["federation"] for row in passive].count("split") == 12
    assert [row["federation"] for row in passive].count("no_split") == 12
    passive = [row for row in passive if row["settled_by"] is None]
    for row in passive:
        for what in BASELINES:
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


@pytest.fixture(scope="module")
def probed(tiny_sweep, tmp_path_factory):
    """A sweep attacked by a small network with all baselines."""
    workdir = shutil.copytree(tiny_sweep, tmp_path_factory.mktemp("probed") / "w")
    attack(workdir, PROBE)
    return workdir


@pytest.mark.parametrize(("batch", "width"), [(8, None), (26, 1)])
def test_a_machine_with_other_batches_continues_an_unfinished_attack(
    probed, tmp_path, monkeypatch, batch, width
):
    workdir = shutil.copytree(probed, tmp_path / "w")
    before = comparable(store.load(workdir).attacks)
    (unit,) = drop_units(workdir, "probe/embeddings")
    monkeypatch.setattr(batching, "BATCH_SIZE", 4)
    with killed("write_partial_rows"):
        attack(workdir, PROBE)
    assert 0 < len(store.read_partial_rows(workdir, unit)) <= 4
    monkeypatch.setattr(batching, "BATCH_SIZE", batch)
    if width:  # as for a large network: scoring's own width does not divide 13 lanes of a device
        monkeypatch.setattr(batching, "width_of", lambda *_: width)
    attack(workdir, PROBE)
    after = comparable(store.load(workdir).attacks)
    assert len(after) == len(before)
    for a, b in zip(after, before, strict=True):
        assert (a["label"], a["trial"], a["seed"]) == (b["label"], b["trial"], b["seed"])


@pytest.fixture
def computed(monkeypatch):
    """The identities of the jobs that programs compute, and seeds of logistic regressions."""
    by_program, by_host = [], []
    run_group, learn = run._run_together, local_only.learn_draws

    def counted_group(unit, todo, *rest):
        by_program.extend(job.key for job in todo)
        return run_group(unit, todo, *rest)

    def counted_learn(learner, drawn):
        by_host.extend((columns.seed, learner) for columns in drawn)
        return learn(learner, drawn)

    monkeypatch.setattr(run, "_run_together", counted_group)
    monkeypatch.setattr(local_only, "learn_draws", counted_learn)
    return by_program, by_host


@pytest.mark.parametrize("missing", ["nothing", "some rows"])
def test_a_resumed_attack_computes_only_what_is_missing(workdir, computed, missing):
    before = comparable(store.load(workdir).attacks)
    removed = []
    if missing == "some rows":
        (unit,) = attack_units(workdir, "passive")
        rows = store.read_rows(workdir, [unit]).to_pylist()
        computes = [row for row in rows if row["settled_by"] is None]
        removed = list({row["what"]: row for row in computes}.values())  # one of each kind
        drop_units(workdir, "passive")
        kept = [row for row in rows if row not in removed]
        store.write_partial_rows(workdir, unit, kept)
    attack(workdir)
    by_program, by_host = computed
    assert sorted(by_program) == sorted(map(jobs.key_of, removed))
    assert len(by_program) == (3 if missing == "some rows" else 0)
    assert by_host == []
    assert comparable(store.load(workdir).attacks) == before


def test_the_baseline_on_the_host_is_fitted_once_for_all_attacks(probed, tmp_path, computed):
    workdir = shutil.copytree(probed, tmp_path / "w")
    before = comparable(store.load(workdir).attacks)
    shutil.rmtree(workdir / "local_only")
    attack(workdir, {"passive": TINY["attacks"]["passive"], **PROBE})
    assert computed == ([], list(itertools.product((0, 1), LEARNERS)))
    assert comparable(store.load(workdir).attacks) == before


def test_what_was_attacked_before_an_interrupt_is_saved(workdir, monkeypatch):
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
    attack(workdir, ["direct"])
    assert comparable(store.load(workdir).attacks) == before


def test_an_attack_that_is_stored_with_other_options_is_refused_and_left_alone(workdir):
    before = (workdir / "sweep.json").read_bytes()
    with pytest.raises(UserError, match="passive is stored with .* and now asks for .*: give it"):
        attack(workdir, {"passive": {**TINY["attacks"]["passive"], "known": 30}})
    assert (workdir / "sweep.json").read_bytes() == before


@pytest.mark.parametrize(("signal", "oracle"), [("party0.cut", False), ("top.logits", True)])
def test_only_what_attackers_do_not_own_makes_an_oracle(plan, signal, oracle):
    variant = variants.AttackVariant("spectral", {"signal": signal}, [{}])
    assert jobs._planned(variant, plan).entry(True)["oracle"] == oracle


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


def test_any_recorded_epoch_can_be_attacked_and_one_that_was_not_is_said(tmp_path):
    config = tiny(
        grid={"undefended": {}},
        attacks={"direct": {"rule": "most_negative", "epoch": (0, 1)}},
        federations=("no_split",),
        **{"training.record": (1, 0), "seeds": 1},
    )
    stored = train(tmp_path, config)
    (row,) = [r for r in stored.results.to_pylist() if r["federation"] == "no_split"]
    exchange = stored.trial(row["trial"]).exchange()
    assert exchange["epochs"].tolist() == [0, 1, 2]  # the last always
    g = exchange["party0_gradients"]
    assert np.any(g[0] != g[1])
    labels = {r["label"] for r in stored.attacks.to_pylist()}
    assert labels == {"direct/most_negative/epoch=0", "direct/most_negative/epoch=1"}

    config["attacks"]["direct"]["epoch"] = 2
    config["training"]["record"] = (0,)  # 2 is the last: recorded all the same
    variant = variants.AttackVariant("direct", {"epoch": 7}, [{}])
    reason = jobs._planned(variant, plan_of(config)).skipped
    assert "reads epoch 7" in reason
    assert "config.training.record" in reason


def program_for(variant, plan):
    spec = plain(plan.groups[0].spec)
    group = jobs.ViewGroup("split", (0,), spec, 0)
    arrays = split_arrays(plan.dataset.labels, plan.splits)
    stored = batching.Stored(plan, None, {}, arrays, None, {})
    batch = batching.make_attack_batch(variant, group, stored)
    inputs, layout = np.zeros(2, np.int32), batch_layout.layout(2)  # of as many training rows
    return programs.program(
        batching.make_attack_member, (batch.static,), layout, inputs, batch.common
    )


def test_sweeps_of_other_shapes_in_one_process_have_programs_of_their_own(plan):
    """A program is traced once: one given rows of another shape would be traced again."""
    fewer_test = plan_of(tiny(**{"data.test": 150}))
    fewer_validation = plan_of(tiny(**{"data.validation": 150}))
    honest = variants.AttackVariant("mean", {}, [{}])
    diagnostic = variants.AttackVariant("spectral", {"signal": "party0.cut"}, [{}])
    for variant in (honest, diagnostic):
        assert program_for(variant, plan) is program_for(variant, plan)
        assert program_for(variant, fewer_test) is not program_for(variant, plan)
    assert program_for(diagnostic, fewer_validation) is not program_for(diagnostic, plan)


def test_jobs_of_all_groups_with_equal_shapes_share_calls(plan):
    spec, variant = plain(plan.groups[0].spec), variants.AttackVariant("mean", {}, [{}])
    other = dataclasses.replace(spec, batch_size=spec.batch_size + 1)
    places = ("split", spec, 0), ("malicious-0", spec, 0), ("split", other, 1)
    groups = [jobs.ViewGroup(name, (0,), of_group, number) for name, of_group, number in places]
    made = [jobs.Job(jobs.ATTACK, variant, group, 0, 0, {}) for group in groups]
    attack = variants.make_attack(variant, spec.bottoms[:1], 10)
    assert batching.sharing_calls(made, attack) == [made[:2], made[2:]]


def test_attacks_that_compute_the_same_share_a_program(plan):
    options = {"finetune_bottom": True, "steps": 3}
    passive, active = (
        variants.AttackVariant(name, options, [{}]) for name in ("passive", "active")
    )
    assert program_for(active, plan) is program_for(passive, plan)
    other = variants.AttackVariant("passive", {**options, "steps": 4}, [{}])
    assert program_for(other, plan) is not program_for(passive, plan)
    trees, bayes, exchange = (
        variants.AttackVariant("reader", options, [{}])
        for options in ({}, {"learner": "naive Bayes on ranks"}, {"blocks": "exchange"})
    )
    assert program_for(trees, plan) is program_for(bayes, plan)
    assert program_for(trees, plan) is not program_for(exchange, plan)


def test_a_reader_on_the_host_scores_the_features_of_its_own_trial_and_labels(tmp_path):
    attacks = {"reader": {"known": (10, 40), "learner": "logistic C=.1"}}
    sweep = train(tmp_path, tiny(grid={"undefended": {}}, attacks=attacks)).attacks.to_pylist()
    leaks = {(r["trial"], r["attack.known"]): r["leak"] for r in sweep if r["attack"] == "reader"}
    assert all(0.25 < leaks[trial, 10] < leaks[trial, 40] for trial in (0, 1))
