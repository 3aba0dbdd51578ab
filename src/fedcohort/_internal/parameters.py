"""Declared parameters: ranges, their checks, and specs such as ``md:m=3``."""

from __future__ import annotations

import json
import math
import numbers
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from functools import cache, wraps
from inspect import signature
from typing import (
    Any,
    ClassVar,
    Generic,
    ParamSpec,
    Protocol,
    Self,
    TypeVar,
    cast,
    get_args,
    get_type_hints,
)

import numpy as np

from fedcohort._internal.errors import BadInput, BadParameter, UnknownName, shown

# One way to name a part with its settings: ``name:setting=value,setting=value``.
#
# The same in Python, on the command line and in what is kept with a run. A value in brackets is
# taken whole, so that it may be a part with settings of its own: ``memory:guess=[ridge:alpha=1]``.
# What `spec` writes, `split` and the declared ranges read back.


def split(word: str) -> tuple[str, dict[str, str]]:
    """The name and its settings as text; a value may contain commas if it is a tuple.

    >>> split("pow-d:m=3,d=6")
    ('pow-d', {'m': '3', 'd': '6'})
    >>> split("target:groups=0,0,1")
    ('target', {'groups': '0,0,1'})
    >>> split("memory:guess=[ridge:alpha=1,beta=2]")
    ('memory', {'guess': '[ridge:alpha=1,beta=2]'})
    """
    name, _, rest = word.partition(":")
    settings: dict[str, str] = {}
    last = ""
    for piece in pieces(rest) if rest else []:
        key, equals, value = piece.partition("=")
        if equals and "[" not in key:
            last = key.strip().replace("-", "_")
            if last in settings:
                raise BadInput(f"{shown(word)} gives the setting {shown(last)} twice.")
            settings[last] = value.strip()
        elif last:
            settings[last] += f",{piece.strip()}"
        else:
            must = "must read name:setting=value,..."
            raise BadInput(f"{shown(word)} {must}; {shown(piece)} has no '='.")
    return name.strip(), settings


def pieces(text: str) -> list[str]:
    """What stands between commas, except in brackets.

    >>> pieces("1,[a:b=1,c=2],")
    ['1', '[a:b=1,c=2]', '']
    """
    found, depth = [""], 0
    for sign in text:
        depth += (sign == "[") - (sign == "]")
        if depth < 0:
            break
        if sign == "," and depth == 0:
            found.append("")
        else:
            found[-1] += sign
    if depth:
        raise BadInput(f"{shown(text)} must close every bracket that it opens, and no other.")
    return found


def elements(text: str) -> list[str]:
    """The elements of a tuple; as in Python, a single one is followed by a comma.

    >>> elements("0.5,"), elements("1,2"), elements(",")
    (['0.5'], ['1', '2'], [])
    """
    text = bare(text)
    return [] if text == "," else pieces(text.removesuffix(","))


def bare(text: str) -> str:
    """The value without the brackets around it.

    >>> bare("[ridge:alpha=1]"), bare("[a],[b]")
    ('ridge:alpha=1', '[a],[b]')
    """
    depth = 0
    for place, sign in enumerate(text, 1):
        depth += (sign == "[") - (sign == "]")
        if depth == 0 and place < len(text):  # no pair of brackets holds all of it
            return text
    return text[1:-1] if depth == 0 and text.startswith("[") else text


def value(text: str) -> Any:
    """A value whose range nobody declared: a number, a truth value, None, a tuple or a word.

    >>> value("0.1"), value("true"), value("0.1,0.2"), value("0.5,"), value("word")
    (0.1, True, (0.1, 0.2), (0.5,), 'word')
    """
    if "," in text and bare(text) == text:
        return tuple(value(part) for part in elements(text))
    if text.lower() in {"true", "false", "none"}:
        return {"true": True, "false": False, "none": None}[text.lower()]
    try:
        read = json.loads(text)
    except (ValueError, RecursionError):  # no JSON, too many digits, brackets without end
        return bare(text)
    return read if isinstance(read, int | float) else bare(text)


def written(given: object) -> str:
    """A value as it stands in a word; one sentence where it cannot stand there.

    >>> written(True), written(None), written((1,)), written("a, b")
    ('true', 'none', '1,', '[a, b]')
    """
    if hasattr(given, "spec"):
        text = str(given.spec)
        return f"[{text}]" if ":" in text else text
    if isinstance(given, tuple | list):
        inner = ",".join(written(part) for part in given)
        return f"{inner}," if len(given) < 2 else inner
    if given is None or isinstance(given, bool):
        return str(given).lower()
    if isinstance(given, int | float):
        return repr(given)
    if isinstance(given, str):
        plain = given and not re.search(r"[\s,=\[\]]", given)
        text = given if plain else f"[{given}]"
        if bare(text) == given:
            return text
    raise BadInput(
        f"{shown(given)} cannot be written as a setting in a word; pass the part itself."
    )


def spec(name: str, settings: Mapping[str, object]) -> str:
    """The word of a part with all its settings.

    >>> spec("adam", {"eta_g": 0.1, "beta1": 0.9})
    'adam:eta_g=0.1,beta1=0.9'
    """
    given = ",".join(f"{key}={written(each)}" for key, each in settings.items())
    return f"{name}:{given}" if given else name


# Ranges of parameters, declared once beside the parameter.
#
# A scheme is a frozen dataclass whose fields are its hyper-parameters; the range stands in the
# annotation, the check and its error sentence are the same for all, and tests make bad values
# out of the declaration::
#
#     m: Annotated[int, Whole(1)] = 10


class Constraint(Protocol):
    """A declared range: it describes itself, tests a value, and knows values outside it."""

    def __str__(self) -> str: ...
    def accepts(self, value: object) -> bool: ...
    def parse(self, text: str) -> object: ...
    def bad_examples(self) -> Sequence[object]: ...


def is_whole(value: object) -> bool:
    """An integer of any make, but not a boolean."""
    return isinstance(value, numbers.Integral) and not isinstance(value, bool | np.bool_)


def is_real(value: object) -> bool:
    """A finite number, but not a boolean."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, numbers.Real):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # an integer that no float can hold
        return False


@dataclass(frozen=True)
class Whole:
    """An integer in ``[low, high]``, or one of a few special words."""

    low: int
    high: int | None = None
    words: tuple[str, ...] = ()

    def __str__(self) -> str:
        text = f"an int of at least {self.low}"
        if self.high is not None:
            text = f"an int in [{self.low}, {self.high}]"
        return " or ".join([text, *(repr(word) for word in self.words)])

    def accepts(self, value: object) -> bool:
        if isinstance(value, str):
            return value in self.words
        if not is_whole(value):
            return False
        return self.low <= value and (self.high is None or value <= self.high)  # type: ignore[operator]

    def parse(self, text: str) -> object:
        return text if text in self.words else int(text)

    def bad_examples(self) -> Sequence[object]:
        above = [] if self.high is None else [self.high + 1]
        return [self.low - 1, *above, 2.5, True, "3", float("nan"), None]


@dataclass(frozen=True)
class Real:
    """A finite number between two bounds; ``open_low`` and ``open_high`` exclude one of them."""

    low: float = -math.inf
    high: float = math.inf
    open_low: bool = False
    words: tuple[str, ...] = ()
    open_high: bool = False

    def __str__(self) -> str:
        if self.high == math.inf:
            text = f"a number {'above' if self.open_low else 'of at least'} {self.low:g}"
        else:
            first, last = "(" if self.open_low else "[", ")" if self.open_high else "]"
            text = f"a number in {first}{self.low:g}, {self.high:g}{last}"
        return " or ".join([text, *(repr(word) for word in self.words)])

    def accepts(self, value: object) -> bool:
        if isinstance(value, str):
            return value in self.words
        if not is_real(value):
            return False
        above = self.low < value if self.open_low else self.low <= value  # type: ignore[operator]
        below = value < self.high if self.open_high else value <= self.high  # type: ignore[operator]
        return above and below

    def parse(self, text: str) -> object:
        return text if text in self.words else float(text)

    def bad_examples(self) -> Sequence[object]:
        out: list[object] = [float("nan"), "0.5", True, None]
        if self.low > -math.inf:
            out.append(self.low if self.open_low else self.low - 1.0)
        if self.high < math.inf:
            out.append(self.high if self.open_high else self.high + 1.0)
        return out


@dataclass(frozen=True)
class OneOf:
    """One of a few words."""

    words: tuple[str, ...]

    def __str__(self) -> str:
        return "one of " + ", ".join(repr(word) for word in self.words)

    def accepts(self, value: object) -> bool:
        return isinstance(value, str) and value in self.words

    def parse(self, text: str) -> object:
        return text

    def bad_examples(self) -> Sequence[object]:
        return ["no such word", 1, None]


@dataclass(frozen=True)
class Flag:
    """True or False."""

    def __str__(self) -> str:
        return "True or False"

    def accepts(self, value: object) -> bool:
        return isinstance(value, bool)

    def parse(self, text: str) -> object:
        return {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}.get(
            text.lower(), text
        )

    def bad_examples(self) -> Sequence[object]:
        return ["yes", 1, None]


@dataclass(frozen=True)
class Labels:
    """One whole number per client (a group, a site, ...), as a tuple."""

    def __str__(self) -> str:
        return "a tuple of one int of at least 0 per client"

    def accepts(self, value: object) -> bool:
        return isinstance(value, tuple) and all(is_whole(v) and v >= 0 for v in value)

    def parse(self, text: str) -> object:
        return tuple(int(part) for part in elements(text))

    def bad_examples(self) -> Sequence[object]:
        return [(0, -1), (0, 1.5), "0,1", 3]


@dataclass(frozen=True)
class Numbers:
    """One finite number of at least 0 per client (a latency, a price, ...), as a tuple."""

    def __str__(self) -> str:
        return "a tuple of one number of at least 0 per client"

    def accepts(self, value: object) -> bool:
        return isinstance(value, tuple) and all(is_real(v) and v >= 0 for v in value)

    def parse(self, text: str) -> object:
        return tuple(float(part) for part in elements(text))

    def bad_examples(self) -> Sequence[object]:
        return [(0.0, -1.0), (0.0, math.nan), "0,1", 3.0]


@dataclass(frozen=True)
class Maybe:
    """The constraint inside, or None."""

    inner: Constraint

    def __str__(self) -> str:
        return f"{self.inner} or None"

    def accepts(self, value: object) -> bool:
        return value is None or self.inner.accepts(value)

    def parse(self, text: str) -> object:
        return None if text.lower() == "none" else self.inner.parse(text)

    def bad_examples(self) -> Sequence[object]:
        return [value for value in self.inner.bad_examples() if value is not None]


def constraints(cls: type) -> Mapping[str, Constraint]:
    """The declared range of each field of a dataclass."""
    return _constraints(cls)


@cache
def _constraints(cls: Any) -> Mapping[str, Constraint]:
    return declared_in(get_type_hints(cls, include_extras=True), [f.name for f in fields(cls)])


def declared_in(hints: Mapping[str, Any], names: Iterable[str]) -> dict[str, Constraint]:
    """The ranges that stand in annotations, by the name of what is annotated."""
    found: dict[str, Constraint] = {}
    for name in names:
        for extra in get_args(hints.get(name))[1:]:
            if hasattr(extra, "accepts"):
                found[name] = extra
    return found


P = ParamSpec("P")
R = TypeVar("R")


def within_ranges(function: Callable[P, R]) -> Callable[P, R]:
    """The same function, whose arguments are checked by the ranges in its annotations.

    >>> from typing import Annotated
    >>> @within_ranges
    ... def half(m: Annotated[int, Whole(1)]) -> float:
    ...     return m / 2
    >>> half(m=0)
    Traceback (most recent call last):
    fedcohort._internal.errors.BadParameter: The 'm' parameter of half must be an int ...
    """
    told = signature(function)

    @cache
    def ranges() -> Mapping[str, Constraint]:
        return declared_in(get_type_hints(function, include_extras=True), told.parameters)

    @wraps(function)
    def checked(*args: P.args, **kwargs: P.kwargs) -> R:
        given = told.bind(*args, **kwargs).arguments
        for name, constraint in ranges().items():
            if name in given and not constraint.accepts(given[name]):
                raise BadParameter(name, function.__name__, str(constraint), given[name])
        return function(*args, **kwargs)

    return checked


def validate(config: Any, owner: str) -> None:
    """Check every declared field of a dataclass; one error sentence for the first bad one."""
    for name, constraint in constraints(type(config)).items():
        value = getattr(config, name)
        if not constraint.accepts(value):
            raise BadParameter(name, owner, str(constraint), value)


def plain(value: object) -> object:
    """A numpy number as the Python number it stands for (also inside a tuple): for JSON."""
    if isinstance(value, tuple):
        return tuple(plain(part) for part in value)
    return value.item() if isinstance(value, np.generic) else value


class Checked:
    """Mix-in for frozen dataclasses: the declared ranges are checked on construction."""

    name: ClassVar[str] = ""

    def __post_init__(self) -> None:
        for name in constraints(type(self)):
            object.__setattr__(self, name, plain(getattr(self, name)))
        validate(self, type(self).name or type(self).__name__)

    @property
    def parameters(self) -> dict[str, Any]:
        """The settings by name."""
        return {each.name: getattr(self, each.name) for each in fields(self)}  # type: ignore[arg-type]

    @property
    def spec(self) -> str:
        """The word that names this part with all its settings; it reads back to an equal one."""
        return spec(self.name, self.parameters)

    @classmethod
    def build(cls, **parameters: Any) -> Self:
        """Construct from named parameters; an unknown name gets a helpful error."""
        known = {field.name: field for field in fields(cls)}  # type: ignore[arg-type]
        owner = cls.name or cls.__name__
        for name, value in parameters.items():
            if name not in known:
                raise UnknownName(f"parameter of {owner}", name, known)
            if isinstance(value, list | np.ndarray):  # hashable, as the fields of a part are
                listed = value if isinstance(value, list) else value.tolist()
                parameters[name] = tuple(listed) if isinstance(listed, list) else listed
        for name, field in known.items():
            required = field.default is MISSING and field.default_factory is MISSING
            if required and name not in parameters:
                must = str(constraints(cls).get(name, "given"))
                raise BadParameter(name, owner, must, None, "It has no default.")
        return cls(**parameters)


# Declarations of a class that its parameters may narrow.

T = TypeVar("T")


class _Depending(Generic[T]):
    """A descriptor: the class has the default, an instance its own."""

    def __init__(self, default: T, given: Callable[[Any], T]) -> None:
        self.default, self.given = default, given

    def __get__(self, instance: object | None, owner: type) -> T:
        return self.default if instance is None else self.given(instance)


def depending(default: T, given: Callable[[Any], T]) -> T:
    """A class attribute (``claims``, ``asks``, ``listens``) that depends on the parameters.

    ``default`` is what the class as such declares, ``given(scheme)`` what a scheme with its
    parameters does: paper mode gives up a claim, another source of information asks nobody.

    >>> class Scheme:
    ...     claims = depending({"unbiased"}, lambda scheme: set())
    >>> Scheme.claims, Scheme().claims
    ({'unbiased'}, set())
    """
    return cast("T", _Depending(default, given))
