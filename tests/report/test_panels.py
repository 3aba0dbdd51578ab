"""Panels of the report: found by themselves, in their order, those of other packages too."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from fedcohort import Comparison, compare
from fedcohort.core.errors import BadInput, FedcohortWarning
from fedcohort.learning import Quadratic
from fedcohort.report import panels
from fedcohort.report.panels import PANELS
from fedcohort.report.show import page

OWN = '''
"""How many there are."""

from dataclasses import dataclass
from html import escape
from typing import ClassVar

from fedcohort.core.errors import BadInput
from fedcohort.report.panels import Panel


@dataclass(frozen=True)
class Census(Panel):
    """How many clients there are."""

    name: ClassVar[str] = "census"
    title: ClassVar[str] = "How <many>"
    place: ClassVar[float] = 25

    def content(self, shown):
        CONTENT
'''


@pytest.fixture
def comparison() -> Comparison:
    task = Quadratic([[0.0], [1.0], [2.0]])
    return compare(task, ["md:m=2", "full"], rounds=2, seeds=1, jobs=1)


@pytest.fixture
def anew() -> Iterator[None]:
    PANELS.refresh()
    yield
    PANELS.refresh()


def added(content: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "census.py").write_text(OWN.replace("CONTENT", content))
    monkeypatch.setattr(panels, "__path__", [*panels.__path__, str(folder)])
    monkeypatch.delitem(__import__("sys").modules, "fedcohort.report.panels.census", raising=False)
    PANELS.refresh()


def test_they_stand_in_their_order(comparison: Comparison) -> None:
    text = page.page(comparison)
    places = [text.index(f'<section id="{name}"') for name in ("result", "curves", "cost")]
    assert places == sorted(places)
    assert [cls.place for cls in PANELS.all().values()] == list(
        dict.fromkeys(cls.place for cls in PANELS.all().values())
    )
    assert '<section id="labels"' not in text  # there are none


@pytest.mark.usefixtures("anew")
def test_one_of_ones_own_is_one_file(
    comparison: Comparison, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = 'return (f"<p>{len(shown.comparison.traces[0].importance)} clients</p>",)'
    added(said, tmp_path, monkeypatch)
    text = page.page(comparison)
    assert "<h2>How &lt;many&gt;</h2><p>3 clients</p></section>" in text
    assert '<li><a href="#census">How &lt;many&gt;</a></li>' in text
    where = [text.index(f'<section id="{name}"') for name in ("cost", "census", "clients")]
    assert where == sorted(where)


@pytest.mark.usefixtures("anew")
def test_one_that_fails_is_left_out_and_named(
    comparison: Comparison, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    added("return 1 / 0", tmp_path, monkeypatch)
    with pytest.warns(FedcohortWarning, match="The panel 'census' is left out: ZeroDivision"):
        text = page.page(comparison)
    assert "census" not in text.partition("<script")[0]
    assert '<section id="settings"' in text


@pytest.mark.usefixtures("anew")
def test_one_that_has_nothing_to_show_is_left_out(
    comparison: Comparison, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    added("return ()", tmp_path, monkeypatch)
    assert '<section id="census"' not in page.page(comparison)


@pytest.mark.usefixtures("anew")
def test_a_mistake_of_the_users_is_told(
    comparison: Comparison, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    added("raise BadInput('no such thing')", tmp_path, monkeypatch)
    with pytest.raises(BadInput, match="no such thing"):
        page.page(comparison)
