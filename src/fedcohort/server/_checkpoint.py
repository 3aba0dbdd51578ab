"""Selections and states as headers and arrays, to be kept by `fedcohort._internal.store`.

What is written of a `Selection` is the cohort and the answers that the scheme heard; its law is
found again from them (`fedcohort.server._membership.replay_selection`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any

import numpy as np

from fedcohort._internal import store
from fedcohort._internal.errors import BadInput
from fedcohort._internal.store import Lengths, Shaped
from fedcohort._internal.types import Array, Floats, Ints
from fedcohort.selection._cohort import Cohort, Reserve
from fedcohort.selection._federation import Federation
from fedcohort.selection._queries import Ask
from fedcohort.selection._scheme import LONGEST, RoundContext, Scheme
from fedcohort.server._guards import Guard
from fedcohort.server._state import Heard, Selection, Setup, State

Packed = tuple[dict[str, Any], dict[str, Array]]
"""A header of plain values, and arrays by name."""
LATENCY = "latency."

SECONDS = Shaped("n", low=0, below=LONGEST, finite=False)
"""Latencies: NaN where nothing is known."""
OF_SELECTION: Mapping[str, Any] = {
    "cohort.clients": Annotated[Ints, Shaped("k", low=0, below="n")],
    "cohort.weights": Annotated[Floats, Shaped("k")],
    "cohort.draws": Annotated[Ints, Shaped("k", low=1)],
    "drawn.clients": Annotated[Ints, Shaped("drawn", low=0, below="n")],
    "drawn.weights": Annotated[Floats, Shaped("drawn")],
    "drawn.draws": Annotated[Ints, Shaped("drawn", low=1)],
    "context.available": Annotated[Ints, Shaped("here", low=0, below="n")],
    "context.latency": Annotated[Floats, SECONDS],
}
OF_ANSWERS: Mapping[str, Any] = {
    "clients": Annotated[Ints, Shaped("k", low=0, below="n")],
    "rows": Annotated[Array, Shaped("k", "...", finite=False)],
}
OF_STATE: Mapping[str, Any] = {
    "theta": Annotated[Floats, Shaped("d")],
    "counted": Annotated[Ints, Shaped("n", low=-1)],
}
"""What arrays look like that belong to no class."""


def pack_selection(selection: Selection) -> Packed:
    """A selection without its law."""
    cohort, context, drawn = selection.cohort, selection.context, selection.drawn
    header: dict[str, Any] = {
        "round": selection.round,
        "data_rate": cohort.data_rate,
        "per_sample": cohort.per_sample,
        "heard": [[h.ask.signal.name, dict(h.ask.settings)] for h in selection.heard],
    }
    parts = {
        **_parts("cohort", cohort),
        "context.available": context.available,
        "context.latency": context.latency,
    }
    if cohort.reserve is not None:
        parts |= store.pack(cohort.reserve, "cohort.reserve.")[1]
    if drawn is not None:
        header["drawn"] = {"data_rate": drawn.data_rate, "per_sample": drawn.per_sample}
        parts |= _parts("drawn", drawn)
    for number, heard in enumerate(selection.heard):
        parts |= {f"heard.{number}.clients": heard.ask.clients, f"heard.{number}.rows": heard.rows}
    return header, {name: array for name, array in parts.items() if array is not None}


def unpack_selection(
    setup: Setup, n: int, header: Mapping[str, Any], arrays: Mapping[str, Array]
) -> Selection:
    """What `pack_selection` took apart, for the scheme that asked and its guards, of n clients."""
    _check(arrays, OF_SELECTION, {"n": n})
    askers: list[Scheme[Any] | Guard] = [setup.scheme, *setup.guards]
    signals = {signal.name: signal for asker in askers for signal in asker.asks}
    heard = []
    for number, (name, settings) in enumerate(header["heard"]):
        parts = {part: arrays[f"heard.{number}.{part}"] for part in ("clients", "rows")}
        _check(parts, OF_ANSWERS, {"n": n})
        ask = Ask(signals[name], parts["clients"], dict(settings))
        heard.append(Heard(ask, parts["rows"]))
    kept = "cohort.reserve.clients" in arrays
    reserve = store.unpack(Reserve, {}, arrays, "cohort.reserve.", {"n": n}) if kept else None
    cohort = _cohort("cohort", header, arrays, reserve)
    drawn = _cohort("drawn", header["drawn"], arrays) if "drawn" in header else None
    here, takes = arrays.get("context.available"), arrays.get("context.latency")
    round = _round(header)
    return Selection(round, RoundContext(round, here, takes), cohort, None, tuple(heard), drawn)


def _parts(name: str, cohort: Cohort) -> dict[str, Array | None]:
    return {
        f"{name}.clients": cohort.clients,
        f"{name}.weights": cohort.weights,
        f"{name}.draws": cohort.draws,
    }


def _cohort(
    name: str,
    header: Mapping[str, Any],
    arrays: Mapping[str, Array],
    reserve: Reserve | None = None,
) -> Cohort:
    clients, weights, draws = (arrays[f"{name}.{part}"] for part in ("clients", "weights", "draws"))
    return Cohort(clients, weights, draws, header["data_rate"], header["per_sample"], reserve)


def pack_choosing(setup: Setup, state: State) -> Packed:
    """Of a state, what choosing needs: scheme, seed, round, clients, what the scheme remembers."""
    federation = state.federation
    arrays: dict[str, Array] = {"federation.parts": federation.shares.parts}
    if federation.sizes is not None:
        arrays["federation.sizes"] = federation.sizes
    header: dict[str, Any] = {
        "scheme": setup.scheme.name,
        "parameters": dict(setup.scheme.parameters),
        "seed": str(setup.seed),
        "round": state.round,
        "ids": _storable_ids(federation.ids),
        "state": None,
    }
    if state.scheme is not None:
        header["state"], more = store.pack(state.scheme, "state.")
        arrays |= more
    for word, remembers in zip(_words(setup), state.guards, strict=True):
        header[word], more = ({}, {}) if remembers is None else store.pack(remembers, f"{word}.")
        arrays |= more
    return header, arrays


def unpack_choosing(setup: Setup, header: Mapping[str, Any], arrays: Mapping[str, Array]) -> State:
    """What `pack_choosing` took apart; the model is empty."""
    federation = Federation.restored(
        arrays["federation.parts"], arrays.get("federation.sizes"), header["ids"]
    )
    known: Any = None
    if header["state"] is not None:
        lengths = {"n": len(federation)}
        known = store.unpack(setup.scheme.State, header["state"], arrays, "state.", lengths)
    first = State.first(setup, federation, np.empty(0))
    remembered = tuple(
        None
        if new is None
        else store.unpack(type(new), header[word], arrays, f"{word}.", {"n": len(federation)})
        for new, word in zip(first.guards, _words(setup), strict=True)
    )
    return replace(first, round=_round(header), scheme=known, guards=remembered)


def pack_state(setup: Setup, state: State) -> Packed:
    """A whole state; a table that the scheme keeps too is written once."""
    header, arrays = pack_choosing(setup, state)
    latest = None if state.scheme is None else setup.scheme.latest(state.scheme)
    parts = {
        "optimiser": state.optimiser,
        "aggregator": setup.aggregator.lean(state.aggregator, latest),
        "attendance": state.attendance,
    }
    for name, part in parts.items():
        if part is not None:
            header[name], more = store.pack(part, f"{name}.")
            arrays |= more
    header["algorithm"] = setup.algorithm.spec
    arrays |= {f"algorithm.{name}": array for name, array in state.algorithm.items()}
    arrays |= {LATENCY + name: array for name, array in state.latencies.items()}
    return header, {**arrays, "theta": state.theta, "counted": state.counted}


def unpack_state(setup: Setup, header: Mapping[str, Any], arrays: Mapping[str, Array]) -> State:
    """What `pack_state` took apart."""
    state = unpack_choosing(setup, header, arrays)
    lengths = {"n": len(state.federation)}
    _check(arrays, OF_STATE, lengths)
    state = replace(
        State.first(setup, state.federation, arrays["theta"]),
        round=state.round,
        scheme=state.scheme,
        guards=state.guards,
    )
    d, algorithm = len(state.theta), setup.algorithm
    long = {"optimiser": algorithm.models * d, "aggregator": algorithm.width(d), "attendance": d}
    found: dict[str, Any] = {
        name: store.unpack(
            type(part), header[name], arrays, f"{name}.", {**lengths, "d": long[name]}
        )
        for name in long
        if (part := getattr(state, name)) is not None
    }
    latest = None if state.scheme is None else setup.scheme.latest(state.scheme)
    if "aggregator" in found:
        found["aggregator"] = setup.aggregator.shared(found["aggregator"], latest)
    server = {name: arrays[f"algorithm.{name}"] for name in state.algorithm}
    shapes = {name: vector.shape for name, vector in state.algorithm.items()}
    hints = {name: Annotated[Floats, Shaped(*shape)] for name, shape in shapes.items()}
    _check(server, hints, lengths)
    takes = {n.removeprefix(LATENCY): a for n, a in arrays.items() if n.startswith(LATENCY)}
    _check(takes, dict.fromkeys(takes, Annotated[Floats, SECONDS]), lengths)
    found |= {"algorithm": server, "counted": arrays["counted"], "latencies": takes}
    return replace(state, **found)


def _check(arrays: Mapping[str, Array], hints: Mapping[str, Any], lengths: Lengths) -> None:
    """Refuse arrays of other shapes, types or ranges than were written."""
    for name, hint in hints.items():
        if name in arrays:
            store.check(name, arrays[name], hint, lengths)


def _round(header: Mapping[str, Any]) -> int:
    store.check("round", header["round"], int, {})
    if not 0 <= header["round"] < 2**63:
        raise BadInput("the round is negative or too large")
    return int(header["round"])


def _words(setup: Setup) -> list[str]:
    """What the memory of each guard is filed under."""
    return [f"guard {guard.name}" for guard in setup.guards]


def _storable_ids(ids: Sequence[Any]) -> list[Any] | int:
    if isinstance(ids, range):
        return len(ids)
    if not all(isinstance(name, int | str) for name in ids):
        raise BadInput("Client ids must be ints or strings to be saved.")
    return list(ids)
