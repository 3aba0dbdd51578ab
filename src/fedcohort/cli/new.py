"""The command ``new``, and the file that it writes."""

from __future__ import annotations

import importlib.util
import keyword
import re
import shlex
from importlib.resources import files
from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from fedcohort._internal.errors import BadInput, BadParameter, UnknownName, brief
from fedcohort.cli.options import check_places
from fedcohort.schemes import SCHEMES

# What `fedcohort new` writes: a scheme that runs, with questions and memory or without.

CORE = (
    "Citation", "Claim", "Cohort", "Federation", "RoundContext", "Scheme", "Whole", "cohort_size",
)  # fmt: skip
"""What every scheme imports from `fedcohort.selection`."""


class Question(NamedTuple):
    """What clients may be asked, and what makes one of them worth choosing."""

    signal: str
    answers: str
    words: str
    value: str


QUESTIONS = {
    "loss": Question("LOSS", "losses", "for their loss and take the m with the highest", "losses"),
    "update_norm": Question(
        "UPDATE_NORM", "lengths", "how far they move the model and take the m furthest", "lengths"
    ),
    "label_histogram": Question(
        "LABEL_HISTOGRAM", "counts", "which classes they hold and take the m with the most",
        "(counts > 0).sum(axis=1)",
    ),
}  # fmt: skip
MEMORY = '''@dataclass(frozen=True)
class Memory:
    """What the scheme remembers: arrays, numbers and texts, never changed in place."""

    times: Annotated[Ints, Shaped("n", low=0)]  # (n,) in how many rounds each client took part


'''
START = """    def start(self, federation: Federation, rng: Any) -> Memory:
        return Memory(np.zeros(len(federation), dtype=np.int64))

"""
LEARNS = """
    def observe(
        self, state: Memory, federation: Federation, cohort: Cohort, replies: Replies
    ) -> Memory:
        times = state.times.copy()
        times[replies.clients] += 1
        return Memory(times)

    def adapt(self, state: Memory, federation: Federation, came_from: Ints, rng: Any) -> Memory:
        # came_from[j]: the old position of the client that is now at j, -1 for a new one
        return Memory(np.where(came_from >= 0, state.times[came_from], 0))
"""


def scheme_file(name: str, asks: str, stateful: bool) -> str:
    """The text of a file with a scheme of that name."""
    if asks != "nothing" and asks not in QUESTIONS:
        raise UnknownName("question that the template has", asks, [*QUESTIONS, "nothing"])
    question = QUESTIONS.get(asks)
    template = files("fedcohort.cli").joinpath("new_scheme.txt").read_text(encoding="utf-8")
    pieces = {
        "IMPORTS": _imports(question, stateful),
        "MEMORY": MEMORY if stateful else "",
        "STATE": "Memory" if stateful else "NoState",
        "DOES": _does(question, stateful),
        "DECLARES": _declares(question, stateful),
        "START": START if stateful else "",
        "RETURNS": "Cohort" if question is None else "Conversation[Cohort]",
        "RULE": _rule(question, stateful),
        "LEARNS": LEARNS if stateful else "",
    }
    for piece, text in pieces.items():
        template = template.replace(f"{{{piece}}}", text)
    class_name = "".join(word.capitalize() for word in name.split("-"))
    return template.replace("NEW-NAME", name).replace("NewName", class_name)


def _imports(question: Question | None, stateful: bool) -> str:
    names = [*CORE, "Replies" if stateful else "NoState"]
    names += [] if question is None else [question.signal, "Ask", "Conversation", "Signal"]
    # As linters sort them: constants, classes, functions.
    ordered = sorted(names, key=lambda n: (not n.isupper(), n[0].islower(), n))
    core = "".join(f"    {name},\n" for name in ordered)
    lines = [f"from fedcohort.selection import (\n{core})"]
    if stateful:
        lines += [
            "from fedcohort._internal.store import Shaped",
            "from fedcohort._internal.types import Ints",
        ]
    if question is not None or stateful:
        lines.append("from fedcohort.maths import top")
    if not stateful:
        lines.append("from fedcohort.maths import distinct")
    return ("import numpy as np\n\n" if stateful else "") + "\n".join(lines)


def _does(question: Question | None, stateful: bool) -> str:
    if question is not None:
        who = "the 2m clients that took part least" if stateful else "2m random clients"
        return f"Ask {who} {question.words}."
    if stateful:
        return "Take the m clients that took part least; chance decides between equals."
    return "Take m random clients."


def _declares(question: Question | None, stateful: bool) -> str:
    asks = "    asks: ClassVar[frozenset[Signal]] = frozenset({{{}}})\n"
    out = "" if question is None else asks.format(question.signal)
    return out + ("    State: ClassVar[type] = Memory\n" if stateful else "")


def _rule(question: Question | None, stateful: bool) -> str:
    number = "m" if question is None else "min(2 * m, len(there))"
    who = f"there[distinct(rng, len(there), {number})]"
    if stateful:
        who = f"there[top(rng, -state.times[there], {number})]"
    if question is None:
        return f"        return Cohort.equal({who})\n"
    return (
        f"        candidates = {who}\n"
        f"        {question.answers} = yield Ask({question.signal}, candidates)\n"
        f"        return Cohort.equal(candidates[top(rng, {question.value}, m)])\n"
    )


# ``fedcohort new``: a file to start a scheme from; its path names the scheme.


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
