"""The arms of a comparison: a scheme with settings of its own."""

from __future__ import annotations

import inspect
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, TypeAlias

from fedcohort._internal.errors import BadInput, UnknownName
from fedcohort._internal.parameters import spec, split, value
from fedcohort._internal.registry import Kind
from fedcohort.schemes import SCHEMES, as_scheme
from fedcohort.selection._scheme import Disclosure, Scheme
from fedcohort.server import Aggregator, Optimiser, aggregator
from fedcohort.server._aggregators import AGGREGATORS
from fedcohort.server._guards import Guard
from fedcohort.server._optimizers import OPTIMISERS
from fedcohort.server._state import Setup
from fedcohort.server._trace import Trace
from fedcohort.simulation._engine import simulate
from fedcohort.simulation._storage import code_of
from fedcohort.training import Task
from fedcohort.training._algorithms import ALGORITHMS, Algorithm
from fedcohort.training._local import LocalWork

# Local work of an arm's own: some settings of `LocalWork`, the others as in the comparison.

SETTINGS = tuple(field.name for field in fields(LocalWork))


@dataclass(frozen=True)
class OwnWork:
    """Settings of `LocalWork` by name, in its order.

    >>> OwnWork.of("work:lr=0.5").over(LocalWork(epochs=2)).lr
    0.5
    """

    settings: tuple[tuple[str, Any], ...]

    name: ClassVar[str] = "work"

    @classmethod
    def of(cls, given: OwnWork | Mapping[str, Any] | str) -> OwnWork:
        """From settings by name, or from a word: ``work:lr=0.1,batch=20``."""
        if isinstance(given, OwnWork):
            return given
        if isinstance(given, str):
            given = {key: value(text) for key, text in split(given)[1].items()}
        for key in given:
            if key not in SETTINGS:
                raise UnknownName("setting of 'work'", key, SETTINGS)
        if not given:
            raise BadInput("'work' needs a setting, as in work:lr=0.1.")
        LocalWork(**given)  # what is out of range shows now
        return cls(tuple((key, given[key]) for key in SETTINGS if key in given))

    def over(self, work: LocalWork) -> LocalWork:
        """The work of the others with these settings; ``steps`` and ``epochs`` replace another."""
        own = dict(self.settings)
        for one, other in (("steps", "epochs"), ("epochs", "steps")):
            if own.get(one) is not None:
                own.setdefault(other, None)
        return replace(work, **own)

    @property
    def parameters(self) -> dict[str, Any]:
        """The settings by name."""
        return dict(self.settings)

    @property
    def spec(self) -> str:
        """The word that reads back to it."""
        return spec(self.name, self.parameters)


# The arms of a comparison: a scheme each, and what else in it is not as in the others.

OWN = "own parts"
"""The setting of a run that names the parts which are its arm's own."""
KINDS: dict[str, Kind[Any]] = {
    kind.name: kind for kind in (ALGORITHMS, OPTIMISERS, AGGREGATORS)
}  # fmt: skip
_PLUS = re.compile(r"\+(?=[A-Za-z./])")  # in 1e+5 a digit follows


@dataclass(frozen=True)
class Arm:
    """A scheme with a local algorithm, an optimiser, an aggregator or local work of its own.

    What is None is as in the rest of the comparison, and so are the settings of `LocalWork` that
    ``work`` does not name. In a word, parts are joined by ``+``.

    >>> Arm("md", optimiser="adam:eta_g=0.01", work={"lr": 0.1}).label
    'md+adam+work'
    """

    scheme: Scheme[Any] | str
    algorithm: Algorithm | str | None = None
    optimiser: Optimiser | str | None = None
    aggregator: Aggregator | str | None = None
    work: OwnWork | Mapping[str, Any] | str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "scheme", as_scheme(self.scheme))
        for name, given in self.options.items():
            build = OwnWork.of if name == OwnWork.name else KINDS[name].build
            object.__setattr__(self, name, build(given))

    @property
    def options(self) -> dict[str, Any]:
        """What is its own, by kind."""
        own = {name: getattr(self, name) for name in (*KINDS, OwnWork.name)}
        return {name: part for name, part in own.items() if part is not None}

    @property
    def parts(self) -> tuple[Any, ...]:
        """The scheme, then what is its own."""
        return (self.scheme, *self.options.values())

    @property
    def name(self) -> str:
        """The name of the scheme."""
        return self.scheme.name  # type: ignore[union-attr]

    @property
    def oracle(self) -> bool:
        """Whether the scheme is an oracle."""
        return self.scheme.oracle  # type: ignore[union-attr]

    @property
    def label(self) -> str:
        """The names of its parts."""
        return "+".join(part.name for part in self.parts)

    @property
    def word(self) -> str:
        """What is typed for it; `arm` reads it back to an equal one."""
        words = [_typed(self.scheme, SCHEMES)]
        for kind, part in self.options.items():
            if kind in KINDS:
                word = _typed(part, KINDS[kind])
                alone = sum(_head(word) in parts for parts in KINDS.values()) == 1
                words.append(word if alone else f"{kind}={word}")
            else:
                words.append(part.spec)
        return "+".join(words)

    @property
    def code(self) -> str | None:
        """A digest of those of its parts that are not ours."""
        return "".join(filter(None, map(code_of, self.parts))) or None

    def disclosures(
        self,
        rounds: int,
        algorithm: Algorithm | None = None,
        behind: tuple[Guard, ...] = (),
        estimate: Aggregator | None = None,
    ) -> tuple[Disclosure, ...]:
        """What the server learns of clients, behind guards.

        ``algorithm`` and ``estimate`` are those of the rest of a comparison.
        """
        used: Any = algorithm if self.algorithm is None else self.algorithm
        told = () if used is None else used.disclosures
        made = aggregator(estimate if self.aggregator is None else self.aggregator)
        setup = Setup(as_scheme(self.scheme), 0, aggregator=made, guards=behind)
        return (*setup.disclosures(rounds), *told)

    def run(self, task: Task, **options: Any) -> Trace:
        """Simulate it, with ``options`` for what is not its own."""
        own = self.options
        if own:
            options["settings"] = {**(options.get("settings") or {}), OWN: sorted(own)}
        if isinstance(self.work, OwnWork):
            own["work"] = self.work.over(options.get("work") or LocalWork())
        return simulate(task, self.scheme, **{**options, **own})

    def __str__(self) -> str:
        return "+".join([str(self.scheme), *(part.spec for part in self.options.values())])


Which: TypeAlias = str | Scheme[Any] | Arm


def arm(which: Which, otherwise: Mapping[str, Any] | None = None) -> Arm:
    """An arm, given itself, as a scheme, or by a word such as ``md+scaffold+work:lr=0.1``.

    A name that several kinds have says its kind: ``md+optimiser=sgd:eta_g=0.5``. ``otherwise``
    holds for a scheme that has such a setting and is not told another value.

    >>> str(arm("md:m=5+fedprox:mu=0.1"))
    'md(m=5)+fedprox:mu=0.1'
    """
    if isinstance(which, Arm):
        return which
    if not isinstance(which, str):
        return Arm(as_scheme(which))
    first, *others = _words(which)
    own: dict[str, Any] = {}
    for word in others:
        kind, word = _kind(word, which) if _head(word) != OwnWork.name else (OwnWork.name, word)
        if kind in own:
            raise BadInput(f"'{which}' has two parts that are {kind}s; an arm has one of a kind.")
        own[kind] = word
    return Arm(SCHEMES.build(first, otherwise=otherwise), **own)


def labelled(schemes: Which | Sequence[Which] | Mapping[str, Which]) -> dict[str, Arm]:
    """Arms by label: names of parts, with the parameters that differ where they come twice."""
    if isinstance(schemes, str | Scheme | Arm):
        schemes = [schemes]
    if isinstance(schemes, Mapping):
        return {label: arm(which) for label, which in schemes.items()}
    if not isinstance(schemes, Iterable):
        raise BadInput(
            f"The schemes of a comparison must be names or schemes. Got {type(schemes).__name__} "
            "instead: write the task first, then a list of schemes."
        )
    built = [arm(which) for which in schemes]
    if not built:
        raise BadInput("A comparison needs at least one scheme; got none.")
    often = Counter(each.label for each in built)
    out: dict[str, Arm] = {}
    for each in built:
        label = each.label
        if often[label] > 1:
            like = [dict(_settings(other)) for other in built if other.label == label]
            label += "".join(
                f" {name[-1]}={setting}"
                for name, setting in _settings(each)
                if len({other.get(name) for other in like}) > 1
            )
        if label in out:
            raise BadInput(f"The scheme '{label}' is named twice with the same parameters.")
        out[label] = each
    return out


def _settings(arm: Arm) -> Iterator[tuple[tuple[str, str], Any]]:
    for part in arm.parts:
        for name, setting in part.parameters.items():
            yield (part.name, name), setting


def _words(text: str) -> list[str]:
    """What stands between plus signs, except in brackets."""
    found, start = [], 0
    for sign in _PLUS.finditer(text):
        if text.count("[", 0, sign.start()) == text.count("]", 0, sign.start()):
            found.append(text[start : sign.start()])
            start = sign.end()
    return [*found, text[start:]]


def _typed(part: Any, kind: Kind[Any]) -> str:
    """The word of a part; one that is in no package goes by its file.

    What is as by default goes without saying, but for m, which the command line sets for all.
    """
    known = {field.name: field.default for field in fields(part)}
    told = {k: v for k, v in part.parameters.items() if k == "m" or v != known[k]}
    return spec(part.name if part.name in kind else inspect.getfile(type(part)), told)


def _head(word: str) -> str:
    return word.partition(":")[0]


def _kind(word: str, whole: str) -> tuple[str, str]:
    """Which kind of part a word names, and the word."""
    head = _head(word)
    kind, equals, _ = head.partition("=")
    if equals:
        if kind not in KINDS:
            raise UnknownName("kind of part", kind, KINDS)
        return kind, word.partition("=")[2]
    have = [name for name, parts in KINDS.items() if head in parts]
    if len(have) == 1:
        return have[0], word
    if not have and not head.endswith(".py"):
        raise UnknownName("part", head, [name for parts in KINDS.values() for name in parts])
    ways = " or ".join(f"'+{name}={word}'" for name in have or KINDS)
    raise BadInput(f"'{head}' in '{whole}' could be of several kinds; write {ways}.")
