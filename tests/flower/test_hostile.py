"""Every attack that we know, one client of eight: the table that `make hostile` prints."""

from __future__ import annotations

from functools import partial

import pytest

pytest.importorskip("flwr")
from fedcohort.server import Fault
from helpers import lies
from helpers.attacks import ATTACKS, Attack, outcome
from helpers.lies import Lying


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.what)
def test_an_attack_ends_nothing_but_its_own_report(attack: Attack) -> None:
    found = outcome(attack)
    assert found.ended == "finishes"
    assert found.lost == 0  # of honest clients
    assert found.model in ("finite", "as if it were silent")
    assert found.well
    assert bool(found.counted) == bool(attack.faults)


def test_the_table_shows_an_attack_that_succeeds() -> None:
    """A change within the allowed range passes, and is found to move the model."""
    passes = Attack("lies a little", partial(Lying, lies.update(theta=[5.0, 5.0])), (Fault.FAILED,))
    assert outcome(passes).model == "not as if it were silent"
    both = Attack("two are silent", partial(Lying, lies.silent, liars=(2, 5)), (Fault.MISSING,))
    assert outcome(both).lost == 8
    all_of_them = Attack("all are silent", partial(Lying, lies.silent, liars=range(8)))
    assert outcome(all_of_them).ended.startswith("ends: TooFewClients")
    assert not any(outcome(bad).well for bad in (passes, both, all_of_them))
