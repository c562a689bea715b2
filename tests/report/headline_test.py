"""The sentence that a report opens with, its four answers, and a card a defense."""

import dataclasses
import math
import shutil
from types import SimpleNamespace

import numpy as np
import pyarrow.parquet as pq
import pytest
from scipy import stats

from tests.sweeps import REFERENCE, assessed, assessment
from vfljax import store
from vfljax.report import headline, page, words
from vfljax.report.assessed import MethodOutcome
from vfljax.report.assessment import assess_sweep
from vfljax.report.estimates import Estimate, Limits, interval
from vfljax.report.judging import Verdict
from vfljax.sweep.records import Goal
from vfljax.types import federation_of

NOISE = {"noise.scale": 1.0}
NAMES = ("telco", "shop", "bank")
TWO = REFERENCE._replace(party_name=NAMES.__getitem__)
TEN = TWO._replace(classes=10, chance=0.1, majority=0.1)


def compared(*found, reference=TWO, known=40, **goal):
    return assessed(*found, reference=reference._replace(known=known, goal=Goal(**goal)))


def headline_of(*found, **given):
    (one,) = headline.headlines(compared(*found, **given))
    assert not any("  " in text or text != text.strip() for text in one)
    return one


def seeds(method, leaks, knobs=None):
    """An assessment of one attack with these leaks by seed; the local-only baseline reaches .5."""
    return assessment(method, 0.9, [leaks], knobs, attack="norm")


def plain():
    return assessment("plain", 0.9, 0.97, attack="norm")


def test_one_sentence_says_what_leaks_to_whom_what_helps_and_what_that_costs():
    one = headline_of(plain(), assessment("dcor", 0.896, 0.56, {"dcor.alpha": 0.005}))
    limits = plain().leak.limits
    assert one.sentence == (
        f"Yes: telco can read the labels mostly (leak AUC .97, at least {limits.lower:.2f}). Without the "
        "federation, .50 can be read. dcor alpha=0.005 lowers the leak to .56 (.53 to .59). It does not "
        "stop it. It changes accuracy by -0.4 points (-0.4 to -0.4)."
    ).replace("least 0.", "least .")
    assert one.leaks == (
        "the labels: leak AUC .97 (.96 to .98), local-only .50 (own columns and as many known labels), "
        "chance .50"
    )
    assert one.whom == "telco; assumed to know 40 labels at most"
    assert one.switch_on.startswith("dcor alpha=0.005: it leaks least of 1 defense where accuracy")
    assert "over 3 seeds" in one.sure


def test_the_first_sentence_says_what_the_federation_gains_and_what_is_kept_of_it():
    base = assessment("plain", 0.9, 0.97, attack="norm", alone=0.85)
    one = headline_of(base, assessment("noise", 0.89, 0.6, NOISE))
    assert (
        "The federation gains over the label party alone (accuracy .90, alone .85: +5.0 points, +5.0 to "
        "+5.0). noise scale=1 lowers"
    ) in one.sentence
    assert "It keeps 80 % of that gain (80 to 80)." in one.sentence
    (shown,) = compared(base, assessment("noise", 0.87, 0.6, NOISE, validation=0.89)).methods
    assert (str(shown.kept.cost), shown.meets_goal) == ("costs too much", False)
    (shown,) = compared(base, assessment("noise", 0.87, 0.6, NOISE)).methods
    assert shown.shown_as is MethodOutcome.NONE_KEEPS  # it loses more than half of the gain
    base = assessment("plain", 0.9, 0.97, attack="norm", alone=0.9)
    one = headline_of(base, assessment("noise", 0.89, 0.6, NOISE))
    assert one.sentence.startswith("The federation gains nothing that can be shown (accuracy .90")


def test_what_nobody_who_knows_it_attacked_is_never_recommended():
    shown = dataclasses.replace(assessment("noise", 0.9, 0.5, NOISE), known=False)
    every = compared(plain(), shown)
    assert headline.recommended(every.methods) is None
    assert words.verdict_text(every.methods[0]) == (
        "protects from what was tried; nobody who knows it attacked it"
    )


def test_the_best_of_several_points_is_corrected_with_five_seeds_and_said_not_to_be_with_three():
    for seeds_, said in ((3, "is not corrected for choosing among 2"), (5, "holds also corrected")):
        random = np.random.default_rng(0)
        leaks = [(0.5 + 0.004 * random.standard_normal(seeds_)).tolist() for _ in range(2)]
        every = [seeds("plain", [0.9] * seeds_)] + [
            seeds("noise", by_seed, {"noise.scale": float(n)}) for n, by_seed in enumerate(leaks)
        ]
        assert said in headline_of(*every).sentence


def test_fresh_seeds_confirm_a_verdict_or_do_not():
    knobs = {"noise.scale": 0.01}
    every = compared(plain(), assessment("noise", 0.9, 0.5, knobs))
    (best,) = every.methods
    for leak, loss, said, text in (
        (0.5, 0.0, "Confirmed", "protects from what was tried; .50"),
        (0.8, 0.0, "Not confirmed", "still leaks, much less; .80"),
        (0.5, 0.3, "Not confirmed", "protects from what was tried; .50"),
        (None, 0.0, "Not confirmed", "no attack has a figure there."),
    ):
        again = compared(plain(), assessment("noise", 0.9 - loss, leak, knobs))
        fresh = dataclasses.replace(best, fresh=again.assessments[1])
        undefended = dataclasses.replace(every.assessments[0], broken=("cosine",))
        found = dataclasses.replace(every, assessments=(undefended, fresh))
        (one,) = headline.headlines(found)
        assert one.sentence.endswith("counted nowhere there: cosine.")
        assert f"{said} on three fresh seeds: {text}" in one.sentence
        assert one.switch_on.endswith(f"; {said.lower()} on fresh seeds")
        assert ("loses more than is allowed" in one.sentence) is bool(loss)
        assert "not corrected" not in one.sentence
        (card,) = page.cards(found)["split"]
        assert card.mark == ("switch this on" if said == "Confirmed" else "leaks least")
    assert not best.confirmed


def test_more_classes_are_named_and_not_ranked():
    one = headline_of(plain(), reference=TEN)
    assert "telco can name the right one of 10 classes for .97 of the rows" in one.sentence
    assert one.sentence.endswith("Without the federation, .50 can be read. No defense was tried.")
    assert "no defense was tried" in one.switch_on


def test_with_two_seeds_there_are_figures_without_limits_and_no_verdict():
    one = headline_of(seeds("plain", [0.97, 0.95]), seeds("noise", [0.6, 0.5], NOISE))
    assert one.sentence == (
        "Not settled: telco can read the labels mostly (leak AUC .96). Without the federation, .50 can be "
        "read. Whether a defense helps is not settled. noise scale=1 leaks least, .55. It changes accuracy "
        "by 0.0 points (0.0 to 0.0), cost not known. No verdict: fewer than 3 seeds."
    )
    assert one.sure.startswith("not sure: 2 seeds allow no limits")
    assert "whether it protects cannot be said" in one.switch_on


def test_with_one_seed_nothing_has_an_interval():
    one = headline_of(seeds("plain", [0.97]), seeds("noise", [0.6], NOISE))
    assert "It changes accuracy by 0.0 points, cost not known. No verdict" in one.sentence


@pytest.mark.parametrize("diverged", [False, True])
def test_without_an_undefended_figure_the_least_leak_is_named_and_nothing_compared(diverged):
    found = [
        assessment("noise", 0.9, 0.7, {"noise.scale": 1.0}),
        assessment("kdk", 0.8, 0.6, {"kdk.k": 2.0}),
    ]
    if diverged:
        found.append(assessment("plain", 0.9, None, diverged=2))
    every = compared(*found)
    (one,) = headline.headlines(every)
    assert "o method is undefended" in one.sentence or "ndefended has no figures" in one.sentence
    assert "With kdk k=2, the least of 2 configurations, telco reads" in one.sentence
    assert "accuracy .80" in one.sentence
    assert [a.shown_as for a in every.methods] == [MethodOutcome.NOT_COMPARED] * 2
    assert [a.label for a in every.methods] == ["kdk k=2", "noise scale=1"]
    assert not any(a.meets_goal for a in every.methods)


def test_where_no_operating_point_meets_the_goal_the_nearest_is_named():
    strong = assessment("noise", 0.8, 0.52, {"noise.scale": 2.0})
    weak = assessment("noise", 0.9, 0.7, {"noise.scale": 1.0})
    for limit, label in ((0.6, "noise scale=2"), (0.68, "noise scale=1")):
        every = compared(plain(), strong, weak, max_leak=limit)
        (one,) = headline.headlines(every)
        assert (
            "No defense that was tried meets what is asked (accuracy falls by at most 2 points"
            in one.sentence
        )
        assert f"Nearest is {label}: ." in one.sentence
        assert one.switch_on.startswith("none meets what is asked")
        (shown,) = every.methods  # it keeps the accuracy, and does not meet the goal
        assert (shown.chosen, shown.meets_goal) == (True, False)
        assert shown.label == "noise scale=1"
    one = headline_of(plain(), strong, weak, max_leak=0.4)
    assert "and none can, as the local-only baseline reaches .50; nearest is" in one.switch_on
    (shown,) = compared(plain(), strong).methods
    assert (shown.shown_as, shown.label, shown.chosen) == (
        MethodOutcome.NONE_KEEPS,
        strong.label,
        False,
    )
    assert shown.cost.mean == pytest.approx(-0.1)
    assert "It changes accuracy by -10.0 points" in headline_of(plain(), strong).sentence


def test_what_may_be_lost_and_leaked_is_the_configs():
    strong = assessment("noise", 0.8, 0.52, {"noise.scale": 2.0})
    (shown,) = compared(plain(), strong, max_cost=0.1).methods
    assert (shown.meets_goal, shown.verdict) == (True, Verdict.PROTECTS)
    upper = shown.leak.limits.upper
    for limit, meets in ((upper + 1e-9, True), (upper - 1e-9, False)):
        (shown,) = compared(plain(), strong, max_cost=0.1, max_leak=limit).methods
        assert shown.meets_goal == meets


def test_a_defense_that_protects_comes_before_one_of_which_nothing_can_be_said():
    def one(verdict, leak, meets=True):
        leaks = SimpleNamespace(mean=leak)
        return SimpleNamespace(shown_as=verdict, leak=leaks, meets_goal=meets)

    unsure, reduces = one(Verdict.CANNOT_SAY, 0.6), one(Verdict.LEAKS_LESS, 0.7)
    protects, more = one(Verdict.PROTECTS, 0.8), one(Verdict.PROTECTS, 0.9)
    assert headline.recommended([unsure, reduces, more, protects]) is protects
    assert headline.recommended([unsure, reduces]) is reduces
    assert headline.recommended([unsure]) is unsure
    assert headline.recommended([one(Verdict.PROTECTS, 0.5, meets=False)]) is None


def test_the_least_leak_of_those_that_meet_the_goal_is_named_first():
    every = compared(
        plain(),
        assessment("noise", 0.9, 0.7, NOISE),
        assessment("kdk", 0.895, 0.6, {"kdk.k": 2.0}),
        assessment("mid", 0.5, 0.5, {"mid.scale": 1.0}),
    )
    assert [a.method for a in every.methods] == ["kdk", "noise", "mid"]
    assert headline.recommended(every.methods).method == "kdk"
    assert "kdk k=2 lowers the leak" in headline.headlines(every)[0].sentence


def test_nothing_is_switched_on_where_nothing_is_to_protect_or_nothing_helps():
    one = headline_of(assessment("plain", 0.9, 0.5), assessment("noise", 0.9, 0.5, NOISE))
    assert one.sentence.startswith(
        "No: the strongest of 1 attack reads hardly more than a party reads"
    )
    assert one.sentence.endswith("There is nothing to protect from what was tried.")
    assert one.switch_on == "nothing"
    one = headline_of(plain(), assessment("noise", 0.9, 0.97, NOISE, attack="norm"))
    assert "No defense that was tried helps. noise scale=1 leaks least, .97" in one.sentence
    assert one.switch_on.startswith("nothing that was tried")


def test_blanks_in_a_name_stay():
    found = compared(plain(), assessment("two  blanks", 0.9, 0.6, NOISE))
    assert "two  blanks scale=1 lowers the" in headline.headlines(found)[0].sentence


def test_who_attacks_is_named_alone_together_and_as_nobody():
    def by(attack):
        return headline_of(assessment("plain", 0.9, 0.97, attack=attack))

    assert by("norm/parties=1").whom.startswith("shop; assumed")
    one = by("joint/parties=0+1")
    assert one.whom.startswith("telco and shop together;")
    assert "telco and shop together can read the labels" in one.sentence
    one = headline_of(assessment("plain", 0.9, 0.4), known=0)
    assert one.whom == "nobody, beyond the local-only baseline; assumed to know no labels"
    assert "the strongest of 1 attack reads hardly more than a party reads" in one.sentence


def test_nothing_attacked_and_everything_diverged_are_told():
    bare = assessment("plain", 0.9, None)
    assert "No attack has any figure" in headline_of(bare).sentence
    assert "undefended reaches an accuracy of 0.900" in headline_of(bare).sentence
    lost = [assessment("plain", 0.9, None, diverged=2) for _ in range(2)]
    assert headline_of(*lost).sentence == "All 4 trials diverged: there is nothing to judge."
    defended = assessment("noise", 0.9, None, NOISE, diverged=2)
    every = compared(plain(), defended)
    assert headline.headlines(every)[0].sentence.endswith(
        "Of the defenses nothing is known: diverged on every seed."
    )
    assert [a.shown_as for a in every.methods] == [MethodOutcome.DIVERGED]
    assert math.isnan(every.methods[0].leak.mean)


def test_two_federations_have_a_sentence_each():
    one = plain()
    first, second = headline.headlines(
        compared(one, dataclasses.replace(one, federation="no_split"))
    )
    assert first.sentence.startswith("With model splitting. Yes: telco")
    assert second.sentence.startswith("Without model splitting. Yes: telco")


def test_two_digits_never_hide_that_a_limit_is_exceeded():
    leak = Estimate(0.55, Limits(0.5, 0.604))
    assert words.figure(leak) == ".55 (.50 to .60)"
    assert words.figure(leak, 0.6) == ".550 (.500 to .604)"
    assert words.change(interval([-0.004])) == "-0.4 points"
    assert words.share(Estimate(0.289, Limits(-0.004, 0.566))) == "29 % (0 to 57)"
    assert words.share(Estimate(math.nan, Limits(math.nan, math.nan))) == "-"
    assert words.change(interval([-0.0001])) == "0.0 points"


def by_hand(results, attacks, alone, arm, split, known):
    """The highest mean of any attack and learner on every configuration of a method, in NumPy, with the
    accuracies by seed on validation and test rows, and those of the label party alone."""
    points = {}
    for row in results:
        if row["method"] == arm and federation_of(row["federation"]).split == split:
            points.setdefault(row["configuration"], {})[row["trial"]] = row
    out = {}
    for number, members in points.items():
        figures = {}
        for row in attacks:
            if row["trial"] in members and row["known"] <= known:
                kind = federation_of(row["federation"]).kind
                key = row["label"], kind, row["attack_configuration"]
                figures.setdefault(key, []).append(row["leak_crossed"])
        for row in alone:
            figures.setdefault(row["options"], []).append(row["leak_crossed"])
        kind = "split" if split else "no_split"
        rows = [r for r in members.values() if federation_of(r["federation"]).kind == kind]
        rows.sort(key=lambda r: r["seed"])
        columns = ("validation_accuracy", "test_accuracy", "alone_validation_accuracy")
        by_seed = (np.array([r.get(c) for r in rows], float) for c in columns)
        out[number] = max(np.mean(x) for x in figures.values()), *by_seed
    return out


def test_headline_and_cards_are_what_a_reader_recomputes_from_the_stored_tables(
    tiny_sweep, tmp_path
):
    workdir = shutil.copytree(tiny_sweep, tmp_path / "w")
    store.export(workdir)
    sweep = store.load(workdir)
    results, attacks = (
        pq.read_table(workdir / f"{name}.parquet").to_pylist() for name in ("results", "attacks")
    )
    alone = sweep.local_only.to_pylist()
    every = assess_sweep(workdir)
    away = every.methods[0].strongest.local_only
    assert len(every.methods) == 4
    for card in every.methods:
        split = card.federation == "split"
        (plain,) = by_hand(results, attacks, alone, "undefended", split, 20).values()
        loss = {
            n: (plain[1] - p[1], p)
            for n, p in by_hand(results, attacks, alone, card.method, split, 20).items()
        }
        allowed = max(0.0, np.mean(plain[1] - plain[3]) / 2)
        kept = {
            n: p
            for n, (lost, p) in loss.items()
            if lost.mean() <= allowed + 1e-12
            and lost.mean() + stats.t.ppf(0.9, 1) * stats.sem(lost) <= 2 * allowed + 1e-12
        }
        assert card.chosen == bool(kept)
        if not kept:
            continue
        number = min(kept, key=lambda n: kept[n][0])
        leak, _, accuracy, _ = kept[number]
        assert card.configuration.number == number
        assert card.leak.mean == pytest.approx(leak)
        assert card.excess.mean == pytest.approx(leak - away)
        assert card.change.mean == pytest.approx(leak - plain[0])
        cost = accuracy - plain[2]
        assert card.cost.mean == pytest.approx(cost.mean())
        assert card.cost.half == pytest.approx(stats.t.ppf(0.975, 1) * stats.sem(cost))
    for one in headline.headlines(every):
        split = one.federation == "split"
        (plain,) = by_hand(results, attacks, alone, "undefended", split, 20).values()
        assert f" {plain[0]:.2f}".replace(" 0.", " .") in one.sentence
        mine = [c for c in every.methods if c.federation == one.federation and c.meets_goal]
        if mine:
            best = min(mine, key=lambda c: c.leak.mean)
            assert f"{best.label} leaks least," in one.sentence
