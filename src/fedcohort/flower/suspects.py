"""Clients that ended a round: the server died while it read what they had sent."""

from __future__ import annotations

import json
import os
from collections.abc import Hashable
from pathlib import Path
from typing import Any

from fedcohort.core.files import OWNER_ONLY, READ_WRITE
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
            died = [*told.get("died", []), told.get("reading")] if told else []
            same = told.get("round") == round
            self.round, self.died = round, [_named(who) for who in died if who and same]
            self._write(None)
        return set(self.died)

    def reading(self, who: Hashable) -> None:
        """Note whose report is read now; None for nobody's."""
        self._write(who)

    def _read(self) -> dict[str, Any]:
        try:
            text = self.path.read_bytes()
            self._width = len(text)
            told = json.loads(text)
        except (OSError, ValueError):  # none, or none of ours
            return {}
        return told if isinstance(told, dict) else {}

    def _write(self, who: Hashable) -> None:
        died = [_plain(each) for each in self.died]
        told = {"round": self.round, "died": died, "reading": _plain(who)}
        text = json.dumps(told).encode().ljust(self._width)  # nothing of a longer one is left
        self._width = len(text)
        file = os.open(self.path, READ_WRITE, OWNER_ONLY)
        try:
            os.write(file, text)
        finally:
            os.close(file)


def _plain(who: Hashable) -> dict[str, Any] | None:
    if who is None:
        return None
    return {"node": who.number} if isinstance(who, Node) else {"key": who}


def _named(told: dict[str, Any]) -> Hashable:
    return Node(told["node"]) if "node" in told else told.get("key")
