"""Label canaries: how they are planted, guessed and counted, and what a broken mechanism cannot hide."""

import math
import shutil

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest

from analysis import canaries as script
from tests.reference import canaries as twin
from tests.sweeps import plan_of, report_of, tiny, train
from vfljax import datasets
from vfljax.datasets.splits import split_rows
from vfljax.errors import UserError
from vfljax.report import guarantees
from vfljax.report.epsilon_lower_bounds import strongest_guesses
from vfljax.report.sweep_answers import judge_sweep
from vfljax.sweep.canaries import GUESSED_PERCENTS, HALVES, PREFIX, coins, guess_figures
from vfljax.sweep.known import known_error, split_arrays
from vfljax.sweep.plan import recorded

COUNT, KNOWN = 120, 20


def test_canaries_are_copies_of_training_rows_whose_labels_are_one_of_their_candidates():
    plan, without = plan_of(tiny(canaries=COUNT)), plan_of(tiny())
    data = datasets.load("digits", "", {})
    np.testing.assert_array_equal(without.dataset.labels, data.labels)  # none change nothing
    train_rows = split_rows(data, 1, 320, 160, 160).train
    np.testing.assert_array_equal(without.splits[1].train, train_rows)
    assert "candidates" not in split_arrays(data.labels, without.splits)
    labels = plan.dataset.labels
    stored = split_arrays(labels, plan.splits, 1, plan.candidates)["candidates"]
    rows, seen = len(without.dataset.labels), []
    for split, before, pairs in zip(plan.splits, without.splits, stored, strict=True):
        is_canary = split.train >= rows
        assert is_canary.sum() == COUNT
        seen += split.train[is_canary].tolist()
        np.testing.assert_array_equal(split.train[~is_canary], before.train[~is_canary])
        for features in plan.table.features:
            np.testing.assert_array_equal(features[split.train], features[before.train])
        assert (pairs[is_canary, 0] < pairs[is_canary, 1]).all()
        assert (labels[split.train[is_canary]][:, None] == pairs[is_canary]).any(axis=1).all()
        assert (pairs[~is_canary] == -1).all()
    np.testing.assert_array_equal(labels[:rows], without.dataset.labels)
    np.testing.assert_array_equal(plan.table.mean[0], without.table.mean[0])
    assert sorted(seen) == list(range(rows, rows + 2 * COUNT))  # no two seeds share one
    assert not np.array_equal(*(pairs[pairs[:, 0] >= 0] for pairs in stored))


def test_coins_are_fair_and_candidates_any_two_classes():
    _, pairs, labels = map(np.asarray, coins(3, 60_000, 50_000, 5))
    of = {(a, b) for a in range(5) for b in range(a + 1, 5)}
    shares = [np.mean((pairs == pair).all(axis=1)) for pair in sorted(of)]
    np.testing.assert_allclose(shares, 1 / len(of), atol=0.01)
    heads = [(labels == pairs[:, 1])[(pairs == pair).all(axis=1)].mean() for pair in sorted(of)]
    np.testing.assert_allclose(heads, 0.5, atol=0.03)


def test_no_attacker_knows_a_canary():
    plan = plan_of(tiny(canaries=COUNT, **{"training.record_rows": 250}))
    seen = recorded(plan)
    arrays = split_arrays(seen.dataset.labels, seen.splits, 2, seen.candidates)
    for place, order in enumerate(arrays["known_order"]):
        is_canary = arrays["candidates"][place % 2, :, 0] >= 0
        assert is_canary.sum() == COUNT  # all of them are recorded
        assert not is_canary[order[: 250 - COUNT]].any()
        known = seen.splits[place % 2].train[order[:KNOWN]]
        assert np.bincount(seen.dataset.labels[known]).tolist() == [2] * 10
    known = [known_error("mean", labels, seen) for labels in (KNOWN, 250)]
    assert known[0] is None is not known[1]
    with pytest.raises(UserError, match=r"config.canaries=320 leaves none of the 320"):
        plan_of(tiny(canaries=320))


def test_guesses_are_those_of_the_reference():
    rng = np.random.default_rng(4)
    scores = rng.integers(-2, 3, (200, 4)) / 2.0  # with ties
    scores[rng.random(scores.shape) < 0.05] = np.nan
    candidates = np.sort(np.stack([rng.permutation(4)[:2] for _ in scores]), axis=1)
    candidates[rng.random(200) < 0.3] = -1
    labels = candidates[np.arange(200), rng.integers(0, 2, 200)]
    half = rng.random(200) < 0.5
    found = guess_figures(*map(jnp.asarray, (scores, labels, candidates, half)))
    for name, rows in zip(HALVES, (np.flatnonzero(half), np.flatnonzero(~half)), strict=True):
        for share in GUESSED_PERCENTS:
            expected = twin.guesses(scores, labels, candidates, rows, share / 100)
            assert (found[f"{name}guessed_{share}"], found[f"{name}right_{share}"]) == expected


def rows_of(figures, role="attack"):
    """Rows of attacks, one an entry of the figures' [attacks]."""
    rows = pd.DataFrame({name: np.asarray(x, float) for name, x in figures.items()})
    rows = rows.assign(panel="split", role=role, settled_by="")
    return rows.assign(label=[f"a{k}" for k in range(len(rows))])


def limits_of_runs(epsilon, runs, canaries=300, attacks=20):
    """Lower limits of runs of randomized response, which attacks read with errors, some turned round; and
    those counted on the half on which the attack is chosen."""
    rng, out = np.random.default_rng(5), []
    count = jax.jit(jax.vmap(guess_figures, in_axes=(0, None, None, None)))
    pairs = jnp.tile(jnp.array([0, 1]), (canaries, 1))
    for _ in range(runs):
        coin, half = rng.random((2, canaries)) < 0.5
        flipped = rng.random(canaries) > 1 / (1 + math.exp(-epsilon))
        wrong = rng.uniform(0, 0.2, (attacks, 1)) + rng.choice([0, 0.8], (attacks, 1))
        sent = coin ^ flipped ^ (rng.random((attacks, canaries)) < wrong)
        scores = np.stack([0 * sent, np.where(sent, 1, -1) * rng.random(sent.shape)], axis=-1)
        figures = count(scores, jnp.asarray(coin, jnp.int32), pairs, half)
        same = {k.replace("select_", ""): x for k, x in figures.items() if "select_" in k}
        each = rows_of(figures), rows_of({**figures, **same})
        out.append([strongest_guesses(rows).epsilon() for rows in each])
    return np.array(out)


def test_to_choose_among_many_attacks_keeps_the_level_and_more_than_epsilon_is_found():
    runs = 60
    above, uncorrected = np.mean(limits_of_runs(1.0, runs) > 1.0, axis=0)
    most = 0.05 + 3 * math.sqrt(0.05 * 0.95 / runs)
    assert above <= most < uncorrected
    assert np.mean(limits_of_runs(3.0, 20)[:, 0] > 1.0) > 0.95


def test_oracles_and_attacks_that_diverged_do_not_count():
    names = [f"{a}{b}_{n}" for a in HALVES for b in ("guessed", "right") for n in GUESSED_PERCENTS]
    figures = {
        name: [10.0 * ("guessed" in name)] for name in names
    }  # all wrong: turned, all are right
    assert strongest_guesses(rows_of(figures)).right == 10
    assert strongest_guesses(rows_of(figures, role="oracle")) is None
    assert strongest_guesses(rows_of({**figures, f"{PREFIX}right_50": [math.nan]})) is None


@pytest.mark.slow
def test_noise_at_every_step_is_found_and_an_audit_has_the_limits_beside_it(tmp_path):
    config = tiny(
        seeds=1,
        data={"name": "synthetic", "train": 360, "validation": 40, "test": 40},
        grid={
            "intact": {"grad_perturb": {"epsilon": 1.0}},
            "broken": {"grad_perturb": {"epsilon": 1.0, "draw": "step"}},
        },
        federations=("no_split",),
        attacks={"direct": {"rule": "most_negative", "epoch": ("mean", "votes")}},
        **{"training.epochs": 12, "training.batch_size": 40},
    )
    sweep = train(tmp_path / "w", {**config, "canaries": 300})
    limits = guarantees.epsilon_lower_bounds(judge_sweep(sweep.workdir))
    intact, broken = (limits[number].epsilon() for number in (0, 1))
    assert intact <= 1 < 1.5 < broken
    lines = {cells[0]: cells for cells in script.table(sweep.workdir)}
    assert lines["broken"][6].startswith(f"{broken:.2f} (")
    assert "300 training rows of each seed are canaries" in report_of(sweep.workdir)
    grid = {"intact": config["grid"]["intact"], "other": {"grad_perturb": {"epsilon": 2.0}}}
    audited = train(tmp_path / "audit", {**config, "grid": grid})
    assert not guarantees.epsilon_lower_bounds(judge_sweep(audited.workdir))
    shutil.copytree(sweep.workdir, audited.workdir / "canaries")
    assert guarantees.epsilon_lower_bounds(judge_sweep(audited.workdir)) == {0: limits[0]}
