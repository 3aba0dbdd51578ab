"""A scheme, its federation and its law, rebuilt from what a run has noted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fedcohort._internal.errors import FedcohortError
from fedcohort.schemes import installed
from fedcohort.selection._design import Design
from fedcohort.selection._federation import Federation
from fedcohort.selection._scheme import Scheme
from fedcohort.server._selector import Selector

if TYPE_CHECKING:
    from fedcohort.simulation import Trace


def scheme_of(trace: Trace) -> Scheme[Any] | None:
    """The scheme of a run; None if it is somebody else's, or of another version."""
    try:
        return installed(trace.scheme, **dict(trace.settings.get("parameters", {})))
    except (FedcohortError, TypeError):
        return None


def federation_of(trace: Trace) -> Federation:
    """The clients of a run, as its scheme saw them."""
    total = int(trace.sizes.sum())
    if total and np.allclose(trace.importance, trace.sizes / total, rtol=0, atol=1e-12):
        return Federation(sizes=trace.sizes)  # exact integers where there are any
    return Federation(importance=trace.importance, sizes=trace.sizes)


def law_of(trace: Trace) -> Design | None:
    """The law of every cohort of a run, rebuilt from its settings; None where there is none.

    There is one where the scheme neither asks nor listens (so that all rounds are alike) and
    everyone is always available.
    """
    if trace.settings.get("availability", {}).get("name", "always") != "always":
        return None
    if trace.settings.get("hardened"):  # who may be chosen depends on the rounds before
        return None
    if (trace.available < len(trace.importance)).any():
        return None
    scheme = scheme_of(trace)
    if scheme is None or scheme.asks or scheme.listens:
        return None
    try:
        return Selector(scheme, federation_of(trace), trace.run_seed).design()
    except FedcohortError:
        return None
