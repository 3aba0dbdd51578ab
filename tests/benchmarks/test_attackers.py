"""One client in a hundred that lies: what it gets of every scheme, and without the caps."""

from __future__ import annotations

import json
from typing import Any

import pytest

import attack as command
from attackers import Influence, attacked, lies_to
from fedcohort._internal.errors import BadInput, FedcohortError
from fedcohort.schemes import SCHEMES
from fedcohort.selection import Scheme
from fedcohort.server._guards import SAVED, RateCap

FLEET = {"n": 100, "attackers": 1, "rounds": 50}
M = 5
MOST = RateCap().times * (1 + SAVED / FLEET["rounds"]) / FLEET["n"] + 1 / (FLEET["rounds"] * M)
"""What `rate-cap` promises: its rate, what may be saved, and one round more."""
BY_CHANCE = 0.015
"""What so few rounds may add where a law decides: the bound is for the expected share."""


SHARED = {cls.__mro__[1]: name for name, cls in sorted(SCHEMES.items())}
"""Of schemes that share a class, one is attacked in `make test`."""


@pytest.mark.parametrize(
    "name",
    [
        name
        if cls.__mro__[1] is Scheme or SHARED[cls.__mro__[1]] == name
        else pytest.param(name, marks=pytest.mark.slow)
        for name, cls in sorted(SCHEMES.items())
    ],
)
def test_a_liar_gets_no_more_than_its_rate_of_any_scheme(name: str) -> None:
    scheme = SCHEMES.build(name, otherwise={"m": M})
    for lie in lies_to(scheme):
        found = attacked(scheme, lie, hardened=True, **FLEET)
        assert found.weight <= MOST + BY_CHANCE, lie
        assert found.places <= MOST + BY_CHANCE, lie
        assert found.step <= MOST + BY_CHANCE, lie


PAYS = [
    ("md", "size", "size-cap+rate-cap"),
    ("uniform", "size", "size-cap+rate-cap"),
    ("pow-d:d=100", "loss", "rate-cap"),
    ("best-loss", "huge loss", "rate-cap"),
    ("fedsampling", "size", "rate-cap+clip"),
]


@pytest.mark.parametrize(("name", "lie", "caps"), PAYS)
def test_without_its_cap_the_lie_pays(name: str, lie: str, caps: str) -> None:
    scheme = SCHEMES.build(name, otherwise={"m": M})
    others = {"size-cap", "rate-cap", "losses", "explore", "clip"} - set(caps.split("+"))
    found = attacked(scheme, lie, hardened=sorted(others), **FLEET)
    assert found.weight > 4 * (MOST + BY_CHANCE)
    alone = attacked(scheme, lie, hardened=caps, **FLEET)
    assert alone.weight <= MOST + BY_CHANCE


def test_an_update_of_any_length_counts_for_no_more_than_twice_a_typical_one() -> None:
    scheme = SCHEMES.build("uniform", otherwise={"m": M})
    assert (
        attacked(scheme, "update", **FLEET).step
        > 3 * attacked(scheme, "update", hardened="clip:times=2", **FLEET).step
    )


def test_a_liar_that_always_has_a_sample_gets_no_more_of_the_step() -> None:
    """Of the others most draw none."""
    naive = SCHEMES.build("fedsampling-naive:rate=0.003")
    fleet = {"n": 100, "attackers": 1, "rounds": 200}
    assert attacked(naive, "update", hardened="clip:times=1.01", **fleet).step > 0.03
    assert attacked(naive, "update", hardened=True, **fleet).step <= 0.02


def test_only_lies_that_are_heard_are_told() -> None:
    assert lies_to(SCHEMES.build("md")) == ["size", "update", "all"]
    assert "loss" in lies_to(SCHEMES.build("rpow-d"))
    assert "data" in lies_to(SCHEMES.build("static-data"))


def test_the_command_prints_before_and_after(capsys: pytest.CaptureFixture[str]) -> None:
    command.attack(["md", "poisson"], 50, M, None, 20, 0, None, True)
    said = capsys.readouterr()
    rows = json.loads(said.out)
    assert said.err.splitlines()[0] == f"[1/{len(rows)}] md, size"  # how far it is, beside JSON
    lie = next(row for row in rows if (row["scheme"], row["lie"]) == ("md", "size"))
    assert lie["before"]["weight"] > 0.9
    assert lie["hardened"]["weight"] < 0.1
    assert "poisson must be at most" in next(r for r in rows if r["scheme"] == "poisson")["note"]
    command.attack(["md"], 50, M, 2, 10, 0, ["clip"], False)
    said = capsys.readouterr().out
    assert "2 of 50 clients lie" in said
    assert "hardened" in said
    with pytest.raises(BadInput, match="--attackers must be below --clients"):
        command.attack(["md"], 50, M, 50, 10, 0, None, False)


@pytest.mark.parametrize("word", ["nope", "clip:times=nan", "clip+clip"])
def test_a_guard_that_cannot_be_is_refused_before_the_first_row(
    word: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(FedcohortError, match=r"no guard named|'times' parameter of clip"):
        command.attack(["md"], 20, 3, 1, 2, 0, [word], False)
    assert capsys.readouterr().out == ""
    with pytest.raises(BadInput, match="names the guard 'clip' twice"):
        command.attack(["md"], 20, 3, 1, 2, 0, ["clip", "clip:times=3"], False)


def test_every_row_is_printed_when_it_is_known(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def dies(scheme: Any, lie: str, **fleet: Any) -> Influence:
        if lie == "all":
            raise KeyboardInterrupt
        return Influence(0.25, 0.5, 1.0)

    monkeypatch.setattr(command, "attacked", dies)
    for as_json in (False, True):
        with pytest.raises(KeyboardInterrupt):
            command.attack(["md"], 20, 3, 1, 2, 0, None, as_json)
        said = capsys.readouterr()
        assert said.err.splitlines() == ["[1/3] md, size", "[2/3] md, update"]
        rows = [line.split() for line in said.out.splitlines() if line.startswith("md")]
        shares = ["25.0", "50.0", "100.0"]
        found = [] if as_json else [["md", lie, *shares, *shares] for lie in ("size", "update")]
        assert rows == found
