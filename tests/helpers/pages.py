"""Runs a page as a reader follows it: block by block, in an empty folder.

``python tests/helpers/pages.py PAGE`` in that folder, with any interpreter that has fedcohort.

=====================================  ===========================================================
in the page                            what happens
=====================================  ===========================================================
a block ``python``                     is run; all of a page share one namespace
a block ``sh``, ``bash``, ``console``  is run by bash, which stops at the first error
a block with ``title="file.py"``       is saved under that name
a block ``text`` right below another   is what that one printed: words must agree, numbers nearly;
                                       ``...`` stands for anything
``<!-- not run: why -->`` above one    it is left out, for a reason that can be counted
``<!-- run with: a => b; c => d -->``  is run with shorter settings (and prints what it likes)
``<!-- fails: why -->``                its command must end with an error
``<!-- first: code -->``               Python that is run and not shown
=====================================  ===========================================================
"""

from __future__ import annotations

import contextlib
import io
import linecache
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FENCE = re.compile(
    r"^(?P<indent> *)```(?P<language>\w*)(?P<info>[^\n]*)\n(?P<code>.*?)^(?P=indent)```$"
    r"|^<!-- (?P<order>not run|run with|first|fails):\s(?P<words>.*?)\s?-->$",
    re.DOTALL | re.MULTILINE,
)
SHELLS = ("sh", "bash", "console")
NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?(?:e-?\d+)?")


@dataclass(frozen=True)
class Block:
    """One block of a page, and what stands above it."""

    line: int
    language: str
    title: str
    code: str
    below: bool
    """Nothing but space stands between it and the block before."""
    not_run: str = ""
    run_with: tuple[tuple[str, str], ...] = ()
    first: str = ""
    fails: str = ""


def blocks(text: str) -> list[Block]:
    """All blocks of a page in order."""
    out: list[Block] = []
    orders: dict[str, str] = {}
    end = 0
    for match in FENCE.finditer(text):
        if match["order"]:
            before = f"{orders[match['order']]}\n" if match["order"] in orders else ""
            orders[match["order"]] = before + match["words"].strip("\n")
            continue
        title = re.search(r'title="([^"]+)"', match["info"])
        pairs = (each.split("=>") for each in orders.get("run with", "").split(";") if each)
        out.append(
            Block(
                text.count("\n", 0, match.start()) + 1,
                match["language"],
                title[1] if title else "",
                re.sub(rf"^{match['indent']}", "", match["code"], flags=re.MULTILINE),
                bool(out) and not text[end : match.start()].strip(),
                orders.get("not run", ""),
                tuple((old.strip(), new.strip()) for old, new in pairs),
                orders.get("first", ""),
                orders.get("fails", ""),
            )
        )
        orders, end = {}, match.end()
    return out


def is_code(block: Block) -> bool:
    """Whether a reader would run or save it."""
    return block.language in ("python", *SHELLS) or bool(block.title)


def play(page: Path) -> int:
    """Run a page in this folder; how many blocks that were."""
    names: dict[str, Any] = {"__name__": "__main__"}
    printed: str | None = None
    count = 0
    for block in blocks(page.read_text(encoding="utf-8")):
        place = f"{page.name}:{block.line}"
        if not is_code(block):
            if block.language == "text" and block.below and printed is not None:
                compare(block.code, printed, place)
            printed = None
            continue
        printed = None
        if block.not_run:
            continue
        if block.first:
            run_python(block.first, names, f"{place}, before")
        count += 1
        output = run(block, shortened(block, place), names, place)
        printed = None if block.run_with else output
    return count


def shortened(block: Block, place: str) -> str:
    """The code with the changes that are asked for; each must change something."""
    code = block.code
    for old, new in block.run_with:
        assert old in code, f"{place}: there is no {old!r} to be run with {new!r}"
        code = code.replace(old, new)
    return code


def run(block: Block, code: str, names: dict[str, Any], place: str) -> str:
    """Save or run one block; what it printed."""
    if block.title:
        Path(block.title).parent.mkdir(parents=True, exist_ok=True)
        Path(block.title).write_text(code, encoding="utf-8")
        return ""
    if block.language == "python":
        return run_python(code, names, place)
    if block.language == "console":
        code = "\n".join(line[2:] for line in code.splitlines() if line.startswith("$ "))
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", code], capture_output=True, text=True, check=False
    )
    sys.stderr.write(done.stderr)
    wrong = bool(done.returncode) != bool(block.fails)
    assert not wrong, f"{place}: exit {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def run_python(code: str, names: dict[str, Any], place: str) -> str:
    """Run a block in the namespace of the page; what it printed."""
    linecache.cache[place] = (len(code), None, code.splitlines(keepends=True), place)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, place, "exec", dont_inherit=True), names)  # noqa: S102 - our own page
    return printed.getvalue()


def compare(expected: str, found: str, place: str) -> None:
    """Line by line; a line ``...`` is any number of them."""
    lines = [each for each in map(str.split, found.splitlines()) if each]
    at, anywhere = 0, False
    for wanted in [each for each in map(str.split, expected.splitlines()) if each]:
        if wanted == ["..."]:
            anywhere = True
            continue
        steps = range(at, len(lines)) if anywhere else range(at, min(at + 1, len(lines)))
        there = next((i for i in steps if alike(" ".join(wanted), " ".join(lines[i]))), None)
        assert there is not None, f"{place}: no line {' '.join(wanted)!r} from here on:\n" + (
            "\n".join(" ".join(line) for line in lines[at:])
        )
        at, anywhere = there + 1, False
    assert anywhere or at == len(lines), f"{place}: more was printed: {lines[at:]}"


def alike(expected: str, found: str) -> bool:
    """Same words, nearly the same numbers."""
    parts = re.split(rf"({NUMBER.pattern}|\.\.\.)", expected)
    numbers = [part for part in parts if NUMBER.fullmatch(part)]
    pattern = "".join(
        f"({NUMBER.pattern})"
        if NUMBER.fullmatch(part)
        else ".*"
        if part == "..."
        else re.escape(part)
        for part in parts
    )
    match = re.fullmatch(pattern, found)
    return bool(match) and all(map(near, numbers, match.groups()))


def near(expected: str, found: str) -> bool:
    """Floats that clients compute are rounded differently on other processors."""
    a, b = (float(each.replace(",", "")) for each in (expected, found))
    return abs(a - b) <= max(0.05 * max(abs(a), abs(b)), 0.11 if "." in expected else 0)


if __name__ == "__main__":
    sys.path[0] = ""  # as in a session that was begun in this folder
    print(f"{play(Path(sys.argv[1]).resolve())} blocks were run")  # noqa: T201
