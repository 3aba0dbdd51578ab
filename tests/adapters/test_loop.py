"""What the loops of all frameworks share: a saved run goes on as if nothing had happened."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from fedcohort import Federation, Selector
from fedcohort._internal.errors import BadInput, BadParameter, FedcohortWarning
from fedcohort._internal.types import Floats
from fedcohort.adapters._loop import Loop
from fedcohort.server import Fault

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


@pytest.mark.parametrize(
    ("sent", "fault"),
    [
        (np.array(["a", "b", "c"]), Fault.WRONG_TYPE),
        ([[1.0], [1.0, 2.0]], Fault.UNREADABLE),
        (None, Fault.WRONG_TYPE),
        (np.full(D, 1e300), Fault.OUT_OF_RANGE),
        (np.full(D, 2e6), Fault.OUT_OF_RANGE),
        (np.full(D, 1j), Fault.WRONG_TYPE),
        (np.zeros(D + 1), Fault.WRONG_SHAPE),
        (np.full(D, np.nan), Fault.NOT_FINITE),
    ],
)
def test_one_client_that_sends_something_else_ends_no_round(sent: Any, fault: Fault) -> None:
    loop = OwnLoop(selector("full"))
    loop.invite(dimension=D)
    with pytest.warns(FedcohortWarning, match=f"count as not sent.* of 2: {fault.name.lower()}"):
        after = loop.step(np.zeros(D), {i: sent if i == 2 else np.ones(D) for i in range(N)})
    weights = np.arange(1, N + 1) / (N * (N + 1) / 2)
    np.testing.assert_allclose(after, np.full(D, 1 - weights[2]))
    assert loop.gate.by_client == {(2, fault): 1}
    assert loop.selector.round == 1


def test_what_is_believed_of_a_change_is_a_setting() -> None:
    loop = OwnLoop(selector("full"), largest=1e7)
    loop.invite(dimension=D)
    assert loop.step(np.zeros(D), {i: np.full(D, 2e6) for i in range(N)})[0] == pytest.approx(2e6)
    with pytest.raises(BadParameter, match="The 'largest' parameter of own must be a number above"):
        OwnLoop(selector("full"), largest=0)


@pytest.mark.parametrize("position", [-1, N, 0.5])
def test_a_position_that_is_no_clients_is_refused_and_changes_nothing(position) -> None:
    """-1 was the last client."""
    loop = OwnLoop(selector("full"))
    loop.invite(dimension=D)
    came = {i: np.ones(D) for i in range(N - 1)}
    with pytest.raises(BadInput, match="'updates' must be positions"):
        loop.step(np.zeros(D), {**came, position: np.full(D, 5.0)})
    assert loop.selector.round == 0
    np.testing.assert_allclose(loop.step(np.zeros(D), {**came, N - 1: np.ones(D)}), np.ones(D))


def test_who_was_not_invited_is_not_heard() -> None:
    loop = OwnLoop(selector("clustered-size:m=3"))
    chosen = loop.invite(dimension=D).clients.tolist()
    other = next(i for i in range(N) if i not in chosen)
    came = {i: np.ones(D) for i in (*chosen, other)}
    with pytest.warns(FedcohortWarning, match="'not_asked': 1"):
        after = loop.step(np.zeros(D), came)
    np.testing.assert_allclose(after, np.ones(D))
