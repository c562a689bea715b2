"""Intervals, worst attacks and chosen strengths."""

import math

import pyarrow as pa
import pytest
from scipy import stats

from tests.sweeps import columns
from vfljax import store
from vfljax.report import summary, tables


def test_the_interval_is_the_t_interval():
    values = [0.1, 0.4, 0.3]
    low, high = stats.t.interval(0.95, 2, loc=sum(values) / 3, scale=stats.sem(values))
    mean, half, _ = summary.interval(values)
    assert math.isclose(mean - half, low)
    assert math.isclose(mean + half, high)


def test_one_seed_has_no_interval_and_none_has_no_mean():
    assert str(summary.interval([0.5])) == "0.500"
    assert str(summary.interval([None, float("nan")])) == "-"


def test_a_stored_arm_is_defended_by_its_chain_not_by_its_name(defended):
    """Stored rows name the chain; here arms have each other's names."""
    names = {"undefended": "gafm", "plain": "undefended", "gafm": "plain"}
    arms = [names[arm] for arm in defended.results["arm"].to_pylist()]
    place = defended.results.schema.get_field_index("arm")
    renamed = defended._replace(results=defended.results.set_column(place, "arm", [arms]))
    defenses = {p.arm: p.defenses for p in summary.points(renamed)}
    assert defenses == {"gafm": (), "undefended": ("label_dp",), "plain": ("gafm",)}
    assert summary.undefended(summary.points(renamed)).arm == "gafm"


def test_the_worst_attack_is_scored_on_the_half_it_was_not_chosen_on(tiny_sweep):
    stored = store.load(tiny_sweep)
    attacks = stored.attacks.to_pylist()
    rows = {r["setting"]: r for r in stored.results.to_pylist()}
    for one in summary.points(stored):
        worst = one.worst["split"]
        if worst.federation == "no federation":
            outcomes = stored.alone.to_pylist()
        else:
            outcomes = [
                a
                for a in attacks
                if rows[a["setting"]]["point"] == one.number
                and (a["label"], a["federation"]) == (worst.attack, worst.federation)
            ]
        assert worst.by_seed == pytest.approx({a["seed"]: a["leak_report"] for a in outcomes})


def worst_of(workdir, **leaks):
    """The worst attack of a sweep of one point, None without a candidate; ``point_of`` has the rest."""
    return point_of(workdir, **leaks).worst.get("split")


def point_of(workdir, known=None, alone=None, **leaks):
    """The point of a sweep of one point and federation.

    ``leaks`` has a pair for every seed: an attack's leak on the half of the rows that attacks are
    chosen on, and on the half that they are scored on. ``known`` says how many labels each attack's
    points know; of several, all have the same leaks. ``alone``: the same pairs of whoever stays away, by
    the number of known labels."""
    results, attacks = [], []
    for seed in range(len(next(iter(leaks.values())))):
        common = {"setting": seed, "point": 0, "seed": seed, "federation": "split"}
        arm = {"arm": "undefended", "defenses": "", **dict.fromkeys(summary.NUMBERS, 0.0)}
        figures = {"status": "ok", "test_accuracy": 0.9, "validation_accuracy": 0.9}
        results.append({**common, **arm, **figures})
        for attack, by_seed in leaks.items():
            select, report = by_seed[seed]
            for number, count in enumerate((known or {}).get(attack, (None,))):
                row = {**common, "point": number, "variant": attack, "attack.known": count}
                row |= columns(attack, known=int(count or 0))
                attacks.append({**row, **scored(select, report)})
    away = [
        {**columns("logistic", "", known=int(count)), "seed": seed, **scored(*pair)}
        for count, pairs in (alone or {}).items()
        for seed, pair in enumerate(pairs)
    ]
    results, attacks, away = map(pa.Table.from_pylist, (results, attacks, away))
    header = {"data": {"balance": [1, 1], "train": 4000}}
    (only,) = summary.points(store.Sweep(workdir, header, results, attacks, (), away))
    return only


def scored(select, report):
    figures = {"success": 0.5, "leak_null": 0.55, "leak": (select + report) / 2}
    return {**figures, "leak_select": select, "leak_report": report}


def test_the_worst_attack_leaks_most_on_the_half_it_is_not_scored_on(tmp_path):
    passive, norm = [(0.9, 0.6), (0.8, 0.7)], [(0.7, 0.9), (0.6, 0.8)]
    worst = worst_of(tmp_path, norm=norm, passive=passive)
    assert worst.attack == "passive"
    assert worst.by_seed == {0: 0.6, 1: 0.7}
    assert str(worst.leak) == "0.650"  # two seeds have no limits
    assert worst.chosen == "halves of the rows"


def test_with_three_seeds_the_worst_attack_is_chosen_on_the_other_seeds(tmp_path):
    """Whatever it leaks on the half of the rows that only fewer seeds are chosen on."""
    passive = [(0.1, 0.9), (0.1, 0.7), (0.1, 0.7)]
    norm = [(0.9, 0.75), (0.9, 0.72), (0.9, 0.72)]
    worst = worst_of(tmp_path, passive=passive, norm=norm)
    assert (worst.attack, worst.chosen) == ("passive", "2 of 3 folds")
    assert worst.by_seed == {0: 0.75, 1: 0.7, 2: 0.7}
    assert worst.leak.mean == pytest.approx(2.15 / 3)
    assert worst.leak.limits.lower < worst.leak.mean < worst.leak.limits.upper
    assert worst.excess.mean == pytest.approx(2.15 / 3 - 0.5)  # without labels: over chance


def test_an_attack_is_a_candidate_unless_it_diverged_on_every_seed(tmp_path):
    diverged = (math.nan, math.nan)
    worst = worst_of(tmp_path, norm=[(0.7, 0.7)] * 2, passive=[diverged, (0.9, 0.8)])
    assert worst.attack == "passive"
    assert (worst.leak.mean, worst.by_seed) == (0.8, {1: 0.8})  # of the seed that has one
    assert worst_of(tmp_path, passive=[diverged] * 2) is None


def test_oracle_attacks_stay_out_of_the_worst_case(tiny_sweep, monkeypatch):
    described = {"passive.rule3": {"status": "ok", "oracle": True}}
    monkeypatch.setattr(store, "attack_summary", lambda workdir: described)
    assert all("split" not in p.worst for p in summary.points(store.load(tiny_sweep)))


@pytest.mark.parametrize(
    ("balance", "chance", "scale"), [([9, 1], 0.5, "leak AUC"), ([1] * 4, 0.25, "balanced top-1")]
)
def test_chance_and_majority_come_from_the_class_balance(tiny_sweep, balance, chance, scale):
    stored = store.load(tiny_sweep)
    stored.header["data"]["balance"] = balance
    base = summary.baseline(stored)
    assert base["chance"] == chance
    assert base["majority"] == max(balance) / sum(balance)
    assert base["scale"] == scale


def test_a_label_names_what_varies_in_its_arm_and_what_had_to_be_chosen(defended):
    labels = [p.label for p in summary.points(defended)]
    assert labels == [
        *("undefended", "plain epsilon=1", "plain epsilon=3"),
        *("gafm delta=0.1", "gafm delta=0.5"),
    ]


def test_oriented_figures_turn_inverted_runs_and_leave_the_others(defended):
    for row in defended.results.to_pylist():
        turned = row["train_auc"] < 0.5
        assert row["inverted"] == turned
        auc = 1 - row["test_auc"] if turned else row["test_auc"]
        assert row["test_oriented_auc"] == pytest.approx(auc, abs=1e-6)
        if not turned:
            assert row["test_oriented_accuracy"] == row["test_accuracy"]


def test_who_stays_away_is_a_candidate_like_any_other_with_as_many_labels(tmp_path):
    passive, his = [(0.7, 0.9), (0.6, 0.8)], [(0.8, 0.6), (0.7, 0.7)]
    known = {"passive": (20.0,)}
    worst = point_of(tmp_path, known, {20.0: his}, passive=passive).worst["split"]
    assert (worst.attack, worst.federation) == ("logistic", "no federation")
    assert worst.by_seed == {0: 0.6, 1: 0.7}
    assert (worst.excess.mean, worst.null) == (0, 0.55)
    with_other_labels = point_of(tmp_path, known, {40.0: his}, passive=passive).worst["split"]
    assert with_other_labels.attack == "passive"
    assert math.isnan(with_other_labels.excess.mean)  # he was not scored with 20


def test_he_stands_for_the_seeds_that_were_attacked_and_alone_for_none(tmp_path):
    his = [(0.95, 0.6), (0.7, 0.7), (0.7, 0.7)]
    worst = point_of(tmp_path, {"norm": (20.0,)}, {20.0: his}, norm=[(0.8, 0.8)] * 2).worst
    assert worst["split"].by_seed == {0: 0.6, 1: 0.7}
    diverged = [(math.nan, math.nan)] * 2
    assert point_of(tmp_path, {"norm": (20.0,)}, {20.0: his}, norm=diverged).worst == {}


def test_the_excess_is_what_an_attack_leaks_beyond_him_seed_by_seed(tmp_path):
    point = point_of(
        *(tmp_path, {"passive": (20.0,)}, {20.0: [(0.5, 0.6), (0.5, 0.7)]}),
        passive=[(0.8, 0.8), (0.8, 0.9)],
        norm=[(0.6, 0.7), (0.7, 0.7)],
    )
    excess = point.worst["split"].excess
    assert excess.mean == pytest.approx(0.2)
    assert str(excess) == "0.200"  # two seeds have no limits
    # figures beside him with as many labels as they know: norm knows none, and he has chance then
    assert point.figures["passive", "split"]["excess"].mean == pytest.approx(0.825 - 0.575)
    assert point.figures["norm", "split"]["excess"].mean == pytest.approx(0.675 - 0.5)


def test_a_worst_case_belongs_to_a_budget_and_the_first_point_s_leads(tmp_path):
    point = point_of(
        *(tmp_path, {"passive": (20.0, 40.0), "mean": (10.0,), "norm": (None,)}),
        {10.0: [(0.55, 0.55)] * 2, 20.0: [(0.6, 0.6)] * 2, 40.0: [(0.95, 0.95)] * 2},
        passive=[(0.9, 0.9)] * 2,
        mean=[(0.8, 0.8)] * 2,
        norm=[(0.7, 0.7)] * 2,
    )
    assert list(point.by_budget) == [20, 0, 10, 40]
    names = {known: cases["split"].name for known, cases in point.by_budget.items()}
    assert names == {0: "norm", 10: "mean", 20: "passive known=20", 40: "staying away"}
    assert point.worst == point.by_budget[20]
    excesses = {known: cases["split"].excess.mean for known, cases in point.by_budget.items()}
    assert excesses == pytest.approx({0: 0.2, 10: 0.25, 20: 0.3, 40: 0})
    header, (row,) = tables.budget_rows([point])
    assert header[2:] == ["0 labels", "10 labels", "20 labels", "40 labels"]
    assert "norm" in row[2]
    assert "staying away" in row[5]


def test_what_knows_more_than_an_attacker_can_sets_no_budget_and_has_no_excess(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(store, "attack_summary", lambda workdir: {"mean": {"oracle": True}})
    known = {"mean": (90.0,), "passive": (20.0,)}
    point = point_of(tmp_path, known, {}, mean=[(0.9, 0.9)], passive=[(0.6, 0.6)])
    assert list(point.by_budget) == [20]
    assert point.figures["mean", "split"]["excess"].count == 0
