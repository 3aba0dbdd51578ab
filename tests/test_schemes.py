"""Every discovered scheme, with all of its variants, against every check.

Of schemes that share a class, one is checked on every federation and the others, with all variants
too, among four clients of unequal sizes; `make test-slow` checks them on all.
"""

from __future__ import annotations

import pytest

from fedcohort.schemes import schemes
from fedcohort.selection import Claim, Federation, Scheme
from fedcohort.testing import CHECKS, claim_name, run_check
from fedcohort.testing._claims import CLAIM_CHECKS

SHARED = {cls.__mro__[1]: name for name, cls in sorted(schemes().items())}
"""The scheme that stands for those that are made of the same class."""
ELSEWHERE = [
    name
    for name, cls in schemes().items()
    if cls.__mro__[1] is not Scheme and SHARED[cls.__mro__[1]] != name
]
FOUR = {"skewed": Federation.from_sizes([4, 3, 2, 1])}


AT_ONCE = [
    (name, check)
    for name in schemes()
    for check in CHECKS
    if name not in ELSEWHERE or check != "deterministic"  # which starts a process for each
]


@pytest.mark.parametrize(("name", "check"), AT_ONCE)
def test_scheme(name: str, check: str) -> None:
    passes(name, check, FOUR if name in ELSEWHERE else None)


@pytest.mark.slow
@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("name", ELSEWHERE)
def test_scheme_on_every_federation(name: str, check: str) -> None:
    passes(name, check, None)


def passes(name: str, check: str, federations: dict[str, Federation] | None) -> None:
    result = run_check(check, name, federations=federations)
    assert result.passed, result.detail
    claimed = {claim_name(claim) for claim in schemes()[name].claims}
    assert result.applies or check not in claimed, f"a claim is not tested: {result.detail}"


def test_every_claim_has_a_check() -> None:
    assert set(CLAIM_CHECKS) == set(Claim)


def test_every_scheme_is_documented_with_an_example() -> None:
    for name, cls in schemes().items():
        assert cls.__doc__ is not None, name
        assert ">>>" in cls.__doc__, name
        assert cls.paper.where, f"{name}: which algorithm or equations does it follow?"
