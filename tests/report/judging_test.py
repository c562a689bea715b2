"""What may be said of a strength: choosing, limits and verdicts, on figures written by hand and drawn."""

import itertools
import math
from types import SimpleNamespace

import numpy as np
import pytest

from tests.reference import judging as twin
from vfljax.report import choosing, intervals, judging
from vfljax.report.candidates import candidates_of
from vfljax.report.intervals import LOWER, UPPER
from vfljax.report.judging import Verdict

ROWS = 300
NAN = math.nan
AWAY = np.full(5, 0.6)


def drawn(candidates, seeds, missing=0.0, seed=0):
    """Figures around .7 with a spread of .05, some of them missing."""
    random = np.random.default_rng(seed)
    figures = np.clip(0.7 + 0.05 * random.standard_normal((candidates, seeds)), 0, 1)
    return np.where(random.random(figures.shape) < missing, np.nan, figures)


def names(leaks):
    return [f"attack {k}" for k in range(len(leaks))]


def of(leaks, away=AWAY, rows=ROWS, selects=()):
    return candidates_of(names(leaks), leaks, away, rows, selects)


def judged(leaks, undefended, away=AWAY, rows=ROWS):
    """The strongest attack on a configuration, and how it compares with undefended."""
    return compared(of(leaks, away, rows), of(undefended, away, rows))


def compared(candidates, undefended):
    worst, plain = judging.strongest_of(candidates), judging.strongest_of(undefended)
    return SimpleNamespace(worst=worst, **judging.judge(worst, plain)._asdict())


def constant(*figures, seeds=5):
    """A candidate a figure, the same on every seed."""
    return np.repeat(np.array(figures)[:, None], seeds, axis=1)


def plain(values):
    """Nested lists with None for what is missing."""
    values = np.asarray(values)
    if values.ndim == 1:
        return [None if np.isnan(value) else float(value) for value in values]
    return [plain(row) for row in values]


# choosing


@pytest.mark.parametrize(
    ("seeds", "candidates", "missing"),
    itertools.product((2, 3, 5, 6, 10), (1, 2, 4, 12), (0.0, 0.3)),
)
def test_choice_and_limits_are_those_of_the_plain_twin(seeds, candidates, missing):
    leaks = drawn(candidates, seeds, missing)
    undefended = drawn(candidates + 1, seeds, missing, seed=1) + 0.1
    leaks[-1] = leaks[0]  # equal rows count once
    away = drawn(1, seeds, seed=2)[0]
    folds = choosing.leave_one_out(leaks)
    for score, pick, (expected, number) in zip(
        folds.scores, folds.picks, twin.leave_one_out(plain(leaks))
    ):
        assert pick == (choosing.NOBODY if number is None else number)
        np.testing.assert_equal(score, NAN if expected is None else expected)
    as_lists = plain(leaks), plain(undefended), plain(away)
    for limits, expected in (
        (intervals.worst_limits(leaks, ROWS), twin.worst_limits(as_lists[0], ROWS)),
        (
            intervals.excess_limits(leaks, away, ROWS),
            twin.excess_limits(as_lists[0], as_lists[2], ROWS),
        ),
        (
            intervals.change_limits(leaks, undefended, ROWS),
            twin.change_limits(as_lists[0], as_lists[1], ROWS),
        ),
    ):
        np.testing.assert_allclose(limits, expected, atol=1e-9)


def test_repetitions_are_judged_as_each_alone():
    leaks = np.stack([drawn(4, 5, seed=s) for s in range(3)])
    undefended = np.stack([drawn(3, 5, seed=s + 9) for s in range(3)])
    together = judging.evidence_on(leaks, undefended, np.tile(AWAY, (3, 1)), ROWS)
    for run in range(3):
        alone = judging.evidence_on(leaks[run], undefended[run], AWAY, ROWS)
        np.testing.assert_allclose(together.undefended_excess[run], alone.undefended_excess)
        np.testing.assert_allclose(np.array(together.change)[:, run], alone.change)
        np.testing.assert_allclose(np.array(together.excess)[:, run], alone.excess)


def test_what_a_fold_picks_does_not_depend_on_the_seed_it_is_scored_on():
    leaks = drawn(6, 5)
    before = choosing.leave_one_out(leaks)
    for seed in range(5):
        changed = leaks.copy()
        changed[:, seed] = 1 - changed[:, seed]
        after = choosing.leave_one_out(changed)
        assert after.picks[seed] == before.picks[seed]
        assert after.expected[seed] == before.expected[seed]


def test_no_fold_scores_above_the_best_candidate_of_all_seeds():
    for seed in range(20):
        leaks = drawn(5, 4, seed=seed)
        best = leaks[choosing.strongest(leaks)]
        assert np.all(choosing.leave_one_out(leaks).scores <= best + 1e-12)


def test_an_attack_that_diverged_on_a_seed_is_replaced_by_the_next_one():
    leaks = np.array([[0.9, NAN, 0.9], [0.7, 0.7, 0.7], [NAN, NAN, NAN]])
    folds = choosing.leave_one_out(leaks)
    assert list(folds.picks) == [0, 1, 0]
    assert list(folds.scores) == [0.9, 0.7, 0.9]


def test_the_strength_is_the_least_leaking_of_those_that_keep_the_accuracy():
    leaks = np.stack([constant(0.9, 0.8), constant(0.7, 0.75), constant(0.6, 0.55)])
    losses = np.array([[0.0] * 5, [0.01] * 5, [0.03] * 5])
    chosen = choosing.choose_operating_point(leaks, losses)
    assert (chosen.point, chosen.attack, chosen.folds) == (1, 1, 5)
    assert np.all(chosen.scores == 0.75)
    lost = choosing.choose_operating_point(leaks, losses + 1)
    assert (lost.point, lost.attack, lost.folds) == (choosing.NOBODY, choosing.NOBODY, 0)
    assert np.all(np.isnan(lost.scores))


def test_by_halves_strength_and_attack_are_chosen_on_the_other_rows():
    leaks = np.stack([constant(0.9, 0.8, seeds=2), constant(0.7, 0.75, seeds=2)])
    selects = np.stack([constant(0.5, 0.6, seeds=2), constant(0.9, 0.8, seeds=2)])
    chosen = choosing.operating_point_by_halves(leaks, selects, np.zeros((2, 2)))
    assert (chosen.point, chosen.attack, chosen.folds) == (0, 1, 0)
    assert np.all(chosen.scores == 0.8)
    only_second = choosing.operating_point_by_halves(leaks, selects, [[0.1, 0.1], [0, 0]])
    assert (only_second.point, only_second.attack) == (1, 0)
    none = choosing.operating_point_by_halves(leaks, selects, np.ones((2, 2)))
    assert (none.point, none.attack) == (choosing.NOBODY, choosing.NOBODY)
    assert np.all(np.isnan(none.scores))
    assert choosing.enough_seeds(np.zeros((2, 4, 3)))
    assert not choosing.enough_seeds([[0.5, NAN, 0.5], [0.5, NAN, NAN]])


def test_one_strength_is_chosen_as_its_attack_is():
    leaks = drawn(6, 5, missing=0.2)
    chosen = choosing.choose_operating_point(leaks[None], np.zeros((1, 5)))
    folds = choosing.leave_one_out(leaks)
    np.testing.assert_equal(chosen.scores, folds.scores)
    np.testing.assert_equal(chosen.attacks, folds.picks)


def test_a_strength_is_chosen_on_the_other_seeds_accuracy_too():
    leaks = np.stack([constant(0.9, seeds=4), constant(0.6, seeds=4)])
    losses = np.array([[0.0] * 4, [0.0, 0.0, 0.0, 0.2]])  # without seed 3 nothing is lost
    assert list(choosing.choose_operating_point(leaks, losses).points) == [0, 0, 0, 1]


@pytest.mark.parametrize(
    ("losses", "kept"),
    [
        ([0.02] * 5, True),
        ([0.021] * 5, False),
        ([-0.1] * 5, True),
        ([0.0, 0.0, 0.055], False),  # a mean of .018, but a limit of .053
        ([0.02], True),
        ([0.03], False),
        ([], False),
    ],
)
def test_a_strength_keeps_the_accuracy_by_its_mean_and_its_limit(losses, kept):
    assert choosing.keeps_accuracy(losses) == kept


def test_a_diverged_seed_counts_as_the_majority_guess():
    losses = choosing.accuracy_losses([0.9, NAN, 0.9], [0.9, 0.9, NAN], 0.6)
    np.testing.assert_allclose(losses, [0, 0.3, -0.3])


# limits


@pytest.mark.parametrize("rows", [1, 20, 5000])
@pytest.mark.parametrize("figure", [0.0, 0.3, 0.5, 1.0])
def test_equal_seeds_have_the_limits_of_their_rows(figure, rows):
    low, high = (intervals.figure_limit([figure] * 5, rows, side) for side in (LOWER, UPPER))
    assert 0 <= low <= figure <= high <= 1
    assert low < high
    mirrored = intervals.figure_limit([1 - figure] * 5, rows, LOWER)
    assert math.isclose(1 - high, mirrored, abs_tol=1e-12)
    assert high == 1 or figure < 1
    more = [intervals.figure_limit([figure] * 5, 4 * rows, side) for side in (LOWER, UPPER)]
    assert more[1] - more[0] < high - low


def test_many_rows_and_a_small_spread_give_the_t_interval():
    figures = np.array([0.5, 0.501, 0.502, 0.499, 0.498])
    half = 2.1318 * figures.std(ddof=1) / math.sqrt(5)
    for side in (LOWER, UPPER):
        limit = intervals.figure_limit(figures, 10**8, side)
        assert math.isclose(limit, 0.5 + side * half, abs_tol=1e-6)
        limit = intervals.difference_limit(figures - 0.5, 10**9, side)
        assert math.isclose(limit, side * half, abs_tol=1e-6)


def test_limits_hold_the_figure_and_grow_with_the_level():
    for seed in range(10):
        figures = drawn(1, 5, seed=seed)[0]
        sides = [
            [intervals.figure_limit(figures, ROWS, side, level) for level in (0.9, 0.95, 0.99)]
            for side in (LOWER, UPPER)
        ]
        assert sides[0] == sorted(sides[0], reverse=True)
        assert sides[1] == sorted(sides[1])
        assert sides[0][0] < figures.mean() < sides[1][0]


def test_missing_seeds_are_as_if_they_were_not_there():
    some = drawn(4, 5)
    holes = np.insert(some, [0, 2, 5], np.nan, axis=1)
    np.testing.assert_equal(intervals.worst_limits(holes, ROWS), intervals.worst_limits(some, ROWS))


def test_a_hopeless_candidate_changes_no_lower_limit_and_a_repeated_one_nothing():
    leaks = drawn(2, 6)
    expected = intervals.worst_limits(leaks, ROWS)
    hopeless = np.vstack([leaks, constant(0.1, 0.12, seeds=6)])
    assert intervals.worst_limits(hopeless, ROWS) == expected
    repeated = np.vstack([leaks, leaks, leaks])
    assert intervals.worst_limits(repeated, ROWS) == expected


def test_an_attack_without_three_figures_rules_nothing_out():
    leaks = np.vstack([constant(0.6), [[NAN, NAN, NAN, 0.5, 0.5]]])
    assert intervals.worst_limits(leaks, ROWS).upper == 1
    assert intervals.excess_limits(leaks, AWAY, ROWS).upper == 1
    result = judged(leaks, constant(0.9))
    assert result.verdict == Verdict.CANNOT_SAY
    assert result.missing == ("attack 1",)


# verdicts


@pytest.mark.parametrize(
    ("leaks", "undefended", "verdict"),
    [
        (constant(1.0, 1.0), constant(1.0, 0.9), Verdict.DOES_NOTHING),
        (constant(0.0, 0.0), constant(1.0, 0.9), Verdict.PROTECTS),
        (constant(0.6, 0.5), constant(1.0, 0.9), Verdict.PROTECTS),
        (constant(0.8, 0.5), constant(1.0, 0.9), Verdict.REDUCES),
        (constant(1.0, 0.5), constant(0.8, 0.9), Verdict.CANNOT_SAY),
        (constant(0.6, 0.5), constant(0.6, 0.5), Verdict.NOTHING_TO_PROTECT),
        (constant(1.0, 1.0), constant(0.6, 0.5), Verdict.NOTHING_TO_PROTECT),
        (constant(0.98, 0.5), constant(1.0, 0.9), Verdict.REDUCES),
        (constant(NAN, 0.6), constant(1.0, 0.9), Verdict.CANNOT_SAY),
    ],
)
def test_equal_seeds_get_the_verdict_that_their_figures_say(leaks, undefended, verdict):
    assert judged(leaks, undefended).verdict == verdict


@pytest.mark.parametrize(
    ("undefended_excess", "excess", "change", "verdict"),
    [
        (0.049, 0.30, (-0.30, 0.30), Verdict.NOTHING_TO_PROTECT),
        (0.050, 0.049, (-0.30, -0.001), Verdict.PROTECTS),
        (0.300, 0.050, (-0.30, -0.001), Verdict.REDUCES),
        (0.300, 0.300, (-0.01, -0.001), Verdict.REDUCES),
        (0.050, 0.049, (-0.30, 0.000), Verdict.CANNOT_SAY),
        (0.300, 0.300, (-0.019, 0.019), Verdict.DOES_NOTHING),
        (0.050, 0.049, (-0.019, 0.019), Verdict.DOES_NOTHING),
        (0.300, 0.300, (-0.020, 0.019), Verdict.CANNOT_SAY),
        (0.300, 0.300, (-0.019, 0.020), Verdict.CANNOT_SAY),
        (1.0, 1.0, (-1.0, 1.0), Verdict.CANNOT_SAY),
    ],
)
def test_a_verdict_is_the_first_that_its_limits_allow(undefended_excess, excess, change, verdict):
    evidence = judging.VerdictLimits(
        undefended_excess, intervals.Limits(-1, excess), intervals.Limits(*change)
    )
    assert judging.VERDICTS[int(judging.verdict_codes(evidence))] == verdict


@pytest.mark.parametrize(
    ("figure", "few", "many"),
    [
        (0.62, Verdict.REDUCES, Verdict.PROTECTS),
        (0.98, Verdict.CANNOT_SAY, Verdict.REDUCES),
        (1.0, Verdict.CANNOT_SAY, Verdict.DOES_NOTHING),
    ],
)
def test_of_few_rows_the_same_figures_say_less(figure, few, many):
    verdicts = [judged(constant(figure), constant(1.0), rows=m).verdict for m in (20, 1000)]
    assert verdicts == [few, many]


def test_fewer_than_three_seeds_have_figures_and_no_verdict():
    for seeds in (1, 2):
        result = judged(constant(0.8, 0.7, seeds=seeds), constant(0.9, seeds=seeds), AWAY[:seeds])
        assert result.verdict == Verdict.NO_VERDICT
        assert str(result.worst.leak) == "0.800"
        assert math.isclose(result.worst.excess.mean, 0.2)
        assert math.isclose(result.change.mean, -0.1)
    diverged = constant(0.8, 0.7)
    diverged[:, :3] = np.nan
    assert judged(diverged, constant(0.9)).verdict == Verdict.NO_VERDICT
    assert judging.strongest_of(of(constant(NAN))) is None


def test_with_fewer_than_three_seeds_the_strongest_is_chosen_on_other_rows():
    leaks, selects = constant(0.8, 0.7, seeds=2), constant(0.7, 0.9, seeds=2)
    worst = judging.strongest_of(of(leaks, AWAY[:2], selects=selects))
    assert (worst.name, worst.folds, worst.by_seed) == ("attack 1", 0, {0: 0.7, 1: 0.7})
    with_folds = of(constant(0.8, 0.7), AWAY, selects=constant(0.7, 0.9))
    assert judging.strongest_of(with_folds).name == "attack 0"


def test_what_the_strongest_of_all_reads_more_than_that_of_some_has_limits():
    leaks = np.vstack([drawn(2, 5) - 0.2, drawn(1, 5, seed=1)])
    two, three = (judging.strongest_of(of(x, AWAY - 0.3)) for x in (leaks[:2], leaks))
    more, limits = judging.beyond(three, two)
    assert limits.lower > 0.1
    assert limits.lower < more < limits.upper
    assert judging.beyond(two, two).mean == 0
    assert judging.beyond(two, two).limits.lower < 0
    few = judging.beyond(
        *(judging.strongest_of(of(x[:, :2], AWAY[:2])) for x in (leaks, leaks[:2]))
    )
    assert few.mean > 0
    assert math.isnan(few.limits.lower)


def test_seeds_whose_training_diverged_are_left_out():
    leaks, undefended = constant(0.6, 0.5, seeds=7), constant(1.0, seeds=7)
    leaks[:, 5:] = np.nan
    result = judged(leaks, undefended, np.full(7, 0.6))
    assert result.worst.seeds == 5
    fewer = judged(leaks[:, :5], undefended[:, :5])
    assert (result.change, result.verdict) == (fewer.change, fewer.verdict)


def test_the_strongest_is_never_below_the_local_only_baseline():
    result = judged(constant(0.3, 0.2), constant(0.9))
    assert result.worst.is_local_only
    assert result.worst.name == "local-only baseline"
    assert (result.worst.leak.mean, result.worst.excess.mean, result.worst.folds) == (0.6, 0, 5)
    assert result.verdict == Verdict.PROTECTS


def test_without_a_local_only_baseline_only_changes_are_judged():
    nobody = np.full(5, NAN)
    assert judged(constant(0.6), constant(0.9), nobody).verdict == Verdict.REDUCES
    assert judged(constant(1.0), constant(1.0), nobody).verdict == Verdict.DOES_NOTHING
    worst = judging.strongest_of(of(constant(0.6), nobody))
    assert worst.excess.signed == "-"
    assert not worst.candidates.has_local_only
    assert worst.candidates.everyone == worst.candidates.attacks


def test_the_name_shown_is_chosen_on_all_seeds_with_its_folds():
    leaks = np.array([[0.9, 0.7, 0.7, 0.7], [0.75, 0.72, 0.72, 0.72]])
    worst = judging.strongest_of(of(leaks, np.full(4, NAN)))
    assert (worst.name, worst.folds, worst.seeds) == ("attack 0", 3, 4)
    assert list(worst.scores) == [0.75, 0.7, 0.7, 0.7]


def test_order_of_candidates_and_of_seeds_does_not_matter():
    leaks, undefended, away = drawn(7, 5), drawn(5, 5, seed=1) + 0.2, drawn(1, 5, seed=2)[0] - 0.1
    expected = judged(leaks, undefended, away)
    candidates, seeds = np.random.default_rng(3).permutation(7), [3, 1, 4, 0, 2]
    shuffled = [names(leaks)[k] for k in candidates]
    result = compared(
        candidates_of(shuffled, leaks[candidates][:, seeds], away[seeds], ROWS),
        of(undefended[::-1, seeds], away[seeds]),
    )
    np.testing.assert_allclose(result.worst.scores, expected.worst.scores[seeds])
    np.testing.assert_allclose(result.worst.leak.limits, expected.worst.leak.limits)
    np.testing.assert_allclose(result.worst.excess.limits, expected.worst.excess.limits)
    np.testing.assert_allclose(result.change.limits, expected.change.limits)
    assert result.worst.name == expected.worst.name
    assert result.worst.folds == expected.worst.folds
    assert result.verdict == expected.verdict


def test_a_shift_of_all_figures_changes_no_difference_and_no_verdict():
    leaks, undefended = drawn(4, 5) - 0.1, drawn(4, 5, seed=1)
    before, after = (judged(leaks + x, undefended + x, AWAY + x) for x in (0, 0.05))
    np.testing.assert_allclose(after.change.limits, before.change.limits)
    np.testing.assert_allclose(after.worst.excess.limits, before.worst.excess.limits)
    assert math.isclose(after.worst.leak.mean, before.worst.leak.mean + 0.05)
    assert after.verdict == before.verdict


def test_an_attack_that_reads_more_never_makes_a_limit_lower():
    leaks, undefended = drawn(4, 5) - 0.1, drawn(4, 5, seed=1) + 0.1
    for candidate in range(4):
        stronger = leaks.copy()
        stronger[candidate] += 0.05
        for limits in (
            lambda x: intervals.worst_limits(x, ROWS).upper,
            lambda x: intervals.excess_limits(x, AWAY, ROWS).upper,
            lambda x: intervals.change_limits(x, undefended, ROWS).upper,
        ):
            assert limits(stronger) >= limits(leaks)
    more = np.vstack([leaks, drawn(1, 5, seed=7)])
    assert intervals.worst_limits(more, ROWS).upper >= intervals.worst_limits(leaks, ROWS).upper


def test_changing_places_changes_the_sign_of_the_change():
    leaks, undefended = drawn(4, 5), drawn(4, 5, seed=1)
    one = intervals.change_limits(leaks, undefended, ROWS)
    other = intervals.change_limits(undefended, leaks, ROWS)
    assert (one.lower, one.upper) == (-other.upper, -other.lower)


def test_shapes_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="seeds differ"):
        compared(of(constant(0.8)), of(constant(0.9, seeds=3), AWAY[:3]))
    with pytest.raises(ValueError, match="2 attacks and 5 seeds for leaks"):
        candidates_of(["a", "b"], constant(0.8), AWAY, ROWS)
    with pytest.raises(ValueError, match="at least one of each"):
        intervals.worst_limits(np.zeros((0, 5)), ROWS)
    with pytest.raises(ValueError, match="rows=0"):
        intervals.figure_limit([0.5] * 5, 0, LOWER)
