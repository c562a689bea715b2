"""Verdicts, costs and operating points on frames that are made here; nothing is trained."""

import math

import numpy as np
import pandas as pd
import pytest

from tests.reference import judge as twin
from tests.report.made import ALONE, FACTS, NAN, WOBBLE, attack, learner, sweep, trial
from vfljax.config import Goal
from vfljax.report.costs import Cost
from vfljax.report.frames import Facts
from vfljax.report.verdict_frame import verdict_frame
from vfljax.report.verdicts import MEANINGS, VERDICTS, Verdict


def judged(rows, trials, facts=FACTS):
    found = verdict_frame(pd.DataFrame(rows), pd.DataFrame(trials), facts)
    return found.set_index(["configuration", "panel", "known"], drop=False)


def one(*configurations, facts=FACTS, **values):
    """The verdict's row of the second configuration."""
    return judged(*sweep(*configurations, **values), facts).loc[(1, "split", 40)]


def agree(rows, trials, facts):
    found, expected = judged(rows, trials, facts), twin.judge(rows, trials, facts)
    assert set(found.index) == set(expected)
    for key, want in expected.items():
        row = found.loc[key]
        for name in ("leak", "e", "d", "c", "undefended_e"):
            suffixes = ("", "_lower", "_upper")
            got = [row[name + suffix] for suffix in suffixes]
            assert got == pytest.approx(want[name][1:], abs=1e-9, nan_ok=True), (key, name)
        counts = row["seeds"], row["paired_seeds"]
        assert counts == (want["e"][0] or want["leak"][0], want["d"][0]), key
        for name in ("missing", "broken"):
            assert set(filter(None, row[name].split(", "))) == want[name], (key, name)
        for name in ("local_only", "share_kept", "validation_loss"):
            assert row[name] == pytest.approx(want[name], abs=1e-9, nan_ok=True), (key, name)
        names = ("verdict", "cost", "qualifies", "chosen", "seeds_left_out", "variants", "families")
        for name in (*names, "leader", "leader_seeds"):
            assert row[name] == want[name], (key, name)
        assert row["incomplete"] == bool(want["missing"])
    return found


def random_sweep(random):
    """A small sweep with all that may go wrong."""
    federations = [["split"], ["no_split"], ["split", "malicious-0", "no_split"]][
        random.integers(3)
    ]
    seeds, configurations = int(random.integers(2, 6)), int(random.integers(2, 7))
    knowledge = [(0,), (40,), (10, 40)][random.integers(3)]
    level, spread = random.choice([0.5, 0.62, 0.75, 1.0]), random.choice([0.0, 0.005, 0.05])
    chance = 0.5 if random.random() < 0.8 else 0.1
    rows, trials = [], []
    bare_first = random.random() < 0.9
    with_alone = random.random() < 0.7

    def leak(mean):
        return float(np.clip(np.round(mean + spread * random.standard_normal(), 3), 0, 1))

    attacks = [
        (f"family{i // 2}/{i}", int(random.choice(knowledge)), float(random.choice([1, 3])))
        for i in range(random.integers(1, 6))
    ]
    for number in range(configurations):
        protects = random.random()
        for federation in federations:
            for seed in range(seeds):
                if random.random() < 0.08:
                    continue  # not trained
                lost = random.random() < 0.08
                of = trial(number, seed, federation, diverged=lost)
                of["method"] = f"method{number // 2}"
                of["defenses"] = "noise" if number or not bare_first else ""
                for name in ("test_utility", "validation_utility"):
                    u = 0.9 - 0.1 * random.random() * (number > 0) + 0.01 * random.random()
                    of[name] = NAN if lost else round(float(u), 4)
                for name in ALONE:
                    missing = not with_alone or random.random() < 0.1
                    of[name] = NAN if missing else round(0.8 + 0.01 * float(random.random()), 4)
                trials.append(of)
                for label, known, draws in attacks:
                    value = leak(chance + (level - chance) * (protects if number else 1.0))
                    if random.random() < 0.05:
                        value = NAN  # the attack failed
                    name = f"{label} (malicious)" if federation == "malicious-0" else label
                    who = "0" if label[-1] != "1" else "1"
                    row = attack(of, name, value, known=known, draws=draws, attackers=who)
                    if lost and random.random() < 0.5:
                        continue  # else its rows are there, and do not count
                    if random.random() < 0.05:
                        row |= {"leak": NAN, "settled_by": attacks[0][0]}
                    rows.append(row)
    constant = attacks[-1][0]
    if random.random() < 0.3:
        for row in rows:
            if row["label"] == constant and row["configuration"] == 1:
                row["leak"] = chance
    if random.random() < 0.95:
        for seed in range(seeds):
            for known in {*knowledge} - {0}:
                for who, mean in (("0", chance), ("1", chance + 0.05)):
                    for draws in (1.0, 3.0):
                        if random.random() < 0.97:
                            given = {"known": known, "draws": draws, "attackers": who}
                            rows += [learner(seed, leak(mean), name, **given) for name in "ab"]
    rows.append(attack(trials[0], "oracle", 1.0, role="oracle"))
    goal = Goal(
        max_cost=float(random.choice([1.0, 0.03])), keep_gain=float(random.choice([0.5, 0.8]))
    )
    facts = Facts(classes=2 if chance == 0.5 else 10, chance=chance, scored_rows=500, goal=goal)
    return rows, trials, facts


def test_random_sweeps_are_judged_as_by_loops():
    random, seen = np.random.default_rng(0), set()
    for _ in range(25):
        found = agree(*random_sweep(random))
        seen |= {*found["verdict"], *found["cost"]}
    assert len(seen) >= 10, seen


SOME = [NAN, 0.6, 0.6, 0.6, 0.6]
LOST = {"probe": 0.9, "test_utility": SOME, "validation_utility": SOME}


@pytest.mark.parametrize(
    ("verdict", "bare", "ours"),
    [
        (Verdict.IS_UNDEFENDED, {"probe": 0.9}, {"probe": 0.9}),
        (Verdict.IS_UNDEFENDED, {"probe": 0.9}, {"probe": 0.9, "norm": 0.7}),  # of what is shared
        (Verdict.LEAKS_AS_BEFORE, {"probe": 0.9}, {"probe": 0.9, "test_utility": 0.89}),
        (Verdict.IS_UNDEFENDED, LOST, LOST),  # a seed that diverged in both
        (Verdict.NOTHING_TO_PROTECT, {"probe": 0.61}, {"probe": 0.6}),
        (Verdict.PROTECTS, {"probe": 0.9}, {"probe": 0.61}),
        (Verdict.LEAKS_MUCH_LESS, {"probe": 0.9}, {"probe": 0.75}),
        (Verdict.LEAKS_LESS, {"probe": 0.9}, {"probe": 0.85}),
        (Verdict.LEAKS_AS_BEFORE, {"probe": 0.9}, {"probe": 0.89}),
        (Verdict.UNCLEAR, {"probe": 0.9}, {"probe": 0.65}),
        (Verdict.UNCLEAR, {"probe": 0.69}, {"probe": 0.64}),  # more than a quarter of .09 is left
        (Verdict.CANNOT_SAY, {"probe": 0.655}, {"probe": 0.65}),
        (Verdict.NO_VERDICT, {"probe": 0.9}, {"probe": [0.6, 0.6, NAN, NAN, NAN]}),
        # an attack without a figure may be the one that reads something
        (Verdict.UNCLEAR, {"probe": 0.9, "norm": 0.6}, {"probe": 0.61, "norm": SOME}),
        (Verdict.CANNOT_SAY, {"probe": 0.61, "norm": 0.6}, {"probe": 0.6, "norm": SOME}),
        (Verdict.PROTECTS, {"probe": 0.61, "norm": SOME}, {"probe": 0.6}),
    ],
)
def test_a_case_for_each_verdict(verdict, bare, ours):
    assert one(bare, ours)["verdict"] == verdict
    assert verdict in MEANINGS


def test_verdicts_that_help_are_told_apart():
    assert [verdict for verdict in VERDICTS if verdict.helps] == [
        Verdict.PROTECTS,
        Verdict.LEAKS_MUCH_LESS,
        Verdict.LEAKS_LESS,
        Verdict.UNCLEAR,
    ]


NOT_ALONE = {"alone_test": NAN, "alone_validation": NAN}


def costed(utility, goal, alone):
    values = utility if isinstance(utility, list) else [utility + float(x) for x in WOBBLE]
    facts = FACTS._replace(goal=Goal(**goal))
    ours = {"probe": 0.6, "test_utility": values, "validation_utility": values}
    return one({"probe": 0.9} | alone, ours | alone, facts=facts)


@pytest.mark.parametrize(
    ("cost", "utility", "goal", "alone"),
    [
        (Cost.KEPT, 0.88, {}, {}),  # half of .90 - .80 is to be kept
        (Cost.TOO_MUCH, 0.82, {}, {}),
        (Cost.UNCLEAR, 0.85, {}, {}),
        (Cost.UNKNOWN, [0.9, 0.9, NAN, NAN, NAN], {}, {}),
        (Cost.TOO_MUCH, 0.88, {"keep_gain": 0.9}, {}),
        (Cost.TOO_MUCH, 0.88, {"max_cost": 0.01}, {}),
        (Cost.UNCLEAR, 0.88, {"max_cost": 0.02}, {}),
        (Cost.KEPT, 0.89, {}, NOT_ALONE),  # .02 may be lost
        (Cost.TOO_MUCH, 0.87, {}, NOT_ALONE),
        (Cost.KEPT, 0.87, {"max_cost": 0.05}, NOT_ALONE),
        (Cost.TOO_MUCH, 0.5, {}, {"alone_test": [NAN, 0.8, 0.8, 0.8, 0.8]}),
        (Cost.UNKNOWN, 0.5, {}, {"alone_test": [NAN, NAN, NAN, 0.8, 0.8]}),
    ],
)
def test_a_case_for_each_cost(cost, utility, goal, alone):
    assert costed(utility, goal, alone)["cost"] == cost


def test_what_a_cost_rests_on():
    row = costed(0.88, {}, {})
    expected = {"utility": 0.88, "utility_change": -0.02, "alone": 0.8, "gain": 0.1}
    expected |= {"share_kept": 0.8, "validation_loss": 0.02, "allowed_loss": 0.05}
    assert row[[*expected]].to_dict() == pytest.approx(expected)
    assert math.isnan(costed(0.88, {}, {"alone_test": 0.9})["share_kept"])  # there is no gain


def test_of_points_that_keep_the_utility_that_of_least_leak_is_chosen():
    utilities = (0.9, 0.86, 0.87, 0.8, 0.9)  # half of the gain, .05, may be lost
    leaks = (0.9, 0.7, 0.8, 0.6, 0.9)
    rows, trials = sweep(
        *(
            {"probe": leak, "test_utility": u, "validation_utility": u}
            for leak, u in zip(leaks, utilities)
        )
    )
    trials = [{**t, "method": "one" if t["configuration"] else "undefended"} for t in trials]
    found = judged(rows, trials)
    assert list(found["qualifies"]) == [True, True, True, False, True]
    assert list(found["chosen"]) == [False, True, False, False, False]
    # one that is undefended counts only if all are
    few = [t for t in trials if t["configuration"] in (0, 4)]
    found = judged([r for r in rows if r["configuration"] in (-1, 0, 4)], few)
    assert list(found["chosen"]) == [False, True]


def test_of_equal_leaks_that_of_the_surest_excess_is_chosen():
    sure = {"probe": [0.75] * 5, "test_utility": 0.88, "validation_utility": 0.88}
    rows, trials = sweep({"probe": 0.9}, sure, {"probe": [0.5, 0.75, 1.0, 0.75, 0.75]}, base=0.5)
    trials = [{**t, "method": "one" if t["configuration"] else "undefended"} for t in trials]
    assert list(judged(rows, trials)["chosen"]) == [False, True, False]


def test_without_a_learner_leaks_are_compared_and_there_is_no_baseline():
    rows, trials = sweep({"probe": 0.9}, {"probe": 0.7})
    found = judged([row for row in rows if row["role"] != "learner"], trials)
    assert [*found["verdict"]] == [Verdict.NO_BASELINE] * 2
    assert [*found["seeds"]] == [5, 5]
    assert [*found["leak"]] == pytest.approx([0.9, 0.7])
    assert found["d_upper"].to_numpy()[1] < 0
    assert found["e"].isna().all()


def test_a_sweep_without_attacks_has_utilities_and_no_leak():
    rows, trials = sweep({"probe": 0.9}, {"probe": 0.8})
    found = verdict_frame(pd.DataFrame(rows).iloc[:0], pd.DataFrame(trials), FACTS)
    assert [*found["verdict"]] == [Verdict.NO_VERDICT] * 2
    assert [*found["utility"]] == pytest.approx([0.9, 0.9])
    assert [*found["leader"]] == ["", ""]


def test_a_point_without_dear_attacks_has_a_lower_bound_and_does_not_protect():
    rows, trials = sweep({"probe": 0.9}, {"probe": 0.6})
    assert judged(rows, trials).loc[(1, "split", 40), "verdict"] == Verdict.PROTECTS
    of_point = [of for of in trials if of["configuration"] == 1]
    spared = [attack(of, "joint", NAN, role="rejected") for of in of_point]
    of = judged([*rows, *spared], trials).loc[(1, "split", 40)]
    assert (of["at_least"], of["incomplete"], of["missing"]) == (True, True, "")
    assert of["verdict"] != Verdict.PROTECTS
    assert (of["leak"], of["variants"]) == (pytest.approx(0.6, abs=0.002), 1)
    # dear attacks may read more of the point, and of undefended, so that no change is shown in either direction
    assert (of["d_lower"], of["d_upper"], of["c_lower"], of["c_upper"]) == (
        -math.inf,
        math.inf,
        -math.inf,
        math.inf,
    )
    rows, trials = sweep({"probe": 0.95}, {"probe": 0.75})
    assert judged(rows, trials).loc[(1, "split", 40), "verdict"] == Verdict.LEAKS_MUCH_LESS
    spared = [{**of, "configuration": 1} for of in spared]
    of = judged([*rows, *spared], trials).loc[(1, "split", 40)]
    assert of["verdict"] == Verdict.LEAKS_AS_BEFORE
    assert not judged([*rows, *spared], trials).loc[(0, "split", 40), "at_least"]
