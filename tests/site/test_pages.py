"""What the site will have, before it is built: every scheme, its formula, links that lead on."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tools" / "site"))

mathml = pytest.importorskip("latex2mathml.converter", reason="needs the extra 'docs'")

import links  # noqa: E402
import measured  # noqa: E402
import reference  # noqa: E402
import scheme_pages  # noqa: E402
from fedcohort.schemes import SCHEMES  # noqa: E402


def test_the_site_can_be_built_of_what_is_in_the_repository():
    """Its settings name nothing that is missing, and the reference no module that has moved."""
    config = pytest.importorskip("mkdocs.config")
    assert config.load_config(str(ROOT / "mkdocs.yml")).site_name == "fedcohort"
    assert all(reference.documented().values())


def test_every_scheme_is_in_the_navigation():
    listed = str(scheme_pages.navigation())
    assert [name for name in SCHEMES if f"'schemes/{name}.md'" not in listed] == []


def test_every_scheme_has_a_formula_and_a_word_on_when_to_use_it():
    """Write them in docs/schemes/laws.toml; the page itself comes without."""
    lacking = [
        name for name in SCHEMES if not {"law", "use"} <= measured.laws().get(name, {}).keys()
    ]
    assert lacking == []
    assert set(measured.laws()) <= set(SCHEMES)
    for name, own in measured.laws().items():
        assert (ROOT / "docs" / "schemes" / own.get("read", "balanced.md")).is_file(), name
        for formula in own["law"]:
            assert "<math" in mathml.convert(formula), name


def test_links_of_two_places_lead_to_pages_of_the_site():
    there = links.relinked("[a](docs/flower.md#x) [b](src/x.py) ![c](docs/images/report.png)",
                           Path("README.md"), "project/readme.md")  # fmt: skip
    assert there == "[a](../flower.md#x) b ![c](../images/report.png)"
    back = links.relinked("[a](../../README.md) [b](https://x.y)", Path("docs/schemes/md.md"),
                          "schemes/md.md")  # fmt: skip
    assert back == "[a](../project/readme.md) [b](https://x.y)"
