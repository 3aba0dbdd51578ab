"""What the loops of all frameworks share: a saved run goes on as if nothing had happened."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from fedcohort import Federation, Selector
from fedcohort.adapters.loop import Loop
from fedcohort.core.errors import BadInput
from fedcohort.core.types import Floats

N, D, ROUNDS = 8, 3, 12
OPTIONS: dict[str, Any] = {
    "optimiser": "adam:eta_g=0.1",
    "aggregator": "memory",
    "dropouts": "hajek",
}


class OwnLoop(Loop):
    """A loop of somebody's own."""

    name: ClassVar[str] = "own"


def rounds(carrier: Loop, theta: Floats, first: int, last: int) -> Floats:
    """Client i answers with its own vector, unless i + round is a multiple of three."""
    own = np.arange(N)[:, None] + np.eye(N, D)
    for round in range(first, last):
        chosen = carrier.invite(dimension=D).clients.tolist()
        came = {i: own[i] - theta for i in chosen if (i + round) % 3}
        theta = carrier.step(theta, came)
    return theta


def selector(scheme: str, hardened: bool = False) -> Selector:
    federation = Federation.from_sizes(np.arange(1, N + 1) * 10)
    return Selector(scheme, federation, seed=4, hardened=hardened)


@pytest.mark.parametrize(
    ("scheme", "hardened"),
    [("md:m=4", False), ("md:m=4", True), ("clustered-similarity:m=3", False)],
)
@pytest.mark.parametrize("under_way", [False, True])
def test_a_saved_loop_goes_on_with_all_that_its_server_learnt(
    tmp_path: Path, scheme: str, hardened: bool, under_way: bool
) -> None:
    whole = OwnLoop(selector(scheme, hardened), **OPTIONS)
    expected = rounds(whole, np.zeros(D), 0, ROUNDS)

    first = OwnLoop(selector(scheme, hardened), **OPTIONS)
    theta = rounds(first, np.zeros(D), 0, ROUNDS // 2)
    if under_way:
        first.invite(dimension=D)
    first.selector.save(tmp_path / "half.npz")
    again = OwnLoop(Selector.load(tmp_path / "half.npz"), **OPTIONS)
    theta = rounds(again, theta, ROUNDS // 2, ROUNDS)
    np.testing.assert_array_equal(theta, expected)
    for name in ("asked", "answered"):
        one, other = (getattr(each.selector._standing.attendance, name) for each in (whole, again))
        np.testing.assert_array_equal(one, other)


def test_another_server_cannot_go_on_with_it(tmp_path: Path) -> None:
    loop = OwnLoop(selector("md:m=4"), **OPTIONS)
    rounds(loop, np.zeros(D), 0, 2)
    loop.selector.save(tmp_path / "run.npz")
    found = Selector.load(tmp_path / "run.npz")
    with pytest.raises(BadInput, match=r"with the optimiser adam:eta_g=0\.1.*this is yogi"):
        OwnLoop(found, **OPTIONS | {"optimiser": "yogi"})
    with pytest.raises(BadInput, match=r"with the aggregator memory:.*; this is plain"):
        OwnLoop(found, **OPTIONS | {"aggregator": "plain"})
    with pytest.raises(BadInput, match="give it to that loop again before save"):
        found.save(tmp_path / "other.npz")
    with pytest.raises(BadInput, match="before update"):
        found.update(found.federation)
    found.select()
    with pytest.raises(BadInput, match="before observe"):
        found.observe()
    OwnLoop(found, **OPTIONS)  # nothing was lost
    found.save(tmp_path / "other.npz")


def test_what_a_scheme_has_learnt_since_it_was_loaded_stays(tmp_path: Path) -> None:
    OwnLoop(selector("clustered-size:m=3"), **OPTIONS).selector.save(tmp_path / "new.npz")
    found = Selector.load(tmp_path / "new.npz")
    found.select()
    OwnLoop(found, **OPTIONS)
    assert found.started


def test_a_selector_of_no_loop_is_saved_as_before(tmp_path: Path) -> None:
    plain = selector("md:m=4")
    plain.select()
    plain.observe()
    plain.save(tmp_path / "plain.npz")
    found = Selector.load(tmp_path / "plain.npz")
    found.select()
    found.observe()
    assert found.round == 2
    OwnLoop(found, **OPTIONS)
