"""The explorer computes in the browser what the library computes: golden vectors, made here."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from helpers.browser import BROWSER, DRIVER, opened

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tools" / "site"))

import explorer_data  # noqa: E402

SCRIPTS = ROOT / "docs" / "assets" / "explorer"
COMPUTING = ("chances.js", "laws.js", "price.js", "advice.js")
SKEWED = [900, 700, 650, 400, 380, 200, 180, 120, 90, 60, 55, 40, 31, 22, 17, 12, 8, 5, 3, 1]
CASES = {
    "equal": ([50] * 30, 5, 100, 1.0),
    "skewed": (SKEWED, 4, 40, 1.0),
    "unlike": (SKEWED, 6, 1000, 20.0),
    "alike": ([10, 11, 12, 13, 14, 15, 16, 17], 3, 7, 0.01),
    "one large": ([1000, *([10] * 40)], 10, 200, 1.0),
    "all of them": (SKEWED, 20, 3, 1.0),
    "some empty": ([0, 5, 0, 8, 13, 21], 2, 1, 2.0),
    "one draw": ([5, 4, 3, 2, 1], 1, 50, 0.5),
    "one client": ([7], 1, 10, 1.0),
    "many": ([100 + 37 * i % 1013 for i in range(800)], 25, 300, 3.0),
}


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    if not (BROWSER and DRIVER):
        pytest.skip("needs chromium and chromedriver")
    pytest.importorskip("selenium")
    with opened(tmp_path_factory.mktemp("profile")) as driver:
        driver.get("about:blank")
        for name in COMPUTING:
            driver.execute_script((SCRIPTS / name).read_text("utf-8"))
        yield driver


ADVISE = """
const [sizes, given, words] = arguments, fed = Explorer.federation(sizes);
const found = Explorer.advise(fed, given, words);
return {...found, rows: found.rows.map((row) => row.why ? row : {...row, never: null, law: null,
  chance: [...row.law.chance].sort((a, b) => b - a), weight: [...row.law.weight],
  variance: [...row.law.variance].sort((a, b) => a - b)})};
"""


@pytest.mark.parametrize("case", CASES)
def test_it_says_what_the_library_says(browser, case):
    """Numbers to rounding, the recommendation and its sentences to the letter."""
    sizes, m, rounds, heterogeneity = CASES[case]
    wanted = explorer_data.golden(sizes, m, rounds, heterogeneity)
    words = explorer_data.words_of()
    found = browser.execute_script(ADVISE, sizes, wanted["given"], words)
    assert {row["name"] for row in found["rows"]} == set(explorer_data.NAMES)
    for row in found["rows"]:
        expected = wanted["rows"][row["name"]]
        if expected is None:
            assert row["why"], row["name"]
            continue
        for key, value in expected.items():
            if key != "epsilon":
                close = None if value is None else pytest.approx(value, rel=1e-9, abs=1e-11)
                assert row[key] == close, (row["name"], key)
    assert found["best"] == wanted["best"]
    assert tuple(found["plain"]) == wanted["plain"]
    assert tuple(found["aboutM"]) == wanted["aboutM"]


PRICE = """
const [sizes, given, noise, delta] = arguments, fed = Explorer.federation(sizes);
return Object.fromEntries(Explorer.NAMES.map((name) => {
  const law = Explorer.law(name, fed, given.m);
  return [name, law.why ? null : Explorer.price(law, given.rounds, noise, delta).epsilon];
}));
"""


@pytest.mark.site
@pytest.mark.parametrize("case", ["equal", "skewed", "one large"])
@pytest.mark.parametrize("noise", [0.7, 4.0])
def test_its_price_in_privacy_is_that_of_the_library(browser, case, noise):
    """Both are upper bounds on grids of their own; a grid in the browser is coarser."""
    pytest.importorskip("dp_accounting", reason="needs the extra 'privacy'")
    sizes, m, rounds, heterogeneity = CASES[case]
    wanted = explorer_data.golden(sizes, m, rounds, heterogeneity, noise)
    found = browser.execute_script(PRICE, sizes, wanted["given"], noise, 1e-5)
    for name, row in wanted["rows"].items():
        expected = None if row is None else pytest.approx(row["epsilon"], rel=0.02, abs=1e-3)
        assert found[name] == expected, name


def test_normal_tails_are_exact_far_out(browser):
    from scipy.special import log_ndtr

    points = [-38.0, -12.5, -5.0, -1.0, -0.1, 0.0, 0.3, 2.0, 6.0]
    found = browser.execute_script("return arguments[0].map(Explorer.logNormal)", points)
    assert found == pytest.approx(log_ndtr(points).tolist(), rel=1e-13, abs=1e-16)


def test_numbers_are_written_as_python_writes_them(browser):
    values = [0.5, 1.5, 2.5, 999.4, 1234567.0, 12.26, 0.00123456, 5.55e-7]
    whole = browser.execute_script("return arguments[0].map(Explorer.whole)", values)
    assert whole == [f"{value:,.0f}" for value in values]
    short = browser.execute_script("return arguments[0].map((v) => Explorer.short(v))", values)
    assert short == [f"{value:.3g}" for value in values]


@pytest.fixture
def page(browser, tmp_path):
    """The page without the site around it, opened from a folder; what the site adds are colours."""
    text = (ROOT / "docs" / "explorer.md").read_text("utf-8").partition("---\n")[2]
    made = explorer_data.files()["assets/explorer/words.js"]
    text = text.replace('src="assets/explorer/words.js">', f">{made}")
    text = text.replace('src="assets', f'src="{(ROOT / "docs" / "assets").as_uri()}')
    style = f'<link rel="stylesheet" href="{(SCRIPTS / "explorer.css").as_uri()}">'
    head = f'<meta charset="utf-8"><meta name="viewport" content="width=device-width">{style}'
    (tmp_path / "explorer.html").write_text(f"<!doctype html>{head}{text}", encoding="utf-8")
    browser.get((tmp_path / "explorer.html").as_uri())
    yield browser
    wrong = [row for row in browser.get_log("browser") if row["level"] == "SEVERE"]
    assert wrong == []


def given(page, text: str, name: str, tmp_path) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    page.find_element("id", "ex-file").send_keys(str(tmp_path / name))


def until(page, words: str, place: str) -> None:
    from selenium.webdriver.support.ui import WebDriverWait

    WebDriverWait(page, 20).until(lambda b: words in b.find_element("id", place).text)


def test_a_file_of_sizes_is_read_and_its_clients_named(page, tmp_path):
    given(page, "name,age,samples\nann,3,500\nbob,4,300\ncy,5,1\ndee,6,0\n", "s.csv", tmp_path)
    until(page, "3 clients with 1 to 500 samples", "ex-about")
    assert "1 without samples is left out" in page.find_element("id", "ex-about").text
    assert "cy (1 sample)" in page.find_element("id", "ex-unseen").text
    command = page.find_element("id", "ex-command").text
    assert command.startswith('fedcohort advise s.csv --column "samples" -m 3 ')


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "The file is empty."),
        ("id,size\n", "a line of names and nothing below it"),
        ("id,size\na,1\nb,many\n", "Line 3 of 'size' must be a number of samples, got 'many'"),
        ("id,size\na,1\nb,2,3\n", "Line 3 has 3 columns, the first line has 2"),
        ("size\n0\n0\n", "No client has a sample"),
        ("size\n5\n-2\n", "got '-2'"),
    ],
)
def test_a_file_that_does_not_fit_is_told_in_a_sentence(page, tmp_path, text, says):
    given(page, text, "wrong.csv", tmp_path)
    until(page, says, "ex-error")
    until(page, "100 clients with", "ex-about")  # what was there stays


def test_it_works_by_keyboard_and_says_so_aloud(page):
    """Arrows move whole numbers by one, rows are radio buttons, every field has a name."""
    from selenium.webdriver.common.keys import Keys

    slider = page.find_element("css selector", "[data-key=m] input[type=range]")
    slider.send_keys(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
    assert page.find_element("id", "ex-m").get_attribute("value") == "12"
    assert slider.get_attribute("aria-valuetext") == "12"
    assert "m=12" in page.current_url
    advice = page.find_element("id", "ex-advice")
    assert advice.get_attribute("aria-live") == "polite"
    assert "m = 12 needs 100 rounds" in advice.text
    page.find_element("css selector", "input[value=pivotal]").send_keys(Keys.ARROW_DOWN)
    chosen = page.switch_to.active_element
    assert chosen.get_attribute("value") != "pivotal"
    unseen = page.find_element("id", "ex-unseen").text
    assert f"With {chosen.get_attribute('value')} about" in unseen
    for field in page.find_elements("css selector", "#explorer :is(input, select)"):
        assert field.accessible_name or not field.is_displayed(), field.get_attribute("outerHTML")
    for svg in page.find_elements("css selector", "#explorer svg"):
        assert svg.get_attribute("aria-label")


def test_what_is_seen_can_be_sent_as_an_address(page):
    page.get(page.current_url.partition("#")[0] + "#n=40&skew=0&m=7&rounds=12&noise=3")
    page.refresh()
    assert "40 clients with 100 to 100 samples" in page.find_element("id", "ex-about").text
    assert page.find_element("css selector", "#ex-advice h2").text == "Use uniform."
    until(page, "-m 7 --rounds 12", "ex-command")


def test_it_fits_a_phone(page):
    page.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": 360, "height": 740, "deviceScaleFactor": 1, "mobile": True},
    )
    try:
        wide = page.execute_script("return document.documentElement.scrollWidth")
    finally:
        page.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    assert wide <= 360


def luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_colours_can_be_told_from_their_ground():
    """3 to 1 for lines and marks (WCAG 1.4.11), in both themes; every scheme has a colour."""
    style = (SCRIPTS / "explorer.css").read_text("utf-8")
    found = re.findall(r"^(.*)\.explorer \[data-scheme=\"([\w-]+)\"\] { --c: (#\w{6})", style, re.M)
    assert {name for before, name, _ in found if not before} == set(explorer_data.NAMES)
    dark = {name: colour for before, name, colour in found if before}
    light = {name: colour for before, name, colour in found if not before}
    for colours, ground in ((light, "#ffffff"), ({**light, **dark}, "#1e2129")):
        for name, colour in colours.items():
            pair = sorted((luminance(colour), luminance(ground)))
            assert (pair[1] + 0.05) / (pair[0] + 0.05) >= 3, (name, ground)


def test_it_is_small_and_needs_nobody():
    """Its own code, words included, is below 100 kB and names no address."""
    made = "".join(explorer_data.files().values())
    texts = [path.read_text("utf-8") for path in sorted(SCRIPTS.iterdir())]
    texts += [made, (ROOT / "docs" / "explorer.md").read_text("utf-8")]
    assert sum(len(text.encode()) for text in texts) < 100_000
    assert not re.search(r"https?://|\bimport\b\s*[({\"']|\bfetch\(", "".join(texts))
