"""Find parts in a package of the library, in installed packages, and in a file named by its path.

Those of the library are read off its source, so that a listing imports nothing. A file may define
several: every class with a ``name`` that derives from the base class of its kind.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import inspect
import pkgutil
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from fedcohort.core.errors import BadInput, FedcohortError, quoted

SHARED = "base"
"""A file of this name, or with a leading underscore, holds code that parts share."""

OWN_FILES: set[str] = set()
"""The modules that were files of one's own: other machines do not have them."""

Members = Callable[[ModuleType], dict[str, Any]]
"""The parts that a module itself defines, by name."""


@dataclass(frozen=True)
class Part:
    """The name and summary of a part that is not imported yet, and how to import it."""

    name: str
    summary: str
    where: str
    file: str | None
    load: Callable[[], Any]
    node: ast.stmt | None = None

    def why_not(self, error: Exception) -> str:
        """Return the sentence for a part that cannot be loaded."""
        return f"{self.where} cannot be loaded: {reason(error, self.file)}"

    def declares(self, attribute: str, word: str) -> bool:
        """Whether a class attribute mentions a word: in the source, else in the class itself."""
        for line in getattr(self.node, "body", ()):
            if isinstance(line, ast.AnnAssign) and ast.unparse(line.target) == attribute:
                return word in ast.unparse(line)
        return word in str(getattr(self.load(), attribute))


def in_modules(
    modules: Sequence[str], kind: str, base: str | None, returns: str, members: Members
) -> Iterator[Part]:
    """Yield the parts of modules, and of the files and folders of packages.

    ``base`` is the name of the class that they derive from. Where it is None they are functions,
    and ``returns`` is the name of the class that they return.
    """
    for module in modules:
        for name in list(_files(module)) or [module]:
            spec = importlib.util.find_spec(name)
            file = str(spec and spec.origin)
            yield from _in_source(name, kind, file, base, returns, members)


def _files(package: str) -> Iterator[str]:
    """The modules of a package that hold parts, those in its folders included."""
    for info in pkgutil.iter_modules(getattr(importlib.import_module(package), "__path__", ())):
        name = f"{package}.{info.name}"
        if info.name.startswith("_") or info.name == SHARED:
            continue
        yield from _files(name) if info.ispkg else (name,)


def _in_source(
    module: str, kind: str, file: str, base: str | None, returns: str, members: Members
) -> Iterator[Part]:
    def load(name: str) -> Callable[[], Any]:
        @cache
        def loaded() -> Any:
            found = members(importlib.import_module(module))
            if name not in found:
                raise BadInput(f"it must define a {kind} named '{name}'.")
            return found[name]

        return loaded

    where = f"The {kind} file '{file}'"
    source, nothing = _Source(module, Path(file)), True
    for node in source.tree.body:
        if name := source.name_of(node, base, returns):
            nothing = False
            yield Part(name, _summary_in(node), where, file, load(name), node)
    if nothing:  # loading it tells the mistake
        name = module.rpartition(".")[2].replace("_", "-")
        yield Part(name, _summary_in(source.tree), where, file, load(name))


class _Source:
    """A module that is read, not imported."""

    def __init__(self, module: str, file: Path) -> None:
        self.module = module
        try:
            self.tree = ast.parse(file.read_bytes())
        except (OSError, SyntaxError):  # importing it tells the line
            self.tree = ast.Module([], [])

    def name_of(self, node: ast.stmt, base: str | None, returns: str) -> str | None:
        """Return the name of the part that a statement defines, or None."""
        if isinstance(node, ast.FunctionDef) and not base:
            product = node.returns and ast.unparse(node.returns)
            public = product == returns and not node.name.startswith("_")
            public = public and node.args.kwarg is None  # settings have names
            named_like_file = node.name == self.module.rpartition(".")[2]
            return node.name.replace("_", "-") if public or named_like_file else None
        if isinstance(node, ast.ClassDef) and base:
            for line in node.body:
                target = getattr(line, "target", None) or getattr(line, "targets", [None])[0]
                if isinstance(target, ast.Name) and target.id == "name":
                    name = _text(getattr(line, "value", None))
                    return name if self.derives(node, base) else None
        call = node.value if isinstance(node, ast.Assign) else None
        if isinstance(call, ast.Call) and call.args and ast.unparse(call.func) == base:
            return _text(call.args[0])
        return None

    def derives(self, node: ast.ClassDef, base: str) -> bool:
        """Whether a class derives from one named `base`, also through modules of its package."""
        for each in node.bases:
            written = ast.unparse(each.value if isinstance(each, ast.Subscript) else each)
            name = written.rpartition(".")[2]
            where, parent = self.find(name)
            if name == base or (parent and (parent.name == base or where.derives(parent, base))):
                return True
        return False

    def find(self, name: str) -> tuple[_Source, ast.ClassDef | None]:
        """Return the class of that name, and the module that defines it."""
        top = self.module.partition(".")[0]
        for node in self.tree.body:
            if isinstance(node, ast.ClassDef) and node.name == name:
                return self, node
            if isinstance(node, ast.ImportFrom) and str(node.module).partition(".")[0] == top:
                for alias in node.names:
                    if (alias.asname or alias.name) == name:
                        return _source(str(node.module)).find(alias.name)
        return self, None


@cache
def _source(module: str) -> _Source:
    return _Source(module, _path_of(module))


def _path_of(module: str) -> Path:
    """Return the file of a module whose top package is imported; nothing else is imported."""
    top, *inside = module.split(".")
    folder = Path(str(sys.modules[top].__file__)).parent.joinpath(*inside)
    return folder / "__init__.py" if folder.is_dir() else folder.with_suffix(".py")


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
