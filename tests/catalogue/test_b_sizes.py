"""Bad sizes and weights: cases B34 to B51 of the catalogue in docs/reliability.md."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fedcohort import Federation, Selector, scheme
from fedcohort._internal.errors import BadInput, BadParameter, FedcohortWarning
from fedcohort.selection import Cohort
from fedcohort.theory import enumerated_moments
from helpers.catalogue import case, federation, refuses, selector

test_B35_all_sizes_zero = refuses(
    case("plain", lambda: federation(0, 0), BadInput, "must not all be 0"),
)

test_B36_a_negative_size = refuses(
    case("plain", lambda: federation(3, -1), BadInput, "client 1 has -1"),
)

test_B37_a_size_that_is_not_finite = refuses(
    case("nan", lambda: Federation(sizes=[1, float("nan")]), BadInput, "client 1 has nan"),
    case("inf", lambda: Federation(sizes=[float("inf")]), BadInput, "client 0 has inf"),
    case("array", lambda: Federation(sizes=np.array([1.0, np.nan])), BadInput, "client 1 has"),
    case(
        "object",
        lambda: Federation(sizes=np.array([np.nan, 1], dtype=object)),
        BadInput,
        "client 0 has nan",
    ),
)

test_B38_a_size_that_is_not_whole = refuses(
    case("plain", lambda: Federation(sizes=[3.7]), BadInput, "client 0 has 3.7"),
)

test_B39_a_size_that_is_no_number = refuses(
    case("bool", lambda: Federation(sizes=[True, 2]), BadInput, "client 0 has True"),
    case("text", lambda: Federation(sizes=["3"]), BadInput, "client 0 has '3'"),
    case("none", lambda: Federation(sizes=[1, None]), BadInput, "client 1 has None"),
    case("bools", lambda: Federation(sizes=np.array([True])), BadInput, "client 0 has"),
    case("table", lambda: Federation(sizes=[[1, 2]]), BadInput, r"client 0 has \[1, 2\]"),
    case("number", lambda: Federation(sizes=5), BadInput, "got 5"),
    case("mapping", lambda: Federation(sizes={"a": 1}), BadInput, "from_sizes"),  # type: ignore[arg-type]
)

test_B44_one_client_owns_everything_without_replacement = refuses(
    case("plain", lambda: selector("uniform", 9, 0, m=2).select(), BadParameter, r"chosen \(1\)"),
)

test_B49_more_than_a_client_can_be_chosen = refuses(
    case(
        "plain",
        lambda: selector("poisson", 8, 1, 1, m=2).select(),
        BadParameter,
        "at most 1.*cap",
    ),
)

test_B51_importance_that_does_not_sum_to_one = refuses(
    case("plain", lambda: Federation(importance=[0.5, 0.6]), BadInput, "sums to 1.1"),
    case("nan", lambda: Federation(importance=[np.nan, 1]), BadInput, "client 0 has nan"),
    case("negative", lambda: Federation(importance=[-1, 2]), BadInput, "client 0 has -1"),
    case("two", lambda: Federation([0.5, 0.5], sizes=[1]), BadInput, "got 2 and 1"),
)


@pytest.mark.parametrize("name", ["md", "uniform", "fedavg", "binomial", "poisson"])
def test_B34_a_client_without_data_is_never_chosen(name: str) -> None:
    design = selector(name, 3, 0, 2, m=1).design()
    assert design is not None
    assert design.inclusion()[1] == design.mean()[1] == 0


def test_B34_mostly_without_data() -> None:
    with pytest.warns(FedcohortWarning, match="3 of 5 clients have no data"):
        federation(1, 0, 0, 0, 2)


@pytest.mark.parametrize("name", ["md", "poisson", "clustered-size", "uniform"])
@pytest.mark.parametrize(
    "sizes",
    [[2**62, 2**62 - 1, 5, 1], [2**62] * 4, [2**53 + 1, 2**53, 1, 3], [2**80, 2**79, 2**79, 9]],
    ids=["B40", "B41", "B42", "B41-beyond"],
)
def test_B40_B41_B42_huge_sizes_are_exact(name: str, sizes: list[int]) -> None:
    parameters = {"m": 4, "cap": True} if name == "poisson" else {"m": 4}
    chooser = Selector(scheme(name, **parameters), Federation.from_sizes(sizes), seed=0)
    design = chooser.design()
    assert design is not None
    mean = enumerated_moments(design.enumerate(), 4).mean
    assert [part * sum(sizes) for part in mean] == sizes
    assert len(chooser.select()) > 0


def test_B38_whole_floats_are_whole() -> None:
    assert Federation(sizes=[3.0, 2]).sizes.tolist() == [3, 2]  # type: ignore[union-attr]
    assert Federation(sizes=[2**63 + 1, 3.0]).sizes.tolist() == [2**63 + 1, 3]  # type: ignore[union-attr]
    assert Federation(sizes=np.array([3, 4], dtype=np.uint8)).sizes.tolist() == [3, 4]  # type: ignore[union-attr]
    large = np.array([2**63, 1], dtype=np.uint64)
    assert Federation(sizes=large).sizes.tolist() == [2**63, 1]  # type: ignore[union-attr]


def test_B43_all_equal() -> None:
    md, clustered = (selector(name, *[5] * 6, m=3).design() for name in ("md", "clustered-size"))
    assert md is not None
    assert clustered is not None
    np.testing.assert_allclose(md.mean(), 1 / 6)
    np.testing.assert_allclose(clustered.inclusion(), 1 / 2)  # two clients to a row


def test_B44_one_client_owns_everything() -> None:
    for name in ("md", "clustered-size"):
        cohort = selector(name, 9, 0, m=4).select()
        assert cohort == Cohort.of([0], 1.0, [4])


def test_B45_a_client_larger_than_a_row() -> None:
    for dedicate in (False, True):
        design = selector("clustered-size", 10, 3, 2, 1, m=3, dedicate_large=dedicate).design()
        assert design is not None
        np.testing.assert_allclose(design.mean(), np.array([10, 3, 2, 1]) / 16)
        assert design.inclusion()[0] == 1


def test_B47_one_draw_is_md() -> None:
    md, clustered = (selector(name, 5, 4, 3, m=1).design() for name in ("md", "clustered-size"))
    np.testing.assert_allclose(md.covariance(), clustered.covariance())  # type: ignore[union-attr]


def test_B49_poisson_with_a_cap() -> None:
    design = selector("poisson", 8, 1, 1, m=2, cap=True).design()
    assert design is not None
    np.testing.assert_allclose(design.mean(), [0.8, 0.1, 0.1])


def test_B50_an_empty_poisson_draw_is_a_void_round() -> None:
    chooser = selector("poisson", *[1] * 50, m=1, seed=1)
    lengths = []
    for _ in range(30):
        lengths.append(len(chooser.select()))
        chooser.observe()
    assert 0 in lengths
    assert max(lengths) > 1


def test_B51_importance_is_mended_by_a_rounding_error_only() -> None:
    mended = Federation(importance=[0.5, 0.5 + 1e-9])
    assert mended.importance.sum() == pytest.approx(1.0, abs=1e-15)
    with pytest.raises(BadInput, match="Divide by the sum"):
        Federation(importance=[0.5, 0.5 + 1e-5])


def test_a_federation_cannot_be_changed() -> None:
    mine = np.array([3, 2, 1])
    fixed = Federation(sizes=mine)
    mine[0] = 100
    assert fixed.sizes.tolist() == [3, 2, 1]  # type: ignore[union-attr]
    for array in (fixed.sizes, fixed.importance, fixed.shares.parts):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 9  # type: ignore[index]


@pytest.mark.parametrize("m", [1, 2, 3, 7])
@pytest.mark.parametrize("name", ["md", "clustered-size"])
def test_B46_a_distribution_sums_to_one_exactly(name: str, m: int) -> None:
    sizes = [3, 1, 4, 1, 5, 9, 2, 6]  # no power of two among their sums
    design: Any = selector(name, *sizes, m=m).design()
    law = list(design.enumerate()) if m < 4 else []
    assert not law or sum(chance for chance, _ in law) == 1
    entries = design.entries  # (row, client, mass): whole numbers over one width
    for row in set(entries.row.tolist()):  # md has one row for all draws
        assert int(entries.mass[entries.row == row].sum()) == design.width
