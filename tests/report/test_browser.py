"""The page in a real browser: Debian's Chromium, headless, driven by selenium."""

import json
import time
from itertools import pairwise

import numpy as np
import pytest

from fedcohort import Comparison, report
from fedcohort.server._history import History
from helpers.browser import BROWSER, DRIVER, opened
from helpers.carried import leave

selenium = pytest.importorskip("selenium", reason="needs selenium")
if not (BROWSER and DRIVER):
    pytest.skip("needs chromium and chromedriver", allow_module_level=True)

from selenium.webdriver.common.by import By  # noqa: E402
from selenium.webdriver.common.keys import Keys  # noqa: E402
from selenium.webdriver.support.ui import Select, WebDriverWait  # noqa: E402

LABELS = ("md", "uniform", "clustered-size", "fedavg", "poisson")
HOSTILE = (
    "<script>window.bad=1</script>",
    "\"><img src=x onerror='window.bad=1'>",
    "<a href='javascript:window.bad=1'>go</a> &amp; %{x}",
)


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with opened(tmp_path_factory.mktemp("profile")) as driver:
        yield driver


@pytest.fixture(scope="module")
def path(make, tmp_path_factory):
    labels = np.repeat([0, 1, 2], 4)
    distances = 1.0 - (labels[:, None] == labels)
    settings = {"command": "fedcohort compare md uniform", "target": 0.6}
    comparison = make(
        LABELS, seeds=6, rounds=60, settings=settings,
        pictures={"labels": labels, "distances": distances},
    )  # fmt: skip
    return report.write(comparison, tmp_path_factory.mktemp("run") / "report.html")


def show(browser, path, width=1280, height=900, dark=False, mobile=False):
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": mobile}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
    calm = {"name": "prefers-reduced-motion", "value": "reduce"}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme, calm]})
    browser.get_log("browser"), browser.get_log("performance")
    browser.get(path.as_uri())
    WebDriverWait(browser, 30).until(
        lambda b: b.execute_script("return document.documentElement.dataset.ready")
    )


def draw_all(browser):
    for place in browser.find_elements(By.CSS_SELECTOR, ".plot"):
        browser.execute_script("arguments[0].scrollIntoView()", place)
        WebDriverWait(browser, 20).until(lambda _, p=place: p.find_elements(By.CSS_SELECTOR, "svg"))


@pytest.fixture
def page(browser, path):
    show(browser, path)
    return browser


def values(page, key):
    """The names of the drawn lines and the sum of their values."""
    return page.execute_script(
        "return document.getElementById('plot-' + arguments[0])._fullData"
        ".filter(t => t.meta.role === 'line').map(t => [t.name, Array.from(t.y).length,"
        " Array.from(t.y).reduce((a, b) => a + b, 0)])", key,
    )  # fmt: skip


def place(page, key):
    element = page.find_element(By.ID, f"plot-{key}")
    page.execute_script("arguments[0].scrollIntoView({block: 'center'})", element)
    WebDriverWait(page, 20).until(lambda _: element.find_elements(By.CSS_SELECTOR, "svg"))
    return element


def requests(page):
    events = [json.loads(entry["message"])["message"] for entry in page.get_log("performance")]
    return [
        e["params"]["request"]["url"] for e in events if e["method"] == "Network.requestWillBeSent"
    ]


def test_all_figures_are_drawn_without_an_error_or_a_request(page, path):
    draw_all(page)
    keys = {e.get_attribute("data-key") for e in page.find_elements(By.CSS_SELECTOR, ".plot")}
    assert keys >= {"progress", "cost", "participation", "histogram", "lorenz", "coverage",
                    "distance", "weights", "ratio", "losses", "federation", "embedding",
                    "sizes"}  # fmt: skip
    assert page.get_log("browser") == []
    assert [url for url in requests(page) if not url.startswith("data:")] == [path.as_uri()]


def test_a_run_on_flower_is_drawn_with_metrics_of_hostile_names(browser, tmp_path):
    folder = leave(tmp_path / "flower", done=7, void=(3,))
    History(folder).metrics(2, dict.fromkeys(HOSTILE, 0.5))
    whole = report.write(Comparison.load(folder), tmp_path / "report.html")
    show(browser, whole)
    draw_all(browser)
    keys = {e.get_attribute("data-key") for e in browser.find_elements(By.CSS_SELECTOR, ".plot")}
    assert {"progress", "cost", "participation", "answered", "rejected", "federation"} <= keys
    assert "7 of 12 rounds so far: the server has stopped" in browser.page_source
    measure = Select(browser.find_element(By.CSS_SELECTOR, "[data-switch=measure]"))
    place(browser, "progress")
    for number in range(len(measure.options)):
        measure.select_by_index(number)
        assert len(values(browser, "progress")) == 1
    assert browser.execute_script("return window.bad") is None
    assert browser.get_log("browser") == []
    marks = [trace[1] for trace in values(browser, "answered")]
    assert sorted(marks) == [1, 7]  # one void round


def test_the_network_would_be_refused(page):
    page.execute_script(
        "fetch('https://example.org/').catch(() => {});"
        "document.body.append(Object.assign(new Image(), {src: 'http://a.b/c'}))"
    )
    page.execute_script(
        "const s = document.createElement('script'); s.textContent = 'window.bad = 1';"
        "document.body.append(s)"
    )
    assert page.execute_script("return window.bad") is None
    blocked = [entry["message"] for entry in page.get_log("browser")]
    assert sum("Content Security Policy" in message for message in blocked) >= 3


def test_switches_change_the_curves_and_work_from_the_keyboard(page):
    place(page, "progress")
    rolling = values(page, "progress")
    assert [name for name, _, _ in rolling] == list(LABELS)
    radio = page.find_element(By.CSS_SELECTOR, "[name=progress-line][value=rolling]")
    radio.send_keys(Keys.ARROW_RIGHT)
    raw = values(page, "progress")
    page.switch_to.active_element.send_keys(Keys.ARROW_RIGHT)
    best = values(page, "progress")
    assert raw != rolling
    assert best != raw
    assert page.find_element(By.ID, "status").get_attribute("textContent") == "Showing Running best"
    count = "return document.getElementById('plot-progress').data.length"
    assert page.execute_script(count) == 10
    page.find_element(By.CSS_SELECTOR, "[name=progress-band][value=off]").send_keys(Keys.SPACE)
    assert page.execute_script(count) == 5
    loss = page.find_element(By.CSS_SELECTOR, "[name=progress-measure][value=test_loss]")
    page.execute_script("arguments[0].click()", loss)
    title = "return document.getElementById('plot-progress').layout.yaxis.title.text"
    assert page.execute_script(title) == "Test loss"


def test_the_heat_map_shows_the_chosen_scheme(page):
    place(page, "participation")
    z = page.execute_script(
        "const z = document.getElementById('plot-participation')._fullData[0].z;"
        "return [z.length, z[0].length, Array.from(z, row => Array.from(row)).flat()]"
    )
    assert z[:2] == [12, 60]
    assert set(z[2]) == {0, 100}
    assert sum(z[2]) == 100 * 3 * 60
    kind = (
        "return document.getElementById('plot-participation').data"
        ".map(t => [t.type, t.meta.when.of])"
    )
    assert page.execute_script(kind) == [["heatmap", "0"]]
    Select(
        page.find_element(By.CSS_SELECTOR, "[data-figure=participation]")
    ).select_by_visible_text("fedavg")
    assert page.execute_script(kind) == [["heatmap", "3"]]


def column(page, number):
    cells = page.find_elements(By.CSS_SELECTOR, f".schemes tbody tr > :nth-child({number})")
    return [cell.get_attribute("data-value") for cell in cells]


def test_the_table_sorts(page):
    headings = page.find_elements(By.CSS_SELECTOR, ".schemes thead button")
    headings[0].click()
    assert column(page, 1) == sorted(LABELS)
    headings[0].send_keys(Keys.ENTER)
    assert column(page, 1) == sorted(LABELS, reverse=True)
    headings[1].click()
    final = [float(value) for value in column(page, 2)]
    assert final == sorted(final, reverse=True)
    sorting = [h.find_element(By.XPATH, "..").get_attribute("aria-sort") for h in headings]
    assert sorting.count("descending") == 1
    headings[1].click()
    assert [float(value) for value in column(page, 2)] == sorted(final)


def test_gaps_are_against_the_chosen_scheme(page):
    chooser = Select(page.find_element(By.CLASS_NAME, "reference"))
    name = chooser.options[-1].text
    before = column(page, 5)
    chooser.select_by_visible_text(name)
    after = dict(zip(column(page, 1), column(page, 5), strict=True))
    assert after[name] == ""
    assert before != list(after.values())
    assert all(float(value) > 0 for label, value in after.items() if label != name)


def test_schemes_can_be_left_out_of_all_figures(page):
    place(page, "progress")
    page.find_element(By.CSS_SELECTOR, ".chip input[value='1']").click()
    assert [name for name, _, _ in values(page, "progress")] == [
        label for label in LABELS if label != "uniform"
    ]
    page.find_element(By.CSS_SELECTOR, "[data-show=none]").click()
    assert values(page, "progress") == []
    page.find_element(By.CSS_SELECTOR, "[data-show=all]").click()
    assert len(values(page, "progress")) == 5


COLOUR = "return getComputedStyle(document.body).backgroundColor"
LINE = "return document.getElementById('plot-progress').data.at(-1).line.color"


def test_light_and_dark(browser, path):
    show(browser, path, dark=True)
    place(browser, "progress")
    night, line = browser.execute_script(COLOUR), browser.execute_script(LINE)
    browser.execute_script("document.getElementById('theme').click()")
    assert browser.execute_script(COLOUR) != night
    assert browser.execute_script(LINE) != line
    show(browser, path)
    assert browser.execute_script(COLOUR) != night


def test_a_phone_needs_no_sideways_scrolling(browser, path):
    show(browser, path, width=360, height=740, mobile=True)
    draw_all(browser)
    wide = "return document.documentElement.scrollWidth"
    assert browser.execute_script(wide) <= 360
    for svg in browser.find_elements(By.CSS_SELECTOR, ".plot"):
        assert svg.size["width"] <= 360


def test_keyboard_and_screen_reader(page):
    page.find_element(By.TAG_NAME, "body").send_keys(Keys.TAB)
    assert page.switch_to.active_element.text == "Skip to the results"
    unnamed = page.execute_script(
        "return [...document.querySelectorAll('button, select, input')].filter(e =>"
        " !(e.textContent.trim() || e.ariaLabel || e.labels?.length)).map(e => e.outerHTML)"
    )
    assert unnamed == []
    levels = page.execute_script(
        "return [...document.querySelectorAll('h1, h2, h3')].map(e => Number(e.tagName[1]))"
    )
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert max(np.diff(levels)) <= 2
    plots = page.find_elements(By.CSS_SELECTOR, ".plot")
    assert all(plot.aria_role in {"img", "image"} and plot.accessible_name for plot in plots)


def test_it_prints(page):
    pdf = page.print_page()
    assert len(pdf) > 50_000  # base64: with plots
    drawn = page.execute_script("return document.querySelectorAll('.plot svg.main-svg').length")
    assert drawn > 0


def test_hostile_names_are_inert(browser, make, tmp_path):
    comparison = make(HOSTILE, settings={"command": HOSTILE[0]})
    show(browser, report.write(comparison, tmp_path / "report.html"))
    draw_all(browser)
    assert browser.execute_script("return window.bad") is None
    assert browser.find_elements(By.CSS_SELECTOR, "main img, .plot a, main script") == []
    names = [e.text for e in browser.find_elements(By.CSS_SELECTOR, ".schemes tbody th")]
    assert sorted(names) == sorted(HOSTILE)
    shown = browser.execute_script(
        "return [...document.querySelectorAll('#plot-ratio .ytick text')].map(e => e.textContent)"
    )
    assert sorted(shown) == sorted(HOSTILE)
    assert browser.get_log("browser") == []


@pytest.mark.parametrize(("width", "fits"), [(1280, True), (400, False)])
def test_the_table_fits_or_scrolls_and_names_are_whole(browser, make, tmp_path, width, fits):
    labels = ("clustered-similarity", "clustered-size", "static-uniform", "md")
    show(browser, report.write(make(labels, seeds=8), tmp_path / "report.html"), width)
    table = browser.find_element(By.CSS_SELECTOR, ".schemes .scroll")
    room = table.get_property("clientWidth")
    assert (table.get_property("scrollWidth") <= room) == fits
    for name in browser.find_elements(By.CSS_SELECTOR, ".schemes tbody .name"):
        assert name.get_property("scrollWidth") <= name.get_property("clientWidth")
        assert name.rect["x"] + name.rect["width"] <= width


@pytest.mark.parametrize("width", [1280, 400])
def test_labels_of_the_cost_axis_do_not_overlap(browser, path, width):
    show(browser, path, width)
    place(browser, "cost")
    boxes = browser.execute_script(
        "return [...document.querySelectorAll('#plot-cost .xtick text')]"
        ".map(e => e.getBoundingClientRect()).map(r => [r.left, r.right])"
    )
    assert len(boxes) > 2
    assert all(a[1] < b[0] for a, b in pairwise(sorted(boxes)))


def test_gaps_stay_within_a_problem(browser, make, tmp_path):
    both = report.combined([make(("a", "b", "c")), make(("a", "d"), rounds=9)])
    show(browser, report.write(both, tmp_path / "report.html"))
    tables = browser.find_elements(By.CSS_SELECTOR, ".schemes")
    assert len(tables) == 2

    def gaps(table):
        return [e.text for e in table.find_elements(By.CSS_SELECTOR, "td .gap")]

    before = gaps(tables[0])
    Select(tables[1].find_element(By.CLASS_NAME, "reference")).select_by_index(1)
    assert gaps(tables[0]) == before
    assert [text == "–" for text in gaps(tables[1])] == [False, True]


@pytest.mark.slow
def test_a_large_report_opens_in_seconds(browser, make, tmp_path):
    labels = [f"scheme {i}" for i in range(30)]
    comparison = make(labels, seeds=10, rounds=1000, clients=100, classes=10)
    path = report.write(comparison, tmp_path / "report.html")
    started = time.monotonic()
    show(browser, path)
    place(browser, "progress")
    assert time.monotonic() - started < 20  # 2 to 4 seconds on an idle machine
