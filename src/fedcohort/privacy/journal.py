"""An append-only file that survives a crash at any moment.

One line per record: a digest, a space, and the record as JSON. The digest covers the
record *and the digest before it*, so a line that was changed, removed, swapped or copied
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
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fedcohort.core.errors import BadCheckpoint, InUse

Record = dict[str, Any]

_OWNER_ONLY = 0o600
_FLAGS = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)  # never through a planted link


class Journal:
    """The records of one file, oldest first.

    Not safe on its own against a second process: hold `exclusive` around read and append.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._digest = ""  # of the last record; known after `read`

    def read(self) -> list[Record]:
        """All records; creates an empty file, removes an unfinished last line."""
        with _open(self.path) as descriptor:
            content = _read_all(descriptor)
            whole = content.rfind(b"\n") + 1
            if whole < len(content):
                os.ftruncate(descriptor, whole)
                os.fsync(descriptor)
        self._digest = ""
        return [self._parse(n, line) for n, line in enumerate(content[:whole].splitlines(), 1)]

    def append(self, record: Record) -> None:
        """Write one record, and return when it is on the disk. Call `read` first."""
        text = json.dumps(record, sort_keys=True, allow_nan=False)
        digest = _chained(self._digest, text)
        with _open(self.path) as descriptor:
            os.lseek(descriptor, 0, os.SEEK_END)
            left = memoryview(f"{digest} {text}\n".encode())
            while left:
                left = left[os.write(descriptor, left) :]
            os.fsync(descriptor)
        self._digest = digest

    def _parse(self, number: int, line: bytes) -> Record:
        try:
            digest, text = line.decode("utf-8").split(" ", 1)
            intact = digest == _chained(self._digest, text)
            record = json.loads(text) if intact else None
        except ValueError:
            record = None
        if not isinstance(record, dict):
            raise BadCheckpoint(
                f"The private file {self.path} is damaged at line {number}: what was answered and "
                "spent is not known for sure, so nothing is answered. Restore the file from a "
                "backup that is not older than the last answer."
            )
        self._digest = digest
        return record


def _chained(before: str, text: str) -> str:
    return hashlib.blake2b(f"{before} {text}".encode(), digest_size=16).hexdigest()


@contextlib.contextmanager
def _open(path: Path) -> Iterator[int]:
    is_new = not path.exists()
    descriptor = os.open(path, _FLAGS, _OWNER_ONLY)
    try:
        os.fchmod(descriptor, _OWNER_ONLY)  # also when a backup came back with wider rights
        if is_new:
            sync_directory(path.parent)
        yield descriptor
    finally:
        os.close(descriptor)


def _read_all(descriptor: int) -> bytes:
    with os.fdopen(os.dup(descriptor), "rb") as file:
        return file.read()


def sync_directory(directory: Path) -> None:
    """Make the names in a directory durable: fsync of a file does not cover its name."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def exclusive(path: Path, patience: float = 10.0) -> Iterator[None]:
    """Hold the lock file ``path``; the system lets go of it when the process dies.

    Waits ``patience`` seconds for another holder, never for ever.
    """
    try:
        import fcntl
    except ImportError as error:  # not a POSIX system
        raise InUse(f"No file locks on this system, so {path} cannot be kept safe.") from error
    descriptor = os.open(path, _FLAGS, _OWNER_ONLY)
    try:
        until = time.monotonic() + patience
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError as error:
                if time.monotonic() >= until:
                    raise InUse(
                        f"Another process has held {path} for {patience:g} s; give each client "
                        "its own directory, or end the other process."
                    ) from error
                time.sleep(0.005)
        yield
    finally:
        os.close(descriptor)
