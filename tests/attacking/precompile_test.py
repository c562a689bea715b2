"""Attacks' programs compiled before anything is trained: from the shapes that attacks will have."""

import shutil
import threading

import numpy as np
import pyarrow as pa

from tests.sweeps import TINY, comparable, plan_of, tiny
from vfljax import store
from vfljax.attacking import alone, jobs, precompile, run, scoring
from vfljax.attacking.view import attack_input
from vfljax.federation import training
from vfljax.launching import running
from vfljax.sweep import batch_layout, programs
from vfljax.sweep.attack_variants import attack_forms
from vfljax.sweep.plan import split_arrays
from vfljax.types import Scores

FORMS = {
    "passive": {"known": 20, "steps": 2},
    "direct": {"epoch": -1},
    "mean": {"known": 20},
    "cosine": {"oracle": (False, True)},
    "spectral": {"signal": ("embeddings", "party0.hidden.0")},
}
CHEAP = tiny(attacks={"direct": {}})


def silent(line):
    del line


def as_stored(job, attack, workdir):
    """What the runner gives an attack: lanes on the devices."""
    knobs = job.knobs(320)
    parties, diagnostic = job.group.attackers, bool(attack.diagnostic)
    return attack_input(workdir, job.row, job.form.name, knobs, parties, diagnostic)


def test_the_plan_tells_the_jobs_and_their_shapes_as_the_stored_sweep_does(tiny_sweep):
    plan, layout, seen = plan_of(tiny(attacks=FORMS)), batch_layout.layout(2), set()
    stored = store.load(tiny_sweep)
    for form in attack_forms(plan.experiment, 10, plan.party_columns[0].input):
        expected = jobs.plan_form(form, plan, precompile.as_trained(plan))
        actual = jobs.plan_form(form, plan, stored)
        assert not isinstance(expected, str), (form.label, expected)
        assert list(expected.jobs) == list(actual.jobs)
        for group, of_group in actual.jobs.items():
            identities = [job.identity for job in expected.jobs[group]]
            assert identities == [job.identity for job in of_group]
            attack = actual.attacks[group]
            real = as_stored(of_group[0], attack, tiny_sweep)
            lane = layout.pad(
                batch_layout.jax.tree.map(lambda *leaves: np.stack(leaves), real, real)
            )
            shapes = precompile.expected_input(of_group[0], plan, bool(attack.diagnostic))
            assert programs._abstract(layout.shapes(shapes)) == programs._abstract(lane)
            seen.add((form.label, group.federation))
    assert {federation for _, federation in seen} == {"split", "no_split"}
    assert len({label for label, _ in seen}) == 7


def test_the_shapes_of_true_labels(tiny_sweep):
    plan = plan_of(TINY)
    arrays = split_arrays(plan.dataset.labels, plan.splits)
    real = batch_layout.share(scoring.true_labels(arrays))
    shapes = batch_layout.shared_shapes(scoring.true_shapes(arrays))
    assert programs._abstract(shapes) == programs._abstract(real)


def test_whoever_stays_away_is_scored_by_what_was_compiled_ahead(
    tiny_sweep, every_program, monkeypatch
):
    del every_program  # an empty table
    plan = plan_of(TINY)
    arrays, keys = split_arrays(plan.dataset.labels, plan.splits), []
    monkeypatch.setattr(programs, "_cached", lambda key, build: keys.append(key) or run_nothing)
    (task,) = (t for t in precompile.attack_tasks(plan) if t.func is scoring.compile_one_ahead)
    task()
    monkeypatch.setattr(alone, "logistic_scores", no_scores)
    monkeypatch.setattr(store, "read_variant", lambda *_: pa.table({}))
    monkeypatch.setattr(store, "write_chunk", lambda *_: None)
    job = alone.AloneJob((0,), 20, 0)
    alone.run([job], plan, tiny_sweep, arrays, scoring.Scorer(arrays, None))
    assert len(keys) == 2
    assert keys[0] == keys[1]


def run_nothing(*arguments):
    del arguments
    return {}


def no_scores(*arguments):
    """What the regression says of the rows of ``TINY``."""
    del arguments
    return Scores(*(np.zeros((rows, 10), np.float32) for rows in (320, 160)))


def test_attacks_make_no_program_of_their_own(tiny_sweep, tmp_path, every_program):
    workdir, plan = shutil.copytree(tiny_sweep, tmp_path / "w"), plan_of(CHEAP)
    for task in precompile.attack_tasks(plan):
        task()
    count = len(every_program)
    assert count >= 2  # an attack and its scoring
    run.attack_sweep(plan, workdir, ["direct"], silent)
    assert len(every_program) == count
    assert [program.traces for program in every_program] == [1] * count
    assert store.by_label(store.attack_summary(workdir))["direct"]["compiles"] == 1


def test_an_attack_of_other_shapes_than_expected_compiles_its_own(
    tiny_sweep, tmp_path, every_program, monkeypatch
):
    plan = plan_of(CHEAP)
    run.attack_sweep(plan, shutil.copytree(tiny_sweep, tmp_path / "a"), ["direct"], silent)
    few = len(every_program)
    programs._PROGRAMS.clear()
    expected_input = precompile.expected_input

    def longer(job, *rest):
        one = expected_input(job, *rest)
        return one._replace(exchange={**one.exchange, "more": np.zeros(3, np.float32)})

    monkeypatch.setattr(precompile, "expected_input", longer)
    for task in precompile.attack_tasks(plan):
        task()
    run.attack_sweep(plan, shutil.copytree(tiny_sweep, tmp_path / "b"), ["direct"], silent)
    assert len(every_program) > 2 * few - 1
    assert [program.traces for program in every_program] == [1] * len(every_program)
    tables = [comparable(store.load(tmp_path / name).attacks) for name in "ab"]
    assert tables[0] == tables[1]


def test_a_sweep_in_one_call_makes_each_program_once(tmp_path, every_program, monkeypatch):
    """What is made in the background is what the main thread asks for."""
    changes = {"training.epochs": 1, "teacher.epochs": 1, "grid": {"undefended": {}}}
    by_main, ahead_of_it, cached = set(), set(), programs._cached

    def counted(key, build):
        main = threading.current_thread() is threading.main_thread()
        (by_main if main else ahead_of_it).add(key)
        return cached(key, build)

    monkeypatch.setattr(programs, "_cached", counted)
    monkeypatch.setattr(programs, "has_room", lambda: True)  # whatever other tests have compiled
    monkeypatch.setattr(running.page, "write", lambda folder: folder)
    running.run_sweep(tiny(**changes, attacks={"direct": {}}), tmp_path, say=silent)
    assert {key[0] for key in ahead_of_it} >= {training.make_initial}
    assert ahead_of_it <= by_main
    assert len(every_program) == len({k for k in by_main if isinstance(k[2], batch_layout.Layout)})
    assert [program.traces for program in every_program] == [1] * len(every_program)
