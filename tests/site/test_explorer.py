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
from fedcohort._internal.errors import BadInput  # noqa: E402
from fedcohort.cli.tables import read_clients  # noqa: E402

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
    "both clients": ([7, 5], 2, 1, 1.0),
    "one training": ([7], 1, 1, 1.0),
    "no difference": (SKEWED, 4, 40, 0.0),
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
const [sizes, given, words, prices] = arguments, fed = Explorer.federation(sizes);
const found = Explorer.advise(fed, given, words, prices);
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


@pytest.mark.parametrize("case", ["equal", "skewed", "one large", "one client", "all of them"])
def test_its_sentence_on_privacy_is_that_of_the_library(browser, case):
    """To the letter, given the same prices; as long as one is unknown its place is kept."""
    pytest.importorskip("dp_accounting", reason="needs the extra 'privacy'")
    wanted = explorer_data.golden(*CASES[case], noise=1.0)
    prices = {name: row["epsilon"] for name, row in wanted["rows"].items() if row}
    known = [CASES[case][0], wanted["given"], explorer_data.words_of()]
    assert "with this noise the run costs its worst-off client epsilon" in wanted["plain"][2]
    assert tuple(browser.execute_script(ADVISE, *known, prices)["plain"]) == wanted["plain"]
    waiting = browser.execute_script(ADVISE, *known, {})["plain"]
    assert waiting[2].endswith("costs its worst-off client epsilon ….")


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


def given(page, text: str | bytes, name: str, tmp_path) -> None:
    (tmp_path / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    page.find_element("id", "ex-file").send_keys(str(tmp_path / name))


def until(page, words: str, place: str) -> None:
    from selenium.webdriver.support.ui import WebDriverWait

    WebDriverWait(page, 20).until(lambda b: words in b.find_element("id", place).text)


def priced(page) -> str:
    """The advice, once it has the price in privacy."""
    from selenium.webdriver.support.ui import WebDriverWait

    advice = page.find_element("id", "ex-advice")
    WebDriverWait(page, 20).until(lambda _: "epsilon" in advice.text and "…" not in advice.text)
    return advice.text


def test_the_advice_has_the_epsilons_of_the_table(page):
    said = re.search(r"worst-off client epsilon (\S+) \((\S+): (\S+)\)\.", priced(page))
    best = page.find_element("css selector", "#ex-advice a").text
    for name, number in ((best, said[1]), (said[2], said[3])):
        assert page.find_element("css selector", f"[data-price={name}]").text == number


def test_a_file_of_sizes_is_read_and_its_clients_named(page, tmp_path):
    page.get(page.current_url.partition("#")[0] + "#m=1&rounds=2")
    page.refresh()
    given(page, "name,age,samples\nann,3,500\nbob,4,300\ncy,5,1\ndee,6,0\n", "s.csv", tmp_path)
    until(page, "3 clients with 1 to 500 samples", "ex-about")
    assert "1 without samples is left out" in page.find_element("id", "ex-about").text
    assert "cy (1 sample)" in page.find_element("id", "ex-unseen").text
    command = page.find_element("id", "ex-command").text
    assert command.startswith("fedcohort advise s.csv --column samples -m 1 ")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "wrong.csv has no sizes; it must have one line per client."),
        ("id,a,b\n", "wrong.csv has no clients below its line of names."),
        ("size\n0\n0\n", "no client has a sample in 'size'"),
        (
            "size\n5\n-2\n",
            "wrong.csv, line 3: a size must be a whole number from 0 to 10^15; got -2.",
        ),
        ("a,1\n\n\nb,many\n", "wrong.csv, line 4: a size must be a whole number"),
        ("a,1\n\nb,1,2\n", "wrong.csv, line 3: 2 columns as in line 1; got 3."),
        ("id,patients,beds\n1,100,9\n2,200,3\n", "3 columns: choose the one that has the sizes"),
        (b"Z\xfcrich,5\n", "in a spreadsheet, save it as 'CSV UTF-8'"),
    ],
)
def test_a_file_that_does_not_fit_is_told_in_a_sentence(page, tmp_path, text, says):
    before = priced(page)
    given(page, text, "wrong.csv", tmp_path)
    until(page, says, "ex-error")
    until(page, "100 clients with", "ex-about")  # what was there stays
    assert priced(page) == before


TABLES = (
    "5\n", "id,size\na,10", "size\n3\n1\n", "a,3\nb,1\n", "7,3\n8,1\n", "a;3\nb;1\n",
    "a\t3\nb\t1\n",
    "\ufeffsize\r\n3\r\n\r\n1\r\n", '"a, b",3\n"c ""d""",0\n', "3.0\n1e3\n", "1000000000000000\n",
    "id,num-examples\na,3\nb,1\n", "num-examples\n3\n1\n", "N (2024)\n3\n1\n", "patients 2024\n3\n",
    "site,# patients\na,3\nb,1\n", "size,id\n3,a\n1,b\n", "patients,client_id\n3,a\n1,b\n",
    "id,2024\na,3\nb,1\n", "n,3\nm,1\n", "node,3\nkey,1\n", "sep=;\r\nid;size\r\na;3\r\n",
    "name,age,samples\na,3,5\nb,4,6\n", "hospital,region,patients\na,x,5\nb,x,6\n",
    "1,100,x\n2,200,y\n", "Ähre,3\nÖl,1\n",
    # refused by both, in the same words
    "", "size\n", "3\nmany\n", "size\n3\n-4\n", "3\n2.5\n", "3\nnan\n", "3\n10000000000000000\n",
    "3\n99999999999999999999\n", "1.200\n3\n", "3\n1.000\n", 'a,"1,200"\n', "a,1\n\nb\n",
    "id,size\nx,\n",
    "a,n/a\nb,1\n", "a,12O\nb,1\n", "\n\na,3\n\nb,x\n", "a,1\nb,2\na,3\n", "3,many\n1,5\n",
    "id,a,b\n", "h,size,x\na,1,2\nb,1\n", "h,size,x\na,1,2\nb,x,2\n",
)  # fmt: skip
ASKED = (
    "id,patients,beds\n1,100,9\n2,200,3\n", "A,10,3,7\nB,20,5,15\n", "1,2,3\n4,5,6\n",
    "h,x,x\na,3,1\nb,2,1\n",
)  # fmt: skip
"""Which column has the sizes is nobody's guess."""

READ = """
try {
  const table = Explorer.readTable(arguments[0], arguments[1]);
  if (table.column === null) return "asked";
  return [Explorer.sizesOf(table, table.column), Explorer.idsOf(table, table.column)];
} catch (error) { return error.message; }
"""


@pytest.mark.parametrize("text", [*TABLES, *ASKED])
def test_it_reads_a_table_as_the_command_line_does(page, tmp_path, text):
    path = tmp_path / "t.csv"
    path.write_bytes(text.encode())
    found = page.execute_script(READ, text.removeprefix("\ufeff"), str(path))
    try:
        read = read_clients(path).sizes
    except BadInput as error:
        said = str(error).partition(" If the first column")[0]
        assert found == ("asked" if text in ASKED else said)
    else:
        ids = None if read.ids is None else list(read.ids)
        assert found == [read.sizes.tolist(), ids]


@pytest.mark.parametrize("text", ["5\n", "id,size\na,10", "size\n1\n"])
def test_one_client_is_a_federation_too(page, tmp_path, text):
    given(page, text, "one.csv", tmp_path)
    until(page, "1 client with", "ex-about")
    assert page.find_element("id", "ex-error").text == ""
    assert "Every round it takes the only client" in page.find_element("id", "ex-advice").text
    assert "Nothing to draw" in page.find_element("id", "ex-pictures").text
    assert "the only client is all but certain" in page.find_element("id", "ex-unseen").text
    page.find_element("id", "ex-forget").click()
    until(page, "100 clients with", "ex-about")
    assert page.find_element("id", "ex-m").get_attribute("value") == "10"  # as before the file


def test_a_table_that_cannot_be_guessed_is_asked_about(page, tmp_path):
    from selenium.webdriver.support.ui import Select

    given(page, "A,10,3,7\nB,20,5,15\nC,30,10,20\n", "t a.csv", tmp_path)
    until(page, "choose the one that has the sizes", "ex-error")
    Select(page.find_element("id", "ex-column")).select_by_visible_text("column 2")
    until(page, "3 clients with 10 to 30 samples", "ex-about")
    assert page.find_element("id", "ex-error").text == ""
    command = page.find_element("id", "ex-command").text
    assert command.startswith("fedcohort advise 't a.csv' --column 2 -m 3 ")
    Select(page.find_element("id", "ex-column")).select_by_visible_text("column 1")
    until(page, "line 1: a size must be a whole number from 0 to 10^15; got 'A'.", "ex-error")
    until(page, "3 clients with 10 to 30 samples", "ex-about")
    assert page.find_element("id", "ex-column").get_attribute("value") == "1"


@pytest.mark.parametrize(
    ("key", "typed", "says"),
    [
        ("m", "500", "Whole numbers from 1 to 100 here: 500 became 100."),
        ("rounds", "0", "Whole numbers from 1 to 10000 here: 0 became 1."),
        ("heterogeneity", "1000", "from 0 to 100 here: 1000 became 100."),
        ("heterogeneity", "0", ""),
    ],
)
def test_a_field_says_its_limits(page, key, typed, says):
    from selenium.webdriver.common.keys import Keys

    field = page.find_element("id", f"ex-{key}")
    field.send_keys(Keys.CONTROL, "a")
    field.send_keys(Keys.NULL, typed, Keys.TAB)
    assert page.find_element("css selector", f"[data-key={key}] small").text == says
    if not says:
        assert "--heterogeneity 0 " in page.find_element("id", "ex-command").text


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
    for svg in page.find_elements("css selector", "#explorer svg:not([aria-hidden])"):
        assert svg.get_attribute("aria-label")


def test_what_is_seen_can_be_sent_as_an_address(page):
    page.get(page.current_url.partition("#")[0] + "#n=40&skew=0&m=7&rounds=12&noise=3")
    page.refresh()
    assert "40 clients with 100 samples each" in page.find_element("id", "ex-about").text
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


def blended(colour: str, ground: str, opacity: float) -> str:
    """What is seen of a colour that lets its ground shine through."""
    pairs = [(int(colour[i : i + 2], 16), int(ground[i : i + 2], 16)) for i in (1, 3, 5)]
    return "#" + "".join(f"{round(opacity * c + (1 - opacity) * g):02x}" for c, g in pairs)


def test_colours_can_be_told_from_their_ground(page):
    """3 to 1 for lines and marks (WCAG 1.4.11), in both themes; every scheme has a colour."""
    seen = page.execute_script(
        "return [...document.querySelectorAll('#explorer .line')].map((line) => {"
        "const s = getComputedStyle(line);"
        "return [line.dataset.scheme, s.strokeOpacity * s.opacity, s.strokeDasharray,"
        "line.classList.contains('chosen')]})"
    )
    opacity = {name: min(o for each, o, *_ in seen if each == name) for name, *_ in seen}
    dashes = {name: dash for name, _, dash, chosen in seen if not chosen}
    assert "none" not in dashes.values()
    assert len(set(dashes.values())) == len(dashes) >= len(explorer_data.NAMES) - 1
    style = (SCRIPTS / "explorer.css").read_text("utf-8")
    found = re.findall(r"^(.*)\.explorer \[data-scheme=\"([\w-]+)\"\] { --c: (#\w{6})", style, re.M)
    assert {name for before, name, _ in found if not before} == set(explorer_data.NAMES)
    dark = {name: colour for before, name, colour in found if before}
    light = {name: colour for before, name, colour in found if not before}
    for colours, ground in ((light, "#ffffff"), ({**light, **dark}, "#1e2129")):
        for name, colour in colours.items():
            mixed = blended(colour, ground, opacity.get(name, 1.0))
            pair = sorted((luminance(mixed), luminance(ground)))
            assert (pair[1] + 0.05) / (pair[0] + 0.05) >= 3, (name, ground)


def test_it_is_small_and_needs_nobody():
    """Its own code, words included, is below 100 kB and names no address."""
    made = "".join(explorer_data.files().values())
    texts = [path.read_text("utf-8") for path in sorted(SCRIPTS.iterdir())]
    texts += [made, (ROOT / "docs" / "explorer.md").read_text("utf-8")]
    assert sum(len(text.encode()) for text in texts) < 100_000
    assert not re.search(r"https?://|\bimport\b\s*[({\"']|\bfetch\(", "".join(texts))
