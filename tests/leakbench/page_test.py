"""LeakBench's page ranks entries by the best known leak, and shows what they hold as text."""

import msgspec
import numpy as np

from analysis.leakbench.autoleak import autoleak
from analysis.leakbench.boards import BOARDS, GAINS
from analysis.leakbench.entry_files import Entry, Result, Score
from analysis.leakbench.page import NAME_GAP, apart, page
from analysis.leakbench.ranking import rankings
from tests.leakbench.entry_files_test import entry


def test_ranks_follow_the_best_known_leak():
    bare = msgspec.structs.replace(entry("undefended", 1.0), method={})
    every = [entry("broken", 0.6, (0.95, 1.0, "a")), entry("steady", 0.7), bare]
    board = rankings(every)[0]
    assert [line[0].entry.name for line in board.lines] == ["undefended", "steady", "broken"]
    assert [s.entry.name for s, efficient in board.points if efficient] == ["steady"]
    assert board.ranks == {"steady": 1, "broken": 2}
    assert "Eve" in page(every)
    score = bare.results["digits"].scores[0]
    reached = msgspec.structs.replace(score, local_only=0.96)  # undefended reads 1.0
    scores = (reached, *bare.results["digits"].scores[1:])
    result = msgspec.structs.replace(bare.results["digits"], scores=scores)
    every[2] = msgspec.structs.replace(bare, results={"digits": result})
    assert not rankings(every)[0].ranks


def test_a_board_without_figures_has_a_table_and_no_figure():
    score = Score(BOARDS[0], GAINS[0], "no strength keeps so much")
    result = Result(
        autoleak().version, "r", "d", {}, {}, (score, msgspec.structs.replace(score, gain=GAINS[1]))
    )
    title = "<script>alert(1)</script>"
    text = page([Entry(name="a", title=title, method={"noise": {}}, results={"digits": result})])
    assert "no strength keeps so much" in text
    assert "<svg" not in text
    assert "<script>alert" not in text


def test_without_a_board_the_page_says_how_to_make_one():
    text = page([Entry(name="a", method={"noise": {}})])
    assert f"No board of AutoLeak {autoleak().version} is stored yet" in text
    assert "is stored yet" not in page([entry("a", 0.7)])


def test_names_beside_a_figure_do_not_overlap():
    many = [20.0, 276.0, 21.0, 20.5, 270.0, 275.0, 150.0]
    placed = np.array(apart(many, 24, 276))
    assert np.diff(np.sort(placed)).min() >= NAME_GAP - 1e-9
    assert placed.min() >= 24
    assert placed.max() <= 276
    assert (np.argsort(placed) == np.argsort(many)).all()
    assert placed[6] == 150.0
