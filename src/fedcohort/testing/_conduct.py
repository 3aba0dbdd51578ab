"""Checks of behavior that hold for every scheme, and the replay of its rounds.

Deciding changes nothing, the same seed gives the same cohorts everywhere, names and arrival
order do not matter, only available clients are chosen, only declared signals are asked, silent
clients do no harm, and parameters outside their declared ranges are refused in one sentence.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np

from fedcohort._internal import store
from fedcohort._internal.errors import BadParameter, CheckFailed, TooImprecise, UnknownName
from fedcohort._internal.parameters import Labels, Maybe, constraints
from fedcohort._internal.random import stream
from fedcohort._internal.types import Array, Ints
from fedcohort.selection._citation import Citation
from fedcohort.selection._cohort import Cohort
from fedcohort.selection._federation import Federation
from fedcohort.selection._queries import Answer, Ask
from fedcohort.selection._scheme import Scheme
from fedcohort.selection._scripted import SETTLED, Trial
from fedcohort.server._selector import Selector
from fedcohort.testing._claims import NotApplicable, same_law

# The cohorts of a scheme in another process, where strings hash differently.
#
# A scheme that iterates over a set, hashes a string or reads the clock gives other cohorts there.


HASH_SEED = "4242"


def fingerprint(cohorts: list[Cohort]) -> list[list[Any]]:
    """Cohorts bit for bit, as JSON can carry them."""
    return [
        [
            c.clients.tolist(),
            [float(w).hex() for w in c.weights],
            c.draws.tolist(),
            c.data_rate,
            c.per_sample,
        ]
        for c in cohorts
    ]


def first_cohorts(trial: Trial, count: int) -> list[Cohort]:
    """The cohorts of the first rounds."""
    return [cohort for cohort, _ in trial.rounds(trial.start(), 0, count)]


def elsewhere(
    scheme: Scheme[Any], federation: Federation, answer: Answer | None, count: int
) -> list[list[Any]] | None:
    """The fingerprint of the same rounds in another process; None if it cannot be sent there."""
    wanted = [type(scheme), *([] if answer is None else [answer])]
    if not all(map(_has_address, wanted)):
        return None
    job = {
        "scheme": _address(type(scheme)),
        "answer": None if answer is None else _address(answer),
        "parameters": dict(scheme.parameters),
        "parts": [int(part) for part in federation.shares.parts],
        "sizes": None if federation.sizes is None else [int(size) for size in federation.sizes],
        "count": count,
    }
    paths = os.pathsep.join(path for path in sys.path if path)
    done = subprocess.run(
        [sys.executable, "-c", "from fedcohort.testing._conduct import main; main()"],
        input=json.dumps(job),
        env={**os.environ, "PYTHONHASHSEED": HASH_SEED, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"the other process failed: {done.stderr.strip().splitlines()[-1]}")
    cohorts: list[list[Any]] = json.loads(done.stdout)
    return cohorts


def main() -> None:
    """What runs in the other process: a job comes in, a fingerprint goes out."""
    job = json.load(sys.stdin)
    scheme = _find(job["scheme"]).build(**job["parameters"])
    parts, sizes = (
        None if job[name] is None else _integers(job[name]) for name in ("parts", "sizes")
    )
    federation = Federation.restored(parts, sizes, len(job["parts"]))  # type: ignore[arg-type]
    answer = None if job["answer"] is None else _find(job["answer"])
    cohorts = first_cohorts(Trial.of(scheme, federation, answer), job["count"])
    json.dump(fingerprint(cohorts), sys.stdout)


def _integers(values: list[int]) -> Any:
    return np.array(values, dtype=object if max(values) >= 2**63 else np.int64)


def _has_address(thing: Any) -> bool:
    """Not a local or a lambda, nor typed at a prompt or in a notebook."""
    try:
        inspect.getsource(thing)
        return "<" not in thing.__qualname__ and Path(inspect.getfile(thing)).is_file()
    except (AttributeError, TypeError, OSError):  # a partial; no file, or not in it
        return False


def _address(thing: Any) -> list[str]:
    return [thing.__module__, thing.__qualname__, inspect.getfile(thing)]


def _find(address: list[str]) -> Any:
    """The class or function at an address: by module, else by file."""
    module_name, name, file = address
    try:
        if module_name == "__main__":
            raise ModuleNotFoundError
        module = importlib.import_module(module_name)
    except ModuleNotFoundError:
        spec = importlib.util.spec_from_file_location("fedcohort_checked", file)
        if spec is None or spec.loader is None:
            raise
        module = importlib.util.module_from_spec(spec)
        sys.modules["fedcohort_checked"] = module
        spec.loader.exec_module(module)
    return reduce(getattr, name.split("."), module)


ROUNDS = 2 * SETTLED
DRAWS = 3
"""Cohorts drawn for each set of available clients."""


def check_declaration(
    scheme: Scheme[Any], federation: Federation, answer: Answer | None = None
) -> None:
    """A frozen dataclass with a name, a citation, and a range for every parameter."""
    cls = type(scheme)
    wrong = (
        "is not a frozen dataclass"
        if not _is_frozen(cls)
        else "has no name of small letters, digits and hyphens"
        if not re.fullmatch(r"[a-z][a-z0-9-]*", getattr(cls, "name", ""))
        else "has no `paper`, a Citation"
        if not isinstance(getattr(cls, "paper", None), Citation)
        else "has a State that is not a frozen dataclass"
        if not _is_frozen(cls.State)
        else None
    )
    if wrong:
        raise CheckFailed(f"{cls.__name__} {wrong}.")
    undeclared = set(scheme.parameters) - set(constraints(cls))
    if undeclared:
        raise CheckFailed(
            f"{scheme.name}: the parameter '{min(undeclared)}' declares no range; "
            "write Annotated[int, Whole(1)] or the like."
        )


def _is_frozen(cls: type) -> bool:
    return bool(getattr(getattr(cls, "__dataclass_params__", None), "frozen", False))


def check_parameters(
    scheme: Scheme[Any], federation: Federation, answer: Answer | None = None
) -> None:
    """Values outside the declared ranges are refused, by a sentence that names all there is."""
    cls, good = type(scheme), dict(scheme.parameters)
    for name, constraint in constraints(cls).items():
        for bad in constraint.bad_examples():
            try:
                cls.build(**{**good, name: bad})
            except BadParameter as error:
                sentence = str(error)
                if not all(word in sentence for word in (f"'{name}'", scheme.name, repr(bad))):
                    raise CheckFailed(
                        f"{scheme.name}: the error for {name}={bad!r} does not name parameter, "
                        f"scheme and value: {sentence}"
                    ) from None
            else:
                raise CheckFailed(f"{scheme.name} accepts {name}={bad!r}, not {constraint}.")
    try:
        cls.build(**{**good, "no_such_parameter": 1})
    except UnknownName:
        return
    raise CheckFailed(f"{scheme.name} accepts a parameter that it does not have.")


def check_cohorts(
    scheme: Scheme[Any], federation: Federation, answer: Answer | None = None
) -> None:
    """Clients ascending and distinct, all of them available, weights finite; whoever is there."""
    trial = Trial.of(scheme, federation, answer)
    refused: BadParameter | TooImprecise | None = None
    drawn = 0
    for round, state in trial.states():
        for available in _subsets(federation):
            try:
                for cohort in trial.sample(state, round, available, DRAWS):
                    check_cohort(trial, round, cohort, available)
                    drawn += 1
            except (BadParameter, TooImprecise) as error:  # it may refuse those who are left
                refused = error
    if drawn == 0 and refused is not None:
        raise refused


def check_cohort(trial: Trial, round: int, cohort: Cohort, available: Ints | None) -> None:
    """Raise where a cohort is none of these."""
    who = f"{trial.scheme} in round {round}"
    here = trial.federation.among(available).present
    strangers: list[int] = np.setdiff1d(cohort.clients, here).tolist()
    if strangers:
        raise CheckFailed(
            f"{who}: client {strangers[0]} is chosen, but only {here.tolist()} can be."
        )
    if np.any(np.diff(cohort.clients) <= 0):
        raise CheckFailed(f"{who}: the clients {cohort.clients} are not ascending and distinct.")
    if not np.all(np.isfinite(cohort.weights.astype(np.float64))):
        raise CheckFailed(f"{who}: the weights {cohort.weights} are not all finite.")
    if np.any(cohort.draws < 1):
        raise CheckFailed(f"{who}: a client of the cohort was drawn {cohort.draws.min()} times.")
    if (cohort.data_rate < 1 or cohort.per_sample) and not trial.scheme.subsampling:
        raise CheckFailed(
            f"{who}: clients are to train on a share of their samples, or count them, which the "
            "class must declare: write `subsampling = True`."
        )


def _subsets(federation: Federation) -> Iterator[Ints | None]:
    """Everyone, one alone, all but one, and some at random."""
    n, rng = len(federation), stream(0, "subsets")
    yield None
    for i in federation.present[:6]:
        yield np.array([i])
        if n > 1:
            yield np.setdiff1d(np.arange(n), [i])
    for _ in range(6):
        some = np.flatnonzero(rng.random(n) < 0.5)
        if len(np.intersect1d(some, federation.present)):  # a scheme is not asked about nobody
            yield some


def check_pure(scheme: Scheme[Any], federation: Federation, answer: Answer | None = None) -> None:
    """`select` changes nothing and `observe` makes a new state: nothing is written in place."""
    trial = Trial.of(scheme, federation, answer)
    for round, state in trial.states():
        before = _snapshot(state, federation)
        cohort, again = trial.select(state, round), trial.select(state, round)
        if cohort != again:
            raise CheckFailed(f"{scheme} in round {round}: select() twice gives two cohorts.")
        if _snapshot(state, federation) != before:
            raise CheckFailed(f"{scheme} in round {round}: select() changes state or federation.")
        trial.observe(state, cohort)
        if _snapshot(state, federation) != before:
            raise CheckFailed(f"{scheme} in round {round}: observe() changes the state in place.")


def _snapshot(state: Any, federation: Federation) -> list[bytes]:
    header, arrays = store.pack(state, "")
    arrays["parts"] = federation.shares.parts
    if federation.sizes is not None:
        arrays["sizes"] = federation.sizes
    return [repr(sorted(header.items())).encode()] + [
        repr(a.tolist()).encode() if a.dtype == object else a.tobytes() for a in arrays.values()
    ]


def check_deterministic(
    scheme: Scheme[Any], federation: Federation, answer: Answer | None = None
) -> None:
    """The same seed gives the same cohorts, here again and in another process."""
    trial = Trial.of(scheme, federation, answer)
    first = fingerprint(first_cohorts(trial, ROUNDS))
    if fingerprint(first_cohorts(trial, ROUNDS)) != first:
        raise CheckFailed(f"{scheme}: the same seed gives other cohorts the second time.")
    other = elsewhere(scheme, federation, answer, ROUNDS)
    if other is None:
        raise NotApplicable("only what stands at the top of a file can be sent to another process")
    if other != first:
        raise CheckFailed(f"{scheme}: the same seed gives other cohorts in another process.")


def check_state(scheme: Scheme[Any], federation: Federation, answer: Answer | None = None) -> None:
    """A state that was written to a file and read back continues bit for bit."""
    trial = Trial.of(scheme, federation, answer)
    *_, (_, state) = trial.rounds(trial.start(), 0, SETTLED)
    if not isinstance(state, scheme.State):
        raise CheckFailed(
            f"{scheme}: the state is a {type(state).__name__}, not the State of the class."
        )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "state.npz"
        try:
            header, arrays = store.pack(state, "state.")
            store.save(path, {"kind": "state", "state": header}, arrays)
            loaded, arrays = store.load(path, "state")
            restored: Any = store.unpack(
                scheme.State, loaded["state"], arrays, "state.", {"n": len(federation)}
            )
        except (TypeError, ValueError) as error:
            raise CheckFailed(f"{scheme}: the state cannot be saved and loaded: {error}.") from None
    here, there = (
        fingerprint([cohort for cohort, _ in trial.rounds(begin, SETTLED, SETTLED)])
        for begin in (state, restored)
    )
    if here != there:
        raise CheckFailed(f"{scheme}: a state that was saved and loaded gives other cohorts.")


def check_arrival(
    scheme: Scheme[Any], federation: Federation, answer: Answer | None = None
) -> None:
    """Other names, in another order of arrival, give the same cohorts."""
    n, rng = len(federation), stream(0, "arrival")
    trial = Trial.of(scheme, federation, answer)
    names = [f"client {i:06d}" for i in range(n)]
    values: Array = federation.importance if federation.sizes is None else federation.sizes
    keyword = "importance" if federation.sizes is None else "sizes"
    found = []
    for ids, order in ((None, np.arange(n)), (names, np.arange(n)), (names, rng.permutation(n))):
        arrived = Federation(
            **{keyword: values[order]}, ids=None if ids is None else [ids[i] for i in order]
        )
        found.append(fingerprint(first_cohorts(replace(trial, federation=arrived), ROUNDS)))
    if found[0] != found[1]:
        raise CheckFailed(f"{scheme}: the cohorts depend on the names of the clients.")
    if found[1] != found[2]:
        raise CheckFailed(f"{scheme}: the cohorts depend on the order in which clients arrive.")


def check_equivariant(
    scheme: Scheme[Any], federation: Federation, answer: Answer | None = None
) -> None:
    """Clients that change places change places in the law, and nothing else happens.

    Where sizes are equal a scheme may break ties by position, so they must differ here.
    """
    n, parts = len(federation), federation.shares.parts
    if n < 2 or len(set(parts.tolist())) < n:
        raise NotApplicable("clients of equal size may be told apart by their position")
    place = np.roll(np.arange(n), 1)  # place[j]: who stands at j now
    trial = Trial.of(scheme, federation, answer)
    moved = Trial(
        _moved_parameters(scheme, place),
        Federation.restored(
            parts[place], None if federation.sizes is None else federation.sizes[place], n
        ),
        lambda ask: trial.answer(replace(ask, clients=place[ask.clients])),
    )
    law, other = trial.law(trial.start()), moved.law(moved.start())
    if law is None or other is None:
        raise NotApplicable("the law cannot be enumerated")
    if not same_law(other, law, relabel=place):
        if _start_is_random(trial):
            raise NotApplicable("the state before the first round is random, hence the law")
        raise CheckFailed(f"{scheme}: the law depends on the positions of the clients.")


def _moved_parameters(scheme: Scheme[Any], place: Ints) -> Scheme[Any]:
    """The same scheme, with parameters that hold one entry per client moved along."""
    moved: dict[str, Any] = {}
    for name, constraint in constraints(type(scheme)).items():
        inner = constraint.inner if isinstance(constraint, Maybe) else constraint
        value = scheme.parameters[name]
        if isinstance(inner, Labels) and value is not None and len(value) == len(place):
            moved[name] = tuple(value[i] for i in place)
    return replace(scheme, **moved)  # type: ignore[type-var]


def _start_is_random(trial: Trial) -> bool:
    states = [replace(trial, seed=seed).start() for seed in range(3)]
    pictures = [_snapshot(state, trial.federation) for state in states]
    return any(picture != pictures[0] for picture in pictures)


# A scheme in a run of several rounds: it can be interrupted, and clients may come and go.


def check_resume(scheme: Scheme[Any], federation: Federation, answer: Answer | None = None) -> None:
    """A selector that was saved and loaded in the middle of a run continues bit for bit."""
    trial = Trial.of(scheme, federation, answer)
    selector = Selector(scheme, federation, seed=1, ask=trial.answer)
    _play(selector, trial)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "selector.npz"
        selector.save(path)
        loaded = Selector.load(path, ask=trial.answer, kind=type(scheme))
    if fingerprint(_play(loaded, trial)) != fingerprint(_play(selector, trial)):
        raise CheckFailed(f"{scheme}: a selector that was saved and loaded gives other cohorts.")


def check_newcomers(
    scheme: Scheme[Any], federation: Federation, answer: Answer | None = None
) -> None:
    """Between rounds a client joins, at the first position, and later another one leaves.

    The newcomer is a twin of a client that is there, so that any ``answer`` can speak for it.
    """
    everybody = np.arange(len(federation) + 1)
    whole = Trial.of(scheme, federation, answer)
    before, joined, left = (
        _with_a_twin(whole, names)
        for names in (everybody[1:], everybody, np.delete(everybody, 1 + federation.present[-1]))
    )
    selector = Selector(scheme, before.federation, seed=1, ask=before.answer)
    _play(selector, before)
    for trial in (joined, left):
        selector.ask = trial.answer
        selector.update(trial.federation)
        for cohort in _play(selector, trial):
            check_cohort(trial, selector.round, cohort, None)


def _with_a_twin(trial: Trial, names: Ints) -> Trial:
    """The trial of the clients of these names: 0 is a newcomer, i + 1 is the client i."""
    federation = trial.federation
    who = np.append(federation.present[0], np.arange(len(federation)))[names]
    if federation.sizes is None:
        shares = federation.importance[who]
        some = Federation(importance=shares / shares.sum(), ids=names.tolist())
    else:
        some = Federation(sizes=federation.sizes[who], ids=names.tolist())

    def answer(ask: Ask) -> Array:
        return trial.answer(replace(ask, clients=who[ask.clients]))

    return replace(trial, federation=some, answer=answer)


def _play(selector: Selector, trial: Trial) -> list[Cohort]:
    cohorts = []
    for _ in range(SETTLED):
        cohorts.append(selector.select())
        selector.observe(trial.replies(cohorts[-1]))
    return cohorts
