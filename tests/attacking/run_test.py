"""Attacks on stored sweeps: what an attacker is given, baselines, halves, and what a resume computes."""

import dataclasses
import itertools
import shutil
import types

import jax
import jax.numpy as jnp
import numpy as np
import pyarrow.parquet as pq
import pytest

from tests.damage import silent
from tests.sweeps import TINY, comparable, drop_blocks, folder_of, plan_of, tiny, train
from vfljax import store
from vfljax.attacking import batching, jobs, local_only, run, view
from vfljax.attacks.core import BASELINES
from vfljax.attacks.learners import LEARNERS
from vfljax.errors import UserError
from vfljax.report.judged import judge_sweep
from vfljax.store import exchange as wire
from vfljax.sweep import batch_layout, programs, trainer, variants
from vfljax.sweep.grid import parse
from vfljax.sweep.initial import plain
from vfljax.sweep.plan import make_plan, split_arrays
from vfljax.types import Agreed

DIRECT, RULE = "direct/most_negative", {"rule": "most_negative"}
ORACLE = "mean/oracle"


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
    """A sweep attacked by a small network with all baselines, and the plan."""
    workdir = shutil.copytree(tiny_sweep, tmp_path_factory.mktemp("probed") / "w")
    options = {"inputs": "embeddings", "steps": 2, "known": 20}
    plan = plan_of(tiny(attacks={"probe": options}, federations=("split", "no_split")))
    run.attack_sweep(plan, workdir, ["probe"], silent)
    return workdir, plan


@pytest.mark.parametrize(
    ("block", "width", "seconds", "file_count"), [(8, None, 0, 4), (8, None, 1e9, 1), (26, 1, 5, 1)]
)
def test_a_machine_with_other_blocks_continues_a_stored_attack(
    probed, tmp_path, monkeypatch, block, width, seconds, file_count
):
    stored, plan = probed
    workdir = shutil.copytree(stored, tmp_path / "w")
    before = comparable(store.load(workdir).attacks)
    folder = workdir / folder_of(workdir, "probe/embeddings")
    assert len(drop_blocks(workdir, "probe/embeddings", "split-*.parquet")) == 1
    monkeypatch.setattr(batching, "BATCH_SIZE", block)
    monkeypatch.setattr(trainer, "SAVE_SECONDS", seconds)
    if width:  # as for a large network: scoring's own width does not divide 13 lanes of a device
        monkeypatch.setattr(batching, "width_of", lambda *_: width)
    run.attack_sweep(plan, workdir, ["probe"], silent)
    written = sorted(folder.glob("split-*.parquet"))
    assert len(written) == file_count
    run.attack_sweep(plan, workdir, ["probe"], silent)
    assert sorted(folder.glob("split-*.parquet")) == written
    after = comparable(store.load(workdir).attacks)
    assert len(after) == len(before)
    for a, b in zip(after, before, strict=True):
        assert (a["label"], a["trial"], a["seed"]) == (b["label"], b["trial"], b["seed"])


@pytest.fixture
def computed(monkeypatch):
    """The identities of the jobs that programs compute, and seeds of logistic regressions."""
    by_program, by_host = [], []
    run_group, learn = run._run_together, local_only.learn_draws

    def counted_group(todo, *rest):
        by_program.extend(job.key for job in todo)
        return run_group(todo, *rest)

    def counted_learn(learner, drawn):
        by_host.extend((columns.seed, learner) for columns in drawn)
        return learn(learner, drawn)

    monkeypatch.setattr(run, "_run_together", counted_group)
    monkeypatch.setattr(local_only, "learn_draws", counted_learn)
    return by_program, by_host


@pytest.mark.parametrize("missing", ["nothing", "some rows"])
def test_a_resumed_attack_computes_only_what_is_missing(workdir, plan, computed, missing):
    before = comparable(store.load(workdir).attacks)
    folder = workdir / folder_of(workdir, "passive")
    removed = []
    if missing == "some rows":
        (path,) = folder.glob("split-*.parquet")
        rows = pq.read_table(path).to_pylist()
        removed = list({row["what"]: row for row in reversed(rows)}.values())  # one of each kind
        drop_blocks(workdir, "passive", path.name)
        kept = [row for row in rows if row not in removed]
        store.write_chunk(workdir, folder.name, "split-0", list(map(jobs.key_of, kept)), kept)
    run.attack_sweep(plan, workdir, say=silent)
    by_program, by_host = computed
    assert sorted(by_program) == sorted(map(jobs.key_of, removed))
    assert len(by_program) == (3 if missing == "some rows" else 0)
    assert by_host == []
    assert comparable(store.load(workdir).attacks) == before


def test_the_baseline_on_the_host_is_fitted_once_for_all_attacks(probed, tmp_path, computed):
    workdir = shutil.copytree(probed[0], tmp_path / "w")
    before = comparable(store.load(workdir).attacks)
    assert len(drop_blocks(workdir, "logistic", "rows-*.parquet")) == 1
    probe = {"inputs": "embeddings", "steps": 2, "known": 20}
    both = {"passive": TINY["attacks"]["passive"], "probe": probe}
    plan = plan_of(tiny(attacks=both, federations=("split", "no_split")))
    run.attack_sweep(plan, workdir, say=silent)
    assert computed == ([], list(itertools.product((0, 1), LEARNERS)))
    assert comparable(store.load(workdir).attacks) == before


def blocks_of(workdir, label):
    return {
        path: path.read_bytes() for path in (workdir / folder_of(workdir, label)).glob("*.parquet")
    }


@pytest.fixture
def direct(tiny_sweep, workdir, monkeypatch):
    """A sweep with the direct attack in three blocks, its plan, and its rows."""
    config = tiny(attacks={"direct": RULE})
    drop_blocks(workdir, DIRECT)
    monkeypatch.setattr(batching, "BATCH_SIZE", 4)
    monkeypatch.setattr(trainer, "SAVE_SECONDS", 0.0)
    run.attack_sweep(plan_of(config), workdir, ["direct"], silent)
    monkeypatch.setattr(batching, "BATCH_SIZE", 8)  # the next machine
    assert len(blocks_of(workdir, DIRECT)) == 3
    return workdir, plan_of(config), comparable(store.load(tiny_sweep).attacks)


def test_what_is_missing_is_written_beside_the_blocks_that_are_there(direct):
    workdir, plan, rows = direct
    before = blocks_of(workdir, DIRECT)
    drop_blocks(workdir, DIRECT, sorted(before)[0].name)
    kept = blocks_of(workdir, DIRECT)
    assert any("has 8 of 12 rows" in line for line in store.load(workdir).unfinished)
    run.attack_sweep(plan, workdir, ["direct"], silent)
    after = blocks_of(workdir, DIRECT)
    assert len(after) == 3
    assert kept.items() <= after.items()
    assert comparable(store.load(workdir).attacks) == rows


def test_what_was_attacked_before_an_interrupt_is_stored(direct, monkeypatch):
    workdir, plan, _ = direct
    drop_blocks(workdir, DIRECT)
    monkeypatch.setattr(trainer, "SAVE_SECONDS", 1e9)
    attack, calls = run.run_attack_batch, itertools.count()

    def interrupted(*arguments):
        if next(calls):
            raise KeyboardInterrupt
        return attack(*arguments)

    monkeypatch.setattr(run, "run_attack_batch", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run.attack_sweep(plan, workdir, ["direct"], silent)
    assert any("has 8 of 12 rows" in line for line in store.load(workdir).unfinished)


def test_an_attack_does_not_end_with_rows_missing(direct, monkeypatch):
    workdir, plan, _ = direct
    drop_blocks(workdir, DIRECT)
    monkeypatch.setattr(store, "write_chunk", lambda *arguments: None)
    with pytest.raises(UserError, match=r"most_negative.rule1 is damaged \(12 rows are missing\)"):
        run.attack_sweep(plan, workdir, ["direct"], silent)


def test_killed_before_its_end_an_oracle_is_still_no_attack(workdir, monkeypatch):
    original = store.write_chunk

    def killed(*arguments):
        original(*arguments)
        raise KeyboardInterrupt

    monkeypatch.setattr(store, "write_chunk", killed)
    config = tiny(attacks={"mean": {"oracle": True}}, federations=("split", "no_split"))
    with pytest.raises(KeyboardInterrupt):
        run.attack_sweep(plan_of(config), workdir, ["mean"], silent)
    stored = store.load(workdir)
    assert any(row["label"] == ORACLE for row in stored.attacks.to_pylist())
    found = judge_sweep(workdir)
    assert {*found.rows.loc[found.rows["label"] == ORACLE, "role"]} == {"oracle"}
    assert ORACLE not in {*found.verdicts["leader"]}


@pytest.mark.parametrize(("signal", "oracle"), [("party0.cut", False), ("top.logits", True)])
def test_only_what_attackers_do_not_own_makes_an_oracle(tiny_sweep, plan, signal, oracle):
    variant = variants.AttackVariant("spectral", {"signal": signal}, [{}])
    planned = jobs.plan_variant(variant, plan, store.load(tiny_sweep))
    assert run._described(planned, 1)["oracle"] == oracle


def test_an_attack_that_diverges_is_left_out_and_said_not_taken_for_a_good_defense(workdir):
    drop_blocks(workdir, "passive")
    options = {**TINY["attacks"]["passive"], "learning_rate": 1e30}
    attacks, both = {"passive": options, "norm": {}}, ("split", "no_split")
    wild = parse(tiny(attacks=attacks, federations=both), beyond_limits=True)
    run.attack_sweep(make_plan(wild), workdir, say=silent)
    stored = store.load(workdir)
    passive = [a for a in stored.attacks.to_pylist() if a["label"] == "passive"]
    assert len(passive) == 24
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
    reason = jobs.plan_variant(variant, plan_of(config), stored).skipped
    assert "reads epoch 7" in reason
    assert "config.training.record" in reason


def program_for(variant, plan):
    spec = plain(plan.groups[0].spec)
    group = jobs.ViewGroup("split", (0,), spec, 0)
    sweep = types.SimpleNamespace(workdir=None)
    arrays = split_arrays(plan.dataset.labels, plan.splits)
    stored = batching.Stored(plan, sweep, arrays, None, {})
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
        attack_variants.AttackVariant("reader", options, [{}])
        for options in ({}, {"learner": "naive Bayes on ranks"}, {"blocks": "exchange"})
    )
    assert program_for(trees, plan) is program_for(bayes, plan)
    assert program_for(trees, plan) is not program_for(exchange, plan)


def test_a_reader_on_the_host_scores_the_features_of_its_own_trial_and_labels(tmp_path):
    attacks = {"reader": {"known": (10, 40), "learner": "logistic C=.1"}}
    sweep = train(tmp_path, tiny(grid={"undefended": {}}, attacks=attacks)).attacks.to_pylist()
    leaks = {(r["trial"], r["attack.known"]): r["leak"] for r in sweep if r["attack"] == "reader"}
    assert all(0.25 < leaks[trial, 10] < leaks[trial, 40] for trial in (0, 1))
