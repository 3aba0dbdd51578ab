from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np
import pytest

from fedcohort import Citation, Federation, RoundContext, Scheme, compare, scheme, simulate
from fedcohort import schemes as package
from fedcohort._internal import registry
from fedcohort._internal.errors import (
    BadInput,
    BadParameter,
    FedcohortError,
    FedcohortWarning,
    UnknownName,
)
from fedcohort.schemes import SCHEMES, schemes
from fedcohort.selection import NoState, Whole, cohort_size
from fedcohort.simulation import Quadratic


@dataclass(frozen=True)
class Needy(Scheme[NoState]):
    depth: Annotated[int, Whole(2)]
    name: ClassVar[str] = "needy"
    paper: ClassVar[Citation] = Citation("A", "B", "C", 2000, "equation (1)")


def test_a_parameter_without_default_must_be_given() -> None:
    with pytest.raises(BadParameter, match=r"'depth' parameter of needy .* It has no default"):
        Needy.build()
    assert Needy.build(depth=2) == Needy(2)


def test_an_unknown_parameter_names_the_nearest() -> None:
    with pytest.raises(UnknownName, match=r"parameter of needy named 'dept'. Did you mean 'depth'"):
        Needy.build(dept=2)


def test_lists_and_arrays_become_tuples() -> None:
    for groups in ([0, 1], np.array([0, 1]), (0, 1)):
        assert scheme("target", m=1, groups=groups) == scheme("target", m=1, groups=(0, 1))


def test_a_scheme_is_written_in_short() -> None:
    assert str(scheme("md", m=3)) == "md(m=3)"
    assert len(str(scheme("target", groups=[0] * 1_000))) < 80


def test_a_citation_is_one_line() -> None:
    assert str(Needy.paper) == "A (2000). B. C. equation (1)."


def test_a_scheme_needs_a_law_or_a_way_to_select() -> None:
    federation = Federation.from_sizes([1, 2])
    with pytest.raises(NotImplementedError, match="Needy must implement law or select"):
        Needy(2).select(NoState(), federation, RoundContext(), None)


def test_cohort_size() -> None:
    federation = Federation.from_sizes([3, 0, 2, 1])
    assert cohort_size("all", federation, "x") == 3
    assert cohort_size(3, federation, "x") == 3
    assert cohort_size(3, federation.among([0, 2]), "x") == 2  # fewer today is no error
    with pytest.raises(BadParameter, match=r"that can be chosen \(3\). Got 4"):
        cohort_size(4, federation, "x")


def test_schemes_are_discovered_by_file() -> None:
    assert {"md", "uniform", "full", "clustered-size", "target"} <= set(schemes())
    assert all(cls.name == name for name, cls in schemes().items())


def test_an_unknown_scheme_names_the_nearest() -> None:
    with pytest.raises(UnknownName, match="Did you mean 'uniform'"):
        scheme("unifrom")


@pytest.fixture
def anew() -> Iterator[None]:
    """What is found now is forgotten, before and after."""
    SCHEMES.refresh()
    yield
    SCHEMES.refresh()


class Other(Needy):
    pass


@pytest.mark.usefixtures("anew")
def test_two_schemes_of_one_name_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    points = [Point("a", "a", Needy), Point("b", "b", Other)]
    monkeypatch.setattr(registry, "entry_points", lambda group: points)
    with pytest.raises(FedcohortError, match="Two schemes are named 'needy'"):
        schemes()


@dataclass
class Point:
    name: str
    value: str
    loaded: Any

    def load(self) -> Any:
        if self.loaded is None:
            raise ImportError("no such module")
        return self.loaded


@pytest.mark.usefixtures("anew")
def test_other_packages_add_schemes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "entry_points", lambda group: [Point("mine", "a:b", Needy)])
    assert schemes()["needy"] is Needy


class Undecorated(Scheme[NoState]):
    name: ClassVar[str] = "undecorated"


@pytest.mark.parametrize(
    ("loaded", "why"),
    [
        (None, "ImportError: no such module"),
        (int, "<class 'int'> is not a class of schemes: derive it from fedcohort.Scheme"),
        (Needy(2), r"Needy\(depth=2\) is not a class of schemes"),
        (Undecorated, r"Undecorated is not a dataclass: write @dataclass\(frozen=True\) above"),
    ],
)
@pytest.mark.usefixtures("anew")
def test_a_broken_package_is_left_out(
    loaded: Any, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "entry_points", lambda group: [Point("theirs", "a:b", loaded)])
    with pytest.warns(FedcohortWarning, match=rf"'theirs' of another package \(a:b\) .*{why}"):
        found = schemes()
    assert "md" in found
    assert scheme("md:m=2").parameters == {"m": 2}
    with pytest.raises(BadInput, match=f"'theirs' .* cannot be loaded: {why}"):
        scheme("theirs")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("x = 1\nif x\n    pass", "SyntaxError in line 2: expected ':'."),
        ("import os\n\nimport no_such_module_at_all", "ModuleNotFoundError in line 3: No module"),
        ("def f():\n    return 1 / 0\nf()", "ZeroDivisionError in line 2: division by zero."),
    ],
)
@pytest.mark.usefixtures("anew")
def test_a_broken_file_is_left_out(
    text: str, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "broken_one.py"
    file.write_text(text)
    monkeypatch.setattr(package, "__path__", [*package.__path__, str(tmp_path)])
    with pytest.warns(FedcohortWarning, match="is left out") as told:
        found = schemes()
    assert len(told) == 1
    assert str(told[0].message).startswith(f"The scheme file '{file}' cannot be loaded: {why}")
    assert "md" in found
    with pytest.raises(BadInput, match=r"broken_one\.py' cannot be loaded: "):
        scheme("broken-one")


def test_settings_stand_in_the_word() -> None:
    assert scheme("md:m=2") == scheme("md", m=2)
    assert scheme("uniform:m=all").parameters == {"m": "all"}
    assert scheme("pow-d:m=3,d=6", negative=True) == scheme("pow-d", m=3, d=6, negative=True)
    with pytest.raises(BadInput, match="'md:m=2' gives the setting 'm', which is given by keyw"):
        scheme("md:m=2", m=3)
    with pytest.raises(BadInput, match="gives the setting 'm' twice"):
        scheme("md:m=2,m=3")
    with pytest.raises(BadParameter, match=r"'m' parameter of md must be an int .* Got 'many'"):
        scheme("md:m=many")
    with pytest.raises(UnknownName, match="no parameter of md named 'n'"):
        scheme("md:n=2")


def test_settings_in_the_word_are_understood_wherever_a_scheme_is_named() -> None:
    task = Quadratic(np.arange(12.0).reshape(4, 3))
    trace = simulate(task, "md:m=2", rounds=1)
    assert trace.settings["parameters"] == {"m": 2}
    compared = compare(task, ["md:m=2", "md:m=3"], rounds=1, seeds=1, jobs=1)
    assert compared.labels == ("md m=2", "md m=3")


@pytest.mark.parametrize("name", ["MD", "Md", "mD"])
def test_capitals_do_not_hide_the_nearest_name(name: str) -> None:
    with pytest.raises(UnknownName, match="Did you mean 'md'"):
        scheme(name)
