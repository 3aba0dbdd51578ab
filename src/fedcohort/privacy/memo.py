"""The answers that a client has given, so that the same question gets the same answer.

A server that asks every round, as in the paper, averages the noise away: at M = 100, eps = 3
it names the exact size of 98 % of the clients after 50 rounds. A client that repeats its
first answer tells nothing new, however often it is asked (permanent randomised response:
Erlingsson et al. 2014; Ding et al. 2017).

The memo also keeps the *offset* of the rounding. With a new offset each time, a client
between two levels would switch between two stored answers, and how often it does so would
tell where in between it lies. With the offset kept (alpha-point rounding, Ding et al. 2017)
the level is a fixed function of the size.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from fedcohort.core.errors import BadCheckpoint, quoted, shown
from fedcohort.core.files import sync_directory, writing
from fedcohort.privacy.journal import Journal

Answer = int | list["Answer"]
"""A number, or a table of numbers as nested lists."""


def counts_key(question: str) -> str:
    """The key of a question about counts; no question about a size has it."""
    return json.dumps({"counts": question})


class Memo:
    """Answers and offsets by question. Hold the client's lock from `load` to the last call."""

    def __init__(self, path: Path) -> None:
        self._journal = Journal(path)
        self._found: dict[str, dict[str, Answer]] = {"offset": {}, "answer": {}}

    def load(self) -> None:
        """Read the file; do this under the lock, before any other call."""
        self._found = {"offset": {}, "answer": {}}
        for record in self._journal.read():
            try:
                self._found[record["what"]][str(record["key"])] = _whole(record["value"])
            except (ArithmeticError, KeyError, TypeError, ValueError) as error:
                raise BadCheckpoint(
                    f"{quoted(self._journal.path)} is not a memo of this version (record "
                    f"{shown(record)}); use the version that wrote it, or, if it held counts, "
                    "which were kept apart, move its two files to a folder 'counts' in this one."
                ) from error

    @property
    def answered(self) -> frozenset[str]:
        """The keys of all stored answers."""
        return frozenset(self._found["answer"])

    def offset(self, key: str) -> int | None:
        """The offset drawn for a question, if any."""
        found = self._found["offset"].get(key)
        return found if isinstance(found, int) else None

    def answer(self, key: str) -> Answer | None:
        """The answer given to a question, if any."""
        return self._found["answer"].get(key)

    def keep_offset(self, key: str, value: int) -> None:
        """Store an offset; durable when this returns."""
        self._keep("offset", key, value)

    def keep_answer(self, key: str, value: Answer) -> None:
        """Store an answer; durable when this returns."""
        self._keep("answer", key, value)

    def _keep(self, what: str, key: str, value: Answer) -> None:
        self._journal.append({"what": what, "key": key, "value": value})
        self._found[what][key] = value

    def set_aside(self) -> Path:
        """Rename a damaged file, keep it for whoever wants to look, and start an empty one."""
        path, number = self._journal.path, 1
        while (aside := path.with_name(f"{path.name}.damaged-{number}")).exists():
            number += 1
        with writing(path):
            path.rename(aside)
            sync_directory(path.parent)
        self.load()
        return aside


def _whole(value: Any) -> Answer:
    return [_whole(each) for each in value] if isinstance(value, list) else int(value)
