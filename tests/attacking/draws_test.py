"""Figures that are means over draws of the known labels."""

import dataclasses
import functools
import shutil

import numpy as np
import pytest

from tests.damage import silent
from tests.sweeps import plan_of, tiny
from vfljax import store
from vfljax.attacking import processes, run
from vfljax.report import intervals, stored_rows
from vfljax.report.assessment import assess
from vfljax.sweep.plan import split_arrays
from vfljax.sweep.train import train_sweep

DRAWS, KNOWN = 3, 20
CONFIG = tiny(
    known_draws=DRAWS,
    seeds=3,
    grid={"undefended": {}, "noise": {"noise": {"scale": 0.01}}},
    attacks={
        "mean": {"known": KNOWN},
        "joint": {"known": KNOWN, "steps": 5},
        "surrogate": {"names": "none", "steps": 3},
    },
)
FIGURES = ("leak", "leak_crossed", "leak_error", "success_unlabeled", "named_report")


@pytest.fixture(scope="module")
def sweeps(tmp_path_factory):
    """A sweep with three draws, and the same attacked with each draw alone."""
    folder = tmp_path_factory.mktemp("draws")
    plan = plan_of(CONFIG)
    train_sweep(plan.experiment, folder / "several", "", silent)
    for draw in range(DRAWS):
        shutil.copytree(folder / "several", folder / str(draw))
    run.attack_sweep(plan, folder / "several", say=silent)
    experiment = dataclasses.replace(plan.experiment, known_draws=1)
    several = split_arrays(plan.dataset.labels, plan.splits, DRAWS)["known_order"]
    seeds = experiment.seeds

    def of_draw(draw, *args):
        return {**split_arrays(*args), "known_order": several[draw * seeds : (draw + 1) * seeds]}

    with pytest.MonkeyPatch.context() as patch:
        for draw in range(DRAWS):
            patch.setattr(run, "split_arrays", functools.partial(of_draw, draw))
            run.attack_sweep(plan._replace(experiment=experiment), folder / str(draw), say=silent)
    names = ["several", *map(str, range(DRAWS))]
    return [store.load(folder / name) for name in names]


def test_the_first_draw_is_that_of_a_sweep_with_one():
    plan = plan_of(CONFIG)
    both = [split_arrays(plan.dataset.labels, plan.splits, draws) for draws in (1, DRAWS)]
    seeds, orders = len(plan.splits), both[1]["known_order"]
    np.testing.assert_array_equal(both[0]["known_order"], orders[:seeds])
    np.testing.assert_array_equal(both[0]["selects"], both[1]["selects"])
    labels = plan.dataset.labels[np.tile(both[1]["train"], (DRAWS, 1))]
    assert len({tuple(order[:KNOWN]) for order in orders}) == DRAWS * seeds
    for order, of_seed in zip(orders, labels, strict=True):
        np.testing.assert_array_equal(np.sort(order), np.arange(len(order)))
        assert np.bincount(of_seed[order[:KNOWN]]).tolist() == [2] * 10


@pytest.mark.parametrize(("label", "draws"), [("mean", DRAWS), ("joint", 2), ("surrogate", 1)])
def test_figures_are_means_over_the_draws_that_an_attack_affords(sweeps, label, draws):
    several, *single = (
        [row for row in sweep.attacks.to_pylist() if row["attack"] == label] for sweep in sweeps
    )
    assert several
    for row, *by_draw in zip(several, *single, strict=True):
        assert row["draws"] == draws
        for name in FIGURES:
            expected = np.mean([other[name] for other in by_draw[:draws]])
            assert row[name] == pytest.approx(expected, abs=2e-6), name


@pytest.mark.parametrize("draws", [2, DRAWS])
def test_the_baseline_is_scored_on_as_many_draws_as_each_attack(sweeps, draws):
    several, *single = (stored_rows.read(sweep).learners for sweep in sweeps)
    for learner, by_draws in several[KNOWN, (0,)].items():
        if learner.endswith("untrained bottom"):
            continue
        others = [learners[KNOWN, (0,)][learner][1] for learners in single]
        for place, row in enumerate(by_draws[draws]):
            leaks = [rows[place].figures["leak"] for rows in others[:draws]]
            assert row.figures["leak"] == pytest.approx(np.mean(leaks), abs=2e-6)


def test_an_attack_is_compared_with_the_baseline_of_its_own_draws(sweeps):
    assessed = assess(stored_rows.read(sweeps[0]))
    strongest = next(a.strongest for a in assessed.assessments if a.strongest)
    among = strongest.candidates
    reached = stored_rows.read(sweeps[0]).learners[KNOWN, (0,)]
    by_label = {
        attack.identity.attack: leaks
        for attack, leaks in zip(among.attacks, among.local_only.leaks)
        if not attack.identity.named  # by one draw of labels
    }
    for attack, draws in (("joint", 2), ("mean", DRAWS), ("surrogate", DRAWS)):
        possible = [
            {row.figures["leak_crossed"] for row in by_draws.get(draws, ())}
            for by_draws in reached.values()
        ]
        assert any(set(by_label[attack]) <= leaks for leaks in possible), attack
    own = among.local_only.leaks[-1]
    np.testing.assert_array_equal(own, by_label["mean"])
    assert (own != by_label["joint"]).any()
    assert strongest.leak.mean >= own.mean()


def samples(rng, rows):
    leaks = rng.uniform(0.55, 0.9, size=(4, 6, 5))
    baseline = rng.uniform(0.5, 0.6, size=(1, rows, 5))
    return intervals.sample(leaks, 200), intervals.sample(baseline, 200)


def test_limits_of_an_excess_are_those_of_each_attack_beyond_its_own_baseline():
    rng = np.random.default_rng(0)
    figures, local_only = samples(rng, 7)
    each = intervals.differences(figures, local_only)
    beyond = figures.leaks - local_only.leaks[:, :-1]
    np.testing.assert_allclose(each.value, beyond.mean(-1))
    upper = intervals.excess_limits(figures, local_only).upper
    np.testing.assert_allclose(upper, each.limit(intervals.UPPER, intervals.LEVEL).max(-1))


def test_a_baseline_equal_for_all_attacks_is_the_one_baseline():
    figures, single = samples(np.random.default_rng(1), 1)
    leaks, errors, tried, rows = single
    repeated = intervals.LeakSample(
        leaks.repeat(7, 1), errors.repeat(7, 1), tried.repeat(7, 1), rows
    )
    for function in (
        lambda b: intervals.excess_limits(figures, b),
        lambda b: intervals.most_beyond(figures, figures, weight=0.25, rest=b),
    ):
        np.testing.assert_array_equal(function(single), function(repeated))


def test_processes_give_what_one_process_does(monkeypatch):
    tasks = [(np.arange(5.0) + i, i) for i in range(9)]
    expected = processes.in_processes(np.roll, tasks, rows=45)
    monkeypatch.setattr(processes, "WORTH_PROCESSES", 1)
    monkeypatch.setattr(processes, "cores", lambda: 2)
    np.testing.assert_array_equal(processes.in_processes(np.roll, tasks, rows=45), expected)
