"""Verdicts, costs and operating points on frames that are made here; nothing is trained."""

import math

import numpy as np
import pandas as pd
import pytest

from tests.reference import judge as twin
from vfljax.config import Goal
from vfljax.report.costs import Cost
from vfljax.report.judge import LOCAL_ONLY, judge
from vfljax.report.limits import half_row
from vfljax.report.rows import Facts
from vfljax.report.verdicts import MEANINGS, VERDICTS, Verdict

NAN, SEEDS = math.nan, 5
FACTS = Facts(classes=2, chance=0.5, scored_rows=2000, known=40)
WOBBLE = np.array([0.0, 0.004, -0.004, 0.002, -0.002])
UTILITY = {"test_utility": 0.90, "validation_utility": 0.90}
ALONE = {"alone_test": 0.80, "alone_validation": 0.80}


def trial(configuration, seed, federation="split", **values):
    kinds = {"split": 0, "malicious-0": 1, "no_split": 2}
    return {
        "trial": (configuration * 10 + seed) * 3 + kinds[federation],
        "configuration": configuration,
        "method": f"method{configuration}" if configuration else "undefended",
        "defenses": "noise" if configuration else "",
        "panel": "no_split" if federation == "no_split" else "split",
        "federation": federation,
        "seed": seed,
        "diverged": False,
        **UTILITY,
        **ALONE,
        **values,
    }


def attack(of, label, leak, **values):
    names = ("trial", "configuration", "panel", "federation", "seed")
    row = {name: of[name] for name in names}
    row |= {"attackers": "0", "known": 40, "draws": 1.0, "attack": label.split("/")[0]}
    return row | {"label": label, "role": "attack", "leak": leak, "settled_by": "", **values}


def learner(seed, leak, label="logistic", **values):
    of = {"trial": -1, "configuration": -1, "panel": "", "federation": "", "seed": seed}
    return attack(of, label, leak, role="learner", **values)


def sweep(*configurations, base=0.6, seeds=SEEDS):
    """Trials and rows: each configuration is a dict of attacks' leaks (a number, or one a seed), undefended
    first, in which "utility" and others are of its trials."""
    trials, rows = [], []
    for seed in range(seeds):
        rows.append(learner(seed, base))
        for number, of in enumerate(configurations):
            values = {k: at(v, seed) for k, v in of.items() if k in (*UTILITY, *ALONE)}
            trials.append(trial(number, seed, diverged=math.isnan(values.get("test_utility", 0))))
            trials[-1] |= values
            for label, leak in of.items():
                if label not in values:
                    rows.append(attack(trials[-1], label, at(leak, seed, 1.0)))
    return rows, trials


def at(value, seed, wobble=0.0):
    return value[seed] if isinstance(value, list) else value + wobble * WOBBLE[seed]


def judged(rows, trials, facts=FACTS):
    found = judge(pd.DataFrame(rows), pd.DataFrame(trials), facts)
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
        assert counts == (want["e"][0], want["d"][0]), key
        for name in ("missing", "broken"):
            assert set(filter(None, row[name].split(", "))) == want[name], (key, name)
        for name in ("local_only", "share_kept", "validation_loss"):
            assert row[name] == pytest.approx(want[name], abs=1e-9, nan_ok=True), (key, name)
        names = ("verdict", "cost", "qualifies", "chosen", "seeds_left_out", "variants", "families")
        for name in (*names, "leader", "leader_seeds"):
            assert row[name] == want[name], (key, name)
        assert row["incomplete"] == bool(want["missing"])
    return found


def random_sweep(random, fails=0.05, settled=0.05):
    """A small sweep with all that may go wrong, in which so large shares of attacks fail and are settled."""
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
        equal = number > 0 and random.random() < 0.3  # to undefended
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
                    if random.random() < fails:
                        value = NAN  # the attack failed
                    name = f"{label} (malicious)" if federation == "malicious-0" else label
                    who = "0" if label[-1] != "1" else "1"
                    row = attack(of, name, value, known=known, draws=draws, attackers=who)
                    if lost:
                        continue
                    if random.random() < settled:
                        row |= {"leak": NAN, "settled_by": attacks[0][0]}
                    rows.append(row)
        if equal:
            copies(rows, trials, number)
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


def copies(rows, trials, number):
    """Gives a configuration undefended's figures."""
    for of in (t for t in trials if t["configuration"] == number):
        for other in trials:
            if (other["configuration"], other["federation"], other["seed"]) == (
                0,
                of["federation"],
                of["seed"],
            ):
                of |= {k: other[k] for k in ("diverged", *UTILITY)}
    theirs = {(r["federation"], r["seed"], r["label"]): r for r in rows if r["configuration"] == 0}
    for row in (r for r in rows if r["configuration"] == number):
        other = theirs.get((row["federation"], row["seed"], row["label"]))
        if other:
            row |= {k: other[k] for k in ("leak", "settled_by")}


@pytest.mark.parametrize("part", range(4))
def test_the_frames_are_judged_as_by_loops(part):
    random, seen = np.random.default_rng(part), set()
    for _ in range(15):
        found = agree(*random_sweep(random))
        seen |= {*found["verdict"], *found["cost"]}
    assert len(seen) >= 8, seen


PLAIN = {"probe": 0.9}
CASES = [
    (Verdict.IS_UNDEFENDED, PLAIN, PLAIN),
    (Verdict.NOTHING_TO_PROTECT, {"probe": 0.61}, {"probe": 0.6}),
    (Verdict.PROTECTS, PLAIN, {"probe": 0.61}),
    (Verdict.LEAKS_MUCH_LESS, PLAIN, {"probe": 0.75}),
    (Verdict.LEAKS_LESS, PLAIN, {"probe": 0.85}),
    (Verdict.LEAKS_AS_BEFORE, PLAIN, {"probe": 0.89}),
    (Verdict.UNCLEAR, PLAIN, {"probe": 0.65}),
    (Verdict.CANNOT_SAY, {"probe": 0.655}, {"probe": 0.65}),
]


@pytest.mark.parametrize(("verdict", "bare", "ours"), CASES)
def test_a_case_for_each_verdict(verdict, bare, ours):
    assert one(bare, ours)["verdict"] == verdict


def test_every_verdict_has_a_meaning_and_those_that_help_are_told_apart():
    assert set(MEANINGS) == set(VERDICTS)
    assert [v for v in VERDICTS if v.helps] == [
        Verdict.PROTECTS,
        Verdict.LEAKS_MUCH_LESS,
        Verdict.LEAKS_LESS,
        Verdict.UNCLEAR,
    ]


@pytest.mark.parametrize("seeds", [1, 2])
def test_too_few_seeds_have_no_limits_and_no_verdict(seeds):
    row = one(PLAIN, {"probe": 0.6}, seeds=seeds)
    assert row["verdict"] == Verdict.NO_VERDICT
    assert row["leak"] == pytest.approx(0.6, abs=0.01)
    assert math.isnan(row["leak_upper"])
    assert math.isnan(row["e_upper"])


def test_without_a_learner_or_an_undefended_configuration_there_is_no_verdict():
    rows, trials = sweep(PLAIN, {"probe": 0.6})
    found = judged([r for r in rows if r["role"] == "attack"], trials)
    assert set(found["verdict"]) == {Verdict.NO_VERDICT}
    assert found["d"].iloc[1] == pytest.approx(-0.3)  # the change is known all the same
    trials = [{**t, "defenses": "noise"} for t in trials]
    found = judged(rows, trials)
    assert set(found["verdict"]) == {Verdict.NO_VERDICT}
    assert not found["undefended"].any()
    assert set(found["cost"]) == {Cost.UNKNOWN}
    assert not found["chosen"].any()
    assert found["leak"].notna().all()


def test_a_figure_that_equals_on_all_seeds_has_the_spread_of_half_a_row():
    row = one({"probe": [0.9] * 5}, {"probe": [0.7] * 5})
    away = twin.quantile(0.95, 5) * half_row(2000) / math.sqrt(5)
    assert row["d_upper"] == pytest.approx(-0.2 + away)
    row = one({"probe": [1.0] * 5}, {"probe": [1.0, 0.6, 1.0, 1.0, 1.0]})
    assert row["leak_upper"] == 1  # cut


def test_a_constant_that_is_added_to_all_figures_changes_no_comparison():
    def shifted(by):
        cases = [{"probe": 0.8 + by}, {"probe": 0.55 + by, "norm": 0.56 + by}, {"probe": 0.7 + by}]
        return judged(*sweep(*cases, base=0.55 + by))

    a, b = shifted(0.0), shifted(0.1)
    assert list(a["verdict"]) == list(b["verdict"])
    for name in ("e", "d", "c", "undefended_e"):
        for suffix in ("", "_lower", "_upper"):
            np.testing.assert_allclose(a[name + suffix], b[name + suffix], atol=1e-12)


def test_undefended_keeps_seed_by_seed_what_was_scored_on_the_configuration():
    failed = {"probe": [NAN, 0.6, 0.6, 0.6, 0.6], "norm": 0.7}
    bare = {"probe": 0.9, "norm": 0.7}
    rows, trials = sweep(bare, failed)
    row = judged(rows, trials).loc[(1, "split", 40)]
    assert row["d"] == pytest.approx(4 / 5 * -0.2, abs=0.01)
    assert (row["missing"], row["incomplete"]) == ("probe", True)
    for of in rows:  # a settled attack was tried
        if of["leak"] != of["leak"]:
            of["settled_by"] = "norm"
    row = judged(rows, trials).loc[(1, "split", 40)]
    assert (row["missing"], row["incomplete"], row["variants"]) == ("", False, 2)
    assert row["d"] == pytest.approx(-0.2, abs=0.01)


def test_an_incomplete_configuration_does_not_protect():
    ours = {"probe": 0.61, "norm": [NAN, 0.6, 0.6, 0.6, 0.6]}
    assert one(PLAIN | {"norm": 0.6}, ours)["verdict"] == Verdict.UNCLEAR
    low = {"probe": 0.61, "norm": 0.6}
    assert one(low, {"probe": 0.6, "norm": [NAN] * 5})["verdict"] == Verdict.CANNOT_SAY
    # nor can nothing be there to protect if undefended lacks an attack
    assert one(low | {"norm": [NAN] * 5}, {"probe": 0.6})["verdict"] != Verdict.NOTHING_TO_PROTECT


def test_a_broken_attack_is_no_protection():
    for broken in ([0.5] * 5, [0.2, 0.3, 0.25, 0.2, 0.3]):
        row = one({"probe": 0.6, "direct": 0.95}, {"probe": 0.6, "direct": broken})
        assert row["broken"] == "direct"
        assert (row["variants"], row["families"]) == (1, 1)
        assert abs(row["d"]) < 0.01


def test_a_malicious_trial_that_diverged_takes_its_rows_along():
    rows, trials = sweep({"probe": 0.9}, {"probe": 0.61})
    for number, seed in ((n, s) for n in (0, 1) for s in range(SEEDS)):
        of = trial(number, seed, "malicious-0", diverged=number == 1 and seed == 0)
        trials.append(of)
        leak = NAN if of["diverged"] else at(0.61 if number else 0.95, seed, 1.0)
        rows.append(attack(of, "probe (malicious)", leak))
    row = judged(rows, trials).loc[(1, "split", 40)]
    assert (row["verdict"], row["incomplete"], row["seeds"]) == (Verdict.PROTECTS, False, 5)
    assert row["d"] == pytest.approx((4 * -0.34 - 0.29) / 5, abs=0.01)


def test_each_number_of_labels_has_its_learners_and_a_guess_stands_for_none():
    rows, trials = sweep({"probe": 0.9}, {"probe": 0.7})
    rows += [attack(t, "probe known=10", 0.65, known=10) for t in trials]
    rows += [learner(seed, 0.55, known=10) for seed in range(SEEDS)]
    found = judged(rows, trials)
    assert list(dict.fromkeys(found["known"])) == [40, 10]
    assert found.loc[(1, "split", 10), "e"] == pytest.approx(0.1)
    assert found.loc[(1, "split", 40), "e"] == pytest.approx(0.1, abs=0.01)
    free = [{**r, "known": 0} for r in rows if r["label"] == "probe"]
    found = judged(free, trials).loc[(1, "split", 0)]
    assert found["e"] == pytest.approx(0.2, abs=0.01)
    assert found["local_only"] == 0.5


def test_an_attack_is_compared_with_its_own_attackers_and_draws():
    rows, trials = sweep({"probe": 0.9}, {"probe": 0.7})
    rows += [attack(t, "probe/parties=1", 0.72, attackers="1", draws=3.0) for t in trials]
    rows += [
        learner(s, x, attackers="1", draws=d) for s in range(5) for d, x in ((1, 0.71), (3, 0.7))
    ]
    row = judged(rows, trials).loc[(1, "split", 40)]
    assert row["e"] == pytest.approx(
        0.1, abs=0.01
    )  # party 0's; party 1 reads .02 more than its own
    assert row["leak"] == pytest.approx(0.72)


def test_who_leads_on_most_seeds_leads_and_equals_are_told_apart_by_their_mean():
    ours = {"a": [0.7, 0.7, 0.9, 0.6, 0.6], "b": [0.8, 0.8, 0.6, 0.65, 0.65], "c": [0.7] * 5}
    row = one(PLAIN, ours, base=0.5)
    assert (row["leader"], row["leader_seeds"]) == ("b", 2)
    row = one(PLAIN, {"a": [1.0] * 5, "b": [1.0, 1.0, 1.0, 0.9, 1.0]})
    assert (row["leader"], row["leader_seeds"]) == ("a", 5)
    assert one(PLAIN, {"a": 0.55})["leader"] == LOCAL_ONLY


def test_a_configuration_that_equals_undefended_is_recognized_after_divergence():
    """NaN equals NaN: with one seed that diverged in both, nothing was recognized as undefended before."""
    lost = {"test_utility": [NAN, 0.9, 0.9, 0.9, 0.9], "validation_utility": [NAN] + [0.9] * 4}
    leaks = {"probe": 0.9, "norm": [0.7, NAN, 0.7, 0.7, 0.7]}
    row = one(leaks | lost, leaks | lost)
    assert row["verdict"] == Verdict.IS_UNDEFENDED
    assert (row["seeds"], row["seeds_left_out"]) == (4, 1)
    other = lost | {"test_utility": [NAN, 0.9, 0.9, 0.9, 0.91]}
    assert one(leaks | lost, leaks | other)["verdict"] != Verdict.IS_UNDEFENDED


COSTS = [
    (Cost.KEPT, 0.88, {}),
    (Cost.TOO_MUCH, 0.82, {}),
    (Cost.UNCLEAR, 0.85, {}),
    (Cost.KEPT, 0.82, {"keep_gain": 0.1}),
    (Cost.TOO_MUCH, 0.88, {"keep_gain": 0.9}),
    (Cost.TOO_MUCH, 0.88, {"max_cost": 0.01}),
    (Cost.KEPT, 0.88, {"max_cost": 0.03}),
    (Cost.UNKNOWN, [0.9, 0.9, NAN, NAN, NAN], {}),
]


def costed(utility, goal, **bare):
    values = utility if isinstance(utility, list) else [utility + float(x) for x in WOBBLE]
    facts = FACTS._replace(goal=Goal(**goal))
    ours = {"probe": 0.6, "test_utility": values, "validation_utility": values}
    return one(PLAIN | bare, ours | bare, facts=facts)


@pytest.mark.parametrize(("cost", "utility", "goal"), COSTS)
def test_a_case_for_each_cost(cost, utility, goal):
    assert costed(utility, goal)["cost"] == cost


def test_without_the_label_party_alone_the_loss_counts():
    alone = {"alone_test": NAN, "alone_validation": NAN}
    assert costed(0.89, {}, **alone)["cost"] == Cost.KEPT
    assert costed(0.87, {}, **alone)["cost"] == Cost.TOO_MUCH
    row = costed(0.87, {"max_cost": 0.05}, **alone)
    assert row["cost"] == Cost.KEPT
    assert math.isnan(row["share_kept"])
    assert costed(0.89, {}, **alone)["allowed_loss"] == 0.02


def test_a_seed_without_the_label_party_alone_is_left_out_and_an_empty_sample_is_never_kept():
    """With one seed missing there, a utility of .50 against .90 of undefended was "kept" before."""
    some = [NAN, 0.8, 0.8, 0.8, 0.8]
    assert costed(0.5, {}, alone_test=some)["cost"] == Cost.TOO_MUCH
    assert costed(0.9, {}, alone_test=some)["cost"] == Cost.KEPT
    few = [NAN, NAN, NAN, 0.8, 0.8]
    assert costed(0.5, {}, alone_test=few)["cost"] == Cost.UNKNOWN


def test_the_share_of_the_gain_is_shown_where_there_is_a_gain():
    assert costed(0.88, {})["share_kept"] == pytest.approx(0.8)
    row = costed(0.88, {}, alone_test=0.9)
    assert math.isnan(row["share_kept"])
    assert row["gain"] == pytest.approx(0)


def test_of_points_that_keep_the_utility_that_of_least_leak_is_chosen():
    utilities = (0.9, 0.86, 0.87, 0.8, 0.9)  # half of the gain, .05, may be lost
    leaks = (0.9, 0.7, 0.8, 0.6, 0.9)
    cases = [
        {"probe": leak, "test_utility": u, "validation_utility": u}
        for leak, u in zip(leaks, utilities)
    ]
    rows, trials = sweep(*cases)
    trials = [{**t, "method": "one" if t["configuration"] else "undefended"} for t in trials]
    found = judged(rows, trials)
    assert list(found["qualifies"]) == [True, True, True, False, True]
    assert list(found["chosen"]) == [False, True, False, False, False]
    assert found["verdict"].iloc[4] == Verdict.IS_UNDEFENDED
    # one that is undefended counts only if all are
    few = [t for t in trials if t["configuration"] in (0, 4)]
    found = judged([r for r in rows if r["configuration"] in (-1, 0, 4)], few)
    assert list(found["chosen"]) == [False, True]


def test_a_sweep_without_attacks_has_utilities_and_no_leak():
    rows, trials = sweep({"probe": 0.9}, {"probe": 0.8})
    empty = pd.DataFrame(rows).iloc[:0]
    found = judge(empty, pd.DataFrame(trials), FACTS)
    assert list(found["verdict"]) == [Verdict.NO_VERDICT] * 2
    assert found["leak"].isna().all()
    assert list(found["utility"]) == pytest.approx([0.9, 0.9])
    assert list(found["leader"]) == ["", ""]
