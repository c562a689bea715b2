"""The report is one file that stands alone."""

import html.parser
import pathlib
import re
import shutil
from typing import Any
from xml.etree import ElementTree

import markupsafe
import pandas as pd
import pytest

from tests.report.made import BARE, FACTS, NAN, PROTECTS, made
from vfljax import store
from vfljax.report import figures, frontier, page, tables
from vfljax.report.first_screen import Screen, Suggestion, answers
from vfljax.report.ruler import Mark, Ruler
from vfljax.report.sweep_answers import judge_sweep
from vfljax.report.templates import templates

FIXTURE = pathlib.Path(__file__).parents[1] / "fixtures" / "stored_sweep"
NASTY = "<img src=x onerror=alert(1)>\n</script><b>&amp;\"'=1+1"
EXTRA = tables.Extra((tables.Section("Published", "of a paper", pd.DataFrame({"a": ["1"]})),))
HEADER = {"versions": {}, "revision": "", "backend": "cpu", "devices": 1, "checksum": ""}


def piece(macro, *values):
    """What a macro of the templates makes of these values."""
    return str(getattr(templates().get_template("macros.html").module, macro)(*values))


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """A stored sweep of ten classes, what the terminal gets, and the page."""
    workdir = shutil.copytree(FIXTURE, tmp_path_factory.mktemp("report") / "w")
    said = page.present(workdir, lambda sweep, experiment: EXTRA)
    return workdir, said, (workdir / "report.html").read_text()


def rendered(folder, judged):
    """The page of a sweep that is made."""
    folder.mkdir()
    header = judged.sweep.header | HEADER | {"trials": len(judged.trials)}
    sweep = judged.sweep._replace(header=header, workdir=folder)
    header["data"] |= {"rows": 1000, "classes": 2, "validation": 9, "test": 9}
    judged = judged._replace(sweep=sweep)
    return page.rendered(judged, answers(judged))


class Elements(html.parser.HTMLParser):
    """Every element's tag and attributes."""

    def __init__(self, text):
        super().__init__()
        self.seen = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.seen.append((tag, dict(attrs)))


def test_it_needs_nothing_from_outside(written):
    _, _, text = written
    elements = Elements(text).seen
    for tag, attributes in elements:
        assert tag not in ("link", "iframe", "object", "embed", "base", "img")
        assert "src" not in attributes
        assert attributes.get("href", "#").startswith("#")
    (policy,) = [a["content"] for t, a in elements if t == "meta" and "http-equiv" in a]
    assert policy.startswith("default-src 'none';")
    assert "http" not in policy
    style = re.search("<style>(.*?)</style>", text, re.DOTALL)[1]
    assert "url(" not in style
    assert "@import" not in style
    assert len(text) < 200_000


def test_it_has_answers_verdicts_every_table_and_its_origin_in_order(written):
    workdir, said, text = written
    judged = judge_sweep(workdir)
    titles = (
        *("With a top model", "What can be read", "What each defense leaves, and what it costs"),
        *("What leaks against utility", "All figures", "What was assumed", "How this was made"),
    )
    places = [text.index(f">{words}") for words in titles]
    assert places == sorted(places)
    for of in answers(judged):
        assert f'<p class="action">{markupsafe.escape(of.answer)}</p>' in text
        assert of.answer in said.replace("\n", " ")
    assert said.endswith(f"all tables and figures: {workdir / 'report.html'}")
    assert "of a paper" in said
    for section in tables.sections(judged, EXTRA.sections):
        shown = piece("section", section, page._html(section.frame))
        assert shown in text
        assert shown.count("<tr") == len(section.frame) + 1
        assert 'type="search"' in shown
    assert "<details open" not in text
    made_by = "<pre>python -m tests.stored_sweep</pre>", "jaxlib"
    configurations = "undefended", "kdk epsilon=.45 k=2", "noise scale=.01"
    not_run = "norm: defined for two classes", "Not finished: "
    assert not [part for part in (*made_by, *configurations, *not_run) if part not in text]


def test_figures_are_svg_in_the_page_and_png_beside_it_and_every_point_says_its_figures(written):
    workdir, _, text = written
    names = {path.name for path in (workdir / "figures").glob("*")}
    assert {"frontier.png", "curve_kdk.png"} <= names
    assert text.count("<svg ") == len(names)
    for svg in re.findall("<svg .*?</svg>", text, re.DOTALL):
        ElementTree.fromstring(svg)
    identifiers = re.findall(r'<(?:path|clipPath) id="(.*?)"', text)
    assert len(identifiers) == len(set(identifiers))
    judged = judge_sweep(workdir)
    for panel in frontier.panels(judged):
        drawn = frontier.plotted(judged, panel)
        shown = drawn["utility"] >= frontier.reach(drawn, judged.facts).left
        for row in drawn[shown].to_dict("records"):
            title = markupsafe.escape("\n".join(frontier.hover_lines(row, judged.facts)))
            assert f"<title>{title}</title>".replace("&#39;", "'") in text


def test_whatever_a_user_names_is_shown_as_it_is_named(tmp_path):
    frame = pd.DataFrame({NASTY: [NASTY]})
    ruler = Ruler(0.5, (Mark(NASTY, "undefended", 0.9),))
    twice = ((NASTY, NASTY),)
    answer = Screen(NASTY, twice, NASTY, ruler, (Suggestion(NASTY, NASTY),), twice)
    pieces: list[Any] = [
        piece("answer", answer),
        piece("details", answer),
        piece("notes", [NASTY, 40 * NASTY], [NASTY]),
        piece("listed", [NASTY]),
        piece("paragraphs", NASTY),
        piece("picture", page.Picture(NASTY, why=NASTY)),
        piece("section", tables.Section(NASTY, NASTY, frame), page._html(frame)),
    ]
    for text in pieces:
        assert not {tag for tag, _ in Elements(text).seen} & {"script", "b", "img"}
    facts = FACTS._replace(class_names=(NASTY, "repaid"), parties=(NASTY, "shop"))
    notes = [f"note {number}" for number in range(page.FEW + 2)]
    judged = made(BARE, PROTECTS, facts=facts, config={"notes": notes})
    # without a utility there is no figure, and why is said
    judged = judged._replace(verdicts=judged.verdicts.assign(utility=NAN))
    text = rendered(tmp_path / "w", judged)
    tags = [tag for tag, _ in Elements(text).seen]
    assert (tags.count("img"), tags.count("b"), tags.count("script")) == (0, 0, 1)
    assert "30 %, repaid 70 %)" in text
    assert [note for note in notes if note not in text] == []
    assert text.count(markupsafe.escape(frontier.NO_POINT)) == 1


def test_limits_and_units_stay_on_one_line():
    cells = [".97 (.95 to .98)", "12 % (at most)", "-1.5 points (-2.0 to -1.0)"]
    text = page._html(pd.DataFrame({"leaks": cells}))
    expected = [".97_(.95_to_.98)", "12_% (at most)", "-1.5_points_(-2.0_to_-1.0)"]
    for cell in expected:
        assert f"<td>{cell.replace('_', page.BLANK)}</td>" in text


def test_a_sweep_without_attacks_has_a_page(tmp_path):
    text = rendered(tmp_path / "w", made({"test_utility": 0.9}))
    assert "No attack has a figure, so nothing is known of what leaks" in text
    assert "Open: nothing was attacked" in text
    assert 'id="frontier"' not in text


def test_a_figure_that_cannot_be_drawn_costs_nothing_but_itself(tmp_path):
    def broken():
        raise ValueError("Data cannot be\nlog-scaled")

    file = tmp_path / "frontier.png"
    file.touch()  # of an earlier report
    found = page.picture(figures.Drawing("frontier", broken), file)
    why = "This figure could not be drawn (ValueError: Data cannot be log-scaled)."
    assert found.why == f"{why} frontier.png is of an earlier report."
    assert found.why in piece("picture", found)
    assert file.exists()
    file.unlink()
    assert page.picture(figures.Drawing("frontier", broken), file).why == why


def test_an_excerpt_holds_every_table_and_the_command(written, tmp_path):
    workdir, _, html = written
    page.excerpt(workdir, tmp_path / "out")
    text = (tmp_path / "out" / "tables.md").read_text()
    for title in ("Verdicts on all configurations", "What each attack reads", "Attacks"):
        path = re.search(rf"## {title}\n(?s:.*?)\((tables/\S+\.csv)\)", text)[1]
        assert len(pd.read_csv(tmp_path / "out" / path)) > 0
        assert f"<summary>{title} <span" in html
    assert store.load(workdir).header["command"] in text
    assert (tmp_path / "out" / "frontier.png").stat().st_size > 10_000
    assert (tmp_path / "out" / "leaks.csv").read_text().startswith("configuration,")


def test_a_page_on_recordings_has_no_parts_that_were_not_recorded():
    judged = made(BARE, config={"data": {"name": "wire", "dir": "x"}})
    data = judged.sweep.header["data"] | {"rows": 10_000, "classes": 2, "train": 2000}
    data |= {"validation": 0, "test": 0}
    sweep = judged.sweep._replace(header=judged.sweep.header | {"data": data})
    text = page._about(judged._replace(sweep=sweep))
    assert "10,000 recorded rows of all runs together" in text
    assert "2,000 attacked rows a seed" in text
    assert "validation" not in text
    of_trees = data | {"trees": (3, 2), "sources": [{"name": "age"}]}
    sweep_of_trees = sweep._replace(header=sweep.header | {"data": of_trees})
    trees = page._about(judged._replace(sweep=sweep_of_trees))
    of_others = sweep.header | {"data": data | {"trees": (3, 2)}}
    assert "recorded rows" in page._about(judged._replace(sweep=sweep._replace(header=of_others)))
    # it is called after the audit, and not after the file of its first seed
    assert trees.startswith(f"{judged.experiment.name}: 10,000 rows of all seeds together, 2 cl")
    trained = page._about(made(BARE)._replace(sweep=sweep))
    assert "10,000 rows" in trained
    assert "2,000 training rows a seed" in trained
