"""One client in a hundred that lies: what it gets of every scheme, and without the caps."""

from __future__ import annotations

import json

import pytest

from fedcohort.cli import attack as command
from fedcohort.core.errors import BadInput
from fedcohort.schemes import SCHEMES
from fedcohort.testing.attackers import attacked, lies_to

FLEET = {"n": 100, "attackers": 1, "rounds": 50}
M = 5
MOST = 0.02 + 1 / (FLEET["rounds"] * M)
"""Twice a fair share, and one round more."""
BY_CHANCE = 0.01
"""What so few rounds may add where a law decides: the bound is for the expected share."""


@pytest.mark.parametrize("name", sorted(SCHEMES))
def test_a_liar_gets_no_more_than_twice_its_share_of_any_scheme(name: str) -> None:
    scheme = SCHEMES.build(name, otherwise={"m": M})
    for lie in lies_to(scheme):
        found = attacked(scheme, lie, hardened=True, **FLEET)
        assert found.weight <= MOST + BY_CHANCE, lie
        assert found.places <= MOST + BY_CHANCE, lie


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
    assert found.weight > 5 * (MOST + BY_CHANCE)
    alone = attacked(scheme, lie, hardened=caps, **FLEET)
    assert alone.weight <= MOST + BY_CHANCE


def test_an_update_of_any_length_counts_for_no_more_than_twice_a_typical_one() -> None:
    scheme = SCHEMES.build("uniform", otherwise={"m": M})
    assert (
        attacked(scheme, "update", **FLEET).step
        > 3 * attacked(scheme, "update", hardened="clip:times=2", **FLEET).step
    )


def test_only_lies_that_are_heard_are_told() -> None:
    assert lies_to(SCHEMES.build("md")) == ["size", "update", "all"]
    assert "loss" in lies_to(SCHEMES.build("rpow-d"))
    assert "data" in lies_to(SCHEMES.build("static-data"))


def test_the_command_prints_before_and_after(capsys: pytest.CaptureFixture[str]) -> None:
    command.attack(["md", "poisson"], 50, M, None, 20, 0, None, True)
    rows = json.loads(capsys.readouterr().out)
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
