"""An append-only file that survives a crash at any moment.

One line per entry: a digest, a space, and the entry as JSON. The digest covers the
entry *and the digest before it*, so a line that was changed, removed, swapped or copied
from elsewhere breaks the chain. `Journal.append` returns only after the bytes are on the
disk (fsync); a crash in between leaves at most an unfinished last line, which `read`
removes: whoever appended it was never told that it had succeeded.

Files belong to their owner alone (mode 0600).
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fedcohort.core.errors import LONGEST_PATH, BadCheckpoint, brief
from fedcohort.core.files import (
    OWNER_ONLY,
    READ_WRITE,
    plain,
    read_plain,
    sync_directory,
    writing,
)

Line = dict[str, Any]


class Journal:
    """The entries of one file, oldest first.

    Not safe on its own against a second process: hold `exclusive` around read and append. Only
    `peek` may be called at any time.
    """

    damaged = "The file {path} is damaged at line {line}: restore it from a backup."
    """What is said of a broken chain."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._digest = ""  # of the last entry; known after `read`

    def read(self) -> list[Line]:
        """All entries; creates an empty file, removes an unfinished last line."""
        with _open(self.path) as descriptor:
            content = read_plain(self.path)
            whole = content.rfind(b"\n") + 1
            if whole < len(content):
                os.ftruncate(descriptor, whole)
                os.fsync(descriptor)
        return self._parsed(content)

    def peek(self) -> list[Line]:
        """All finished entries; the file is left as it is, for somebody may be writing."""
        return self._parsed(read_plain(self.path))

    def append(self, entry: Line) -> None:
        """Write one entry, and return when it is on the disk. Call `read` first."""
        text = json.dumps(entry, sort_keys=True, allow_nan=False)
        digest = _chained(self._digest, text)
        with _open(self.path) as descriptor:
            os.lseek(descriptor, 0, os.SEEK_END)
            left = memoryview(f"{digest} {text}\n".encode())
            while left:
                left = left[os.write(descriptor, left) :]
            os.fsync(descriptor)
        self._digest = digest

    def _parsed(self, content: bytes) -> list[Line]:
        self._digest = ""
        whole = content.rfind(b"\n") + 1
        return [self._parse(n, line) for n, line in enumerate(content[:whole].splitlines(), 1)]

    def _parse(self, number: int, line: bytes) -> Line:
        try:
            digest, text = line.decode("utf-8").split(" ", 1)
            intact = digest == _chained(self._digest, text)
            entry = json.loads(text) if intact else None
        except (ValueError, RecursionError):  # no text, no JSON, or brackets without end
            entry = None
        if not isinstance(entry, dict):
            path = brief(self.path, LONGEST_PATH)
            raise BadCheckpoint(self.damaged.format(path=path, line=number))
        self._digest = digest
        return entry


def _chained(before: str, text: str) -> str:
    return hashlib.blake2b(f"{before} {text}".encode(), digest_size=16).hexdigest()


@contextlib.contextmanager
def _open(path: Path) -> Iterator[int]:
    is_new = not path.exists()
    with writing(path), plain(path, READ_WRITE) as descriptor:
        os.fchmod(descriptor, OWNER_ONLY)  # also when a backup came back with wider rights
        if is_new:
            sync_directory(path.parent)
        yield descriptor
