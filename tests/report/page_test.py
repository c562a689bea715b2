"""The report is one file that stands alone."""

import html.parser
import json
import re
import shutil

import numpy as np
import pytest

from tests.sweeps import point
from vfljax import store
from vfljax.report import (
    assumptions,
    cards,
    headline,
    interactive,
    markup,
    naming,
    page,
    summary,
    tables,
)
from vfljax.sweep.experiment import experiment_of
from vfljax.sweep.records import Goal

NASTY = "<img src=x onerror=alert(1)>\n</script><b>&amp;\"'=1+1"
ABOUT = cards.About(
    {"chance": 0.5, "majority": 0.5, "scale": "leak AUC", "classes": 2, "alone": 0.5},
    *(Goal(), lambda party: NASTY, 40),
)


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
        "Accuracy against what leaks",
        "Every defense, at the strength that was chosen",
        *("All figures", "Worst case", "Threat model", "Command", "Config"),
    )
    places = [text.index(f">{words}") for words in titles]
    assert places == sorted(places)
    sweep = naming.shown(workdir)
    opened = headline.opening(summary.points(sweep), cards.about(sweep, experiment_of(sweep)))
    for one in opened.headlines:
        assert f'<p class="headline">{markup.text(one.sentence)}</p>' in text
    assert said.replace("\n", " ").startswith(opened.headlines[0].sentence)


def test_every_table_is_there_folded_whole_and_with_a_field_to_filter(written):
    workdir, _, text = written
    sweep = naming.shown(workdir)
    experiment, points = experiment_of(sweep), summary.points(sweep)
    for section in tables.sections(sweep, experiment, points):
        assert markup.section(section) in text
        assert markup.section(section).count("<tr>") == len(section.table[1]) + 1
    assert "<details open" not in text


def test_it_holds_the_command_versions_and_every_setting(written):
    _, _, text = written
    assert "<pre>test</pre>" in text
    assert "jaxlib" in text
    for label in ("undefended", "kdk epsilon=0.45 k=3", "noise scale=0.01"):
        assert label in text


def test_it_says_what_was_shorter_than_published_and_what_was_not_run(written):
    _, _, text = written
    assert "20 optimizer steps, fewer than the 25,600 published" in text
    assert "<li>norm: defined for two classes" in text


def test_figures_are_pngs_too(written):
    workdir, _, text = written
    names = {path.name for path in (workdir / "figures").glob("*.png")}
    assert names == {"frontier.png", "heat_kdk.png"}
    assert text.count('src="data:image/png;base64,') == 2


def test_every_point_is_drawn_and_says_its_figures(written):
    workdir, _, text = written
    points = summary.points(naming.shown(workdir))
    items = re.findall(r'data-figure="panel\d">(.*?)</script>', text, re.DOTALL)
    assert len(items) == 2
    for federation, item in zip(("split", "no_split"), items, strict=True):
        drawn = {}
        for renderer in json.loads(item)["doc"]["roots"][0]["attributes"]["renderers"]:
            source = renderer["attributes"]["data_source"]
            if "attributes" in source:  # elsewhere it is named by its id
                columns = dict(source["attributes"]["data"]["entries"])
                drawn |= dict(zip(columns["setting"], zip(columns["y"], columns["verdict"])))
        assert set(drawn) == {p.label for p in points}
        for p in points:
            leak, verdict = drawn[p.label]
            assert leak == p.worst[federation].leak.mean
            assert verdict == ("no verdict: fewer than 3 seeds" if p.defended else "undefended")


def test_no_two_arms_of_many_are_drawn_alike_and_the_star_is_undefended():
    points = [point("plain", 0.9, 0.9)]
    points += [point(f"noise{k}", 0.9, 0.5, {"noise.scale": 1.0}) for k in range(50)]
    entries = interactive.legend(points)
    assert len({(e.color, e.marker) for e in entries}) == 51
    assert [e.arm for e in entries if e.marker == interactive.UNDEFENDED] == ["plain"]
    assert set(interactive.MARKERS) <= set(interactive_markers())


def test_settings_far_below_the_majority_guess_do_not_push_the_others_together():
    points = [point("plain", np.float64(0.9), 0.97), point("gafm", 0.2, 0.9, {"gafm.delta": 0.1})]
    (panel,) = interactive.panels(points, ABOUT, ())
    assert panel.title == (
        "with model splitting (1 setting further left: far below the majority guess)"
    )
    axis = panel.item["doc"]["roots"][0]["attributes"]["x_range"]["attributes"]
    assert 0.2 < axis["start"] < 0.5
    assert axis["end"] > 0.9
    (panel,) = interactive.panels([points[0]], ABOUT, ())
    assert panel.title == "with model splitting"


def interactive_markers():
    from bokeh.core.enums import MarkerType

    return list(MarkerType)


def test_whatever_a_user_names_is_shown_as_it_is_named(written):
    plain = point("plain", 0.9, 0.97)
    points = [plain, point(NASTY, 0.9, 0.6, {"noise.scale": 1.0}, attack=NASTY)]
    opened = headline.opening(points, ABOUT)
    entries = interactive.legend(points)
    pieces = [
        markup.headlines(opened.headlines),
        *(markup.card(c, True, entries[1].symbol) for c in opened.cards),
        *(markup.table([NASTY], [[NASTY]]), markup.plain_table([NASTY], [[NASTY]])),
        *(markup.notes([NASTY, 40 * NASTY], [NASTY]), markup.listed([NASTY])),
        *(markup.folded(NASTY, "", NASTY), markup.paragraphs(NASTY), markup.legend(entries)),
        markup.section(tables.Section(NASTY, NASTY, ([NASTY], [[NASTY]]))),
    ]
    for piece in pieces:
        tags = {tag for tag, _ in Elements(piece).seen}
        assert not tags & {"img", "script", "b"}
        assert all("onerror" not in attributes for _, attributes in Elements(piece).seen)
    (panel,) = interactive.panels(points, ABOUT, opened.cards)
    drawn = markup.figure(0, NASTY, panel.item)
    assert [tag for tag, _ in Elements(drawn).seen] == ["figure", "figcaption", "div", "script"]
    data = json.loads(drawn.partition('data-figure="panel0">')[2].removesuffix("</script>"))
    assert data == json.loads(json.dumps(panel.item))
    assert NASTY in str(data).encode().decode("unicode_escape")


def test_long_notes_are_folded_and_short_ones_are_read_at_once():
    text = markup.notes(["left out for want of time: mid.", 60 * "word "], ["a", "b"])
    assert "<p>left out for want of time: mid.</p>" in text
    assert text.count("<details>") == 2
    assert "2 more notes" in text
    assert markup.notes([], []) == ""


def test_the_threat_model_names_parties_and_what_they_know(tiny_sweep):
    sweep = store.load(tiny_sweep)
    experiment, points = experiment_of(sweep), summary.points(sweep)
    _, rows = assumptions.parties(sweep, experiment)
    assert [row[0] for row in rows] == ["passive party 0", "the label party"]
    assert [row[1] for row in rows] == ["passive, attacks", "holds the labels"]
    text = " ".join(assumptions.threat_model(experiment, points, cards.about(sweep, experiment)))
    assert "Who attacks: passive party 0." in text
    assert "at most 20 labels" in text
    assert "one of 10, is named" in text


def test_a_sweep_without_attacks_or_with_nothing_to_say_has_a_page(tiny_sweep, tmp_path):
    workdir = shutil.copytree(tiny_sweep, tmp_path / "w")
    shutil.rmtree(workdir / "attacks")
    (workdir / "attacks.json").unlink()
    (workdir / "attacks.copy.json").unlink(missing_ok=True)
    text = page.write(workdir).read_text()
    assert "No attack has any figure, so nothing is known of what leaks" in text
    assert 'data-figure="' not in text
    assert page.present(workdir).startswith("No attack has any figure")


def test_the_terminal_gets_the_table_and_what_it_means(written):
    workdir, text, _ = written
    assert "acc split" in text
    assert text.count("\n- ") >= 3
    assert str(workdir / "report.html") in text


def test_an_excerpt_holds_every_table_and_the_command(written, tmp_path):
    workdir, _, html = written
    page.excerpt(workdir, tmp_path / "out")
    text = (tmp_path / "out" / "tables.md").read_text()
    for title in ("Worst case", "All settings", "Attacks"):
        assert f"## {title}" in text
        assert f"<summary>{title} <span" in html
    assert store.load(workdir).header["command"] in text
    assert (tmp_path / "out" / "frontier.png").stat().st_size > 10_000
