"""``fedcohort new``: a file to start a scheme from; its path names the scheme."""

from __future__ import annotations

import importlib.util
import keyword
import re
import shlex
from pathlib import Path
from typing import Annotated

import typer

from fedcohort._internal.errors import BadInput, BadParameter, brief
from fedcohort.cli.places import check_places
from fedcohort.cli.scheme_template import QUESTIONS, scheme_file
from fedcohort.schemes import SCHEMES


def new(
    name: Annotated[str, typer.Argument(help="Its name, such as my-scheme.")],
    folder: Annotated[Path, typer.Option("--in", help="Where to write the file.")] = Path(),
    asks: Annotated[
        list[str] | None,
        typer.Option(
            help=f"What it asks clients: {', '.join(QUESTIONS)} or nothing.", show_default="loss"
        ),
    ] = None,
    stateful: Annotated[
        bool, typer.Option("--stateful", help="Let it remember something from round to round.")
    ] = False,
) -> None:
    """Write a scheme that runs, to be changed into yours."""
    check_places({"--in": folder})
    if asks and len(asks) > 1:
        raise BadInput(
            f"The option --asks must be given once. Got {brief(', '.join(asks))} instead; write "
            "the file with one question, and another `yield Ask(...)` into it."
        )
    module = name.replace("-", "_")
    if keyword.iskeyword(module):
        raise BadInput(
            f"'{name}' is a keyword of Python, which no file to import can be called; take another "
            f"name, such as my-{name}."
        )
    if not re.fullmatch(r"[a-z][a-z0-9-]{0,62}", name):
        raise BadParameter("NAME", "new", "lower-case words joined by '-'", name)
    if name in SCHEMES:
        raise BadInput(f"There is already a scheme named '{name}'; take another name.")
    path = folder / f"{module}.py"
    if path.exists():
        raise BadInput(f"'{path}' exists already; take another name or folder.")
    if importlib.util.find_spec(module) is not None:
        raise BadInput(
            f"There is a Python module named '{module}', which a file of that name could not be "
            f"told from; take another name, such as my-{name}."
        )
    text = scheme_file(name, asks[0] if asks else "loss", stateful)
    folder.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    word = shlex.quote(str(path))
    print(f"Wrote {path}, a scheme that runs. Change it, and:")
    print(f"  fedcohort check {word}            # prove what it claims")
    print(f"  fedcohort compare {word} uniform  # settings as in {word}:m=5")
