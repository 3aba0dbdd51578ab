"""What was spent: bytes, seconds, simulated time, and what the server learned for it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from fedcohort._internal.types import Floats
from fedcohort.report._measures import Columns, by_scheme
from fedcohort.report._runs import on_one_division, scheme_of
from fedcohort.server._ledger import TRAINING

if TYPE_CHECKING:
    from fedcohort.simulation import Comparison, Trace


def spent_bytes(trace: Trace) -> Floats:
    """(T,) bytes in both directions until each round."""
    return np.cumsum((trace.bytes_down + trace.bytes_up).astype(np.float64))


def spent_seconds(trace: Trace) -> Floats:
    """(T,) seconds of choosing and training until each round, of whoever ran it."""
    return np.cumsum(trace.seconds[:, :2].sum(axis=1))


def spent_time(trace: Trace) -> Floats:
    """(T,) simulated seconds until each round; NaN where no virtual clock ran."""
    return np.cumsum(trace.time)


def clocked(comparison: Comparison) -> bool:
    """Whether a virtual clock ran in any of the runs."""
    return any(trace.clocked for trace in comparison.traces)


def latencies(comparison: Comparison) -> pd.DataFrame:
    """How long clients take, as the server measured it: one row per scheme, purpose and client.

    Means over seeds on the first partition; empty where nothing was measured.
    """
    one = on_one_division(comparison)

    def table(traces: Sequence[Trace]) -> Columns | None:
        purposes = list(dict.fromkeys(name for trace in traces for name in trace.latencies))
        if not purposes:
            return None
        n = len(traces[0].importance)
        rows = []
        for purpose in purposes:
            seen = np.stack([t.latencies.get(purpose, np.full(n, np.nan)) for t in traces])
            known = np.isfinite(seen)
            mean = np.where(known, seen, 0.0).sum(axis=0) / np.maximum(1, known.sum(axis=0))
            rows.append(np.where(known.any(axis=0), mean, np.nan))
        return {
            "purpose": np.repeat(purposes, n),
            "client": np.tile(np.arange(n), len(purposes)),
            "seconds": np.concatenate(rows),
        }

    found = by_scheme(one, table, ("purpose", "client", "seconds"))
    return found.dropna(subset=["seconds"]).reset_index(drop=True)


def ledger(comparison: Comparison) -> pd.DataFrame:
    """What every scheme cost and disclosed, one row per purpose, means over seeds."""
    rows = []
    for label in comparison.labels:
        traces = comparison.of(label)
        purposes = dict.fromkeys(row["purpose"] for trace in traces for row in trace.ledger)
        for purpose in purposes:
            booked = [row for trace in traces for row in trace.ledger if row["purpose"] == purpose]
            spent = [row["epsilon"] for row in booked if row.get("epsilon") is not None]
            if purpose == TRAINING:
                spent += [e for trace in traces if (e := _noised(trace).get("epsilon")) is not None]
            counts = {
                name: sum(row[name] for row in booked) / len(traces)
                for name in ("messages", "bytes_down", "bytes_up")
            }
            says = {"discloses": booked[0]["discloses"], "epsilon": max(spent, default=np.nan)}
            rows.append({"scheme": label, "purpose": purpose, **counts, **says})
    columns = ["scheme", "purpose", "messages", "bytes_down", "bytes_up", "discloses", "epsilon"]
    return pd.DataFrame(rows, columns=columns)


def disclosures(comparison: Comparison) -> pd.DataFrame:
    """What the server learns of every client, scheme by scheme, as the scheme declared it.

    ``epsilon`` is what a private answer spends over the whole run; NaN: nothing is promised.
    """
    rows = []
    for label in comparison.labels:
        trace = comparison.of(label)[0]
        scheme = None if trace.disclosures else scheme_of(trace)  # older traces do not say it
        told = trace.disclosures if scheme is None else scheme.disclosures(trace.rounds)
        rows += [(label, *each) for each in told]
    columns = ["scheme", "what", "when", "discloses", "epsilon"]
    return pd.DataFrame(rows, columns=columns).astype({"epsilon": float})


def privacy(comparison: Comparison) -> pd.DataFrame:
    """What noise on the sums promises, scheme by scheme: of the seed that paid most.

    ``epsilon`` is NaN where nothing can be promised, ``known_who`` is what is left if it becomes
    known who took part; no row for runs without noise.
    """
    rows = []
    for label in comparison.labels:
        told = [found for trace in comparison.of(label) if (found := _noised(trace))]
        if not told:
            continue
        worst = max(told, key=lambda found: _number(found, "epsilon", np.inf))
        numbers = [_number(worst, name) for name in ("epsilon", "if_known_who", "delta")]
        noise = [_number(worst, name) for name in ("clip", "deviation")]
        rows.append((label, *numbers, *noise, str(worst.get("guarantee", ""))))
    columns = ["scheme", "epsilon", "known_who", "delta", "clip", "deviation", "guarantee"]
    return pd.DataFrame(rows, columns=columns)


def _noised(trace: Trace) -> dict[str, Any]:
    told = trace.settings.get("privacy")
    return told if isinstance(told, dict) else {}


def _number(found: dict[str, Any], name: str, otherwise: float = np.nan) -> float:
    value = found.get(name)
    return otherwise if value is None else float(value)
