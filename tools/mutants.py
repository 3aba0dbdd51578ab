"""Mutation testing: plant small mistakes, one at a time, and see whether the tests notice.

    python tools/mutants.py --count 400 --seed 1 --hours 4

draws mutants at random from all places of _internal, selection, designs, maths, server and privacy
where a comparison, an operator, a number or a condition can be turned into its neighbor. The quick
tests are run once with coverage, which tells the tests that reach a line and how long each takes;
a mutant is planted in a copy of the source and meets those tests, the quickest first, until one
fails or does not end: then it has died, unless that test fails here without a mutant, too. Results
are appended to ``build/mutants.jsonl``; what is there already is not run again unless its file has
changed, so that a run can be stopped and gone on with. The map of the tests is kept in
``build/mutants-map.json``; delete it to make it anew.
"""

from __future__ import annotations

import argparse
import ast
import compileall
import hashlib
import itertools
import json
import math
import multiprocessing
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[1]
SOURCE = Path("src") / "fedcohort"
PACKAGES = ("_internal", "selection", "designs", "maths", "server", "privacy")
QUICK = (
    "not slow and not flower and not ray and not adapters and not parity "
    "and not recipes and not site"
)
PYTEST = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--tb", "no", "-m", QUICK]
CONFIGURED = ["-c", str(ROOT / "pyproject.toml"), "--rootdir", str(ROOT)]
"""Where all tests of a mutant are doctests of its copy, pytest would find neither by itself."""
LOADED = ["pytest", "numpy", "scipy.stats", "hypothesis.extra.numpy", "sklearn.datasets"]
FORKS = multiprocessing.get_context("forkserver")
QUIET = {"OPENBLAS_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}
NO_TESTS = 5
"""What pytest ends with where it found no test: nothing died of that."""
ENOUGH = 60.0
"""Seconds of tests, as they were without a mutant, that a mutant must survive."""
LIMIT = 5.0
"""Times as long a test may take before it counts as one that does not end, and half a minute."""
ASLEEP = 20.0
"""Limits are of processor time, as others may use the machine; by the clock so many times that."""
UNFIT: set[str] = set()
"""Tests that were found to fail here without a mutant: those of times, for instance."""

COMPARED = {ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">", ast.Eq: "!=", ast.NotEq: "=="}
REACHED = {ast.Is: "is not", ast.IsNot: "is", ast.In: "not in", ast.NotIn: "in"}
COMPUTED = {
    **{ast.Add: "-", ast.Sub: "+", ast.Mult: "/", ast.Div: "*", ast.FloorDiv: "/", ast.Mod: "*"},
    **{ast.Pow: "*", ast.BitAnd: "|", ast.BitOr: "&", ast.MatMult: "*"},
}


class Mutant(NamedTuple):
    """One change: what stands in a file from ``start`` to ``end`` becomes ``new``."""

    path: str
    start: int
    end: int
    new: str
    line: int
    old: str

    @property
    def key(self) -> str:
        """The same for the same change of the same file."""
        content = (ROOT / self.path).read_bytes()
        told = f"{self.path}|{self.start}|{self.new}|{hashlib.sha256(content).hexdigest()}"
        return hashlib.sha256(told.encode()).hexdigest()[:16]


class _Places(ast.NodeVisitor):
    """All changes of one file; messages, annotations and decorators are left alone."""

    def __init__(self, path: str, source: str) -> None:
        self.path, self.source, self.found = path, source, list[Mutant]()
        self.starts = [0]
        for line in source.encode().splitlines(keepends=True):
            self.starts.append(self.starts[-1] + len(line))

    def place(self, line: int, column: int) -> int:
        return self.starts[line - 1] + column

    def add(self, start: int, end: int, new: str, line: int) -> None:
        old = self.source.encode()[start:end].decode()
        self.found.append(Mutant(self.path, start, end, new, line, old))

    def between(self, left: ast.expr, right: ast.expr, new: str) -> None:
        """The operator between two operands."""
        start = self.place(left.end_lineno or 0, left.end_col_offset or 0)
        end = self.place(right.lineno, right.col_offset)
        text = self.source.encode()[start:end].decode()
        found = re.search(
            r"[-+*/%<>=!&|@]+|\bis not\b|\bis\b|\bnot in\b|\bin\b|\band\b|\bor\b", text
        )
        if found:
            self.add(start + found.start(), start + found.end(), new, left.end_lineno or 0)

    def visit_Raise(self, node: ast.Raise) -> None: ...
    def visit_JoinedStr(self, node: ast.JoinedStr) -> None: ...

    def visit_Call(self, node: ast.Call) -> None:
        if getattr(node.func, "id", getattr(node.func, "attr", "")) not in ("warn", "_warn"):
            self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        for default in [*node.args.defaults, *filter(None, node.args.kw_defaults)]:
            self.visit(default)
        if node.name not in ("__repr__", "__str__"):
            for statement in node.body:
                self.visit(statement)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        for statement in node.body:
            self.visit(statement)

    def visit_Compare(self, node: ast.Compare) -> None:
        for left, operator, right in zip(
            [node.left, *node.comparators], node.ops, node.comparators, strict=False
        ):
            new = COMPARED.get(type(operator)) or REACHED.get(type(operator))
            if new:
                self.between(left, right, new)
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        text = isinstance(node.left, ast.JoinedStr | ast.Constant) and isinstance(
            getattr(node.left, "value", ""), str
        )
        if type(node.op) in COMPUTED and not text:
            self.between(node.left, node.right, COMPUTED[type(node.op)])
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        new = "or" if isinstance(node.op, ast.And) else "and"
        for left, right in zip(node.values, node.values[1:], strict=False):
            self.between(left, right, new)
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        if isinstance(node.op, ast.Not | ast.USub | ast.Invert):
            start = self.place(node.lineno, node.col_offset)
            end = self.place(node.operand.lineno, node.operand.col_offset)
            self.add(start, end, "", node.lineno)
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        start = self.place(node.lineno, node.col_offset)
        end = self.place(node.end_lineno or 0, node.end_col_offset or 0)
        if isinstance(node.value, bool):
            self.add(start, end, str(not node.value), node.lineno)
        elif isinstance(node.value, int):
            self.add(start, end, str(node.value + 1), node.lineno)
        elif isinstance(node.value, float):
            self.add(start, end, repr(node.value * 2 or 1.0), node.lineno)


def mutants(path: Path) -> list[Mutant]:
    """All changes of a file."""
    source = (ROOT / path).read_text(encoding="utf-8")
    places = _Places(path.as_posix(), source)
    places.visit(ast.parse(source))
    return places.found


def readable(mutant: Mutant) -> bool:
    """Whether a change leaves its file readable."""
    try:
        ast.parse(changed(mutant))
    except SyntaxError:
        return False
    return True


def changed(mutant: Mutant) -> str:
    """The file with the change in it."""
    data = (ROOT / mutant.path).read_bytes()
    return (data[: mutant.start] + mutant.new.encode() + data[mutant.end :]).decode()


def pytest_runtest_logreport(report: Any) -> None:
    """Note how long a test takes: this file is a plugin of the run that makes the map."""
    if report.when == "call" and report.passed:
        _took[report.nodeid] = report.duration


def pytest_sessionfinish() -> None:
    """Write down how long tests took."""
    if "MUTANTS_TOOK" in os.environ and not os.environ.get("PYTEST_XDIST_WORKER"):
        Path(os.environ["MUTANTS_TOOK"]).write_text(json.dumps(_took), encoding="utf-8")


_took: dict[str, float] = {}


class Map(NamedTuple):
    """Which tests reach which lines, and how long they take."""

    took: dict[str, float]
    reach: dict[str, dict[str, list[str]]]  # file, line, tests

    @classmethod
    def made(cls, place: Path, tests: list[str], jobs: int) -> Map:
        """Read from a file, or made by one run of the quick tests; its coverage is kept beside."""
        if place.is_file():
            return cls(**json.loads(place.read_text(encoding="utf-8")))
        import coverage

        with tempfile.TemporaryDirectory() as folder:
            data, took = place.with_suffix(".coverage"), Path(folder) / "took.json"
            path = os.pathsep.join([str(ROOT / "tools"), os.environ.get("PYTHONPATH", "")])
            settings = {"COVERAGE_FILE": str(data), "MUTANTS_TOOK": str(took), "PYTHONPATH": path}
            command = [*PYTEST, "-p", "mutants", "-p", "pytest_cov", "--cov", str(SOURCE)]
            command += ["--cov-context", "test", "--cov-report", "", "-n", str(jobs), *tests]
            subprocess.run(command, cwd=ROOT, env={**os.environ, **QUIET, **settings}, check=False)
            seen = coverage.CoverageData(str(data))
            seen.read()
            reach: dict[str, dict[str, list[str]]] = {}
            for file in seen.measured_files():
                lines = seen.contexts_by_lineno(file)
                reach[Path(file).relative_to(ROOT).as_posix()] = {
                    str(line): sorted({c.partition("|")[0] for c in contexts if c})
                    for line, contexts in lines.items()
                }
            found = cls(json.loads(took.read_text(encoding="utf-8")), reach)
        place.write_text(json.dumps(found._asdict()), encoding="utf-8")
        return found

    def tests_of(self, mutant: Mutant) -> list[str]:
        """The tests that reach a line, those of its own module and the quickest first.

        As many as take a minute. What is run when the file is imported is reached by no test
        alone, and tested by all that reach anything else in it.
        """
        lines = self.reach.get(mutant.path, {})
        here = lines.get(str(mutant.line)) or {test for some in lines.values() for test in some}
        name = Path(mutant.path).stem
        passing = sorted(
            (name not in test.partition("::")[0], self.took[test], test)
            for test in here
            if test in self.took and test not in UNFIT
        )
        spent, out = 0.0, []
        for _, seconds, test in passing:
            if not out or spent + seconds <= ENOUGH:
                spent += seconds
                out.append(test)
        return out


def outcome(mutant: Mutant, copy: Path, reached: Map) -> dict[str, Any]:
    """Plant the change in a copy of the source, and run tests until one fails."""
    tests = reached.tests_of(mutant)
    place = copy / Path(mutant.path).relative_to("src")
    sound, began = place.read_text(encoding="utf-8"), time.monotonic()
    place.write_text(changed(mutant), encoding="utf-8")
    by = ""
    try:
        limit = 30 + LIMIT * sum(reached.took[test] for test in tests)
        for some in (tests[:20], tests[20:]):  # a few are enough for most
            by = by or (failing(some, copy, limit) if some else "")
    finally:
        place.write_text(sound, encoding="utf-8")
    word = by.removeprefix("FAILED ").split(" - ")[0]
    blamed = [test for test in tests if by.startswith("FAILED") and test.endswith(word)]
    if blamed and failing(blamed, copy, limit):
        UNFIT.update(blamed)
        return outcome(mutant, copy, reached)
    told = {"key": mutant.key, "died": bool(by), "by": by[:160], "tests": len(tests)}
    return {**mutant._asdict(), **told, "seconds": round(time.monotonic() - began, 1)}


def failing(tests: list[str], copy: Path, limit: float) -> str:
    """The first test that fails, or "" if none does."""
    here = [str(copy / t.removeprefix("src/")) if t.startswith("src/") else t for t in tests]
    told = copy.with_suffix(".txt")
    words = [*PYTEST[3:], *CONFIGURED, "-x", *here]
    process = FORKS.Process(target=_tested, args=(words, copy, told, limit))
    process.start()
    process.join(ASLEEP * limit)
    if process.is_alive():
        os.killpg(process.pid or 0, signal.SIGKILL)  # and whatever the tests have started
        process.join()
        return "did not end"
    if process.exitcode in (0, NO_TESTS):
        return ""
    if process.exitcode == -signal.SIGXCPU:
        return "did not end"
    lines = told.read_text(encoding="utf-8", errors="replace").splitlines()
    found = [line for line in lines if line.startswith(("FAILED", "ERROR"))]
    return found[0] if found else f"exit code {process.exitcode}"


def _tested(arguments: list[str], copy: Path, told: Path, limit: float) -> None:
    """Run tests with the copy of the source, in a process that has loaded all that never changes.

    Most mutants die in the first second of the tests; loading takes longer than that.
    """
    import pytest

    os.setsid()
    resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(limit), resource.RLIM_INFINITY))
    os.chdir(ROOT)
    with told.open("w") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    path = [str(copy), os.environ.get("PYTHONPATH", "")]
    os.environ.update(PYTHONPATH=os.pathsep.join(path), PYTEST_DISABLE_PLUGIN_AUTOLOAD="1")
    sys.path[:0] = [str(ROOT), str(copy)]
    sys.dont_write_bytecode = True
    sys.exit(int(pytest.main(arguments)))


def main() -> None:
    """Draw, test, write down, and tell the score."""
    parser = argparse.ArgumentParser(description="Plant small mistakes and see what tests notice.")
    parser.add_argument("--count", type=int, default=400)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--hours", type=float, default=4.0, help="no mutant is begun after that")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "mutants.jsonl")
    parser.add_argument("--only", default="", help="files whose path has this in it")
    parser.add_argument("--tests", nargs="*", default=[], help="for the map; all by default")
    words = parser.parse_args()
    os.environ.update(QUIET)
    FORKS.set_forkserver_preload(LOADED)
    files = sorted(f for p in PACKAGES for f in (ROOT / SOURCE / p).rglob("*.py"))
    chosen = [f.relative_to(ROOT) for f in files if words.only in f.as_posix()]
    every = [mutant for path in chosen for mutant in mutants(path)]
    random.Random(words.seed).shuffle(every)
    sample = list(itertools.islice(filter(readable, every), words.count))
    words.out.parent.mkdir(parents=True, exist_ok=True)
    words.out.touch()
    reached = Map.made(words.out.with_name("mutants-map.json"), words.tests, words.jobs)
    lines = words.out.read_text(encoding="utf-8").splitlines()
    known = {result["key"]: result for result in (json.loads(line) for line in lines)}
    until = time.monotonic() + 3600 * words.hours
    copies: SimpleQueue[Path] = SimpleQueue()

    with tempfile.TemporaryDirectory() as folder:
        for number in range(words.jobs):
            shutil.copytree(ROOT / "src", Path(folder) / str(number))
            compileall.compile_dir(Path(folder) / str(number), quiet=1)
            copies.put(Path(folder) / str(number))

        def run(mutant: Mutant) -> dict[str, Any] | None:
            if mutant.key in known:
                return known[mutant.key]
            if time.monotonic() > until:
                return None
            copy = copies.get()
            try:
                result = outcome(mutant, copy, reached)
            finally:
                copies.put(copy)
            with words.out.open("a", encoding="utf-8") as file:
                file.write(json.dumps(result) + "\n")
            print(
                ("died " if result["died"] else "LIVES"),
                f"{mutant.path}:{mutant.line}",
                f"{mutant.old!r} -> {mutant.new!r}",
                result["by"],
                f"({result['seconds']} s)",
                flush=True,
            )
            return result

        with ThreadPoolExecutor(words.jobs) as pool:
            results = [result for result in pool.map(run, sample) if result is not None]
    died = sum(result["died"] for result in results)
    print(
        f"{died} of {len(results)} mutants died ({died / max(1, len(results)):.1%}); "
        f"{len(sample) - len(results)} of the sample of {len(sample)} not run; "
        f"{len(every)} places in all, seed {words.seed}."
    )


if __name__ == "__main__":
    main()
