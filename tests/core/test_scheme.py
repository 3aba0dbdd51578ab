from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
import pytest

from fedcohort import Citation, Federation, Moment, Scheme, scheme, schemes
from fedcohort.core import NoState, Whole, cohort_size
from fedcohort.core.errors import BadParameter, FedcohortError, FedcohortWarning, UnknownName


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
        Needy(2).select(NoState(), federation, Moment(), None)


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


package = sys.modules["fedcohort.schemes"]  # the attribute of that name is the function


class Other(Needy):
    pass


def discovered() -> dict[str, type[Scheme[Any]]]:
    return schemes.__wrapped__()  # type: ignore[no-any-return]


def test_two_schemes_of_one_name_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(package, "_all_classes", lambda: iter([Needy, Other]))
    with pytest.raises(FedcohortError, match="Two schemes are named 'needy'"):
        discovered()


@dataclass
class Point:
    value: str
    loaded: Any

    def load(self) -> Any:
        if self.loaded is None:
            raise ImportError("no such module")
        return self.loaded


def test_other_packages_add_schemes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(package, "entry_points", lambda group: [Point("mine", Needy)])
    assert discovered()["needy"] is Needy


def test_a_broken_package_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(package, "entry_points", lambda group: [Point("theirs", None)])
    with pytest.warns(FedcohortWarning, match="'theirs' of another package .*no such module"):
        assert "md" in discovered()
