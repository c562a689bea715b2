"""Assessments: strongest attacks, verdicts, and chosen operating points."""

import math

import pyarrow as pa
import pytest

from tests.sweeps import REFERENCE, assessed, assessment, columns, identity
from vfljax import store
from vfljax.report import tables
from vfljax.report.assessment import assess
from vfljax.report.configurations import NUMBERS, undefended
from vfljax.report.judging import Verdict
from vfljax.report.stored_rows import read
from vfljax.sweep.records import Goal


def test_the_strongest_attack_is_scored_on_all_rows_whose_labels_are_unknown(tiny_sweep):
    stored = store.load(tiny_sweep)
    attacks = stored.attacks.to_pylist()
    rows = {r["trial"]: r for r in stored.results.to_pylist()}
    for one in assess(read(stored)).assessments:
        worst, number = one.strongest, one.configuration.number
        if worst.is_local_only:
            learners = stored.local_only.to_pylist()
            outcomes = [r for r in learners if f"({store.learner_of(r)})" in worst.name]
            assert worst.by_seed == pytest.approx({r["seed"]: r["leak_crossed"] for r in outcomes})
            continue
        key = worst.attack.identity
        outcomes = [
            a
            for a in attacks
            if rows[a["trial"]]["configuration"] == number
            and (a["label"], a["federation"]) == (key.label, key.federation)
        ]
        assert worst.by_seed == pytest.approx({a["seed"]: a["leak_crossed"] for a in outcomes})


def worst_of(workdir, **leaks):
    """The strongest attack of a sweep of one configuration, None without a candidate."""
    return one_of(workdir, **leaks).strongest


def one_of(workdir, known=None, alone=None, parties=None, **leaks):
    """The assessment of a sweep of one configuration and federation.

    ``leaks`` has a pair for every seed: an attack's leak on the half of the rows that attacks are
    chosen on, and on the half that they are scored on. ``known`` says how many labels each attack's
    points know; of several, all have the same leaks. ``alone``: the same pairs of the local-only baseline,
    by the number of known labels and by attackers. ``parties`` are each attack's attackers."""
    results, attacks = [], []
    for seed in range(len(next(iter(leaks.values())))):
        common = {"trial": seed, "seed": seed, "federation": "split"}
        arm = {"configuration": 0, "method": "undefended", "defenses": ""}
        arm |= dict.fromkeys(NUMBERS, 0.0)
        figures = {"status": "ok", "test_accuracy": 0.9, "validation_accuracy": 0.9}
        results.append({**common, **arm, **figures})
        for attack, by_seed in leaks.items():
            select, report = by_seed[seed]
            for number, count in enumerate((known or {}).get(attack, (None,))):
                attackers = (parties or {}).get(attack, (0,))
                about = columns(attack, known=int(count or 0), attackers=attackers)
                row = {
                    **common,
                    "attack_configuration": number,
                    "variant": attack,
                    "attack.known": count,
                }
                attacks.append({**row, **about, **scored(select, report)})
    away = [
        {**columns("logistic", known=count, attackers=who), "seed": seed, **scored(*pair)}
        for (count, who), pairs in (alone or {}).items()
        for seed, pair in enumerate(pairs)
    ]
    results, attacks, away = map(pa.Table.from_pylist, (results, attacks, away))
    header = {"data": {"balance": [1, 1], "train": 4000}}
    (only,) = assess(
        read(store.StoredSweep(workdir, header, results, attacks, (), away))
    ).assessments
    return only


def scored(select, report):
    figures = {"success": 0.5, "leak_null": 0.55, "leak": (select + report) / 2}
    return {**figures, "leak_select": select, "leak_report": report}


def test_the_strongest_attack_is_that_of_the_highest_mean_whatever_the_folds_choose(tmp_path):
    passive = [(0.1, 0.9), (0.1, 0.7), (0.1, 0.7)]
    norm = [(0.9, 0.75), (0.9, 0.72), (0.9, 0.72)]
    worst = worst_of(tmp_path, passive=passive, norm=norm)
    assert (worst.name, worst.folds, worst.seeds) == ("passive", 2, 3)
    assert worst.by_seed == {0: 0.9, 1: 0.7, 2: 0.7}
    assert (worst.leak.mean, worst.fold_leak) == pytest.approx((2.3 / 3, 2.15 / 3))
    assert worst.leak.limits.lower < worst.leak.mean < worst.leak.limits.upper
    assert worst.excess.mean == pytest.approx(2.3 / 3 - 0.5)  # without labels: over chance


def test_an_attack_is_a_candidate_unless_it_diverged_on_every_seed(tmp_path):
    diverged = (math.nan, math.nan)
    worst = worst_of(tmp_path, norm=[(0.7, 0.7)] * 2, passive=[diverged, (0.9, 0.8)])
    assert worst.name == "passive"
    assert (worst.leak.mean, worst.by_seed) == (0.8, {1: 0.8})  # of the seed that has one
    assert worst_of(tmp_path, passive=[diverged] * 2) is None


def test_oracle_attacks_stay_out_of_the_worst_case(tiny_sweep, monkeypatch):
    described = {store.variant_of(identity("passive")): {"status": "ok", "oracle": True}}
    monkeypatch.setattr(store, "attack_summary", lambda workdir: described)
    found = assess(read(store.load(tiny_sweep))).assessments
    assert all(a.strongest is None for a in found if a.federation == "split")


def test_the_local_only_baseline_is_a_candidate_like_any_other_with_as_many_labels(tmp_path):
    passive, baseline = [(0.7, 0.5), (0.6, 0.6)], [(0.8, 0.6), (0.7, 0.7)]
    known = {"passive": (20.0,)}
    worst = one_of(tmp_path, known, {(20, (0,)): baseline}, passive=passive).strongest
    assert worst.is_local_only
    assert worst.by_seed == {0: 0.6, 1: 0.7}
    assert (worst.excess.mean, worst.attack.null) == (0, 0.55)
    with_other_labels = one_of(tmp_path, known, {(40, (0,)): baseline}, passive=passive).strongest
    assert with_other_labels.name == "passive"
    assert math.isnan(with_other_labels.excess.mean)  # it was not scored with 20


def test_the_baseline_counts_on_the_seeds_that_were_attacked_and_without_attacks_on_none(tmp_path):
    baseline = [(0.95, 0.6), (0.7, 0.7), (0.7, 0.7)]
    worst = one_of(
        tmp_path, {"norm": (20.0,)}, {(20, (0,)): baseline}, norm=[(0.6, 0.6)] * 2
    ).strongest
    assert worst.by_seed == {0: 0.6, 1: 0.7}
    diverged = [(math.nan, math.nan)] * 2
    assert (
        one_of(tmp_path, {"norm": (20.0,)}, {(20, (0,)): baseline}, norm=diverged).strongest is None
    )


def test_the_excess_is_what_an_attack_leaks_beyond_the_baseline_seed_by_seed(tmp_path):
    one = one_of(
        *(tmp_path, {"passive": (20.0,)}, {(20, (0,)): [(0.5, 0.6), (0.5, 0.7)]}),
        passive=[(0.8, 0.8), (0.8, 0.9)],
        norm=[(0.6, 0.7), (0.7, 0.7)],
    )
    excess = one.strongest.excess
    assert excess.mean == pytest.approx(0.2)
    assert str(excess) == "0.200"  # two seeds have no limits
    # with as many labels as the attack knows: norm knows none, and the baseline is at chance then
    figures = {key.label: x for key, x in one.configuration.attacks.items()}
    assert figures["passive"]["excess"].mean == pytest.approx(0.825 - 0.575)
    assert figures["norm"]["excess"].mean == pytest.approx(0.675 - 0.5)


def test_a_strongest_attack_belongs_to_a_number_of_known_labels_and_the_first_point_s_leads(
    tmp_path,
):
    one = one_of(
        *(tmp_path, {"passive": (20.0, 40.0), "mean": (10.0,), "norm": (None,)}),
        {
            (10, (0,)): [(0.55, 0.55)] * 2,
            (20, (0,)): [(0.6, 0.6)] * 2,
            (40, (0,)): [(0.95, 0.95)] * 2,
        },
        passive=[(0.9, 0.9)] * 2,
        mean=[(0.8, 0.8)] * 2,
        norm=[(0.7, 0.7)] * 2,
    )
    assert list(one.by_knowledge) == [20, 0, 10, 40]
    names = {known: strongest.name for known, strongest in one.by_knowledge.items()}
    assert names == {0: "norm", 10: "mean", 20: "passive known=20", 40: "local-only baseline"}
    assert one.strongest is one.by_knowledge[20]
    excesses = {known: strongest.excess.mean for known, strongest in one.by_knowledge.items()}
    assert excesses == pytest.approx({0: 0.2, 10: 0.25, 20: 0.3, 40: 0})
    header, (row,) = tables.knowledge_rows(assessed(one))
    assert header[2:] == ["0 labels", "10 labels", "20 labels", "40 labels"]
    assert "norm" in row[2]
    assert "local-only baseline" in row[5]


def test_what_knows_more_than_an_attacker_can_sets_no_knowledge_and_has_no_excess(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(store, "attack_summary", lambda workdir: {"mean": {"oracle": True}})
    known = {"mean": (90.0,), "passive": (20.0,)}
    one = one_of(tmp_path, known, {}, mean=[(0.9, 0.9)], passive=[(0.6, 0.6)])
    assert list(one.by_knowledge) == [20]
    figures = {key.label: x for key, x in one.configuration.attacks.items()}
    assert figures["mean"]["excess"].count == 0


def test_with_several_parties_the_local_only_baseline_is_the_best_of_those_who_attack(tmp_path):
    known = {"norm": (20.0,), "mean": (20.0,)}
    alone = {(20, (0,)): [(0.6, 0.6), (0.7, 0.7)], (20, (1,)): [(0.9, 0.9), (0.9, math.nan)]}
    leaks = {"norm": [(0.51, 0.51)] * 2, "mean": [(0.52, 0.52)] * 2}

    def local_only(parties, alone=alone, known=known):
        one = one_of(tmp_path, known, alone, parties, **leaks)
        return one.strongest.candidates.local_only.leaks[0].tolist()

    both = local_only({"mean": (1,)})
    assert both[0] == 0.9
    assert math.isnan(both[1])
    assert local_only({}) == [0.6, 0.7]
    assert all(map(math.isnan, local_only({}, {})))
    assert local_only({}, known={}) == [0.5, 0.5]  # without labels it is at chance


def test_every_defended_configuration_and_federation_has_a_verdict(tiny_sweep):
    found = assess(read(store.load(tiny_sweep)))
    defended = [c.label for c in found.configurations if c.defended]
    judged = [a for a in found.assessments if a.verdict is not None]
    assert sorted(a.label for a in judged) == sorted(2 * defended)
    assert {a.verdict for a in judged} == {Verdict.NO_VERDICT}  # it has two seeds


def chosen(found, majority=0.1, max_cost=0.02):
    """The chosen operating points of the methods, None of a method without one."""
    reference = REFERENCE._replace(majority=majority, goal=Goal(max_cost=max_cost))
    compared = assessed(*found, reference=reference)
    return {a.method: a if a.chosen else None for a in compared.methods}


NOISE = {"noise.scale": 1.0}
MORE = {"noise.scale": 2.0}


def test_the_operating_point_is_chosen_on_validation_accuracy_not_on_test():
    one = chosen(
        [
            assessment("undefended", 0.9, 0.8),
            assessment("noise", 0.95, 0.3, MORE, validation=0.5),
            assessment("noise", 0.9, 0.6, {"noise.scale": 3.0}, validation=0.89),  # leaks the same
            assessment("noise", 0.5, 0.6, NOISE, validation=0.9),
        ]
    )["noise"]
    assert one.configuration.knobs == NOISE
    assert math.isclose(one.change.mean, -0.2)


def test_an_operating_point_may_cost_two_points_and_no_more():
    weak = assessment("noise", 0.9, 0.6, NOISE, validation=0.88)
    strong = assessment("noise", 0.9, 0.3, MORE, validation=0.879)
    one = chosen([assessment("undefended", 0.9, 0.8), weak, strong])["noise"]
    assert one.configuration is weak.configuration


def test_of_operating_points_that_all_cost_too_much_the_nearest_to_the_goal_is_shown():
    far, near = (assessment("noise", x, 0.6, {"noise.scale": 1 - x}) for x in (0.5, 0.8))
    shown = assessed(assessment("undefended", 0.9, 0.8), far, near).methods[-1]
    assert (shown.configuration, shown.chosen) == (near.configuration, False)


def test_a_configuration_that_diverged_on_a_seed_guesses_the_majority_there():
    accuracies = {"split": {0: 0.9, 1: math.nan, 2: 0.9}}
    lost = assessment("noise", 0.9, 0.3, MORE, test=accuracies)
    lost.configuration.validation["split"][1] = math.nan
    found = [assessment("undefended", 0.9, 0.8), lost]
    assert chosen(found)["noise"] is None
    one = chosen(found, majority=0.9)["noise"]
    assert one.configuration is lost.configuration
    assert one.cost.mean == pytest.approx(0)


def test_a_configuration_with_fewer_attacks_is_compared_by_those_it_has():
    found = [
        assessment("undefended", 0.9, [[0.9] * 3]),
        assessment("noise", 0.9, [[0.6] * 3, [0.8] * 3], NOISE),
        assessment("noise", 0.9, [[0.7] * 3], MORE),
    ]
    assert chosen(found)["noise"].configuration.knobs == MORE


def test_methods_are_compared_with_the_one_without_defenses_whatever_it_is_called():
    """An empty chain is undefended, in whichever place; a name is not."""
    found = [
        assessment("undefended", 0.7, 0.3, NOISE),
        assessment("vanilla", 0.9, 0.8),
        assessment("noise", 0.95, 0.5, {"noise.scale": 0.1}),
    ]
    every = [a.configuration for a in found]
    assert [c.defended for c in every] == [True, False, True]
    assert undefended(every) is every[1]
    methods = chosen(found)
    assert methods["undefended"] is None  # it costs more than the tolerance
    shown = methods["noise"]
    assert math.isclose(shown.change.mean, -0.3)
    assert math.isclose(shown.cost.mean, 0.05)


@pytest.mark.parametrize(
    ("test", "validation", "verdict"),
    [
        (0.9, 0.9, Verdict.IS_UNDEFENDED),
        (0.7, 0.9, Verdict.LEAKS_AS_BEFORE),
        (0.9, 0.7, Verdict.LEAKS_AS_BEFORE),
    ],
)
def test_with_equal_leaks_but_another_utility_a_configuration_is_not_undefended(
    test, validation, verdict
):
    found = [
        assessment("undefended", 0.9, 1.0),
        assessment("noise", test, 1.0, NOISE, validation=validation),
    ]
    assert assessed(*found).assessments[1].verdict is verdict


@pytest.mark.parametrize(("max_cost", "kept"), [(0.0, False), (0.09, False), (0.1, True)])
def test_what_an_operating_point_may_cost_is_given(max_cost, kept):
    found = [assessment("undefended", 0.9, 0.8), assessment("noise", 0.8, 0.3, NOISE)]
    assert (chosen(found, max_cost=max_cost)["noise"] is not None) == kept
