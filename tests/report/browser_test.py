"""The report in a browser: Debian's chromium, driven by Selenium. Skipped where one of them is missing."""

import json
import re
import shutil
from typing import Any

import pytest

from tests.sweeps import REFERENCE, assessed, assessment
from vfljax.report import headline, interactive, page, tables
from vfljax.report.assessment import assess_sweep
from vfljax.report.templates import TEMPLATES, templates

CHROMIUM, DRIVER = (shutil.which(name) for name in ("chromium", "chromedriver"))
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not (CHROMIUM and DRIVER), reason="no chromium: apt-get install chromium chromium-driver"
    ),
]
NASTY = "<img src=x onerror=document.title='broken'> $$x$$ </script>"

# texts that Bokeh shows lie in shadow trees
TIP = """
const tips = [];
const walk = (root) => {
  for (const one of root.querySelectorAll("*")) {
    if (one.classList.contains("bk-Tooltip")) tips.push(one);
    if (one.shadowRoot) walk(one.shadowRoot);
  }
};
walk(document);
const text = (root) => [...root.childNodes].map((one) =>
  one.nodeType === 3 ? one.data : one.nodeName === "STYLE" ? "" : text(one.shadowRoot || one)).join(" ");
return tips.filter((tip) => tip.offsetWidth).map((tip) => text(tip.shadowRoot || tip)).join("\\n");
"""
PLACE = """
const panel = document.getElementById("panel" + arguments[0]);
const {el, frame} = [...Bokeh.index.roots].find((one) => one.frame && panel.contains(one.el));
const canvas = el.getBoundingClientRect();
return [canvas.x + frame.x_scale.compute(arguments[1]), canvas.y + frame.y_scale.compute(arguments[2])];
"""
SHOWN = """
return Bokeh.documents.flatMap((doc) => doc.roots()).map((plot) =>
  plot.below.filter((one) => one.type === "Legend").flatMap((legend) => legend.items)
    .filter((item) => item.label.value === arguments[0])
    .flatMap((item) => item.renderers.map((drawn) => drawn.visible)));
"""
ENTRY = """
const panel = document.getElementById("panel0");
const view = [...Bokeh.index.roots].find((one) => one.frame && panel.contains(one.el));
const legend = view.model.below.find((one) => one.type === "Legend");
const {x, y} = view.el.getBoundingClientRect();
const box = [...view.views.all_views()].find((one) => one.model === legend).bbox;
return [x + box.x, y + box.y, box.width, box.height];
"""


@pytest.fixture(scope="module")
def browser():
    webdriver = pytest.importorskip("selenium.webdriver", reason="pip install -e '.[browser]'")
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for flag in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    driver.set_script_timeout(10)
    yield driver
    driver.quit()


@pytest.fixture(scope="module")
def report(tiny_sweep, tmp_path_factory):
    """A page of ten classes, two seeds and two federations."""
    workdir = shutil.copytree(tiny_sweep, tmp_path_factory.mktemp("browser") / "w")
    page.present(workdir)
    return workdir / "report.html"


@pytest.fixture
def opened(browser, report):
    return at(browser, report, 1300, 800)


def at(browser, file, width, height):
    """The page, drawn, in a window of that size."""
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    for log in ("browser", "performance"):
        browser.get_log(log)
    browser.get(file.as_uri())
    drawn = """
    const done = arguments[0], want = document.querySelectorAll(".panel").length;
    const look = () => {
      const views = [...(window.Bokeh?.index?.roots ?? [])].filter((view) => view.frame);
      const whole = views.length === want && Bokeh.documents.every((doc) => doc.is_idle);
      return whole ? done(true) : setTimeout(look, 50);
    };
    look();
    """
    browser.execute_async_script(drawn)
    return browser


def mouse(browser, kind, x, y, **more):
    browser.execute_cdp_cmd(
        "Input.dispatchMouseEvent", {"type": kind, "x": float(x), "y": float(y), **more}
    )


def hover(browser, panel, x, y):
    """What is said where the mouse points at a figure's (x, y)."""
    browser.execute_script(
        f"document.getElementById('panel{panel}').scrollIntoView({{block: 'center'}})"
    )
    left, top = browser.execute_script(PLACE, panel, x, y)
    mouse(browser, "mouseMoved", left - 30, top - 30)
    mouse(browser, "mouseMoved", left, top)
    wait = "const done = arguments[0]; setTimeout(done, 300);"
    browser.execute_async_script(wait)
    return browser.execute_script(TIP)


def find(browser, selector):
    return browser.find_elements("css selector", selector)


def test_the_first_screen_answers_four_questions(opened):
    (first, *_), answers = find(opened, ".headline"), find(opened, ".answers")[0]
    assert first.rect["y"] < 150
    assert answers.rect["y"] + answers.rect["height"] < 800
    said = [one.text for one in answers.find_elements("css selector", "dt")]
    assert said == ["What leaks", "To whom", "What to switch on", "How sure is that"]
    assert all(one.text for one in answers.find_elements("css selector", "dd"))


def test_nothing_is_fetched_and_nothing_goes_wrong(opened, report):
    hover(opened, 0, 0.5, 0.5)
    wrong = [one for one in opened.get_log("browser") if one["level"] in ("SEVERE", "WARNING")]
    assert wrong == []
    asked = [
        message["params"]["request"]["url"]
        for entry in opened.get_log("performance")
        for message in [json.loads(entry["message"])["message"]]
        if message["method"] == "Network.requestWillBeSent"
    ]
    assert report.as_uri() in asked
    assert [u for u in asked if not u.startswith(("data:", "blob:")) and u != report.as_uri()] == []


def test_pointing_at_a_mark_shows_its_figures(opened, report):
    found = assess_sweep(report.parent)
    for panel, federation in enumerate(("split", "no_split")):
        a = found.undefended(federation)
        text = hover(opened, panel, a.utility.mean, a.leak.mean)
        assert a.label in text
        assert str(a.leak) in text
        assert "accuracy " in text


def test_the_legend_hides_and_shows_a_defense(opened):
    opened.execute_script("document.getElementById('panel0').scrollIntoView({block: 'center'})")
    before = [opened.execute_script(SHOWN, name) for name in ("undefended", "kdk")]
    assert before == [[[True] * 4] * 2] * 2
    left, top, _, height = opened.execute_script(ENTRY)
    for visible in (False, True):
        for kind in ("mousePressed", "mouseReleased"):
            at = left + 25, top + height / 2
            mouse(opened, kind, *at, button="left", clickCount=1)
        opened.execute_async_script("const done = arguments[0]; setTimeout(done, 300);")
        shown = [opened.execute_script(SHOWN, name)[0] for name in ("undefended", "kdk")]
        assert shown == [[visible] * 4, [True] * 4]


def unfolded(browser, title):
    """The section of that title, opened by a click."""
    (details,) = [
        one
        for one in find(browser, "details")
        if one.find_element("css selector", "summary").text.startswith(title)
    ]
    assert details.get_attribute("open") is None
    assert not any(t.is_displayed() for t in details.find_elements("css selector", "table"))
    details.find_element("css selector", "summary").click()
    assert details.get_attribute("open") is not None
    return details


def column(details, place):
    rows = details.find_elements("css selector", "tbody tr")
    shown = [row for row in rows if row.is_displayed()]
    return [row.find_elements("css selector", "td")[place].text for row in shown]


def test_a_table_unfolds_sorts_and_filters(opened):
    details = unfolded(opened, "All configurations")
    assert details.find_element("css selector", "table").is_displayed()
    heads = details.find_elements("css selector", "th")
    place = [head.text for head in heads].index("accuracy split")
    before = column(details, place)
    heads[place].find_element("css selector", "button").click()
    rising = column(details, place)
    assert [float(c.split()[0]) for c in rising] == sorted(float(c.split()[0]) for c in before)
    assert heads[place].get_attribute("aria-sort") == "ascending"
    heads[place].find_element("css selector", "button").click()
    assert [float(c.split()[0]) for c in column(details, place)] == sorted(
        (float(c.split()[0]) for c in before), reverse=True
    )
    details.find_element("css selector", "input").send_keys("EPSILON=0.45")
    settings = column(details, 0)
    assert len(settings) == 2
    assert all("epsilon=0.45" in name for name in settings)


@pytest.mark.parametrize("width", [400, 1300])
def test_the_page_scrolls_down_only(browser, report, width):
    at(browser, report, width, 800)
    browser.execute_script("document.querySelectorAll('details').forEach((d) => d.open = true)")
    widths = "return [document.documentElement.scrollWidth, innerWidth]"
    shown, window = browser.execute_script(widths)
    assert window == width
    assert shown <= window


def test_on_paper_the_figure_is_the_png(opened):
    def shown(selector):
        return [one.is_displayed() for one in find(opened, selector)]

    assert (shown(".panel"), shown(".png img")) == ([True, True], [False])
    opened.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    try:
        assert (shown(".panel"), shown(".png img")) == ([False, False], [True])
        assert all(shown(".card"))
    finally:
        opened.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


def test_what_a_user_names_is_shown_and_not_run(browser, tmp_path):
    nasty = assessment(NASTY, 0.8, 0.6, {"noise.scale": 1.0}, attack=NASTY)
    reference = REFERENCE._replace(party_name=lambda party: NASTY)
    found = assessed(assessment("plain", 0.9, 0.97), nasty, reference=reference)
    (panel,) = interactive.panels(found)
    glue = (TEMPLATES / "page.js").read_text()
    macros: Any = templates().get_template("macros.html").module
    ((card,),) = page.cards(found).values()
    body = [
        macros.headlines(headline.headlines(found), {}),
        macros.panel(0, NASTY, panel.item),
        macros.card(card),
        macros.section(tables.Section(NASTY, NASTY, ([NASTY], [[NASTY]]))),
    ]
    file = tmp_path / "nasty.html"
    file.write_text(
        f'<!doctype html><meta http-equiv="Content-Security-Policy" content="{page.POLICY}">'
        f"<title>whole</title>{''.join(map(str, body))}<script>{interactive.script()}</script>"
        f"<script>{glue}</script>"
    )
    at(browser, file, 1300, 800)
    assert NASTY in " ".join(hover(browser, 0, 0.8, 0.6).split())
    assert browser.title == "whole"
    assert find(browser, "body img") == []
    assert re.sub(r"\s+", " ", find(browser, "h4")[0].text).strip() == f"● {NASTY}"
    assert [one for one in browser.get_log("browser") if one["level"] == "SEVERE"] == []
