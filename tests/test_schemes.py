"""Every discovered scheme, with all of its variants, against every check."""

from __future__ import annotations

import pytest

from fedcohort.schemes import schemes
from fedcohort.selection import Claim
from fedcohort.testing import CHECKS, claim_name, run_check
from fedcohort.testing._claims import CLAIM_CHECKS


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("name", schemes())
def test_scheme(name: str, check: str) -> None:
    result = run_check(check, name)
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
