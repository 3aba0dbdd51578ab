"""The site as it was built: complete, and in a browser that gets nothing from outside."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from fedcohort.schemes import SCHEMES
from helpers.browser import BROWSER, DRIVER, opened

pytestmark = pytest.mark.site
SITE = Path(__file__).parents[2] / "build" / "site"
PAGES = (
    "index.html",
    "explorer.html",
    "tutorials/first-comparison.html",
    "questions.html",
    "notebooks/own_model.html",
    "notebooks/look_at_a_cohort.html",
    "schemes/md.html",
    "reference/api/server.html",
    "theory.html",
    "gallery.html",
)
PARTS = (
    "the-law", "when-to-use-it", "what-is-proved", "what-it-costs-and-what-it-tells",
    "what-it-did-here", "settings", "cite",
)  # fmt: skip


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    if not (BROWSER and DRIVER):
        pytest.skip("needs chromium and chromedriver")
    with opened(tmp_path_factory.mktemp("profile")) as driver:
        driver.get("about:blank")  # the page that a browser begins with asks for much
        yield driver


def requests(browser) -> list[str]:
    """Every address that the page asked for."""
    events = (json.loads(row["message"])["message"] for row in browser.get_log("performance"))
    sent = [event for event in events if event["method"] == "Network.requestWillBeSent"]
    return [event["params"]["request"]["url"] for event in sent]


def test_it_is_built():
    assert (SITE / "index.html").is_file(), "run `make docs`, which builds it first"


@pytest.mark.parametrize("page", PAGES)
def test_nothing_is_fetched_from_outside(browser, page):
    browser.get_log("performance")
    browser.get((SITE / page).as_uri())
    asked = requests(browser)
    assert asked
    assert [url for url in asked if not url.startswith(("file:", "data:", "blob:"))] == []
    wrong = [row for row in browser.get_log("browser") if row["level"] == "SEVERE"]
    assert wrong == []


def test_no_page_names_a_script_font_or_picture_elsewhere():
    outside = re.compile(
        r"<(?:script|img|iframe|source)[^>]+src=.?https?:|<link[^>]+href=.?https?:"
    )
    for page in SITE.rglob("*.html"):
        found = [tag for tag in outside.findall(page.read_text("utf-8")) if "canonical" not in tag]
        assert found == [], page


def test_search_works_from_a_folder(browser):
    """Workers are forbidden there: the shim must stand in."""
    browser.get((SITE / "index.html").as_uri() + "?q=pivotal")
    from selenium.webdriver.support.ui import WebDriverWait

    script = "return [...document.querySelectorAll('.md-search-result__link')].map(a => a.href)"
    found = WebDriverWait(browser, 20).until(lambda b: b.execute_script(script))
    assert any("schemes/pivotal.html" in link for link in found)


def test_every_scheme_has_a_page_and_every_page_all_its_parts():
    for name in SCHEMES:
        text = (SITE / "schemes" / f"{name}.html").read_text("utf-8")
        for part in PARTS:
            assert f'id="{part}"' in text, (name, part)
        assert '<svg class="scheme"' in text, name
        assert "<math" in text, name
        assert "@" in text.split('id="cite"')[1], name


def test_notebooks_show_what_they_printed():
    text = (SITE / "notebooks" / "look_at_a_cohort.html").read_text("utf-8")
    assert text.count('class="output"') >= 11
    assert "data:image/png" in text  # a figure, too
    text = (SITE / "notebooks" / "own_model.html").read_text("utf-8")
    assert text.count('class="output"') >= 4
    assert "reaches the best test accuracy" in text


def test_reference_has_what_people_import():
    text = (SITE / "reference" / "index.html").read_text("utf-8")
    for name in ("Selector", "compare", "simulate", "Federation", "scheme"):
        assert re.search(rf'href="api/\w+\.html#fedcohort\.[\w.]*{name}"', text), name
    assert "fedcohort compare" in (SITE / "reference" / "cli.html").read_text("utf-8")
    assert "dirichlet-per-class" in (SITE / "reference" / "settings.html").read_text("utf-8")
