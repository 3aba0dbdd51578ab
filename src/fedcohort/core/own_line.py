"""Where an error arose in the user's own file: the line to look at, before any traceback."""

from __future__ import annotations

import linecache
import re
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from traceback import extract_tb
from typing import NamedTuple

HERE = str(Path(__file__).parents[1])
_PATHS = sysconfig.get_paths()
FOREIGN = {HERE, *(_PATHS[name] for name in ("stdlib", "platstdlib", "purelib", "platlib"))}
"""Where code that is not the user's lies: this package, Python's, and what is installed.

A package that may be installed from its source, as the papers are, adds its own folder."""
_FRAME = re.compile(r'^  File "(?P<file>[^"\n]+)", line (?P<line>\d+), in (?P<name>.+)$', re.M)


class OwnLine(NamedTuple):
    """A line of the user's, and the function it stands in."""

    file: str
    line: int
    function: str

    def __str__(self) -> str:
        path, here = Path(self.file), Path.cwd()
        short = path.relative_to(here) if path.is_relative_to(here) else path
        return f"{short}, line {self.line}, in {self.function}"

    @property
    def text(self) -> str:
        """What stands there."""
        return linecache.getline(self.file, self.line).strip()


def own_line(error: BaseException) -> OwnLine | None:
    """The innermost line of a file of the user's on the way to an error; None: it has none.

    Of an error that came out of another process only the text of its traceback came with it.

    >>> own_line(ValueError("never raised")) is None
    True
    """
    found = [each for each in _lines(error) if _own(each.file)]
    return found[-1] if found else None


def _lines(error: BaseException) -> Iterator[OwnLine]:
    for frame in extract_tb(error.__traceback__):
        yield OwnLine(frame.filename, frame.lineno or 0, frame.name)
    if error.__cause__ is not None:
        yield from _lines(error.__cause__)
        for found in _FRAME.finditer(str(error.__cause__)):
            yield OwnLine(found["file"], int(found["line"]), found["name"])


def _own(file: str) -> bool:
    return file.endswith(".py") and not file.startswith("<") and not _within(file)


def _within(file: str) -> bool:
    return any(file.startswith(f"{place}/") or file.startswith(f"{place}\\") for place in FOREIGN)
