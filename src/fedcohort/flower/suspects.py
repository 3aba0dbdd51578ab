"""Clients that ended a round: the server died while it read what they had sent."""

from __future__ import annotations

import json
import os
from collections.abc import Hashable
from pathlib import Path
from typing import Any

from fedcohort.core.errors import CannotSave
from fedcohort.core.files import READ_WRITE, plain, read_plain
from fedcohort.flower.exchange import Node


class Suspects:
    """Who is left out of the round under way, because an earlier server died of what they sent.

    Errors in reading are caught; this is about what cannot be: a crash of the interpreter, a
    process that is killed for the memory it takes. A file names whoever is being read. It is
    written in one piece and not flushed: it outlives the process, and if the whole machine dies
    no client is to blame. The same client is invited again in the next round, for the server
    may as well have been killed by somebody else at that moment.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.round, self.died = 0, list[Hashable]()
        self._width = 0

    def of(self, round: int) -> set[Hashable]:
        """Those who are left out of a round; from now on this is the round under way."""
        if round != self.round or not self._width:
            told = self._read()
            died = told.get("died") if told.get("round") == round else None
            ended = [*died, told.get("reading")] if isinstance(died, list) else []
            self.round = round
            self.died = [who for who in map(_named, ended) if who is not None]
            self._write(None)
        return set(self.died)

    def reading(self, who: Hashable) -> None:
        """Note whose report is read now; None for nobody's."""
        self._write(who)

    def _read(self) -> dict[str, Any]:
        try:
            text = read_plain(self.path)
            self._width = len(text)
            told = json.loads(text)
        except (OSError, ValueError, RecursionError):  # none, or none of ours
            return {}
        return told if isinstance(told, dict) else {}

    def _write(self, who: Hashable) -> None:
        died = [_plain(each) for each in self.died]
        told = {"round": self.round, "died": died, "reading": _plain(who)}
        text = json.dumps(told).encode().ljust(self._width)  # nothing of a longer one is left
        self._width = len(text)
        try:
            with plain(self.path, READ_WRITE) as file:
                os.write(file, text)
        except OSError as error:
            raise CannotSave(f"'{self.path}' cannot be written: {error}.") from error


def _plain(who: Hashable) -> dict[str, Any] | None:
    if who is None:
        return None
    return {"node": who.number} if isinstance(who, Node) else {"key": who}


def _named(told: Any) -> Hashable:
    """Whom `_plain` wrote down; None for nobody, and for what it never wrote."""
    node, key = (told.get("node"), told.get("key")) if isinstance(told, dict) else (None, None)
    if isinstance(node, int):
        return Node(node)
    return key if isinstance(key, int | str) else None
