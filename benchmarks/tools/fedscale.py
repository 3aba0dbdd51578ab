"""FedScale's traces of phones as files that the simulator reads.

FedScale ships two pickles: ``client_behave_trace``, when 107,749 phones were online, and
``client_device_capacity``, how fast phones are. A pickle can run code when it is loaded; here it is
not loaded but read: numbers, texts, lists and dictionaries are rebuilt from its opcodes, and any
other opcode refuses the file. Its checksum is compared first.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Mapping
from pathlib import Path
from pickletools import genops
from typing import Any

from fedcohort._internal.errors import BadInput, brief
from fedcohort.data._files import read_bytes

BEHAVIOUR = "d0b6f81a01f0ea5f7ec432583f5afe93b1e72424db4c1affa88c484f15901662"
CAPACITY = "477f61049443987318fc5667cafa059b3b420eb0e03ccb5ceb3262d20e059e53"
"""SHA-256 of the two files as they are published."""
LIMIT = 1 << 28
TRAINING = 3
"""FedScale counts a step of training as three times one of inference, which it measured."""

_VALUES = {
    *("INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "LONG4", "FLOAT", "BINFLOAT"),
    *("STRING", "BINSTRING", "SHORT_BINSTRING", "UNICODE", "SHORT_BINUNICODE", "BINUNICODE"),
    *("BINUNICODE8", "BINBYTES", "SHORT_BINBYTES", "BINBYTES8"),
}
_CONSTANTS = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}
_MARK = object()


def plain_values(content: bytes) -> Any:
    r"""What a pickle of numbers, texts, tuples, lists and dictionaries holds; nothing is run.

    >>> plain_values(b"\x80\x02}q\x00K\x01]q\x01(K\x02K\x03es.")
    {1: [2, 3]}
    """
    stack: list[Any] = []
    memo: dict[int, Any] = {}

    def since_mark() -> list[Any]:
        place = max(k for k, each in enumerate(stack) if each is _MARK)
        found = stack[place + 1 :]
        del stack[place:]
        return found

    for opcode, value, _ in genops(content):
        name = opcode.name
        if name in _VALUES:
            stack.append(value)
        elif name in _CONSTANTS:
            stack.append(_CONSTANTS[name])
        elif name in ("EMPTY_DICT", "EMPTY_LIST", "EMPTY_TUPLE"):
            stack.append({"EMPTY_DICT": {}, "EMPTY_LIST": [], "EMPTY_TUPLE": ()}[name])
        elif name == "MARK":
            stack.append(_MARK)
        elif name in ("PUT", "BINPUT", "LONG_BINPUT"):
            memo[int(str(value))] = stack[-1]
        elif name == "MEMOIZE":
            memo[len(memo)] = stack[-1]
        elif name in ("GET", "BINGET", "LONG_BINGET"):
            stack.append(memo[int(str(value))])
        elif name == "APPENDS":
            more = since_mark()
            stack[-1].extend(more)
        elif name == "APPEND":
            last = stack.pop()
            stack[-1].append(last)
        elif name in ("SETITEMS", "SETITEM"):
            pairs = since_mark() if name == "SETITEMS" else [stack.pop(-2), stack.pop()]
            stack[-1].update(zip(pairs[::2], pairs[1::2], strict=True))
        elif name in ("LIST", "TUPLE", "DICT"):
            found = since_mark()
            made: dict[str, Any] = {"LIST": list(found), "TUPLE": tuple(found)}
            stack.append(made[name] if name in made else dict(zip(found[::2], found[1::2])))  # noqa: B905
        elif name in ("TUPLE1", "TUPLE2", "TUPLE3"):
            count = int(name[-1])
            stack[-count:] = [tuple(stack[-count:])]
        elif name not in ("PROTO", "FRAME", "STOP"):
            raise ValueError(f"it does more than hold values ({name})")
    (out,) = stack
    return out


def convert_behaviour(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    sha256: str | None = BEHAVIOUR,
) -> int:
    """``client_behave_trace`` as JSON lines for the availability ``replay``; the number of phones.

    A phone is there from active[k] to inactive[k], modulo its finish_time; an interval that ends
    before it starts reaches over the end of the trace.
    """
    phones, lines = _phones(source, sha256), 0
    with Path(target).open("w", encoding="utf-8") as file:
        for who, phone in phones.items():
            try:
                period = float(phone["finish_time"])
                intervals = [*zip(phone["active"], phone["inactive"], strict=False)]
                fine = period > 0 and math.isfinite(period)
                pairs = [(float(a), float(b) + period * (b < a)) for a, b in intervals]
            except (KeyError, TypeError, ValueError):
                fine = False
            if not fine:
                raise BadInput(f"'{source}': phone {brief(who)} has no sound trace.")
            file.write(json.dumps({"client": str(who), "period": period}) + "\n")
            for start, end in pairs:
                file.write(json.dumps({"client": str(who), "start": start, "end": end}) + "\n")
            lines += 1
    return lines


def convert_capacity(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    sha256: str | None = CAPACITY,
) -> int:
    """``client_device_capacity`` as a table for the devices ``table``; the number of phones.

    Its milliseconds are of inference and count three times; its kilobits are of both directions.
    """
    phones = _phones(source, sha256)
    with Path(target).open("w", encoding="utf-8") as file:
        file.write("client,seconds,down,up\n")
        for number, (who, phone) in enumerate(phones.items()):
            try:
                seconds = TRAINING * float(phone["computation"]) / 1000
                line = float(phone["communication"]) * 1000 / 8
            except (KeyError, TypeError, ValueError):
                raise BadInput(f"'{source}': phone {brief(who)} has no capacity.") from None
            file.write(f"{number},{seconds!r},{line!r},{line!r}\n")
    return len(phones)


def _phones(source: str | os.PathLike[str], sha256: str | None) -> Mapping[Any, Any]:
    path = Path(source)
    if not path.is_file():
        raise BadInput(f"There is no file '{path}'.")
    content = read_bytes(path, LIMIT)
    found = hashlib.sha256(content).hexdigest()
    if sha256 is not None and found != sha256:
        raise BadInput(
            f"'{path}' is not the file that FedScale published (SHA-256 {found[:16]}...): get it "
            "again, or say sha256=None to read it as it is."
        )
    try:
        phones = plain_values(content)
        if not isinstance(phones, dict) or not all(isinstance(p, dict) for p in phones.values()):
            raise ValueError("it does not map phones to what is known of them")
    except Exception as error:  # whatever foreign bytes make of it
        raise BadInput(f"'{path}' cannot be read: {brief(error)}.") from None
    return phones
