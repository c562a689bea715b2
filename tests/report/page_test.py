"""The report is one file that stands alone."""

import html.parser
import json
import re
import shutil

import markupsafe
import numpy as np
import pytest
from bokeh.core.enums import MarkerType

from tests.sweeps import REFERENCE, assessed, assessment, report_of
from vfljax.errors import UserError
from vfljax.report import (
    certain_rows,
    frontier,
    headline,
    interactive,
    page,
    tables,
    threat_model,
    words,
)
from vfljax.report.assessment import assess_sweep
from vfljax.report.templates import templates
from vfljax.store import load

NASTY = "<img src=x onerror=alert(1)>\n</script><b>&amp;\"'=1+1"
NASTY_PARTY = REFERENCE._replace(party_name=lambda party: NASTY)


def piece(macro, *values):
    """What a macro of the templates makes of these values."""
    return str(getattr(templates().get_template("macros.html").module, macro)(*values))


@pytest.fixture(scope="module")
def written(tiny_sweep, tmp_path_factory):
    """The sweep, what the terminal gets, and the page."""
    workdir = shutil.copytree(tiny_sweep, tmp_path_factory.mktemp("report") / "w")
    return workdir, page.present(workdir), (workdir / "report.html").read_text()


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
        assert tag not in ("link", "iframe", "object", "embed", "base")
        assert attributes.get("src", "data:").startswith("data:")
        assert attributes.get("href", "#").startswith("#")
    (policy,) = [a["content"] for t, a in elements if t == "meta" and "http-equiv" in a]
    assert policy.startswith("default-src 'none';")
    assert "http" not in policy
    style = re.search("<style>(.*?)</style>", text, re.DOTALL)[1]
    assert "url(" not in style
    assert "@import" not in style


def test_it_opens_with_the_headline_then_frontier_cards_tables_and_how_it_was_made(written):
    workdir, said, text = written
    titles = (
        *("What leaks", "To whom", "What to switch on", "How sure is that"),
        "What each defense leaves, and what it costs",
        "What leaks against utility",
        "Every defense, at the operating point that was chosen",
        *("All figures", "Strongest attacks and verdicts", certain_rows.TITLE),
        *("Threat model", "Command", "Config"),
    )
    places = [text.index(f">{words}") for words in titles]
    assert places == sorted(places)
    headlines = headline.headlines(assess_sweep(workdir))
    for one in headlines:
        assert f'<p class="headline">{markupsafe.escape(one.sentence)}</p>' in text
    assert said.replace("\n", " ").startswith(headlines[0].sentence)


def test_every_table_is_there_folded_whole_and_with_a_field_to_filter(written):
    workdir, _, text = written
    for section in tables.sections(assess_sweep(workdir), 0.0):
        assert piece("section", section) in text
        assert piece("section", section).count("<tr>") == len(section.table[1]) + 1
    assert "<details open" not in text


@pytest.mark.parametrize(
    "part",
    [
        "<pre>test</pre>",
        "jaxlib",
        "undefended",
        "kdk epsilon=0.45 k=3",
        "noise scale=0.01",
        "20 optimizer steps, fewer than the 25,600 published",
        "<li>norm: defined for two classes",
    ],
)
def test_it_holds_the_command_versions_every_setting_and_what_was_shorter_or_not_run(written, part):
    assert part in written[2]


def test_figures_are_pngs_too(written):
    workdir, _, text = written
    names = {path.name for path in (workdir / "figures").glob("*.png")}
    assert names == {"frontier.png", "heat_kdk.png", "certainty.png"}
    assert text.count('src="data:image/png;base64,') == 3


def test_every_point_is_drawn_and_says_its_figures(written):
    workdir, _, text = written
    found = assess_sweep(workdir)
    items = re.findall(r'data-figure="panel\d">(.*?)</script>', text, re.DOTALL)
    assert len(items) == 2
    for federation, item in zip(("split", "no_split"), items, strict=True):
        drawn = {}
        for renderer in json.loads(item)["doc"]["roots"][0]["attributes"]["renderers"]:
            source = renderer["attributes"]["data_source"]
            if "attributes" in source:  # elsewhere it is named by its id
                columns = dict(source["attributes"]["data"]["entries"])
                pairs = zip(columns["y"], columns["verdict"])
                drawn |= dict(zip(columns["configuration"], pairs))
        members = [a for a in found.attacked if a.federation == federation]
        assert set(drawn) == {a.label for a in members}
        for a in members:
            leak, verdict = drawn[a.label]
            assert leak == a.leak.mean
            defended = a.configuration.defended
            assert verdict == (words.verdict_text(a) if defended else "undefended")


def test_a_model_of_a_figure_is_defined_before_it_is_referred_to(written):
    _, _, text = written
    items = re.findall(r'data-figure="panel\d">(.*?)</script>', text, re.DOTALL)
    for item in map(json.loads, items):
        defined = set()
        for model in _models(item["doc"]["roots"]):
            if set(model) == {"id"}:
                assert model["id"] in defined  # Bokeh's script reads in this order
            defined.add(model["id"])


def _models(node):
    """Every model of Bokeh's JSON and every reference to one, in the order of the text."""
    if isinstance(node, dict) and "id" in node:
        yield node
    for inside in node.values() if isinstance(node, dict) else node:
        if isinstance(inside, dict | list):
            yield from _models(inside)


def test_no_two_methods_of_many_are_drawn_alike_and_the_star_is_undefended():
    many = [assessment(f"noise{k}", 0.9, 0.5, {"noise.scale": 1.0}) for k in range(50)]
    marks = interactive.marks(assessed(assessment("plain", 0.9, 0.9), *many))
    assert len({(mark.color, mark.marker) for mark in marks}) == 51
    assert [mark.method for mark in marks if mark.marker == interactive.UNDEFENDED] == ["plain"]
    assert {mark.marker for mark in marks} <= set(MarkerType)


def attributes(panel):
    return panel.item["doc"]["roots"][0]["attributes"]


def test_configurations_far_below_the_majority_guess_do_not_push_the_others_together():
    plain = assessment("plain", np.float64(0.9), 0.97)
    low = assessment("gafm", 0.2, 0.9, {"gafm.delta": 0.1})
    (panel,) = interactive.panels(assessed(plain, low))
    assert panel.title == "with model splitting (1 configuration further left)"
    axis = attributes(panel)["x_range"]["attributes"]
    assert 0.2 < axis["start"] < 0.5
    assert axis["end"] > 0.9
    (panel,) = interactive.panels(assessed(plain))
    assert panel.title == "with model splitting"


def test_the_legend_hides_everything_that_is_drawn_for_a_method():
    found = assessed(assessment("plain", 0.9, 0.97), assessment("kdk", 0.8, 0.6, {"kdk.k": 2.0}))
    (panel,) = interactive.panels(found)
    (legend,) = [x for x in attributes(panel)["below"] if x["name"] == "Legend"]
    assert legend["attributes"]["click_policy"] == "hide"
    items = [item["attributes"] for item in legend["attributes"]["items"]]
    assert [item["label"] for item in items] == [
        {"type": "value", "value": method} for method in ("plain", "kdk")
    ]
    assert all(len(item["renderers"]) == 4 for item in items)


def test_whatever_a_user_names_is_shown_as_it_is_named():
    nasty = assessment(NASTY, 0.9, 0.6, {"noise.scale": 1.0}, attack=NASTY)
    found = assessed(assessment("plain", 0.9, 0.97), nasty, reference=NASTY_PARTY)
    ((card,),) = page.cards(found).values()
    pieces = [
        piece("headlines", headline.headlines(found), {"split": NASTY}),
        piece("card", card),
        piece("short_table", [NASTY], [[NASTY]]),
        piece("notes", [NASTY, 40 * NASTY], [NASTY]),
        piece("listed", [NASTY]),
        piece("paragraphs", NASTY),
        piece("image", NASTY, page.Picture(png=NASTY)),
        piece("image", NASTY, page.Picture(why=NASTY)),
        piece("panel", 0, NASTY, {}, NASTY),
        piece("section", tables.Section(NASTY, NASTY, ([NASTY], [[NASTY]]))),
    ]
    for text in pieces:
        seen = Elements(text).seen
        images = [given for tag, given in seen if tag == "img"]
        assert not {tag for tag, _ in seen} & {"script", "b"}
        assert all(image["src"].startswith("data:") for image in images)
        assert all("onerror" not in given for _, given in seen)
    (panel,) = interactive.panels(found)
    drawn = piece("panel", 0, NASTY, panel.item)
    assert [tag for tag, _ in Elements(drawn).seen] == ["figure", "figcaption", "div", "script"]
    data = drawn.partition('data-figure="panel0">')[2].strip().removesuffix("</script>")
    assert json.loads(data) == json.loads(json.dumps(panel.item))
    assert NASTY in str(json.loads(data)).encode().decode("unicode_escape")


def test_long_notes_are_folded_and_short_ones_are_read_at_once():
    text = piece("notes", ["left out for want of time: mid.", 60 * "word "], ["a", "b"])
    assert "<p>left out for want of time: mid.</p>" in text
    assert text.count("<details>") == 2
    assert "2 more notes" in text
    assert piece("notes", [], []).strip() == ""


def test_the_threat_model_names_parties_and_what_they_know(tiny_sweep):
    shown = page._shown(tiny_sweep, None)
    _, rows = threat_model.parties(shown.assessed.rows, shown.experiment)
    assert [row[0] for row in rows] == ["passive party 0", "the label party"]
    assert [row[1] for row in rows] == ["passive, attacks", "holds the labels"]
    text = " ".join(threat_model.assumptions(shown.assessed, shown.experiment))
    assert "Who attacks: passive party 0." in text
    assert "at most 20 labels" in text
    assert "one of 10, is named" in text


def test_a_sweep_without_attacks_or_with_nothing_to_say_has_a_page(tiny_sweep, tmp_path):
    workdir = shutil.copytree(tiny_sweep, tmp_path / "w")
    shutil.rmtree(workdir / "attacks")
    (workdir / "attacks.json").unlink()
    (workdir / "attacks.copy.json").unlink(missing_ok=True)
    text = report_of(workdir)
    assert "No attack has any figure, so nothing is known of what leaks" in text
    assert 'data-figure="' not in text
    assert page.present(workdir).startswith("No attack has any figure")


def test_a_figure_that_cannot_be_drawn_costs_nothing_but_itself(tiny_sweep, tmp_path, monkeypatch):
    def broken(*given):
        raise ValueError("Data cannot be\nlog-scaled")

    def empty(*given):
        raise UserError("No curve has a point.")

    workdir = shutil.copytree(tiny_sweep, tmp_path / "w")
    (workdir / "figures").mkdir(exist_ok=True)
    (workdir / "figures" / "frontier.png").touch()  # of an earlier report
    monkeypatch.setattr(frontier, "frontier", broken)
    monkeypatch.setattr(interactive, "_lines", broken)
    monkeypatch.setattr(certain_rows, "figure", empty)
    text = report_of(workdir)
    reason = "This figure could not be drawn (ValueError: Data cannot be log-scaled)."
    assert text.count(reason) == 3  # the frontier, and a panel of each federation
    assert text.count("No curve has a point.") == 1
    assert text.count('src="data:image/png;base64,') == 1
    assert {path.name for path in (workdir / "figures").glob("*")} == {"heat_kdk.png"}


def test_an_excerpt_holds_every_table_and_the_command(written, tmp_path):
    workdir, _, html = written
    page.excerpt(workdir, tmp_path / "out")
    text = (tmp_path / "out" / "tables.md").read_text()
    for title in ("Strongest attacks and verdicts", "All configurations", "Attacks"):
        assert f"## {title}" in text
        assert f"<summary>{title} <span" in html
    assert load(workdir).header["command"] in text
    assert (tmp_path / "out" / "frontier.png").stat().st_size > 10_000
