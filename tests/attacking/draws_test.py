"""Figures that are means over draws of the known labels."""

# pandas annotates what a selection returns as a union
# pyright: reportAttributeAccessIssue=false

import functools
import shutil

import msgspec
import numpy as np
import pytest

from tests.sweeps import attack, plan_of, tiny, train
from vfljax import store
from vfljax.attacking import processes, run
from vfljax.launching import running
from vfljax.report import rows as report_rows
from vfljax.sweep.plan import split_arrays

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
FIGURES = ("leak", "renamed", "success_unlabeled", "f1")


@pytest.fixture(scope="module")
def sweeps(tmp_path_factory):
    """A sweep with three draws, and the same attacked with each draw alone."""
    folder = tmp_path_factory.mktemp("draws")
    plan = plan_of(CONFIG)
    train(folder / "several", CONFIG, attack=False)
    for draw in range(DRAWS):
        copy = shutil.copytree(folder / "several", folder / str(draw))
        plan_anew = {"attacks": {}, "local_only": [], "blocks": []}
        store.write(copy, {**store.read_header(copy), **plan_anew})
    attack(folder / "several")
    experiment = msgspec.structs.replace(plan.experiment, known_draws=1)
    several = split_arrays(plan.dataset.labels, plan.splits, DRAWS)["known_order"]
    seeds = experiment.seeds

    def of_draw(draw, *args):
        return {**split_arrays(*args), "known_order": several[draw * seeds : (draw + 1) * seeds]}

    with pytest.MonkeyPatch.context() as patch:
        for draw in range(DRAWS):
            patch.setattr(run, "split_arrays", functools.partial(of_draw, draw))
            stored = running.stored_plan(folder / str(draw))
            attack(folder / str(draw), plan=stored._replace(experiment=experiment))
    names = ["several", *map(str, range(DRAWS))]
    return [store.load(folder / name) for name in names]


def test_the_first_draw_is_that_of_a_sweep_with_one():
    plan = plan_of(CONFIG)
    both = [split_arrays(plan.dataset.labels, plan.splits, draws) for draws in (1, DRAWS)]
    seeds, orders = len(plan.splits), both[1]["known_order"]
    np.testing.assert_array_equal(both[0]["known_order"], orders[:seeds])
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
    frames = (report_rows.read(sweep).rows for sweep in sweeps)
    several, *single = (frame[frame["role"] == "learner"] for frame in frames)
    place = ["label", "seed"]
    single = [
        frame[(frame["known"] == KNOWN) & (frame["draws"] == 1)].set_index(place)["leak"]
        for frame in single
    ]
    ours = several[(several["known"] == KNOWN) & (several["draws"] == draws)].set_index(place)
    ours = ours.loc[~ours.index.get_level_values("label").str.endswith("untrained bottom"), "leak"]
    assert len(ours)
    expected = sum(frame.loc[ours.index] for frame in single[:draws]) / draws
    np.testing.assert_allclose(ours, expected, atol=2e-6)


def test_an_attack_names_the_draws_of_its_baseline(sweeps):
    rows = report_rows.read(sweeps[0]).rows
    attacks = rows[rows["role"] == "attack"]
    draws = attacks.groupby("attack")["draws"].unique().map(list).to_dict()
    # an attack that knows no label is compared over all draws
    assert draws == {"mean": [DRAWS], "joint": [2], "surrogate": [DRAWS]}


def test_processes_give_what_one_process_does(monkeypatch):
    tasks = [(np.arange(5.0) + i, i) for i in range(9)]
    expected = processes.in_processes(np.roll, tasks, rows=45)
    monkeypatch.setattr(processes, "WORTH_PROCESSES", 1)
    monkeypatch.setattr(processes, "cores", lambda: 2)
    np.testing.assert_array_equal(processes.in_processes(np.roll, tasks, rows=45), expected)
