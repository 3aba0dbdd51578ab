"""Where parts are found: in a package of ours, in installed packages, in a file that is named.

Ours are read off the source, one file each, so that a listing imports nothing.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import inspect
import pkgutil
import sys
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from fedcohort.core.errors import BadInput, FedcohortError, quoted

SHARED = "base"
"""A file of this name, or one with a leading underscore, holds what parts share."""

OWN_FILES: set[str] = set()
"""The modules that were files of one's own: other machines do not have them."""

Members = Callable[[ModuleType], dict[str, Any]]
"""The parts that a module itself defines, by name."""


@dataclass(frozen=True)
class Part:
    """What is known of a part before it is imported, and how to import it."""

    name: str
    summary: str
    where: str
    file: str | None
    load: Callable[[], Any]
    node: ast.stmt | None = None

    def why_not(self, error: Exception) -> str:
        """What to say when it cannot be loaded."""
        return f"{self.where} cannot be loaded: {reason(error, self.file)}"

    def declares(self, attribute: str, word: str) -> bool:
        """Whether a class attribute mentions a word: in the source, else in the class itself."""
        for line in getattr(self.node, "body", ()):
            if isinstance(line, ast.AnnAssign) and ast.unparse(line.target) == attribute:
                return word in ast.unparse(line)
        return word in str(getattr(self.load(), attribute))


def in_package(package: str, kind: str, base: str | None, members: Members) -> Iterator[Part]:
    """The parts of a package with one file each (or folders of them), or of a module with several.

    ``base`` is the name of the class they derive from, or None where they are functions.
    """
    for name in list(_files(package)) or [package]:
        spec = importlib.util.find_spec(name)
        file = str(spec and spec.origin)
        yield from _in_source(name, kind, file, base, members)


def _files(package: str) -> Iterator[str]:
    """The modules of a package that hold parts, those in its folders included."""
    for info in pkgutil.iter_modules(getattr(importlib.import_module(package), "__path__", ())):
        name = f"{package}.{info.name}"
        if info.name.startswith("_") or info.name == SHARED:
            continue
        yield from _files(name) if info.ispkg else (name,)


def _in_source(
    module: str, kind: str, file: str, base: str | None, members: Members
) -> Iterator[Part]:
    def load(name: str) -> Callable[[], Any]:
        @cache
        def loaded() -> Any:
            found = members(importlib.import_module(module))
            if name not in found:
                raise BadInput(f"it must define a {kind} named '{name}'.")
            return found[name]

        return loaded

    where, stem = f"The {kind} file '{file}'", module.rpartition(".")[2]
    own = stem.replace("_", "-")
    try:
        tree = ast.parse(Path(file).read_bytes())
    except SyntaxError:  # it is told, with its line, when the part is loaded
        tree = ast.Module([], [])
    named = {name: node for node in tree.body if base and (name := _name_in(node, base))}
    if own in named:  # other names in the file are those of signals and the like
        named = {own: named[own]}
    for name, node in named.items():
        yield Part(name, _summary_in(node), where, file, load(name), node)
    if not named:
        found = next((node for node in tree.body if getattr(node, "name", "") == stem), None)
        yield Part(own, _summary_in(tree if found is None else found), where, file, load(own))


def _name_in(node: ast.stmt, base: str) -> str | None:
    """The name of a class of parts, or of a part that is made here, as it is written."""
    if isinstance(node, ast.ClassDef):
        for line in node.body:
            target = getattr(line, "target", None) or getattr(line, "targets", [None])[0]
            if isinstance(target, ast.Name) and target.id == "name":
                return _text(getattr(line, "value", None))
    call = node.value if isinstance(node, ast.Assign) else None
    if isinstance(call, ast.Call) and call.args and ast.unparse(call.func) == base:
        return _text(call.args[0])
    return None


def _text(node: ast.AST | None) -> str | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def _summary_in(node: ast.AST) -> str:
    if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
        return next((text for arg in node.value.args[1:] if (text := _text(arg))), "")
    return summary(ast.get_docstring(node))  # type: ignore[arg-type]


def summary(text: str | None) -> str:
    """The first paragraph of a docstring, on one line."""
    return inspect.cleandoc(text or "").split("\n\n")[0].replace("\n", " ")


def in_file(path: str, file: Path, members: Members) -> dict[str, Any]:
    """The parts that a file of one's own defines.

    Its folder joins the places that Python imports from, as it does when Python runs the file:
    worker processes and the checks find a part by the name of its module.
    """
    name = file.stem
    if not name.isidentifier():
        must = "letters, digits and '_' to be imported"
        raise BadInput(f"The file name {quoted(path)} must be {must}.")
    if str(file.parent) not in sys.path:
        sys.path.append(str(file.parent))  # last: it must hide nothing
    try:
        importlib.invalidate_caches()  # the file may be younger than what Python knows of
        spec = importlib.util.find_spec(name)
        if spec is None or spec.origin is None or Path(spec.origin).resolve() != file:
            raise BadInput(f"there is another Python module named '{name}'; rename the file.")
        found = members(importlib.import_module(name))
        OWN_FILES.add(name)
        return found
    except (Exception, SystemExit) as error:  # the latter would end the command without a word
        raise BadInput(f"{quoted(path)} cannot be loaded: {reason(error, str(file))}") from None


def reason(error: BaseException, file: str | None) -> str:
    """Why a file could not be loaded, and in which line of it."""
    if isinstance(error, FedcohortError):
        return str(error)
    frames = traceback.extract_tb(error.__traceback__)
    line = next((frame.lineno for frame in reversed(frames) if frame.filename == file), None)
    what = str(error)
    if isinstance(error, SyntaxError):
        line, what = error.lineno, error.msg
    where = "" if line is None else f" in line {line}"
    return f"{type(error).__name__}{where}: {what}."
