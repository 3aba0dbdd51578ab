"""One registry for all plugins: schemes, optimizers, partitions, models, and the like."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import inspect
import os
import pkgutil
import re
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from functools import cache, cached_property
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import Any, Generic, NamedTuple, TypeVar, get_type_hints

import numpy as np

from fedcohort._internal.errors import (
    BadInput,
    BadParameter,
    FedcohortError,
    FedcohortWarning,
    MissingExtra,
    UnknownName,
    quoted,
    shown,
)
from fedcohort._internal.files import as_path
from fedcohort._internal.parameters import Constraint, Maybe, bare, declared_in, spec, split, value

# Find parts in a package of the library, in installed packages, and in a file named by its path.
#
# Those of the library are read off its source, so that a listing imports nothing. A file may define
# several: every class with a ``name`` that derives from the base class of its kind.

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
            text = ast.unparse(line)
            if text.startswith(f"{attribute}: ") and f".{attribute}" not in text:
                return word in text  # not that of another class
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
    spec = importlib.util.find_spec(package)
    if spec is None or spec.submodule_search_locations is None:
        return  # a module: it is read, and imported when a part of it is built
    for info in pkgutil.iter_modules(importlib.import_module(package).__path__):
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
        """Whether a class derives from one named `base`, also through modules of its package.

        A class that is registered with it, by the decorator ``@base.register``, counts as well.
        """
        if f"{base}.register" in map(ast.unparse, node.decorator_list):
            return True
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


# One registry for all that has a name and settings: schemes, optimisers, partitions, models, ...
#
# The parts of each *kind* are found in its package: classes with a ``name`` that derive from its
# base class, or functions that return its product. Other packages add theirs through entry points
# in the group ``fedcohort.<kind>s``. Where a person typed the name it may be the path of a file,
# ``./mine.py``; a name out of a checkpoint, a run folder, a message or a configuration never is
# (``files=False``). A module is imported when its part is built; what cannot be imported is left
# out, with a warning.

T = TypeVar("T")

EXTRAS = ("torch",)
"""Modules that parts of ours import, and that are extras of the same name."""


class Setting(NamedTuple):
    """What a part declares of one of its settings."""

    constraint: Constraint | None
    default: Any
    required: bool
    text: bool
    """Whether any text is a value of it."""


@dataclass(frozen=True)
class Prepared:
    """A part that is a function, with its settings; the rest is given when it is called."""

    name: str
    settings: Mapping[str, Any]
    function: Callable[..., Any] = field(repr=False, compare=False)

    @property
    def spec(self) -> str:
        """The word that names this part with its settings; it reads back to an equal one."""
        return spec(self.name, self.settings)

    def __call__(self, *given: Any, **offered: Any) -> Any:
        """What the function makes of what is given, what it takes of the offer, and settings."""
        takes = inspect.signature(self.function).parameters
        any_name = any(each.kind is each.VAR_KEYWORD for each in takes.values())
        taken = {key: each for key, each in offered.items() if any_name or key in takes}
        return self.function(*given, **taken, **self.settings)


@dataclass(frozen=True, eq=False)
class Kind(Mapping[str, Any], Generic[T]):
    """All parts of one kind: a mapping from names to classes (or functions), and how to build.

    Parameters
    ----------
    name
        As in sentences: ``"optimiser"``.
    modules
        The modules that define its parts. Of a package, every file without a leading underscore.
    base
        The class that they derive from; None for functions.
    returns
        The class that they return, where they are functions.
    default
        The name that None stands for.
    given
        Parameters of functions that are no settings: whoever calls them gives those.
    make
        The method of a class that is called with what is given, and with settings:
        its keyword-only parameters, or fields.
    derive
        What `base` is called where people import it from.
    remedy
        What to write, where a file defines none.

    Examples
    --------
    >>> from fedcohort.schemes import SCHEMES
    >>> "md" in SCHEMES, SCHEMES.build("md:m=3"), SCHEMES.build("md", m=3).spec
    (True, MD(m=3), 'md:m=3')
    """

    name: str
    modules: tuple[str, ...]
    base: type[T] | None = None
    returns: type | None = None
    default: str | None = None
    given: tuple[str, ...] = ()
    make: str = ""
    derive: str = ""
    remedy: str = ""

    @property
    def group(self) -> str:
        """The entry points in which other packages name theirs."""
        return "fedcohort." + re.sub(r"\W", "_", f"{self.name}s")

    def build(
        self,
        which: object = None,
        /,
        *,
        files: bool = True,
        otherwise: Mapping[str, Any] | None = None,
        among: Mapping[str, Any] | None = None,
        **settings: Any,
    ) -> T:
        """A part with its settings: given itself, by a word, or None for the default.

        ``files`` is False for words that no person typed. ``otherwise`` holds for parts that
        have such a setting and are not told another value. ``among`` are parts that are known
        here beside those that are installed, by name.
        """
        which = self.default if which is None else which
        if isinstance(which, self._built) and not settings:
            return which  # type: ignore[return-value]
        if not isinstance(which, str):
            raise UnknownName(self.name, which, self)
        name, texts = split(which)
        part = (among or {}).get(name) or self.find(name, files=files)
        twice = sorted(texts.keys() & settings.keys())
        if twice:
            raise BadInput(
                f"'{which}' gives the setting '{twice[0]}', which is given by keyword, too."
            )
        declared = self.settings(part)
        told = {key: v for key, v in (otherwise or {}).items() if key in declared}
        for key, text in texts.items():
            told[key] = _read(key, text, declared.get(key), self.name_of(part), files)
        return self._with_settings(part, declared, told | settings, files)

    def _with_settings(
        self, part: Any, declared: Mapping[str, Setting], settings: dict[str, Any], files: bool
    ) -> T:
        for key in settings.keys() & declared.keys():
            constraint = declared[key].constraint
            if isinstance(constraint, PartOf) and isinstance(settings[key], str):
                settings[key] = constraint.kind.build(settings[key], files=files)
        if self._built is not Prepared:
            return part.build(**settings)  # type: ignore[no-any-return]
        name = self.name_of(part)
        for key in settings:
            if key in getattr(part, "__dataclass_fields__", ()) and key not in declared:
                raise BadInput(
                    f"The field '{key}' of the {self.name} '{name}' is no setting: a field that "
                    "is keyword-only is, @dataclass(frozen=True, kw_only=True)."
                )
            if key not in declared:
                raise UnknownName(f"setting of the {self.name} '{name}'", key, declared)
        for key, setting in declared.items():
            if setting.required and key not in settings:
                raise BadInput(
                    f"The {self.name} '{name}' needs a value for '{key}': write {name}:{key}=..."
                )
            if isinstance(settings.get(key), list | np.ndarray):
                settings[key] = tuple(np.asarray(settings[key]).tolist())
            constraint = None if isinstance(setting.constraint, PartOf) else setting.constraint
            if constraint and key in settings and not constraint.accepts(settings[key]):
                raise BadParameter(key, name, str(constraint), settings[key])
        ranged = {key: each.default for key, each in declared.items() if each.constraint}
        function = getattr(part, self.make) if self.make else part
        return Prepared(name, {**ranged, **settings}, function)  # type: ignore[return-value]

    def settings(self, part: Any) -> dict[str, Setting]:
        """What a part takes, in its own order."""
        if not callable(part):  # such as a recipe
            return {}
        annotated, defaults = part, dict[str, Any]()
        if is_dataclass(part):
            for each in fields(part):
                if self.make and not each.kw_only:
                    continue  # it follows from what is given
                made_up = each.default_factory is not MISSING
                defaults[each.name] = None if made_up else each.default
        else:
            annotated = part.__init__ if inspect.isclass(part) else part
            for key, parameter in inspect.signature(part).parameters.items():
                setting = parameter.kind is parameter.KEYWORD_ONLY or not self.make
                if setting and key not in self.given:
                    none = parameter.default is parameter.empty
                    defaults[key] = MISSING if none else parameter.default
        hints = _hints(annotated)
        ranges = declared_in(hints, defaults)
        return {
            key: Setting(
                ranges.get(key),
                None if default is MISSING else default,
                default is MISSING and not isinstance(ranges.get(key), Maybe),
                hints.get(key) is str,
            )
            for key, default in defaults.items()
        }

    def find(self, name: str, *, files: bool = True) -> Any:
        """The class or function of that name; an unknown name gets the nearest one offered."""
        if name.endswith(".py"):
            return self._in_file(name, files)
        part = self._own.get(name) or self._parts.get(name)
        if part is None:
            if name in self._broken:
                raise BadInput(self._broken[name])
            raise UnknownName(self.name, name, self)
        try:
            return part.load()
        except ModuleNotFoundError as error:
            if error.name in EXTRAS:
                raise MissingExtra(f"The {self.name} '{name}'", error.name) from None
            raise BadInput(part.why_not(error)) from error
        except Exception as error:
            raise BadInput(part.why_not(error)) from error

    def all(self) -> dict[str, Any]:
        """Every part by name, imported; what cannot be is left out, with a warning."""
        found = {}
        for name, part in self._parts.items():
            try:
                found[name] = part.load()
            except ModuleNotFoundError as error:
                if error.name not in EXTRAS:
                    self._leave_out(name, part.why_not(error))
            except Exception as error:  # one broken part must not be everybody's trouble
                self._leave_out(name, part.why_not(error))
        return found

    def listed(self) -> dict[str, Part]:
        """What is known of every part before it is imported, by name."""
        return self._parts

    def refresh(self) -> None:
        """Forget what was found: files and entry points are looked for again."""
        for kept in ("_own", "_parts", "_broken"):
            self.__dict__.pop(kept, None)

    def __getitem__(self, name: str) -> Any:
        if name not in self._parts:
            raise KeyError(name)
        return self.find(name)

    def __contains__(self, name: object) -> bool:
        return name in self._parts

    def __iter__(self) -> Iterator[str]:
        return iter(self._parts)

    def __len__(self) -> int:
        return len(self._parts)

    def name_of(self, part: Any) -> str:
        """The name of a class, a function, or a part."""
        return str(getattr(part, "name", None) or part.__name__.replace("_", "-"))

    def checked(self, loaded: Any) -> Any:
        """What is to be used as a part, or a sentence that says why it is none."""
        if self.base is None:
            if not callable(loaded):
                raise BadInput(f"{shown(loaded)} is not a function.")
            return loaded
        ready = self._built is Prepared and not self.make and not inspect.isclass(loaded)
        if ready and isinstance(loaded, self.base):
            return loaded  # such as a recipe, which has no settings
        if not (inspect.isclass(loaded) and issubclass(loaded, self.base)):
            derive = self.derive or f"{self.base.__module__}.{self.base.__name__}"
            raise BadInput(
                f"{shown(loaded)} is not a class of {self.name}s: derive it from {derive}."
            )
        if self._built is self.base and not is_dataclass(loaded):
            raise BadInput(not_a_dataclass(loaded))
        return loaded

    @property
    def _built(self) -> type:
        """What `build` returns."""
        return self.base if self.base is not None and hasattr(self.base, "build") else Prepared

    @cached_property
    def _broken(self) -> dict[str, str]:
        """Why those that are left out cannot be loaded."""
        return {}

    @cached_property
    def _own(self) -> dict[str, Part]:
        """Those of ours, read off the source."""
        found: dict[str, Part] = {}
        base = None if self.base is None else self.base.__name__
        returns = "" if self.returns is None else self.returns.__name__
        for part in in_modules(self.modules, self.name, base, returns, self._members):
            self._add(found, part)
        return found

    @cached_property
    def _parts(self) -> dict[str, Part]:
        """Ours and those of installed packages, whose names are known once they are loaded."""
        found = dict(self._own)
        for point in entry_points(group=self.group):
            where = f"The {self.name} '{point.name}' of another package ({point.value})"
            try:
                loaded = point.load()
                several = inspect.ismodule(loaded)
                members = self._members(loaded).values() if several else [self.checked(loaded)]
            except Exception as error:
                self._leave_out(point.name, f"{where} cannot be loaded: {reason(error, None)}")
                continue
            for each in members:
                there = Part(self.name_of(each), summary(each.__doc__), where, None, _is(each))
                self._add(found, there)
        return dict(sorted(found.items()))

    def _add(self, found: dict[str, Part], part: Part) -> None:
        other = found.setdefault(part.name, part)
        if other is not part:
            both = " and ".join(_full_name(each.load()) for each in (other, part))
            raise FedcohortError(f"Two {self.name}s are named '{part.name}': {both}.")

    def _leave_out(self, name: str, why: str) -> None:
        self._broken[name] = why
        warnings.warn(f"{why} It is left out.", FedcohortWarning, stacklevel=4)

    def _members(self, module: ModuleType) -> dict[str, Any]:
        """The parts that a module itself defines."""
        if self.base is None:
            stem = module.__name__.rpartition(".")[2]
            return {
                self.name_of(each): self.checked(each)
                for name, each in vars(module).items()
                if name == stem or self._makes(each, module)
            }
        return {
            self.name_of(each): self.checked(each)
            for each in vars(module).values()
            if (
                issubclass(each, self.base)
                and each.__module__ == module.__name__
                and "name" in vars(each)
                if inspect.isclass(each)
                else isinstance(each, self.base)
            )
        }

    def _makes(self, function: Any, module: ModuleType) -> bool:
        """Whether a public function of a module returns what parts of this kind return."""
        product = getattr(function, "__annotations__", {}).get("return")
        return (
            inspect.isfunction(function)
            and function.__module__ == module.__name__
            and not function.__name__.startswith("_")
            and inspect.getfullargspec(function).varkw is None  # settings have names
            and self.returns is not None
            and product in (self.returns, self.returns.__name__)
        )

    def _in_file(self, path: str, files: bool) -> Any:
        if not files:
            raise BadInput(
                f"The {self.name} {quoted(path)} is a file, and only a file that a person names is "
                f"run: install it as a package with an entry point in the group '{self.group}', or "
                "build the part in Python and pass that."
            )
        file = as_path(path).resolve()
        if not os.path.isfile(file):  # False, too, for a name that is too long
            hint = "; `fedcohort new` writes a scheme to start from" if self.derive else ""
            # Flower starts programs in folders of its own: say where a relative path began.
            where = "" if as_path(path).is_absolute() else f" in {quoted(os.getcwd())}"
            raise BadInput(f"There is no file {quoted(path)}{where}{hint}.")
        known = [part for part in self._own.values() if part.file and Path(part.file) == file]
        found = {part.name: part.load() for part in known} or in_file(path, file, self._members)
        if len(found) != 1:
            must = f"a function named '{file.stem}'"
            if self.base is not None:
                must = f"exactly one {self.base.__name__} with a `name`"
            names = ", ".join(getattr(part, "__name__", name) for name, part in found.items())
            remedy = f": {self.remedy}" if self.remedy and not found else ""
            raise BadInput(
                f"The file {quoted(path)} must define {must}; found {names or 'none'}{remedy}."
            )
        ((name, part),) = found.items()
        if not known and name in self:
            raise BadInput(
                f"The {self.name} in {quoted(path)} is named '{name}' as one of fedcohort is; "
                "give it another name."
            )
        return part


@dataclass(frozen=True)
class PartOf:
    """A setting that is itself a part of some kind."""

    kind: Kind[Any]

    def __str__(self) -> str:
        return f"one of the {self.kind.name}s {', '.join(self.kind)}, as in [name:setting=value]"

    def accepts(self, value: object) -> bool:
        return isinstance(value, self.kind._built)

    def parse(self, text: str) -> object:
        return self.kind.build(text)

    def bad_examples(self) -> list[object]:
        return ["no such part", 1, None]


KINDS = (
    "fedcohort.training._algorithms:ALGORITHMS",
    "fedcohort.data.partition:PARTITIONS",
    "fedcohort.data.sets:DATA_SETS",
    "fedcohort.training._model:MODELS",
    "fedcohort.training._local:SCHEDULES",
    "fedcohort.report._panel:PANELS",
    "fedcohort.schemes:SCHEMES",
    "fedcohort.server._aggregators:AGGREGATORS",
    "fedcohort.server._dropouts:RULES",
    "fedcohort.server._guards:GUARDS",
    "fedcohort.server._optimizers:OPTIMISERS",
    "fedcohort.server._stragglers:STRAGGLERS",
    "fedcohort.simulation._availability:AVAILABILITIES",
    "fedcohort.simulation._devices:DEVICES",
)
"""Every kind of the library: module and name."""


@cache
def kinds() -> dict[str, Kind[Any]]:
    """Return every kind of the library by its name."""
    homes = [home.split(":") for home in KINDS]
    found = [getattr(importlib.import_module(module), name) for module, name in homes]
    return {kind.name: kind for kind in found}


def not_a_dataclass(cls: type) -> str:
    """What to say of a class whose decorator was forgotten."""
    return f"{cls.__name__} is not a dataclass: write @dataclass(frozen=True) above the class."


def _read(key: str, text: str, setting: Setting | None, owner: str, files: bool) -> Any:
    """A setting as its declared range reads it; without one, as what it looks like."""
    if setting is None or setting.constraint is None:
        return bare(text) if setting and setting.text else value(text)
    if isinstance(setting.constraint, PartOf):
        return setting.constraint.kind.build(bare(text), files=files)
    try:
        return setting.constraint.parse(bare(text))
    except ValueError:
        raise BadParameter(key, owner, str(setting.constraint), text) from None


@cache
def _hints(annotated: Any) -> Mapping[str, Any]:  # it takes longer than to draw a cohort
    return get_type_hints(annotated, include_extras=True)


def _is(part: Any) -> Callable[[], Any]:
    return lambda: part


def _full_name(part: Any) -> str:
    return f"{part.__module__}.{getattr(part, '__qualname__', type(part).__name__)}"
