"""Folders of runs: write, resume, extend."""

from __future__ import annotations

import contextlib
import json
import os
import re
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from fedcohort._internal import store
from fedcohort._internal.errors import (
    BadCheckpoint,
    BadInput,
    CannotSave,
    FedcohortWarning,
    InUse,
    quoted,
)
from fedcohort._internal.files import FOR_ALL_TO_READ, as_path, exclusive, file_name, replacing
from fedcohort._internal.fingerprint import source_digest
from fedcohort._internal.parameters import split
from fedcohort._internal.store import Shaped
from fedcohort._internal.types import Array, Floats, Ints
from fedcohort.selection import _queries
from fedcohort.server._checkpoint import pack_state, unpack_state
from fedcohort.server._state import Setup, State
from fedcohort.training._algorithms import Vectors

# The folder of a comparison: whose it is, what it was made with, one writer at a time.

SETTINGS = "settings.json"
STATES = "states"
"""The folder with the end of every run, by which it can be extended."""
LOCK = ".lock"
BUSY = ".busy"
"""Held, where the system has no file locks, by being there."""
FINGERPRINT = "fingerprint"
DIVISIONS = "fingerprints"
"""The setting that holds the fingerprints of further divisions, by number."""
CODE = "code"
PARTITIONS = "partitions"
CROSSING = "crossing"
REFERENCE = "reference"
"""The setting that names the scheme which the others are tested against."""
ORACLE = "oracle"
"""The setting that is true of a run of an oracle, see `Scheme.oracle`."""
VALIDATION = "validation"
"""The setting that tells which share of its samples every client set aside as the test set."""
MAY_DIFFER = {
    "schemes", "seeds", PARTITIONS, "command", "target", CROSSING, REFERENCE, CODE, DIVISIONS,
}  # fmt: skip
"""Schemes, seeds and partitions may be added; command, target and the like decide no run."""


def run_file(place: Path, label: str, seed: int, partition: int | None = None) -> Path:
    """Where one run is kept; the first division of a folder has no number in its files."""
    where = "" if partition is None else f"--partition-{partition}"
    return place / f"{file_name(label)}{where}--seed-{seed}.npz"


def state_file(path: Path) -> Path:
    """Where it is kept what the run at a path needs to be extended."""
    return path.parent / STATES / path.name


def base_of(settings: Mapping[str, Any]) -> int:
    """The division whose files have no number: that of the problem's own seed."""
    problem = settings.get("problem")
    return int(problem.get("partition_seed", 0)) if isinstance(problem, Mapping) else 0


def noted(fingerprints: Mapping[int, str], base: int) -> dict[str, Any]:
    """Fingerprints of divisions, as the settings of a folder hold them."""
    others = {str(number): each for number, each in fingerprints.items() if number != base}
    return {
        **({FINGERPRINT: fingerprints[base]} if base in fingerprints else {}),
        **({DIVISIONS: others} if others else {}),
    }


def code_of(part: object) -> str | None:
    """A digest of the code of a part that is not ours; None where there is none to read.

    What a part is called does not change when its author edits it, and old runs must not be
    shown for the new code. Of a script only the class counts: the rest says what to run.
    """
    kind = type(part)
    ours = kind.__module__.split(".")[0] == __name__.split(".")[0]
    return None if ours else source_digest(kind)


def agreed(place: Path, facts: Mapping[str, Any]) -> dict[str, Any]:
    """What is to be kept with the runs, those that are there included; nothing is written.

    A folder with finished runs of another comparison is refused, and so is one that holds
    something else. A folder without a finished run may become any comparison's.
    """
    kept: dict[str, Any] = json.loads(json.dumps(dict(facts), allow_nan=False))
    if not (place / SETTINGS).is_file():
        ours = (LOCK, BUSY, f".{SETTINGS}")  # of the last there may be drafts
        if place.is_dir() and not all(path.name.startswith(ours) for path in place.iterdir()):
            raise BadInput(f"The folder '{place}' is not empty and is no run folder; take another.")
        return kept
    if not any(place.glob("*.npz")):
        return kept
    old = read_settings(place)
    have = {label: s for label, s in old["schemes"].items() if _has_run(place, old, label)}
    _same_or_refuse(place, old, have, kept)
    kept["schemes"] = {**have, **kept["schemes"]}
    for key in (CODE, DIVISIONS):
        kept[key] = {**old.get(key, {}), **kept.get(key, {})}
    for key in ("seeds", PARTITIONS):
        kept[key] = sorted({*old[key], *kept.get(key, [])})
    return kept


def _has_run(place: Path, settings: Mapping[str, Any], label: str) -> bool:
    base = base_of(settings)
    return any(
        run_file(place, label, seed, None if number == base else number).is_file()
        for number in settings[PARTITIONS]
        for seed in settings["seeds"]
    )


def read_settings(place: Path) -> dict[str, Any]:
    """The settings of a run folder."""
    path = place / SETTINGS
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        _queries.check({"schemes": None, **found}, _queries.FOLDER)
        store.refuse_former(place, "run folder", found.get("options", {}))
        return {"seeds": [], PARTITIONS: [base_of(found)], **found}  # not in all older versions
    except BadCheckpoint:
        raise
    except BadInput as error:
        why = f" ({error})"
    except Exception:  # no JSON, or of something else
        why = ""
    raise BadCheckpoint(f"'{path}' is damaged{why}; take another folder, or delete '{place}'.")


@contextlib.contextmanager
def claimed(place: Path, facts: Mapping[str, Any]) -> Iterator[None]:
    """The run folder, for this process alone; refused if it holds another comparison."""
    place.mkdir(parents=True, exist_ok=True)
    with _alone(place):
        _write(place / SETTINGS, json.dumps(agreed(place, facts), indent=2))
        yield


def _write(path: Path, text: str) -> None:
    """The old file stays until the new one is complete: finished runs hang on it."""
    if path.is_file() and path.read_text(encoding="utf-8", errors="replace") == text:
        return
    with replacing(path, FOR_ALL_TO_READ) as file:
        file.write(text.encode())


@contextlib.contextmanager
def _alone(place: Path) -> Iterator[None]:
    """The only writer. The lock ends with the process; without file locks, a file is left."""
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(exclusive(place / LOCK, 0.0, mark=place / BUSY))
        except InUse:
            killed = f"; if none is, one was killed: delete '{place / BUSY}'"
            raise InUse(
                f"Another process is writing to the run folder '{place}'"
                f"{killed if (place / BUSY).exists() else ''}."
            ) from None
        yield


def _same_or_refuse(
    place: Path, old: Mapping[str, Any], have: Mapping[str, Any], new: Mapping[str, Any]
) -> None:
    for key in sorted({*old, *new} - MAY_DIFFER - {FINGERPRINT}):
        if old.get(key) != new.get(key) and not _extended(key, old.get(key), new.get(key)):
            entry, was, now = _difference(key, old.get(key), new.get(key))
            raise BadInput(
                f"The run folder '{place}' was made with {entry} = {was}, now it is {now}; take "
                "another folder, or delete it."
            )
    for label, scheme in new["schemes"].items():
        if have.get(label, scheme) != scheme:
            raise BadInput(
                f"The run folder '{place}' holds {label} as {have[label]}, now it is {scheme}; "
                "take another folder, or delete it."
            )
        if label in have and _edited(old, new, label):
            raise BadInput(
                f"The code of {label} has changed since its runs in the run folder '{place}'; take "
                "another folder, or delete it."
            )
    held, given = _data(old), _data(new)
    if not held and "problem" in old:
        return  # an older version noted the data in words only
    if not held or any(held[number] != given[number] for number in held.keys() & given.keys()):
        why = "of another task" if held else "without a note of their data"
        raise BadInput(
            f"The run folder '{place}' holds runs {why} (clients, data or model differ from those "
            "given now, or may); take another folder, or delete it."
        )


def _extended(key: str, old: object, new: object) -> bool:
    """Whether it is the number of rounds, and now larger: runs go on from where they ended."""
    return key == "rounds" and isinstance(old, int) and isinstance(new, int) and new > old


def _data(settings: Mapping[str, Any]) -> dict[str, str]:
    """The fingerprint of every division that is noted."""
    first = {str(base_of(settings)): settings[FINGERPRINT]} if FINGERPRINT in settings else {}
    return {**first, **settings.get(DIVISIONS, {})}


def _edited(old: Mapping[str, Any], new: Mapping[str, Any], label: str) -> bool:
    was, now = (settings.get(CODE, {}).get(label) for settings in (old, new))
    return None not in (was, now) and was != now


def _difference(name: str, old: object, new: object) -> tuple[str, str, str]:
    """The innermost entry that differs: its name, the old and the new value."""
    if isinstance(old, dict) and isinstance(new, dict):
        parts = [(key, old.get(key), new.get(key)) for key in sorted({*old, *new})]
    elif isinstance(old, str) and isinstance(new, str):  # name:setting=value or Name(setting=...)
        parts = _settings_of(old, new)
    else:
        parts = []
    for part in parts:
        if part[1] != part[2]:
            return _difference(*part)
    was, now = ("not given" if value is None else str(value) for value in (old, new))
    return name, was, now


def _settings_of(old: str, new: str) -> list[tuple[str, object, object]]:
    """The settings in ``sgd:eta_g=1.0`` or ``LocalWork(steps=1)`` that two texts both have."""
    words = [re.sub(r"^(\w+)\((.*)\)$", r"\1:\2", text) for text in (old, new)]
    try:
        (name, was), (other, now) = map(split, words)
    except BadInput:  # some other text
        return []
    same = name == other and was.keys() == now.keys()
    return [(key, was[key], now[key]) for key in was] if same else []


# What a run knows after its last round, kept in a file so that the run can be extended.

KIND = "end of a run"
LIMIT_BYTES = 2**28
"""More is not written: a thousand clients' memories of a large model would fill the disk."""


@dataclass(frozen=True, eq=False)
class End:
    """Where a run stands.

    Parameters
    ----------
    state
        Model, optimiser, aggregator, scheme, attendance, guards.
    clients
        What clients remember for the local algorithm, by position.
    waiting
        Models whose evaluation was brought forward by the end of the run: in a longer one they are
        evaluated together with others, which may round otherwise.
    """

    state: State
    clients: dict[int, Vectors]
    waiting: list[tuple[int, Floats]]

    def save(self, path: str | os.PathLike[str], setup: Setup) -> None:
        """Write it; what cannot be written costs a warning, not the run."""
        name = setup.scheme.name
        try:
            header, arrays = self._packed(setup)
            size = sum(array.nbytes for array in arrays.values())
            if size > LIMIT_BYTES:
                raise CannotSave(f"{size / 1e6:,.0f} MB are more than {LIMIT_BYTES / 1e6:,.0f} MB.")
            store.save(path, header, arrays)
        except Exception as error:  # a scheme of somebody's may remember anything
            if as_path(path).is_file():  # that of a shorter run would not fit
                as_path(path).unlink()
            warnings.warn(
                f"{name}: this run cannot be extended, as what it knows is not kept: {error}",
                FedcohortWarning,
                stacklevel=2,
            )

    def _packed(self, setup: Setup) -> tuple[dict[str, Any], dict[str, Array]]:
        header, arrays = pack_state(setup, self.state)
        who = sorted(self.clients)
        arrays["clients"] = np.array(who, dtype=np.int64)
        for name in setup.algorithm.keeps_client if who else ():
            arrays[f"client.{name}"] = np.stack([self.clients[i][name] for i in who])
        arrays["waiting"] = np.array([round for round, _ in self.waiting], dtype=np.int64)
        if self.waiting:
            arrays["waiting.models"] = np.stack([models for _, models in self.waiting])
        return {**header, "kind": KIND}, arrays

    @classmethod
    def load(cls, path: str | os.PathLike[str], setup: Setup, rounds: int) -> End:
        """Read it; refused where it is not that of this run after so many rounds."""
        header, arrays = store.load(path, KIND)
        told = header.get("scheme"), header.get("parameters"), header.get("seed")
        if told != (setup.scheme.name, dict(setup.scheme.parameters), str(setup.seed)):
            raise BadCheckpoint(f"{quoted(path)} is the end of another run.")
        if header.get("round") != rounds:
            raise BadCheckpoint(f"{quoted(path)} is not the end of round {rounds}.")
        with store.whole(path, KIND):
            state = unpack_state(setup, header, arrays)
            lengths = {"n": len(state.federation), "d": len(state.theta)}
            places = Annotated[Ints, Shaped("k", low=0, below="n")]
            store.check("clients", arrays["clients"], places, dict(lengths))
            who = arrays["clients"].tolist()
            names = setup.algorithm.keeps_client if who else ()
            kept = {name: arrays[f"client.{name}"] for name in names}
            clients: dict[int, Vectors] = {
                i: {name: kept[name][k] for name in names} for k, i in enumerate(who)
            }
            models = arrays.get("waiting.models", np.zeros((0, 1, lengths["d"])))
            waiting = list(zip(arrays["waiting"].tolist(), models, strict=True))
        return cls(state, clients, waiting)
