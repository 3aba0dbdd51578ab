"""Lines of code in `src`, without docstrings, comments and blank lines.

    python benchmarks/code_lines.py [FOLDER] [--packages]

A line counts if a token of the program stands there, outside the docstring of a module, class
or function. Words under an attribute count.
"""

from __future__ import annotations

import argparse
import ast
import io
import tokenize
from collections import Counter
from pathlib import Path

SOURCE = Path(__file__).parent.parent / "src"
SILENT = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
}
DOCUMENTED = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def code_lines(text: str) -> int:
    r"""How many lines of a module are code.

    >>> code_lines("x = 1  # one\n\n# two\n")
    1
    """
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in SILENT:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, DOCUMENTED) and ast.get_docstring(node) is not None:
            words = node.body[0]
            lines.difference_update(range(words.lineno, (words.end_lineno or 0) + 1))
    return len(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path, nargs="?", default=SOURCE)
    parser.add_argument("--packages", action="store_true", help="package by package")
    asked = parser.parse_args()
    packages: Counter[str] = Counter()
    for file in sorted(asked.folder.rglob("*.py")):
        inside = file.relative_to(asked.folder).parts[:-1]
        packages["/".join(inside[:2])] += code_lines(file.read_text())
    if asked.packages:
        for name, lines in packages.most_common():
            print(f"{lines:8,}  {name}")
    print(f"{packages.total():8,}  in all")


if __name__ == "__main__":
    main()
