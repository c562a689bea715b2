"""Figures that are means over draws of the known labels."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests import harness
from tests.sweeps import plan_of, tiny
from vfljax import attacks
from vfljax.attack_runs import batching, jobs, local_only, processes, scoring, view
from vfljax.attacks.learners import learn
from vfljax.models import MLP
from vfljax.store import exchange as wire
from vfljax.sweep.known import split_arrays
from vfljax.types import Agreed, Scores

DRAWS, KNOWN, SEEDS = 3, 20, 2


@pytest.fixture(scope="module")
def plan():
    return plan_of(tiny(grid={"undefended": {}}))


@pytest.fixture(scope="module")
def arrays(plan):
    return split_arrays(plan.dataset.labels, plan.splits, DRAWS)


def test_draws_are_balanced_and_the_first_is_that_of_a_sweep_with_one(plan, arrays):
    one = split_arrays(plan.dataset.labels, plan.splits, 1)
    orders = arrays["known_order"]
    np.testing.assert_array_equal(one["known_order"], orders[:SEEDS])
    labels = plan.dataset.labels[np.tile(arrays["train"], (DRAWS, 1))]
    assert len({tuple(order[:KNOWN]) for order in orders}) == DRAWS * SEEDS
    for order, of_seed in zip(orders, labels, strict=True):
        np.testing.assert_array_equal(np.sort(order), np.arange(len(order)))
        assert np.bincount(of_seed[order[:KNOWN]]).tolist() == [2] * 10


@pytest.mark.parametrize(
    ("name", "options", "draws"),
    [("mean", {}, 3), ("joint", {}, 2), ("direct", {}, 1), ("mean", {"oracle": True}, 1)],
)
def test_an_attack_has_as_many_draws_as_it_affords_and_one_if_it_knows_none_or_all(
    name, options, draws
):
    assert jobs.draws_of(attacks.TABLE[name]((MLP((), 4),), 10, **options), DRAWS) == draws


def test_each_draw_of_an_attack_knows_its_own_rows(plan, arrays):
    """Of seed 1, whose scores turn with the draws."""
    common = view.common_data(plan.table, arrays, (0,))
    gradients = jnp.asarray(np.random.default_rng(0).normal(size=(2, 320, 4)), jnp.float32)
    exchange = dict.fromkeys(wire.FIELDS, gradients)
    exchange |= {f"sum_{name}": gradients[0] for name in ("gradient", "sign", "square")}
    exchange |= {"sum_count": jnp.ones(320), "epochs": jnp.arange(2)}
    exchange |= {"order": jnp.tile(jnp.arange(320), (2, 1)), "sent": jnp.ones((2, 320), bool)}
    knobs = {"known": jnp.full(1, KNOWN, jnp.float32)}
    run = view.AttackInput(jnp.int32(1), jnp.uint32(0), knobs, exchange, ({},))
    static = batching.AttackProgram("mean", ((),), (MLP((), 4),), 10, Agreed(32), DRAWS)
    attack = harness.quick_jit(batching.make_attack_member(static))
    scores = attack(run, common)[0].train[0]
    by_draw = common.known_order.reshape(DRAWS, -1, 320)
    turned = common._replace(known_order=jnp.roll(by_draw, -1, axis=0).reshape(-1, 320))
    np.testing.assert_allclose(
        attack(run, turned)[0].train[0], np.roll(scores, -1, axis=0), atol=1e-6
    )
    assert all(harness.differ(scores[i], scores[i - 1]) for i in range(DRAWS))
    for draw in range(DRAWS):
        known = view.known_rows(common, jnp.int32(1), jnp.float32(KNOWN), draw)
        expected = arrays["known_order"][draw * SEEDS + 1][:KNOWN]
        np.testing.assert_array_equal(known.rows[:KNOWN], expected)


def test_figures_are_means_over_the_draws_each_scored_on_its_own_unknown_rows(arrays):
    """An attack on a batch of two trials: each draw names every known label rightly, and hardly another."""
    labels = arrays["labels"][arrays["train"]]
    train = np.random.default_rng(0).normal(size=(SEEDS, DRAWS, 320, 10)).astype(np.float32)
    for draw, seed in np.ndindex(DRAWS, SEEDS):
        known = arrays["known_order"][draw * SEEDS + seed][:KNOWN]
        train[seed, draw, known] = np.eye(10)[labels[seed, known]] * 9
    train[0, 1, :100] = np.eye(10)[labels[0, :100]] * 9  # one draw reads some more
    every = np.ones((SEEDS, 2, 320), bool)
    inputs = view.AttackInput(
        seed=np.arange(SEEDS, dtype=np.int32),
        key_name=np.zeros(SEEDS, np.uint32),
        knobs={"known": np.full(SEEDS, KNOWN, np.float32)},
        exchange={"epochs": np.tile([0, 2], (SEEDS, 1)), "sent": every, "sum_count": every.sum(1)},
        bottoms=({},),
    )
    scorer = scoring.Scorer(arrays, None, KNOWN, None)
    mean = attacks.TABLE["mean"]((MLP((), 4),), 10)
    figures = scorer.figures(
        Scores(jnp.asarray(train)[:, None]), inputs, mean, jax.device_count(), 0
    )
    assert (figures["draws"] == DRAWS).all()
    for seed in range(SEEDS):
        right = train[seed].argmax(-1) == labels[seed]
        unknown = np.ones((DRAWS, 320), bool)
        for draw in range(DRAWS):
            unknown[draw, arrays["known_order"][draw * SEEDS + seed][:KNOWN]] = False
        expected = np.mean([r[u].mean() for r, u in zip(right, unknown)])
        assert figures["success_unlabeled"][seed] == pytest.approx(expected, abs=1e-6)
        recalls = [
            [np.mean(r[u & (labels[seed] == c)]) for c in range(10)] for r, u in zip(right, unknown)
        ]
        assert figures["leak"][seed] == pytest.approx(np.mean(recalls), abs=1e-6)


def test_the_baseline_without_a_federation_is_fitted_to_each_draw(plan, arrays):
    common = jax.device_get(view.common_data(plan.table, arrays, (0,)))
    point = KNOWN, DRAWS
    scores = local_only.fitted(plan, common, (0,), 1, ["logistic"], [point])["logistic"][point]
    by_draw = common.known_order.reshape(DRAWS, -1, 320)
    for draw in range(DRAWS):
        turned = common._replace(known_order=by_draw[draw])
        own = local_only.own_columns(plan, turned, (0,), KNOWN, 1)
        np.testing.assert_array_equal(own.known, arrays["known_order"][draw * SEEDS + 1][:KNOWN])
        np.testing.assert_allclose(scores[draw], learn("logistic", own), atol=1e-5)
        assert harness.differ(scores[draw], scores[draw - 1])


def test_processes_give_what_one_process_does(monkeypatch):
    tasks = [(np.arange(5.0) + i, i) for i in range(9)]
    expected = processes.in_processes(np.roll, tasks, rows=45)
    monkeypatch.setattr(processes, "WORTH_PROCESSES", 1)
    monkeypatch.setattr(processes, "cores", lambda: 2)
    np.testing.assert_array_equal(processes.in_processes(np.roll, tasks, rows=45), expected)
