"""Digests see all that a value holds, or refuse it."""

from __future__ import annotations

import functools
import importlib
import os
import subprocess
import sys
import threading
from collections import OrderedDict, defaultdict
from collections.abc import Callable
from dataclasses import InitVar, dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fedcohort._internal.errors import BadInput
from fedcohort._internal.fingerprint import Digest


def digest(value: object) -> str:
    found = Digest("a test")
    found.add("value", value)
    return found.hex()


def scaled(scale: object) -> Callable[[], object]:
    return lambda: scale


def default(scale: object) -> Callable[..., object]:
    return lambda scale=scale: scale


def local_class(scale: object) -> object:
    class Local:
        def method(self) -> object:
            return scale

    return Local()


@dataclass(frozen=True)
class Settings:
    a: object
    b: int = 1


class Doubling:
    """Data that can be called."""

    def __init__(self, times: int) -> None:
        self.times = times

    def __call__(self) -> int:
        return 2 * self.times


class Plain:
    def __init__(self, a: object) -> None:
        self._a = a

    def method(self) -> object:
        return self._a

    @functools.cached_property
    def computed(self) -> object:
        return self._a


HOLDERS: dict[str, Callable[[Any], object]] = {
    "itself": lambda v: v,
    "list": lambda v: [v],
    "tuple": lambda v: (0, v),
    "mapping": lambda v: {"k": v},
    "dataclass": Settings,
    "object": Plain,
    "nested": lambda v: {"k": [Plain(Settings(v))]},
    "object array": lambda v: np.array([v, None], dtype=object),
    "closure": scaled,
    "default": default,
    "method": lambda v: Plain(v).method,
    "partial": lambda v: functools.partial(scaled, v),
    "class in a function": local_class,
}
PAIRS: list[tuple[Any, Any]] = [
    (1, 2),
    (1, 1.0),
    (1, True),
    (1, "1"),
    (0.1, 0.1 + 2**-55),
    ("a", b"a"),
    (Fraction(1, 3), Fraction(1, 2)),
    (np.float32(1), np.float64(1)),
    (np.zeros(3), np.zeros(4)),
    (np.zeros(4), np.zeros((2, 2))),
    (np.zeros(2), np.zeros(2, np.float32)),
    (np.arange(6).reshape(2, 3), np.arange(6).reshape(2, 3)[:, ::-1]),
    (Path("a"), Path("b")),
    (max, min),
    (np.add, np.multiply),
    (int, float),
    ([1, [2]], [[1], 2]),
    ([], ()),
    ({"a": 1, "b": 2}, {"a": 2, "b": 1}),
    ({1: "a"}, {"1": "a"}),
    ({1, 2}, {1, 3}),
    (defaultdict(int, a=1), defaultdict(float, a=1)),
    (defaultdict(scaled(1)), defaultdict(scaled(2))),
    (scaled(1), scaled(2)),
    (lambda: 1, lambda: 2),
    (Settings(1), Settings(1, 2)),
    (Doubling(1), Doubling(2)),
]


@pytest.mark.parametrize("holder", HOLDERS.values(), ids=HOLDERS.keys())
@pytest.mark.parametrize("pair", PAIRS, ids=[str(i) for i in range(len(PAIRS))])
def test_what_differs_is_seen_wherever_it_is(
    pair: tuple[Any, Any], holder: Callable[[Any], object]
) -> None:
    one, other = pair
    assert digest(holder(one)) == digest(holder(one))
    assert digest(holder(one)) != digest(holder(other))


def test_what_is_the_same_stays_the_same() -> None:
    assert digest({"a": 1, "b": 2}) == digest({"b": 2, "a": 1})
    assert digest(frozenset({"a", "b"})) == digest(frozenset({"b", "a"}))
    x = np.arange(6.0).reshape(2, 3)
    assert digest(x) == digest(np.asfortranarray(x)) == digest(np.pad(x, 1)[1:-1, 1:-1])
    assert digest([x, x]) == digest([x, x.copy()])  # sharing memory decides nothing
    used = Plain(1)
    assert used.computed == 1
    assert digest(used) == digest(Plain(1))


def test_parts_of_a_subclass_count() -> None:
    class Tagged(OrderedDict[str, int]):
        tag = 0

    one, other = Tagged(a=1), Tagged(a=1)
    other.tag = 2
    assert digest(one) != digest(other)


def test_large_arrays_are_read_in_blocks_to_the_end() -> None:
    x = np.zeros((300, 20_000))
    y = x.copy()
    y[-1, -1] = 1
    assert digest(x) != digest(y)


def test_a_value_may_hold_itself() -> None:
    ring: list[object] = [1]
    ring.append(ring)
    assert digest(ring) == digest(ring)
    own = Plain(None)
    own._a = own.method
    assert digest(own) == digest(own)


class Slotted:
    __slots__ = ("hidden",)


REFUSED: dict[str, object] = {
    "lock": threading.Lock(),
    "object": object(),
    "generator": np.random.default_rng(0),
    "masked": np.ma.masked_equal([1, 2], 2),
    "slots": Slotted(),
    "iterator": iter([1]),
    "of a text": eval("lambda: 1", {"__name__": "nowhere"}),  # noqa: S307 - no source to read
}


@pytest.mark.parametrize("holder", HOLDERS.values(), ids=HOLDERS.keys())
@pytest.mark.parametrize("value", REFUSED.values(), ids=REFUSED.keys())
def test_what_cannot_be_told_apart_is_refused(
    value: object, holder: Callable[[Any], object]
) -> None:
    with pytest.raises(BadInput, match=r"The attribute 'value.*' of a test must hold data"):
        digest(holder(value))


def test_an_object_may_tell_its_own() -> None:
    class Told:
        def __init__(self, mark: str) -> None:
            self.mark, self.lock = mark, threading.Lock()

        def fingerprint(self) -> str:
            return self.mark

    assert digest(Told("a")) == digest(Told("a")) != digest(Told("b"))


SCRIPT = """{above}
from fedcohort._internal.fingerprint import Digest
SCALE = {scale}
def helper(): return SCALE
class Mine:
    def work(self): return helper() + {constant}
found = Digest("mine")
found.add("value", Mine())
print(found.hex())
# {comment}
"""


def test_of_a_script_its_classes_and_what_they_read_count(tmp_path: Path) -> None:
    def told(scale: int = 1, constant: int = 1, comment: str = "", above: str = "") -> str:
        file = tmp_path / "script.py"
        text = SCRIPT.format(scale=scale, constant=constant, comment=comment, above=above)
        file.write_text(text)
        run = [sys.executable, str(file)]
        return subprocess.run(run, capture_output=True, text=True, check=True).stdout

    assert told() == told(comment="the rest of a script may change")
    assert told() == told(above="'''a line\nor two'''")
    assert len({told(), told(scale=2), told(constant=2)}) == 3


def test_variables_that_are_not_bound_yet() -> None:
    def inner() -> object:
        return later

    before = digest(inner)
    later = 1
    assert digest(inner) != before


def test_two_classes_of_one_name() -> None:
    def made(first: bool) -> object:
        if first:

            class Same:
                def method(self) -> int:
                    return 1
        else:

            class Same:  # type: ignore[no-redef]
                def method(self) -> int:
                    return 2

        return Same()

    assert digest(made(True)) == digest(made(True)) != digest(made(False))


def test_what_a_dataclass_sets_after_its_fields_counts() -> None:
    @dataclass
    class Made:
        seed: InitVar[int]

        def __post_init__(self, seed: int) -> None:
            self.w = seed * 10

    assert digest(Made(1)) != digest(Made(2))
    assert digest(Made(1)) == digest(Made(1))


def test_annotations_are_no_attributes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python 3.14 keeps them as a function that holds the names of its class, methods and all."""
    text = "class Noted:\n    x: int = 1\n    @classmethod\n    def make(cls): return cls()\n"
    (tmp_path / "noted_class.py").write_text(text, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    kind = importlib.import_module("noted_class").Noted
    assert digest(kind()) == digest(kind.make())


def test_a_function_of_a_text_has_no_source_in_a_program_given_as_a_text() -> None:
    """Python 3.13 takes the program of ``python -c`` for the source of all that `eval` makes."""
    asks = "from fedcohort._internal.fingerprint import source_digest as d"
    program = f"{asks}; print(d(eval('lambda: 1', {{'__name__': 'nowhere'}})))"
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert found.stdout == "None\n", found.stderr


ON_ONE_LINE = """
from fedcohort._internal.fingerprint import Digest
def digest(value):
    found = Digest("a test")
    found.add("value", value)
    return found.hex()
many = [lambda: 1, lambda: 2, lambda: len, lambda: max, lambda x: x in {"a", "b"}]
print(len({digest(each) for each in many}), digest(many[-1]))
"""


def test_functions_on_one_line_are_told_apart_without_columns(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(ON_ONE_LINE)
    words = [sys.executable, "-X", "no_debug_ranges", str(program)]
    one, other = (  # sets of texts come in another order
        subprocess.run(words, env={**os.environ, "PYTHONHASHSEED": hashes},
                       capture_output=True, text=True, check=True).stdout
        for hashes in "12"
    )  # fmt: skip
    assert one.startswith("5 ")
    assert one == other
