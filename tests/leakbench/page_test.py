"""LeakBench's page ranks entries by the best known leak, and shows what they hold as text."""

import msgspec

from analysis.leakbench.boards import BOARDS, GAINS
from analysis.leakbench.entry_files import Entry, Result, Score
from analysis.leakbench.page import page, rankings
from tests.leakbench.entry_files_test import entry


def test_ranks_follow_the_best_known_leak():
    bare = msgspec.structs.replace(entry("undefended", 1.0), method={})
    every = [entry("broken", 0.6, (0.95, 1.0, "a")), entry("steady", 0.7), bare]
    board = rankings(every)[0]
    assert [line[0].entry.name for line in board.lines] == ["undefended", "steady", "broken"]
    assert [s.entry.name for s, efficient in board.points if efficient] == ["steady"]
    text = page(every)
    assert "Eve" in text
    assert [board.rank(line) for line in board.lines] == [None, 1, 2]
    assert page(every[:2])  # also without undefended
    score = every[2].results["digits"].scores[0]
    reached = msgspec.structs.replace(score, local_only=0.96)  # undefended reads 1.0
    scores = (reached, *every[2].results["digits"].scores[1:])
    result = msgspec.structs.replace(every[2].results["digits"], scores=scores)
    every[2] = msgspec.structs.replace(every[2], results={"digits": result})
    assert [rankings(every)[0].rank(line) for line in board.lines] == [None] * 3
    assert "<script>alert" not in page(
        [msgspec.structs.replace(bare, title="<script>alert(1)</script>")]
    )


def test_a_board_without_figures_has_a_table_and_no_figure():
    score = Score(BOARDS[0], GAINS[0], "no strength keeps so much")
    result = Result("1.0", "r", "d", {}, {}, (score, msgspec.structs.replace(score, gain=GAINS[1])))
    text = page([Entry(name="mine", method={"noise": {}}, results={"digits": result})])
    assert "no strength keeps so much" in text
    assert "<svg" not in text
