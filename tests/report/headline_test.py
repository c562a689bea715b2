"""The sentence that a report opens with, its four answers, and a card a defense."""

import dataclasses
import math
import shutil
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy import stats

from tests.sweeps import columns, point
from vfljax import store
from vfljax.report import cards, headline, judging, summary
from vfljax.sweep.experiment import experiment_of
from vfljax.sweep.records import Goal
from vfljax.types import AttackIdentity, federation_of

NOISE = {"noise.scale": 1.0}
TWO = {"chance": 0.5, "majority": 0.5, "scale": "leak AUC", "classes": 2, "alone": 0.5}
TEN = {"chance": 0.1, "majority": 0.1, "scale": "balanced top-1", "classes": 10, "alone": 0.5}
NAMES = ("telco", "shop", "bank")


def about(base=TWO, known=40, **goal):
    return cards.About(base, Goal(**goal), NAMES.__getitem__, known)


def said(*points, **given):
    (one,) = headline.opening(points, about(**given)).headlines
    return one


def seeds(arm, leaks, accuracy=0.9, knobs=None, names=("norm",), number=0):
    """A point of these leaks, [attacks, seeds]; who stays away reaches .5."""
    one = point(arm, accuracy, 0.5, knobs)
    leaks = np.atleast_2d(leaks)
    of = judging.candidates(names, leaks, [0.5] * leaks.shape[1], 1000)
    case = judging.worst_case(of)
    worst = one.worst["split"]._replace(
        *(), attack=case.attack, name=case.attack, case=case, candidates=of
    )
    accuracies = dict.fromkeys(range(leaks.shape[1]), accuracy)
    worst = worst._replace(seeds=tuple(accuracies))
    return one._replace(
        number=number,
        worst={"split": worst},
        by_seed={"split": accuracies},
        validated={"split": accuracies},
    )


PLAIN = point("plain", 0.9, 0.97, attack="norm")


def test_one_sentence_says_what_leaks_to_whom_what_helps_and_what_that_costs():
    one = said(PLAIN, point("dcor", 0.896, 0.56, {"dcor.alpha": 0.005}))
    limits = judging.worst_case(PLAIN.worst["split"].candidates).limits
    assert one.sentence == (
        f"Undefended, telco ranks the labels with leak AUC .97 ({limits.lower:.2f} to {limits.upper:.2f}); "
        "with dcor alpha=0.005 the worst of 1 attack reaches .56 (.53 to .59), taking no part .50; accuracy "
        "-0.4 points (-0.4 to -0.4). Verdict: reduces."
    ).replace("(0.", "(.").replace(" to 0.", " to .")
    assert one.leaks == (
        "the labels: leak AUC .97 (.96 to .98), taking no part .50 (own columns and as many known labels), "
        "chance .50"
    )
    assert one.whom == "telco, with the attack norm; assumed to know 40 labels at most"
    assert one.switch_on.startswith("dcor alpha=0.005: it leaks least of 1 defense where accuracy")
    assert "over 3 seeds" in one.sure


def test_more_classes_are_named_and_not_ranked():
    one = said(PLAIN, base=TEN)
    assert "telco names the right one of 10 classes for .97 (" in one.sentence
    assert one.sentence.endswith("taking no part .50; no defense was tried.")
    assert "no defense was tried" in one.switch_on


def test_with_two_seeds_there_are_figures_without_limits_and_no_verdict():
    one = said(seeds("plain", [0.97, 0.95]), seeds("noise", [0.6, 0.5], knobs=NOISE))
    assert "leak AUC .96; with noise scale=1 the worst of 1 attack reaches .55," in one.sentence
    assert one.sentence.endswith(
        "accuracy 0.0 points (0.0 to 0.0). No verdict: fewer than 3 seeds."
    )
    assert one.sure.startswith("not sure: 2 seeds allow no limits")
    assert "whether it protects cannot be said" in one.switch_on


def test_with_one_seed_nothing_has_an_interval():
    one = said(seeds("plain", [0.97]), seeds("noise", [0.6], knobs=NOISE))
    assert "accuracy 0.0 points. No verdict" in one.sentence


@pytest.mark.parametrize("diverged", [False, True])
def test_without_an_undefended_figure_the_least_leak_is_named_and_nothing_compared(diverged):
    points = [
        point("noise", 0.9, 0.7, {"noise.scale": 1.0}),
        point("kdk", 0.8, 0.6, {"kdk.k": 2.0}),
    ]
    if diverged:
        points.append(PLAIN._replace(worst={}, diverged=2))
    opened = headline.opening(points, about())
    (one,) = opened.headlines
    assert "o arm is undefended" in one.sentence or "ndefended has no figures" in one.sentence
    assert "With kdk k=2, the least of 2 settings, telco ranks" in one.sentence
    assert "accuracy .80" in one.sentence
    assert [c.verdict for c in opened.cards] == 2 * [cards.NOT_COMPARED]
    assert [c.strength for c in opened.cards] == ["kdk k=2", "noise scale=1"]
    assert not any(c.meets for c in opened.cards)


def test_where_no_strength_meets_the_goal_the_nearest_is_named():
    strong = point("noise", 0.8, 0.52, {"noise.scale": 2.0})._replace(number=1)
    weak = point("noise", 0.9, 0.7, {"noise.scale": 1.0})._replace(number=2)
    for limit, label in ((0.6, "noise scale=2"), (0.68, "noise scale=1")):
        opened = headline.opening([PLAIN, strong, weak], about(max_leak=limit))
        (one,) = opened.headlines
        assert (
            "no defense that was tried meets what is asked (accuracy falls by at most 2 points"
            in one.sentence
        )
        assert f"Nearest is {label}: the worst of 1 attack reaches" in one.sentence
        assert one.switch_on.startswith("none meets what is asked")
        (card,) = opened.cards  # it keeps the accuracy, and does not meet the goal
        assert (card.kept, card.meets, card.strength) == (True, False, "noise scale=1")
    one = said(PLAIN, strong, weak, max_leak=0.4)
    assert "and none can, as taking no part reaches .50; nearest is" in one.switch_on
    (card,) = headline.opening([PLAIN, strong], about()).cards
    assert (card.verdict, card.strength, card.kept) == (cards.NONE_KEEPS, strong.label, False)
    assert card.cost.mean == pytest.approx(-0.1)
    assert "accuracy -10.0 points" in said(PLAIN, strong).sentence


def test_what_may_be_lost_and_leaked_is_the_configs():
    strong = point("noise", 0.8, 0.52, {"noise.scale": 2.0})
    (card,) = headline.opening([PLAIN, strong], about(max_cost=0.1)).cards
    assert (card.meets, card.verdict) == (True, judging.PROTECTS)
    upper = card.leak.limits.upper
    for limit, meets in ((upper + 1e-9, True), (upper - 1e-9, False)):
        (card,) = headline.opening([PLAIN, strong], about(max_cost=0.1, max_leak=limit)).cards
        assert card.meets == meets


def test_a_defense_that_protects_comes_before_one_of_which_nothing_can_be_said():
    def one(verdict, leak, meets=True):
        return SimpleNamespace(verdict=verdict, leak=SimpleNamespace(mean=leak), meets=meets)

    unsure, reduces = one(judging.CANNOT_SAY, 0.6), one(judging.REDUCES, 0.7)
    protects, more = one(judging.PROTECTS, 0.8), one(judging.PROTECTS, 0.9)
    assert headline.recommended([unsure, reduces, more, protects]) is protects
    assert headline.recommended([unsure, reduces]) is reduces
    assert headline.recommended([unsure]) is unsure
    assert headline.recommended([one(judging.PROTECTS, 0.5, meets=False)]) is None


def test_the_least_leak_of_those_that_meet_the_goal_is_named_first():
    points = [
        PLAIN,
        point("noise", 0.9, 0.7, NOISE),
        point("kdk", 0.895, 0.6, {"kdk.k": 2.0}),
        point("mid", 0.5, 0.5, {"mid.scale": 1.0}),
    ]
    opened = headline.opening(points, about())
    assert [c.arm for c in opened.cards] == ["kdk", "noise", "mid"]
    assert headline.recommended(opened.cards).arm == "kdk"
    assert "with kdk k=2 the worst" in opened.headlines[0].sentence


def test_nothing_is_switched_on_where_nothing_is_to_protect_or_nothing_helps():
    one = said(point("plain", 0.9, 0.5), point("noise", 0.9, 0.5, NOISE))
    assert one.sentence.endswith(": there is nothing to protect from what was tried.")
    assert one.switch_on == "nothing"
    one = said(PLAIN, point("noise", 0.9, 0.97, NOISE))
    assert one.sentence.endswith("Verdict: does nothing.")
    assert one.switch_on.startswith("nothing that was tried")


def test_who_attacks_is_named_alone_together_and_staying_away():
    def by(attack, federation="split", **fields):
        attack = AttackIdentity(attack, **fields)
        label = attack.label
        worst = PLAIN.worst["split"]._replace(attack=label, name=label, federation=federation)
        return PLAIN._replace(worst={"split": worst._replace(identity=attack)})

    assert said(by("norm", attackers=(1,))).whom.startswith("shop, with the attack norm; assumed")
    one = said(by("joint", attackers=(0, 1), outdated=True))
    assert one.whom.startswith("telco and shop together, with the attack joint/rule=1;")
    assert "telco and shop together rank the labels" in one.sentence
    one = said(by("logistic", "no federation"), known=0)
    assert one.whom == "nobody, beyond staying away; assumed to know no labels"
    assert "the worst of 1 attack reads no more than staying away does" in one.sentence


def test_nothing_attacked_and_everything_diverged_are_said():
    bare = PLAIN._replace(worst={})
    assert "No attack has any figure" in said(bare).sentence
    assert "undefended reaches an accuracy of 0.900" in said(bare).sentence
    lost = bare._replace(diverged=2)
    assert said(lost, lost).sentence == "All 4 settings diverged: there is nothing to judge."
    defended = point("noise", 0.9, 0.5, NOISE)._replace(worst={}, diverged=2)
    opened = headline.opening([PLAIN, defended], about())
    assert opened.headlines[0].sentence.endswith(
        "; of the defenses nothing is known: diverged on every seed."
    )
    assert [c.verdict for c in opened.cards] == [cards.DIVERGED]
    assert math.isnan(opened.cards[0].leak.mean)


def test_two_federations_have_a_sentence_each():
    both = PLAIN._replace(
        worst={"split": PLAIN.worst["split"], "no_split": PLAIN.worst["split"]},
        **{
            field: {
                "split": getattr(PLAIN, field)["split"],
                "no_split": getattr(PLAIN, field)["split"],
            }
            for field in ("accuracy", "validation", "by_seed", "validated")
        },
    )
    first, second = headline.opening([both], about()).headlines
    assert first.sentence.startswith("With model splitting: undefended, telco")
    assert second.sentence.startswith("Without model splitting: undefended, telco")


def test_two_digits_never_hide_that_a_limit_is_exceeded():
    leak = summary.Worst.leak.fget(PLAIN.worst["split"])._replace(mean=0.55)
    leak = leak._replace(limits=leak.limits._replace(lower=0.5, upper=0.604))
    assert headline.figure(leak) == ".55 (.50 to .60)"
    assert headline.figure(leak, 0.6) == ".550 (.500 to .604)"
    assert headline.change(summary.interval([-0.004])) == "-0.4 points"
    assert headline.change(summary.interval([-0.0001])) == "0.0 points"


def by_hand(results, attacks, alone, arm, federation, known):
    """The worst case of every point of an arm in plain NumPy, of two seeds: chosen on one half, scored on the
    other; [(select, report)] with who stays away."""
    points = {}
    for row in results:
        if row["arm"] == arm:
            points.setdefault(row["point"], {})[row["setting"]] = row
    out = {}
    for number, members in points.items():
        kinds = {
            s for s, r in members.items() if federation_of(r["federation"]).split == federation
        }
        figures = {}
        for row in attacks:
            if row["setting"] in kinds and row["known"] <= known:
                key = row["label"], federation_of(row["federation"]).kind, row["point"]
                figures.setdefault(key, []).append((row["leak_select"], row["leak_report"]))
        figures["away"] = [
            (r["leak_select"], r["leak_report"]) for r in alone if r["known"] == known
        ]
        select, report = max(np.mean(pairs, axis=0).tolist() for pairs in figures.values())
        kind = "split" if federation else "no_split"
        rows = [r for r in members.values() if federation_of(r["federation"]).kind == kind]
        rows.sort(key=lambda r: r["seed"])
        out[number] = (
            select,
            report,
            np.array([r["validation_accuracy"] for r in rows]),
            np.array([r["test_accuracy"] for r in rows]),
        )
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
    alone = sweep.alone.to_pylist()
    experiment = experiment_of(sweep)
    opened = headline.opening(summary.points(sweep), cards.about(sweep, experiment))
    away = np.mean([r["leak_report"] for r in alone if r["known"] == 20])
    assert len(opened.cards) == 4
    for card in opened.cards:
        split = card.federation == "split"
        (plain,) = by_hand(results, attacks, alone, "undefended", split, 20).values()
        loss = {
            n: (plain[2] - p[2], p)
            for n, p in by_hand(results, attacks, alone, card.arm, split, 20).items()
        }
        kept = {
            n: p
            for n, (lost, p) in loss.items()
            if lost.mean() <= 0.02 and lost.mean() + stats.t.ppf(0.9, 1) * stats.sem(lost) <= 0.04
        }
        assert card.kept == bool(kept)
        if not kept:
            continue
        number = min(kept, key=lambda n: kept[n][0])
        _, leak, _, accuracy = kept[number]
        assert card.point.number == number
        assert card.leak.mean == pytest.approx(leak)
        assert card.excess.mean == pytest.approx(leak - away)
        assert card.change.mean == pytest.approx(leak - plain[1])
        cost = accuracy - plain[3]
        assert card.cost.mean == pytest.approx(cost.mean())
        assert card.cost.half == pytest.approx(stats.t.ppf(0.975, 1) * stats.sem(cost))
    for one in opened.headlines:
        split = one.federation == "split"
        (plain,) = by_hand(results, attacks, alone, "undefended", split, 20).values()
        assert f" {plain[1]:.2f}".replace(" 0.", " .") in one.sentence.partition(";")[0]
        mine = [c for c in opened.cards if c.federation == one.federation and c.meets]
        if mine:
            best = min(mine, key=lambda c: c.leak.mean)
            assert f"with {best.strength} the worst of" in one.sentence


def test_with_three_seeds_a_card_is_of_the_folds(tmp_path):
    """Each fold picks the attack of the highest mean on the other two seeds."""
    leaks = {
        ("", "norm"): [0.9, 0.92, 0.95],
        ("", "mean"): [0.95, 0.7, 0.8],
        ("noise", "norm"): [0.6, 0.62, 0.7],
        ("noise", "mean"): [0.7, 0.61, 0.58],
    }
    accuracy = {"": [0.9, 0.91, 0.92], "noise": [0.9, 0.9, 0.905]}
    numbers = dict.fromkeys(summary.NUMBERS, 0.0)
    results, attacks = [], []
    for place, (arm, by_seed) in enumerate(accuracy.items()):
        for seed, reached in enumerate(by_seed):
            common = {"setting": 3 * place + seed, "seed": seed, "federation": "split"}
            row = {**common, "point": place, "arm": arm or "plain", "defenses": arm, **numbers}
            knobs = {"noise.scale": 1.0 if arm else None}
            figures = {"status": "ok", "test_accuracy": reached, "validation_accuracy": reached}
            results.append({**row, **knobs, **figures})
            for attack in ("norm", "mean"):
                leak = leaks[arm, attack][seed]
                figures = dict.fromkeys(("leak", "leak_select", "leak_report"), leak)
                given = {**columns(attack), "variant": attack, "point": 0, "success": 0.5}
                attacks.append({**common, **given, **figures, "leak_null": 0.55})
    tables = map(pa.Table.from_pylist, (results, attacks))
    header = {"data": {"balance": [1, 1], "train": 4000}}
    sweep = store.Sweep(tmp_path, header, *tables, (), pa.table({}))
    (card,) = headline.opening(summary.points(sweep), about(known=0)).cards

    def folds(arm):
        rows = np.array([leaks[arm, name] for name in ("norm", "mean")])
        rest = [np.delete(rows, s, axis=1).mean(axis=1) for s in range(3)]
        return np.array([rows[np.argmax(mean), s] for s, mean in enumerate(rest)])

    cost = np.subtract(accuracy["noise"], accuracy[""])
    assert card.leak.mean == pytest.approx(folds("noise").mean())
    assert card.excess.mean == pytest.approx(folds("noise").mean() - 0.5)
    assert card.change.mean == pytest.approx((folds("noise") - folds("")).mean())
    assert card.cost.mean == pytest.approx(cost.mean())
    assert card.cost.half == pytest.approx(stats.t.ppf(0.975, 2) * stats.sem(cost))
    assert card.by_folds == card.leak.mean  # one strength, which every fold chose
    assert card.chosen == "3 of 3 folds"
    assert card.attack == "norm"


def test_a_card_is_frozen():
    (card,) = headline.opening([PLAIN, point("noise", 0.9, 0.6, NOISE)], about()).cards
    with pytest.raises(dataclasses.FrozenInstanceError):
        card.verdict = "fine"
