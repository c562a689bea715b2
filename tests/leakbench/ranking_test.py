"""Entries whose leaks are not shown to differ share a rank, and the mean rank says which boards it lacks."""

import msgspec
import pytest

from analysis.leakbench.boards import BOARDS, GAINS
from analysis.leakbench.entry_files import NOT_KEPT, Break, Entry, Reading, Result, Score
from analysis.leakbench.ranking import leaks_more, overall, rankings
from tests.leakbench.entry_files_test import entry


def reading(leak, *, limits=None, spread=()):
    by_seed = tuple(leak + away for away in spread)
    return Reading(
        leak=leak, limits=limits, attack="norm", variant="norm", by_seed=by_seed, rows=1000
    )


WAVE = (-0.04, -0.02, 0.0, 0.02, 0.04)


@pytest.mark.parametrize(
    ("first", "second", "more"),
    [
        # limits overlap, and every seed shows the difference
        (reading(0.7, spread=WAVE), reading(0.72, spread=WAVE), True),
        # the same means, and the seeds do not agree
        (reading(0.7, spread=WAVE), reading(0.72, spread=WAVE[::-1]), False),
        # equal on every seed but for less than a row
        (reading(0.7, spread=WAVE), reading(0.7002, spread=WAVE), False),
        (reading(0.7, limits=(0.6, 0.75)), reading(0.8, limits=(0.74, 0.9)), False),
        (reading(0.7, limits=(0.6, 0.73)), reading(0.8, limits=(0.74, 0.9)), True),
        (reading(0.7, limits=(0.6, 0.73)), reading(0.8), False),
    ],
)
def test_a_leak_is_larger_if_the_seeds_show_it(first, second, more):
    assert leaks_more(first, second) == more


def of(name, first, outcome="scored", method=True):
    """An entry whose first board has this reading, and whose other boards were not trained."""
    whole = entry(name, 0.5)
    scores = whole.results["digits"].scores
    if outcome == "scored":
        score = msgspec.structs.replace(scores[0], reading=first)
    else:
        score = Score(BOARDS[0], GAINS[0], outcome)
    result = msgspec.structs.replace(whole.results["digits"], scores=(score, *scores[1:]))
    method = whole.method if method else {}
    return msgspec.structs.replace(whole, method=method, results={"digits": result})


EVERY = [
    of("undefended", reading(1.0, spread=[0.0] * 5), method=False),
    of("worst", reading(0.9, spread=WAVE)),
    of("near", reading(0.71, spread=WAVE[::-1])),
    of("best", reading(0.7, spread=WAVE)),
    of("old", reading(0.8)),  # neither limits nor leaks by seed
    of("useless", None, NOT_KEPT),
    of("refused", None, "for two classes alone"),
    Entry(name="elsewhere", method={"noise": {}}),
]


def test_ties_share_a_rank_and_a_group_begins_behind_all_before_it():
    assert rankings(EVERY)[0].ranks == {"best": 1, "near": 1, "worst": 3}


def test_a_break_that_is_uneven_over_seeds_does_not_better_a_rank():
    undefended, best, second = EVERY[0], EVERY[3], of("second", reading(0.72, spread=WAVE))
    result = second.results["digits"]
    uneven = Break(
        **{"data": "digits", "board": BOARDS[0], "gain": GAINS[0], "plugins": result.plugins},
        knobs=result.scores[0].knobs,
        reading=reading(0.73, spread=(-0.16, 0.04, 0.04, 0.04, 0.04)),
        **{"sha256": "", "by": "Eve", "how": "so", "date": "d"},
    )
    broken = msgspec.structs.replace(second, broken=(uneven,))
    before, after = (rankings([undefended, best, each])[0] for each in (second, broken))
    assert [board.lines[-1][0].leak for board in (before, after)] == [0.72, 0.73]
    assert before.ranks == after.ranks == {"best": 1, "second": 2}


def test_the_mean_rank_says_what_is_missing():
    found = {each.entry.name: each for each in overall(rankings(EVERY))}
    assert found["best"].mean_rank == 1
    assert (found["useless"].mean_rank, found["useless"].ranked, found["useless"].last) == (4, 0, 1)
    assert not {"undefended", "refused", "elsewhere"} & {*found}
    # a second board of another data set, which only one entry was run on
    best = EVERY[3]
    both = msgspec.structs.replace(
        best, results={**best.results, "spambase": best.results["digits"]}
    )
    found = {e.entry.name: e for e in overall(rankings([*EVERY[:3], both]))}
    assert not found["best"].missing
    (lack,) = found["worst"].missing
    assert (lack.data, lack.boards, lack.why) == ("spambase", 1, "not run")
    assert next(iter(found)) == "best"


def test_results_of_another_version_are_not_shown():
    result = msgspec.structs.replace(EVERY[3].results["digits"], autoleak="0.9")
    old = msgspec.structs.replace(EVERY[3], results={"digits": result})
    assert "best" not in rankings([*EVERY[:3], old])[0].ranks
    assert isinstance(result, Result)
