"""The report in a browser: Debian's chromium, driven by Selenium. Skipped where one of them is missing."""

import json
import pathlib
import shutil

import pytest

from vfljax.report import page

FIXTURE = pathlib.Path(__file__).parents[1] / "fixtures" / "stored_sweep"
CHROMIUM, DRIVER = (shutil.which(name) for name in ("chromium", "chromedriver"))
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not (CHROMIUM and DRIVER), reason="no chromium: apt-get install chromium chromium-driver"
    ),
]


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
def report(tmp_path_factory):
    """A page of ten classes, two seeds and two panels."""
    workdir = shutil.copytree(FIXTURE, tmp_path_factory.mktemp("browser") / "w")
    page.present(workdir)
    return workdir / "report.html"


def at(browser, file, width, height):
    """The page in a window of that size."""
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    for log in ("browser", "performance"):
        browser.get_log(log)
    browser.get(file.as_uri())
    return browser


@pytest.fixture
def opened(browser, report):
    return at(browser, report, 1300, 800)


def find(browser, selector):
    return browser.find_elements("css selector", selector)


def test_nothing_is_fetched_and_nothing_goes_wrong(opened, report):
    wrong = [one for one in opened.get_log("browser") if one["level"] in ("SEVERE", "WARNING")]
    assert wrong == []
    asked = [
        message["params"]["request"]["url"]
        for entry in opened.get_log("performance")
        for message in [json.loads(entry["message"])["message"]]
        if message["method"] == "Network.requestWillBeSent"
    ]
    assert [url for url in asked if not url.startswith("data:")] == [report.as_uri()]


def column(details, place):
    rows = details.find_elements("css selector", "tbody tr")
    shown = [row for row in rows if row.is_displayed()]
    return [row.find_elements("css selector", "td")[place].text for row in shown]


def test_a_table_unfolds_sorts_and_filters(opened):
    title = "What each attack reads"
    (details,) = [
        one
        for one in find(opened, "details")
        if one.find_element("css selector", "summary").text.startswith(title)
    ]
    assert not any(t.is_displayed() for t in details.find_elements("css selector", "table"))
    details.find_element("css selector", "summary").click()
    heads = details.find_elements("css selector", "th")
    place = [head.text for head in heads].index("accuracy")
    before = [float(cell) for cell in column(details, place)]
    for reverse, order in ((False, "ascending"), (True, "descending")):
        heads[place].find_element("css selector", "button").click()
        found = [float(cell) for cell in column(details, place)]
        assert found == sorted(before, reverse=reverse)
        assert heads[place].get_attribute("aria-sort") == order
    details.find_element("css selector", "input").send_keys("EPSILON=.45")
    settings = column(details, 0)
    assert settings
    assert all("epsilon=.45" in name for name in settings)


@pytest.mark.parametrize("width", [400, 1300])
def test_the_page_scrolls_down_only(browser, report, width):
    at(browser, report, width, 800)
    browser.execute_script("document.querySelectorAll('details').forEach((d) => d.open = true)")
    widths = "return [document.documentElement.scrollWidth, innerWidth]"
    shown, window = browser.execute_script(widths)
    assert window == width
    assert shown <= window


def test_on_paper_nothing_is_folded_and_figures_stay(opened):
    opened.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    try:
        assert not any(one.is_displayed() for one in find(opened, "details, nav, input"))
        assert all(one.is_displayed() for one in find(opened, ".answer, #frontier ~ .wide svg"))
        assert find(opened, ".paper")[0].is_displayed()
    finally:
        opened.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
