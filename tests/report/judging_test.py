"""What may be said of a strength: choosing, limits and verdicts, on figures written by hand and drawn."""

import itertools
import math

import numpy as np
import pytest
from scipy import special

from tests.reference import judging as twin
from tests.sweeps import candidates_of
from vfljax.report import candidates as strongest_module
from vfljax.report import choosing, intervals, judging, spread
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


def of(leaks, away=AWAY, rows=ROWS):
    return candidates_of(names(leaks), leaks, away, rows)


def judged(leaks, undefended, away=AWAY, rows=ROWS):
    """The strongest attack on a configuration, and how it compares with undefended."""
    return compared(of(leaks, away, rows), of(undefended, away, rows))


def compared(candidates, undefended):
    worst, plain = map(strongest_module.strongest_of, (candidates, undefended))
    (found,) = judging.judge([worst], plain)
    return found


def points(*configurations):
    """Leaks [points, candidates, seeds] as a sample."""
    return intervals.sample(np.stack(configurations), ROWS)


def change_limits(ours, others):
    """The limits of d at each point."""
    upper = intervals.most_changed(ours, others).max(-1)
    return -intervals.most_changed(others, ours).max(-1), upper


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
    # many cannot be told apart
    certain = np.where(np.isnan(leaks), leaks, np.minimum(leaks + 0.35, 1))
    near = undefended.copy()
    near[0] = np.minimum(near[0] + 0.2, 1)  # one attack alone is near 1
    away = drawn(1, seeds, seed=2)[0]
    folds = choosing.leave_one_out(leaks)
    of_twin = twin.leave_one_out(plain(leaks))
    for score, pick, (expected, number) in zip(folds.scores, folds.picks, of_twin):
        assert pick == (choosing.NOBODY if number is None else number)
        np.testing.assert_equal(score, NAN if expected is None else expected)
    figures, others, base, read = map(points, (leaks, undefended, away[None], certain))
    leaks, undefended, away, certain = map(plain, (leaks, undefended, away, certain))
    for found, expected in (
        (intervals.worst_limits(read), twin.worst_limits(certain, ROWS)),
        (intervals.excess_limits(read, base), twin.excess_limits(certain, away, ROWS)),
        (intervals.worst_limits(figures), twin.worst_limits(leaks, ROWS)),
        (intervals.excess_limits(figures, base), twin.excess_limits(leaks, away, ROWS)),
        (change_limits(figures, others), twin.change_limits(leaks, undefended, ROWS)),
        (change_limits(figures, points(near)), twin.change_limits(leaks, plain(near), ROWS)),
        (
            intervals.most_beyond(figures, others, 0.95, 0.25, base).max(-1),
            twin.most(leaks, undefended, ROWS, 0.95, 0.25, away),
        ),
    ):
        np.testing.assert_allclose(np.ravel(found), np.ravel(expected), atol=1e-9)


@pytest.mark.parametrize("seeds", [3, 5])
def test_spreads_over_points_are_moderated_as_the_plain_twin_does(seeds):
    random = np.random.default_rng(seeds)
    shared = 0.02 * random.standard_normal(seeds)
    differences = shared + 0.03 * random.standard_normal((60, seeds))
    differences[3] *= 20  # keeps its own spread
    found = spread.pooled_means(differences[:, None], np.full((60, 1), 0.01))
    expected = twin.pooled(differences.tolist(), 0.01)
    np.testing.assert_allclose(np.stack(found, axis=-1)[:, 0], expected, rtol=1e-6)
    own = spread.means(differences, 0.01)
    assert found.freedom[3, 0] == own.freedom[3] == seeds - 1
    assert found.freedom[0, 0] > seeds - 1
    few = differences[: spread.POOLED_POINTS - 1, None]
    fewer = spread.pooled_means(few, np.full((7, 1), 0.01))
    np.testing.assert_array_equal(fewer.error[:, 0], own.error[:7])
    values = np.geomspace(1e-4, 1e4, 30)
    np.testing.assert_allclose(
        special.polygamma(1, spread._inverse_trigamma(values)), values, rtol=1e-9
    )


def test_repetitions_are_judged_as_each_alone():
    runs = [np.stack([drawn(4, 5, seed=10 * s + p) for p in range(9)]) for s in range(3)]
    away = intervals.sample(np.tile(AWAY, (3, 1, 1, 1)), ROWS)
    together = judging.evidence_on(points(*runs), away)
    for place, run in enumerate(runs):
        alone = judging.evidence_on(points(*run), intervals.sample(AWAY[None, None], ROWS))
        np.testing.assert_allclose(np.array(together.excess)[:, place], alone.excess)
        np.testing.assert_allclose(together.contrast[place], alone.contrast)
        np.testing.assert_allclose(together.change[place], alone.change)


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
def test_a_strength_keeps_the_utility_by_its_mean_and_its_limit(losses, kept):
    assert choosing.keeps_accuracy(losses) == kept


def test_a_diverged_seed_counts_as_a_guess():
    losses = choosing.accuracy_losses([0.9, NAN, 0.9], [0.9, 0.9, NAN], 0.6)
    np.testing.assert_allclose(losses, [0, 0.3, -0.3])


# verdicts


@pytest.mark.parametrize(
    ("leaks", "undefended", "verdict"),
    [
        (constant(1.0, 1.0), constant(1.0, 0.9), Verdict.LEAKS_AS_BEFORE),
        (constant(0.0, 0.0), constant(1.0, 0.9), Verdict.PROTECTS),
        (constant(0.6, 0.5), constant(1.0, 0.9), Verdict.PROTECTS),
        (constant(0.72, 0.5), constant(1.0, 0.9), Verdict.LEAKS_MUCH_LESS),
        (constant(0.95, 0.5), constant(1.0, 0.9), Verdict.LEAKS_LESS),
        (constant(1.0, 0.5), constant(0.8, 0.9), Verdict.LEAKS_AS_BEFORE),
        (constant(0.6, 0.5), constant(0.6, 0.5), Verdict.NOTHING_TO_PROTECT),
        (constant(1.0, 1.0), constant(0.6, 0.5), Verdict.NOTHING_TO_PROTECT),
        (constant(0.65, 0.5), constant(1.0, 0.9), Verdict.UNCLEAR),
        (constant(0.64, 0.5), constant(0.7, 0.5), Verdict.UNCLEAR),
        (constant(NAN, 0.6), constant(1.0, 0.9), Verdict.CANNOT_SAY),
    ],
)
def test_equal_seeds_get_the_verdict_that_their_figures_say(leaks, undefended, verdict):
    assert judged(leaks, undefended, rows=3000).verdict == verdict


@pytest.mark.parametrize(
    ("nothing", "excess", "contrast", "change", "verdict"),
    [
        (True, (-0.1, 0.30), 0.1, 0.30, Verdict.NOTHING_TO_PROTECT),
        (False, (-0.1, 0.049), -0.001, -0.001, Verdict.PROTECTS),
        (False, (-0.1, 0.049), 0.000, -0.001, Verdict.CANNOT_SAY),
        (False, (-0.1, 0.049), -0.001, 0.000, Verdict.CANNOT_SAY),
        (False, (-0.1, 0.049), 0.000, -0.021, Verdict.UNCLEAR),
        (False, (0.051, 0.30), 0.1, -0.101, Verdict.LEAKS_MUCH_LESS),
        (False, (0.051, 0.30), 0.1, -0.100, Verdict.LEAKS_LESS),
        (False, (0.051, 0.30), 0.1, -0.020, Verdict.LEAKS_AS_BEFORE),
        (False, (0.050, 0.30), 0.1, -0.200, Verdict.UNCLEAR),
        (False, (0.050, 0.30), 0.1, -0.020, Verdict.CANNOT_SAY),
    ],
)
def test_a_verdict_is_the_first_that_its_limits_allow(nothing, excess, contrast, change, verdict):
    evidence = judging.VerdictLimits(
        intervals.Limits(*np.array([(0.0, 0.0), excess]).T),
        np.array([[0.0], [contrast]]),
        np.array([[0.0], [change]]),
        spread.means(np.zeros((2, 1, 3)), 0.1),
        np.array([nothing]),
    )
    assert judging.VERDICTS[int(judging.verdict_codes(evidence)[0])] == verdict
    same = judging.verdict_codes(evidence, [True])
    assert judging.VERDICTS[int(same[0])] == Verdict.IS_UNDEFENDED


@pytest.mark.parametrize(
    ("figure", "few", "many"),
    [
        (0.62, Verdict.UNCLEAR, Verdict.PROTECTS),
        (0.97, Verdict.LEAKS_AS_BEFORE, Verdict.LEAKS_LESS),
    ],
)
def test_of_few_rows_the_same_figures_say_less(figure, few, many):
    verdicts = [judged(constant(figure), constant(1.0), rows=m).verdict for m in (20, 3000)]
    assert verdicts == [few, many]


def test_what_leaves_a_verdict_open_is_named_with_the_seeds_that_would_decide():
    leaks = np.vstack([constant(0.55), [[0.58, 0.62, 0.70, 0.60, 0.65]]])
    result = judged(leaks, constant(0.8), rows=3000)
    assert result.verdict == Verdict.UNCLEAR
    assert result.blocking.attack == "attack 1"
    assert 5 < result.blocking.seeds < 20
    assert judged(constant(0.65), constant(0.8), rows=3000).blocking == ("attack 0", 0)
    close = judged(drawn(4, 5) * 0.3 + 0.46, constant(0.9), rows=3000)
    assert close.blocking == ("attack 1", 6)
    assert judged(constant(0.6), constant(0.9), rows=3000).blocking is None
    # every excess is below .05, and the contrast to a quarter of undefended's excess is not below 0
    contrast = judged(constant(0.55, 0.63), constant(0.66), rows=3000)
    assert contrast.verdict == Verdict.UNCLEAR
    assert contrast.blocking == ("attack 1", None)


def test_choosing_adds_to_the_spread_of_the_scores_that_were_chosen_and_to_nothing_else():
    defended = np.array([[0.80, 0.90, 0.85, 0.95, 0.75]])
    # three contenders that differ, and whose scores do not spread
    certain = np.repeat(constant(0.9), 3, axis=0) + 1e-7 * np.eye(3, 5)
    found = intervals.most_beyond(points(defended), points(certain)).item()
    error = defended.std(ddof=1) / math.sqrt(5)
    expected = defended.mean() - 0.9 + special.stdtrit(4, 0.95) * error
    assert found == pytest.approx(expected, abs=1e-3)
    assert found < expected + 0.1 * error
    spread_out = np.array([[0.9, 0.86, 0.94, 0.9, 0.9], [0.94, 0.9, 0.86, 0.9, 0.9], defended[0]])
    scores = choosing.leave_one_out(spread_out).scores
    of_pairs = (defended[0] - scores).std(ddof=1) ** 2 / 5
    wider = intervals.most_beyond(points(defended), points(spread_out)).item()
    away = special.stdtrit(4, 0.95) * math.sqrt(of_pairs + scores.var(ddof=1) / 4)
    assert wider == pytest.approx((defended[0] - scores).mean() + away, abs=1e-6)


@pytest.mark.parametrize(("width", "nothing"), [(0.0195, True), (0.0205, False)])
def test_undefended_is_harmless_at_two_thirds_of_the_risk(width, nothing):
    scores = np.array([-2.0, -1.0, 0.0, 1.0, 2.0]) / np.sqrt(2.5 / 5)
    harmless = (0.63 + width * scores / special.stdtrit(4, 1 - 0.05 * 2 / 3))[None]
    assert strongest_module.strongest_of(of(harmless)).nothing_to_protect == nothing
    verdict = judged(constant(0.9), harmless).verdict
    assert verdict == (Verdict.NOTHING_TO_PROTECT if nothing else Verdict.LEAKS_AS_BEFORE)


def test_holm_rejects_as_its_stepped_down_p_values_do():
    random = np.random.default_rng(0)
    for _ in range(50):
        p = random.random(6) ** 4
        order, expected = np.argsort(p), np.zeros(6, bool)
        for step, place in enumerate(order):
            if p[place] > 0.05 / (6 - step):
                break
            expected[place] = True
        found = judging.holm(lambda level, p=p: p <= 1 - level + 1e-15, 6)
        np.testing.assert_array_equal(found, expected)


def test_fewer_than_three_seeds_have_figures_and_no_verdict():
    for seeds in (1, 2):
        result = judged(constant(0.8, 0.7, seeds=seeds), constant(0.9, seeds=seeds), AWAY[:seeds])
        assert result.verdict == Verdict.NO_VERDICT
        assert str(result.strongest.leak) == "0.800"
        assert math.isclose(result.strongest.excess.mean, 0.2)
        assert math.isclose(result.change.mean, -0.1)
    diverged = constant(0.8, 0.7)
    diverged[:, :3] = np.nan
    assert judged(diverged, constant(0.9)).verdict == Verdict.NO_VERDICT
    assert strongest_module.strongest_of(of(constant(NAN))) is None


def test_what_the_strongest_of_all_reads_more_than_that_of_some_has_limits():
    leaks = np.vstack([drawn(2, 5) - 0.2, drawn(1, 5, seed=1)])
    two, three = (strongest_module.strongest_of(of(x, AWAY - 0.3)) for x in (leaks[:2], leaks))
    more, limits = judging.beyond(three, two)
    assert limits.lower > 0.1
    assert limits.lower < more < limits.upper
    assert judging.beyond(two, two).mean == 0
    assert judging.beyond(two, two).limits.lower < 0
    short = (of(x[:, :2], AWAY[:2]) for x in (leaks, leaks[:2]))
    few = judging.beyond(*map(strongest_module.strongest_of, short))
    assert few.mean > 0
    assert math.isnan(few.limits.lower)


def test_seeds_whose_training_diverged_are_left_out():
    leaks, undefended = constant(0.6, 0.5, seeds=7), constant(1.0, seeds=7)
    leaks[:, 5:] = np.nan
    result = judged(leaks, undefended, np.full(7, 0.6))
    assert result.strongest.seeds == 5
    fewer = judged(leaks[:, :5], undefended[:, :5])
    np.testing.assert_allclose(result.change.limits, fewer.change.limits)
    assert result.verdict == fewer.verdict


def test_the_strongest_is_never_below_the_local_only_baseline():
    result = judged(constant(0.3, 0.2), constant(0.9))
    strongest = result.strongest
    assert strongest.is_local_only
    assert strongest.name == "local-only baseline"
    assert (strongest.leak.mean, strongest.excess.mean, strongest.folds) == (0.6, 0, 5)
    alone = strongest_module.strongest_of(of(constant(0.3, 0.2))).excess  # not yet compared
    assert alone.limits.upper == strongest.excess.limits.upper == 0
    assert result.verdict == Verdict.PROTECTS


def test_without_a_local_only_baseline_only_changes_are_judged():
    nobody = np.full(5, NAN)
    assert judged(constant(0.6), constant(0.9), nobody).verdict == Verdict.UNCLEAR
    assert judged(constant(1.0), constant(1.0), nobody).verdict == Verdict.CANNOT_SAY
    worst = strongest_module.strongest_of(of(constant(0.6), nobody))
    assert worst.excess.signed == "-"
    assert not worst.candidates.has_local_only
    assert worst.candidates.everyone == worst.candidates.attacks


def test_what_is_printed_is_the_highest_mean_of_an_attack_or_of_the_baseline():
    leaks = np.array([[0.9, 0.7, 0.7, 0.7], [0.75, 0.72, 0.72, 0.72]])
    worst = strongest_module.strongest_of(of(leaks, np.full(4, NAN)))
    assert (worst.name, worst.folds, worst.seeds) == ("attack 0", 3, 4)
    assert worst.fold_leak == pytest.approx((0.75 + 3 * 0.7) / 4)
    random = np.random.default_rng(0)
    for _ in range(100):
        leaks = drawn(*random.integers(1, 6, 2), missing=0.2, seed=random.integers(10**6))
        away = drawn(1, leaks.shape[1], seed=random.integers(10**6))[0]
        among = of(leaks, away)
        worst = strongest_module.strongest_of(among)
        if worst is None:
            continue
        of_name = np.nanmean(among.all_figures.leaks[among.everyone.index(worst.attack)])
        assert worst.leak.mean == max(of_name, np.nanmean(among.all_figures.leaks[-1]))
        assert worst.leak.mean == pytest.approx(np.mean(list(worst.by_seed.values())))
        assert worst.excess.mean >= 0


def test_a_shift_of_all_figures_changes_no_difference_and_no_verdict():
    leaks, undefended = drawn(4, 5) - 0.1, drawn(4, 5, seed=1)
    before, after = (judged(leaks + x, undefended + x, AWAY + x) for x in (0, 0.05))
    np.testing.assert_allclose(after.change.limits, before.change.limits)
    np.testing.assert_allclose(after.strongest.excess.limits, before.strongest.excess.limits)
    assert math.isclose(after.strongest.leak.mean, before.strongest.leak.mean + 0.05)
    assert after.verdict == before.verdict


def test_an_attack_that_reads_more_never_makes_a_limit_lower():
    leaks, undefended = drawn(4, 5) - 0.1, drawn(4, 5, seed=1) + 0.1
    away = drawn(1, 5, seed=7)
    for candidate in range(4):
        stronger = leaks.copy()
        stronger[candidate] += 0.05
        for limits in (
            lambda x: intervals.worst_limits(points(x)).upper,
            lambda x: intervals.excess_limits(points(x), points(AWAY[None])).upper,
            lambda x: change_limits(points(x), points(undefended))[1],
        ):
            assert limits(stronger) >= limits(leaks)
    few, more = (intervals.worst_limits(points(x)) for x in (leaks, np.vstack([leaks, away])))
    assert more.upper >= few.upper


def test_shapes_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="seeds differ"):
        compared(of(constant(0.8)), of(constant(0.9, seeds=3), AWAY[:3]))
    with pytest.raises(ValueError, match="2 attacks and 5 seeds for leaks"):
        candidates_of(["a", "b"], constant(0.8), AWAY, ROWS)
    with pytest.raises(ValueError, match="at least one of each"):
        intervals.sample(np.zeros((0, 5)), ROWS)
    with pytest.raises(ValueError, match="rows=0"):
        intervals.sample([[0.5] * 5], 0)
