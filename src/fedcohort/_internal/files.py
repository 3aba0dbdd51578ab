"""Paths, files that are replaced at once, and append-only journals."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import re
import stat
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from fedcohort._internal.environment import check_fits
from fedcohort._internal.errors import (
    LONGEST_PATH,
    BadCheckpoint,
    BadInput,
    CannotSave,
    FedcohortError,
    InUse,
    brief,
    quoted,
    shown,
)

# Files that survive a crash: replaced at once or not at all, one writer at a time.

OWNER_ONLY = 0o600
FOR_ALL_TO_READ = 0o644
DRAFT = ".fedcohort-draft"
"""How the names of drafts end, and no file of anybody else: what is abandoned is deleted."""
GRACE = 1.0
"""Seconds until a draft without a lock counts as abandoned: it is created, then locked."""
LONGEST_LINE = 1 << 22
"""Bytes that a line of a text file may have: a million numbers."""
READ_WRITE = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)  # never through a planted link


@contextlib.contextmanager
def replacing(path: Path, mode: int = OWNER_ONLY, *, durable: bool = True) -> Iterator[BinaryIO]:
    """A file to write, which takes the place of the one at ``path`` when the block ends.

    A reader sees the old file or the new one, never half of one; a crash or an error leaves the
    old one. A draft that a process left because it was killed is removed by the next one that
    writes into the folder. A link at this place is replaced, not followed: what it points to stays
    as it is. A folder, a pipe or a device at this place is left alone, and refused.

    Parameters
    ----------
    path
        The place.
    mode
        Who may read the file.
    durable
        Whether to wait until the file and its name are on the disk.
    """
    _require_replaceable(path)
    _sweep(path.parent)
    prefix = f".{path.name[:40]}."  # a name of the most letters that a system has leaves no room
    handle, draft = tempfile.mkstemp(dir=path.parent, prefix=prefix, suffix=DRAFT)
    with contextlib.ExitStack() as held:
        if _hold(handle):  # until the draft has its name
            held.callback(os.close, os.dup(handle))
        try:
            with os.fdopen(handle, "wb") as file:
                yield file
                file.flush()
                if durable:
                    os.fsync(file.fileno())
            os.chmod(draft, mode)
            os.replace(draft, path)
        except BaseException:
            Path(draft).unlink(missing_ok=True)
            raise
    if durable:
        sync_directory(path.parent)


def _require_replaceable(path: Path) -> None:
    """Refuse to put a file in the place of what is neither a file nor a link."""
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISREG(mode) and not stat.S_ISLNK(mode):
        what = "a folder" if stat.S_ISDIR(mode) else "no plain file"
        raise CannotSave(
            f"{quoted(path)} cannot be written: it is {what}, and only files are replaced; "
            "choose another name."
        )


def as_path(path: str | os.PathLike[str]) -> Path:
    """Return a path; refuse values that cannot name a file.

    >>> as_path("md").name
    'md'
    """
    try:
        place = Path(path)
        fine = b"\0" not in os.fsencode(place)
    except (TypeError, UnicodeEncodeError):
        fine = False
    if not fine:
        raise BadInput(f"A path must be text that a file can be named; got {shown(path)}.")
    try:
        place.is_file()
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:  # Python repeats it whole
            raise BadInput(f"{quoted(path)} cannot be used: {error.strerror}.") from None
    return place


@contextlib.contextmanager
def writing(path: Path) -> Iterator[None]:
    """What the system says of a file that is written to, in one sentence."""
    try:
        yield
    except FedcohortError:
        raise
    except OSError as error:
        why = error.strerror or str(error)
        raise CannotSave(f"{quoted(path)} cannot be written: {why}.") from error


def _hold(handle: int) -> bool:
    """Whether this process now holds a file for as long as it is open; see `_sweep`."""
    try:
        import fcntl

        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (ImportError, OSError):  # not a POSIX system, or somebody else does
        return False
    return True


def _sweep(folder: Path) -> None:
    """Remove the drafts of processes that were killed: those that nobody holds any more."""
    for draft in folder.glob(f".*{DRAFT}"):
        with contextlib.suppress(OSError):  # its owner was faster
            if time.time() - draft.stat().st_mtime < GRACE:
                continue
            handle = os.open(draft, os.O_RDWR | getattr(os, "O_NOFOLLOW", 0))
            try:
                if _hold(handle):
                    draft.unlink()
            finally:
                os.close(handle)


@contextlib.contextmanager
def plain(path: Path, flags: int = os.O_RDONLY) -> Iterator[int]:
    """A plain file, open for its owner; a folder, a pipe or a device is an OSError, at once."""
    if path.is_dir():  # which not every system opens
        raise OSError(errno.EISDIR, "it is a folder")
    nonblocking = getattr(os, "O_NONBLOCK", 0)  # a pipe would block
    try:
        descriptor = os.open(path, flags | nonblocking, OWNER_ONLY)
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
        raise OSError(errno.ELOOP, "it is a link, which is not followed") from error
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "it is no plain file")
        yield descriptor
    finally:
        os.close(descriptor)


def read_plain(path: Path) -> bytes:
    """The bytes of a file, see `plain`."""
    with plain(path) as descriptor, os.fdopen(descriptor, "rb", closefd=False) as file:
        check_fits(os.fstat(descriptor).st_size, quoted(path))
        return file.read()


def check_lines(path: Path) -> None:
    """Refuse a text file without line ends, which readers of lines would take for one line."""
    if not path.is_file():  # a pipe is read but once
        return
    with path.open("rb") as file:
        while len(block := file.read(LONGEST_LINE)) == LONGEST_LINE:
            if b"\n" not in block and b"\r" not in block:
                raise BadInput(
                    f"{quoted(path)} must be a text file with lines of at most {LONGEST_LINE:,} "
                    "bytes; it has a longer one."
                )


def file_name(text: str) -> str:
    """A text as part of the name of a file, which stays in its folder; no two texts share one.

    >>> file_name("md"), file_name("../md")
    ('md', '.._md-7847c908')
    """
    slug = re.sub(r"[^A-Za-z0-9._=-]+", "_", text)[:80]
    if slug != text:
        slug += f"-{hashlib.blake2b(text.encode(), digest_size=4).hexdigest()}"
    return slug


def sync_directory(directory: Path) -> None:
    """Make the names in a directory durable: fsync of a file does not cover its name."""
    if os.name == "nt":  # a directory cannot be opened there
        return
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def exclusive(path: Path, patience: float = 10.0, *, mark: Path | None = None) -> Iterator[None]:
    """Hold the lock file ``path``; the system lets go of it when the process dies.

    Waits ``patience`` seconds for another holder, never for ever. Where the system has no file
    locks, ``mark`` is held instead, by being there: a process that is killed leaves it.
    """
    try:
        import fcntl
    except ImportError as error:  # not a POSIX system
        if mark is None:
            why = f"No file locks on this system, so {quoted(path)} cannot be kept safe."
            raise InUse(why) from error
        with _marked(mark):
            yield
        return
    with plain(path, READ_WRITE) as descriptor:
        until = time.monotonic() + patience
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError as error:
                if time.monotonic() >= until:
                    raise InUse(
                        f"Another process has held {quoted(path)} for {patience:g} s; give each "
                        "client its own directory, or end the other process."
                    ) from error
                time.sleep(0.005)
        yield


@contextlib.contextmanager
def _marked(mark: Path) -> Iterator[None]:
    try:
        os.close(os.open(mark, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
    except FileExistsError:
        raise InUse(
            f"Another process holds {quoted(mark)}; if none does, one was killed: delete it."
        ) from None
    try:
        yield
    finally:
        mark.unlink(missing_ok=True)


def is_held(path: Path) -> bool:
    """Whether some process holds the lock file ``path`` now; False where nobody can tell."""
    try:
        import fcntl

        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
    except (ImportError, OSError):
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False


# An append-only file that survives a crash at any moment.
#
# One line per entry: a digest, a space, and the entry as JSON. The digest covers the
# entry *and the digest before it*, so a line that was changed, removed, swapped or copied
# from elsewhere breaks the chain. `Journal.append` returns only after the bytes are on the
# disk (fsync); a crash in between leaves at most an unfinished last line, which `read`
# removes: whoever appended it was never told that it had succeeded.
#
# Files belong to their owner alone (mode 0600).

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
