"""Count what a reader has to keep in mind: size, public names, parameters, vague words.

    python tools/budgets.py            the table, with the limits of tools/budgets.toml
    python tools/budgets.py --worst    the places behind each count
    python tools/budgets.py --api      write tools/public_api.txt again

`tests/test_budgets.py` compares the table with its limits. A count is a place to look: a good name
is good whatever the list says.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import inspect
import io
import pkgutil
import re
import statistics
import tokenize
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).parent.parent
LIBRARY = ROOT / "src" / "fedcohort"
PAPERS = ROOT / "papers" / "src" / "fedcohort_papers"
DOCS = ROOT / "docs"
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *(page for page in sorted(DOCS.rglob("*.md")) if page.parent != DOCS / "reproduction"),
]
"""What people write; the pages of results are generated."""
LIMITS = ROOT / "tools" / "budgets.toml"
API = ROOT / "tools" / "public_api.txt"


def _words(text: str) -> set[str]:
    return set(text.split())


VAGUE = _words(
    "found told known given said some here there each more rest wanted what who shown listed own "
    "kept taken seen whole left now then most least few way ways place word words others other "
    "these those both behind meant heard fits fine must why looks says off"
)
"""Names that say nothing of what they hold."""
FILLER = _words(
    "result results data item items thing things obj tmp temp res ret info stuff value values elem "
    "out entry"
)
"""Names that are right now and then."""
INDEFINITE = re.compile(
    r"\b((?i:what|who|whom|whose|whoever|whatever|nobody|somebody|anybody|everybody|told|so many|"
    r"so much|as many|beside|is no|are no|that there (?:is|are)|of (?:one's|its|their) own|"
    r"such a one|the others|which is none)|none)\b"
)
"""Words that stand where a noun should."""
QUOTED = re.compile(r"``[^`]*``|`[^`]*`|>>>.*")
MARKUP = re.compile(
    r"```.*?```|`[^`]*`|>>>.*|\|.*\||\$[^$]*\$|<[^>]+>|\[([^\]]*)\]\([^)]*\)", re.DOTALL
)
PARTICIPLE = re.compile(r"(ed|en|wn|old|ought|eard|ound|ept|eft)$")
NOUNS = _words(
    "forward between around round hold open old ward right bound field build child find record "
    "load read send seed embed add append extend start end need speed feed len thread shared fixed "
    "fold bed red"
)
"""Functions may be named like this, although it looks like a participle."""
SAID = _words(
    "debug info warning warn error exception echo print Option Argument option argument secho"
)
"""Calls whose texts people read in a terminal or a log."""
LAYOUT = {
    tokenize.NEWLINE,
    tokenize.NL,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
    tokenize.COMMENT,
}
FUNCTION = (ast.FunctionDef, ast.AsyncFunctionDef)
DOCUMENTED = (ast.Module, ast.ClassDef, *FUNCTION)
OPAQUE = (BaseException, Enum)
"""Nobody calls these: their signatures say nothing."""
WIDE = 10
"""More parameters than this are counted."""


def docstrings(tree: ast.AST) -> Iterator[ast.Expr]:
    """Yield the docstrings of modules, classes and functions, and the texts below attributes."""
    for node in ast.walk(tree):
        for index, line in enumerate(node.body if isinstance(node, DOCUMENTED) else ()):
            text = isinstance(line, ast.Expr) and isinstance(line.value, ast.Constant)
            plain = isinstance(node, FUNCTION) and index > 0  # a text among the statements
            if text and not plain and isinstance(line.value.value, str):
                yield line


def code_lines(text: str, tree: ast.AST) -> int:
    r"""Count the lines of a module without docstrings, comments and blank lines.

    >>> text = "x = 1  # one\n\n# two\n"
    >>> code_lines(text, ast.parse(text))
    1
    """
    prose = {n for doc in docstrings(tree) for n in range(doc.lineno, (doc.end_lineno or 0) + 1)}
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in LAYOUT and token.start[0] not in prose:
            lines.update(range(token.start[0], token.end[0] + 1))
    return len(lines - prose)


def messages(tree: ast.AST) -> Iterator[ast.Constant]:
    """Yield the texts of errors, warnings, logs and command-line help."""
    for node in ast.walk(tree):
        called = node.func if isinstance(node, ast.Call) else None
        name = getattr(called, "attr", getattr(called, "id", ""))
        if isinstance(node, ast.Raise) or name in SAID:
            for part in ast.walk(node):
                text = part.value if isinstance(part, ast.Constant) else None
                if isinstance(text, str) and " " in text.strip():
                    yield part


def names(node: ast.AST) -> Iterator[tuple[str, str]]:
    """Yield (kind, name) of the variables, arguments and attributes that a node defines."""
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        yield "variables", node.id
    elif isinstance(node, ast.arg):
        yield "arguments", node.arg
    elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
        yield "attributes", node.attr


def parameters(node: ast.AST) -> int:
    """Count the parameters of a function, or the fields that a dataclass takes."""
    if isinstance(node, FUNCTION):
        args = node.args
        taken = [*args.posonlyargs, *args.args, *args.kwonlyargs]
        return sum(a.arg not in ("self", "cls") for a in taken) + (10 if args.kwarg else 0)
    decorators = [ast.unparse(each) for each in getattr(node, "decorator_list", ())]
    if isinstance(node, ast.ClassDef) and any("dataclass" in each for each in decorators):
        return sum(
            isinstance(line, ast.AnnAssign)
            and "ClassVar" not in ast.unparse(line.annotation)
            and "init=False" not in ast.unparse(line)
            for line in node.body
        )
    return 0


def sentences(text: str) -> list[int]:
    """Return the numbers of words of the sentences of a text, without code and markup."""
    plain = MARKUP.sub(r"\1 ", text)
    parts = re.split(r"(?<=[.!?])\s+|\n\s*\n|\n[-*#]", plain)
    return [words for part in parts if (words := len(part.split())) > 3]


def vague_words(text: str) -> int:
    """Count the indefinite words of a text outside of code."""
    return len(INDEFINITE.findall(QUOTED.sub(" ", text)))


class Tally:
    """Counts and places of one tree of files."""

    def __init__(self) -> None:
        self.count: Counter[str] = Counter()
        self.classes: defaultdict[str, set[Path]] = defaultdict(set)
        self.widest: Counter[str] = Counter()
        self.lengths: dict[str, list[int]] = {"docstrings": [], "pages": []}
        self.places: defaultdict[str, list[str]] = defaultdict(list)

    def module(self, path: Path, package: Path) -> None:
        """Add a module."""
        text = path.read_text(encoding="utf-8")
        tree, inside = ast.parse(text), path.relative_to(package)
        where, size = path.relative_to(ROOT), code_lines(text, tree)
        library = package == LIBRARY
        self.count["lines" if library else "papers"] += size
        self.count["files"] += library
        self.count["largest"] = max(self.count["largest"], size)
        hidden = inside.parts[0] == "cli" or any(
            part.startswith("_") and part != "__init__.py" for part in inside.parts
        )
        for node in tree.body:
            if isinstance(node, (*FUNCTION, ast.ClassDef)) and library and not hidden:
                self.count["public"] += not node.name.startswith("_")
        for node in ast.walk(tree):
            self._node(node, where, "command" if inside.parts[0] == "cli" else "python")
        self._prose("docstrings", [(d.lineno, d.value.value) for d in docstrings(tree)], where)  # type: ignore[attr-defined]
        self._prose("messages", [(m.lineno, str(m.value)) for m in messages(tree)], where)
        self.lengths["docstrings"] += [
            n
            for doc in docstrings(tree)
            for n in sentences(doc.value.value)  # type: ignore[attr-defined]
        ]

    def _node(self, node: ast.AST, where: Path, side: str) -> None:
        place = f"{where}:{getattr(node, 'lineno', 0)}"
        for kind, name in names(node):
            self.count[kind] += 1
            self.count["names"] += 1
            self.count["filler"] += name in FILLER
            if name in VAGUE:
                self.count[f"vague {kind}"] += 1
                self.places[f"vague {kind}"].append(f"{place} {name}")
        if isinstance(node, ast.ClassDef):
            self.classes[node.name].add(where)
        if isinstance(node, FUNCTION):
            self.count["functions"] += 1
            name = node.name.strip("_")
            special = node.name.startswith("__") or "_" in name or name in NOUNS
            if PARTICIPLE.search(name) and not special:
                self.count["participles"] += 1
                self.places["participles"].append(f"{place} {node.name}")
        if isinstance(node, (*FUNCTION, ast.ClassDef)) and not node.name.startswith("_"):
            width = parameters(node)
            kind = "fields" if isinstance(node, ast.ClassDef) else side
            self.widest[kind] = max(self.widest[kind], width)
            if width > WIDE:
                self.count["wide"] += 1
                self.places["wide"].append(f"{place} {node.name}: {width}")

    def page(self, path: Path) -> None:
        """Add a page of documentation."""
        text = re.sub(r"```.*?```", " ", path.read_text(encoding="utf-8"), flags=re.DOTALL)
        self._prose("pages", list(enumerate(text.splitlines(), 1)), path.relative_to(ROOT))
        self.lengths["pages"] += sentences(text)

    def _prose(self, kind: str, texts: list[tuple[int, str]], where: Path) -> None:
        for line, text in texts:
            self.count[f"words of {kind}"] += len(text.split())
            if number := vague_words(text):
                self.count[f"vague {kind}"] += number
                self.places[f"vague {kind}"].append(f"{where}:{line} {text.strip()[:90]}")

    def table(self) -> dict[str, float]:
        """Return every count under the name that it has in the file of limits."""
        count = self.count
        same = {name: files for name, files in self.classes.items() if len(files) > 1}
        self.places["ambiguous classes"] = [
            f"{name}: {', '.join(map(str, files))}" for name, files in same.items()
        ]
        pages = sorted(self.lengths["pages"])
        return {
            "code_lines": count["lines"],
            "code_lines_papers": count["papers"],
            "files": count["files"],
            "largest_file": count["largest"],
            "public_names": count["public"],
            "ambiguous_classes": len(same),
            "wide_signatures": count["wide"],
            "most_parameters": self.widest["python"],
            "most_fields": self.widest["fields"],
            "most_options": self.widest["command"],
            "vague_variables_percent": _rate(count, "vague variables", "variables", 100),
            "vague_arguments_percent": _rate(count, "vague arguments", "arguments", 100),
            "vague_attributes_percent": _rate(count, "vague attributes", "attributes", 100),
            "filler_names_percent": _rate(count, "filler", "names", 100),
            "participle_functions_percent": _rate(count, "participles", "functions", 100),
            "indefinite_words_docstrings": _rate(count, "vague docstrings", "words of docstrings"),
            "indefinite_words_messages": _rate(count, "vague messages", "words of messages"),
            "indefinite_words_pages": _rate(count, "vague pages", "words of pages"),
            "words_of_pages": count["words of pages"],
            "sentence_pages_median": statistics.median(pages),
            "sentence_pages_90_percent": pages[int(0.9 * len(pages))],
        }


def _rate(count: Counter[str], part: str, whole: str, per: int = 1000) -> float:
    return round(per * count[part] / max(1, count[whole]), 1)


def tally() -> Tally:
    """Count the library, the papers and the documentation of this repository."""
    counted = Tally()
    for package in (LIBRARY, PAPERS):
        for path in sorted(package.rglob("*.py")):
            counted.module(path, package)
    for page in PAGES:
        counted.page(page)
    return counted


def limits(table: str = "limits") -> dict[str, float]:
    """Return a table of tools/budgets.toml by name."""
    return tomllib.loads(LIMITS.read_text(encoding="utf-8"))[table]


def public_api() -> list[str]:
    """Return the full name and signature of everything that a package exports."""
    import fedcohort

    lines = set[str]()
    packages = [m.name for m in pkgutil.walk_packages(fedcohort.__path__, "fedcohort.") if m.ispkg]
    for home in ["fedcohort", *(name for name in packages if "._" not in name)]:
        module = importlib.import_module(home)
        for name in getattr(module, "__all__", None) or _defined(module):
            lines.add(f"{home}.{name}{_signature(getattr(module, name))}")
    return sorted(lines)


def _defined(module: ModuleType) -> list[str]:
    """Return the public names that a package without ``__all__`` defines itself."""
    own = list(getattr(module, "__annotations__", ()))
    own += [n for n, each in vars(module).items() if _home(each) == module.__name__]
    return [name for name in own if not name.startswith("_")]


def _home(thing: Any) -> str:
    return (
        str(getattr(thing, "__module__", ""))
        if inspect.isroutine(thing) or inspect.isclass(thing)
        else ""
    )


def _signature(thing: Any) -> str:
    """Return the parameters of a function or class, with `...` for defaults; nothing for others."""
    if not callable(thing) or (isinstance(thing, type) and issubclass(thing, OPAQUE)):
        return ""
    try:
        signature = inspect.signature(thing)
    except (TypeError, ValueError):  # an alias of a type
        return ""
    marks = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    words, starred = list[str](), False
    for each in signature.parameters.values():
        if each.kind is each.KEYWORD_ONLY and not starred:
            words.append("*")
        starred = starred or each.kind in (each.KEYWORD_ONLY, each.VAR_POSITIONAL)
        default = "" if each.default is each.empty else "=..."
        words.append(marks.get(each.kind, "") + each.name + default)
    return f"({', '.join(words)})"


def main() -> None:
    """Print the table, or write the list of public names."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--worst", action="store_true", help="print the places behind each count")
    parser.add_argument("--api", action="store_true", help="write tools/public_api.txt again")
    options = parser.parse_args()
    if options.api:
        API.write_text("\n".join(public_api()) + "\n", encoding="utf-8")
        return
    counted = tally()
    for name, count in counted.table().items():
        print(f"{name:32}{count:>10,g}  of {limits().get(name, float('nan')):,g}")
    for kind, places in counted.places.items() if options.worst else ():
        print(f"\n{kind}", *(f"  {place}" for place in places), sep="\n")


if __name__ == "__main__":
    main()
