"""What it changes that dear attacks are skipped where a cheap one reads nearly all, and how it is said."""

import math

import numpy as np
import pytest

from tests.reference import judge as twin
from tests.reference.settling import SETTLES, settled
from tests.report.judge_test import FACTS, agree, attack, judged, learner, random_sweep, trial
from tests.report.made import made
from vfljax import store
from vfljax.report import not_run, tables
from vfljax.report.verdicts import Verdict

NAN, LOST = math.nan, 1 - SETTLES
EDGES = {"e": (0.05,), "d": (0.0, -0.02, -0.10), "c": (0.0,), "undefended_e": (0.05,)}
MOVES = {"leak": (-LOST, 0), "e": (-LOST, 0), "undefended_e": (-LOST, 0)}
MOVES |= {"d": (-LOST, LOST), "c": (-LOST, LOST / 4)}
"""By how much the figure of a seed may change."""


def near_one(random):
    """Rows and trials of a sweep in which much is settled, and the attacks' places in the order of costs."""
    seeds, base = int(random.integers(3, 7)), random.choice([0.5, 0.7, 0.9, 0.94, 0.96])
    spread = random.choice([0.001, 0.004, 0.02])
    given = {
        f"a{i}": {"known": int(random.choice([10, 40])), "attackers": str(random.integers(2))}
        for i in range(random.integers(2, 7))
    }

    def drawn(mean):
        return float(np.clip(mean + spread * random.standard_normal(), 0, 1))

    rows = [
        learner(seed, drawn(base), known=known, attackers=attackers)
        for seed in range(seeds)
        for known in (10, 40)
        for attackers in "01"
    ]
    trials = [trial(number, seed) for number in range(5) for seed in range(seeds)]
    for of in trials:
        of["test_utility"] -= 0.001 * of["configuration"]
    for number in range(5):
        top = random.choice([1.02, 1.0, 0.998, 0.995, 0.98, 0.9, base + 0.05, base + 0.01])
        for name, values in given.items():
            level = top - random.exponential(random.choice([0.001, 0.01, 0.1]))
            mine = (of for of in trials if of["configuration"] == number)
            rows += [attack(of, name, drawn(level), **values) for of in mine]
    return rows, trials, {name: int(random.integers(4)) for name in given}


def most(name, seeds):
    """By how much a limit may move if the figures of the seeds do by ``MOVES``."""
    low, high = MOVES[name]
    level = 0.975 if name == "leak" else 0.95
    spread = (high - low) / 2 * math.sqrt(seeds / (seeds - 1))
    away = twin.quantile(level, seeds) * spread / math.sqrt(seeds)
    return max(abs(low), abs(high)) + away + 1e-9


@pytest.mark.parametrize("part", range(4))
def test_settling_moves_limits_a_little_and_verdicts_at_their_edges_alone(part):
    random, counted = np.random.default_rng(part), 0
    for _ in range(15):
        rows, trials, cost = near_one(random)
        cut = settled(rows, cost)
        counted += sum(row["settled_by"] != "" for row in cut)
        before, now = judged(rows, trials), agree(cut, trials, FACTS)
        for key, a in before.iterrows():
            b, edge = now.loc[key], False
            assert 0 <= a["leak"] - b["leak"] <= LOST
            if a["broken"] or b["broken"]:
                continue  # see the test below
            for name in ("seeds", "paired_seeds", "seeds_left_out", "variants", "families"):
                assert a[name] == b[name]
            for name in MOVES:
                for side in ("_lower", "_upper"):
                    moved = most(name, a["seeds"])
                    assert abs(a[name + side] - b[name + side]) <= moved
                    near = [abs(a[name + side] - at) <= moved for at in EDGES.get(name, ())]
                    edge |= any(near)
            assert a["verdict"] == b["verdict"] or edge
    assert counted > 50


def test_sweeps_with_all_that_may_go_wrong_are_judged_as_by_loops_once_settled():
    random = np.random.default_rng(0)
    for _ in range(15):
        rows, trials, facts = random_sweep(random, settled=0.0)
        agree(settled(rows, {"family0": 0, "family1": 1, "family2": 2}), trials, facts)


def rows_of(leaks):
    """Rows and trials of undefended and one configuration; {attack: its leaks on both}."""
    trials = [trial(number, seed) for number in (0, 1) for seed in range(5)]
    rows = [learner(seed, 0.6) for seed in range(5)]
    rows += [attack(t, name, of[t["configuration"]]) for name, of in leaks.items() for t in trials]
    return rows, trials


def test_what_settled_others_on_undefended_and_is_broken_here_leaves_nothing_to_compare():
    """How much undefended leaks to the attacks that work here is then not known, and nothing is claimed."""
    rows, trials = rows_of({"direct": (1.0, 0.01), "probe": (0.9, 0.75)})
    assert judged(rows, trials).loc[1].iloc[0]["verdict"] == Verdict.LEAKS_MUCH_LESS
    row = judged(settled(rows, {"direct": 0, "probe": 1}), trials).loc[1].iloc[0]
    assert (row["broken"], row["verdict"]) == ("direct", Verdict.NO_VERDICT)
    assert math.isnan(row["d"])
    assert row["leak"] == pytest.approx(0.75)


def test_an_attack_that_would_have_failed_is_not_missing_where_it_is_settled():
    rows, trials = rows_of({"direct": (1.0, 1.0), "probe": (0.9, NAN)})
    before, now = (judged(x, trials) for x in (rows, settled(rows, {"direct": 0, "probe": 1})))
    assert [*before["missing"]] == ["", "probe"]
    assert [*now["missing"]] == ["", ""]
    assert [*now["variants"]] == [2, 2]


def test_a_settled_attack_is_said_where_its_figure_would_be(monkeypatch):
    monkeypatch.setattr(store, "attack_summary", lambda workdir: {})
    leaks = {"direct": [1.0] * 5, "probe/mean": [NAN] * 5, "norm": [0.9, NAN, NAN, 0.7, NAN]}
    by = made(leaks).rows
    by = by["leak"].isna().map({True: "direct", False: ""})
    judged = made(leaks, rows={"settled_by": by})
    (section,) = (x for x in tables.sections(judged) if x.title == "What each attack reads")
    (one,) = section.frame.to_dict("records")
    assert (one["direct"], one["norm"], one["probe/mean"]) == ("1.00", ".80", "settled by direct")
    assert [*section.frame][3:] == ["direct", "norm", "probe/mean"]
    (line,) = not_run.not_attacked(judged)
    assert line.startswith("8 of 15 runs of attacks were settled")
    assert "(8 by direct)" in line
    table = tables.leaks(judged).set_index("attack")
    assert [*table["seeds"]] == [5, 0, 2]
    assert [*table["settled_by"]] == ["", "direct", "direct"]


def test_published_attacks_that_others_settled_are_not_compared_with_these():
    leaks = {"probe/mean": 0.999, "norm": 0.7, "direct": [NAN] * 5}
    rows = made({}, leaks).rows
    by = rows["leak"].isna().map({True: "settled", False: ""})

    def published(adaptive):
        given = {"settled_by": by, "adaptive": rows["label"] == adaptive}
        return made({}, leaks, rows=given).leading["published_leak"].iloc[1]

    assert math.isnan(published("probe/mean"))
    assert published("norm") == pytest.approx(0.999, abs=0.01)
