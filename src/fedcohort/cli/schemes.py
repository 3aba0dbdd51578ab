"""The command ``schemes``."""

from __future__ import annotations

import inspect
import json
import re
import textwrap
from collections.abc import Iterable
from dataclasses import MISSING, fields
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from fedcohort._internal.errors import (
    BadInput,
    FedcohortError,
    MissingExtra,
    UnknownName,
)
from fedcohort._internal.parameters import constraints
from fedcohort._internal.registry import Kind, summary
from fedcohort.advice._assessment import SchemeFacts, secure_of, sorted_signals
from fedcohort.advice._recommendation import secure
from fedcohort.privacy._price import law, price
from fedcohort.report._text_table import wide
from fedcohort.schemes import SCHEMES, find
from fedcohort.selection._citation import Citation, bibliography
from fedcohort.selection._federation import Federation
from fedcohort.selection._scheme import Claim, Scheme
from fedcohort.server import dropout_rule
from fedcohort.server._guards import HARDENED, Guard, withdrawn
from fedcohort.server._noise import Gaussian
from fedcohort.server._state import Setup

# ``fedcohort schemes``: what there is to choose from.


def schemes(
    names: Annotated[list[str] | None, typer.Argument(help="Only these, or ./mine.py.")] = None,
    cite: Annotated[bool, typer.Option("--cite", help="Print the papers instead.")] = False,
    bibtex: Annotated[
        bool,
        typer.Option(
            "--bibtex", help="Print BibTeX instead; without names also of the algorithms."
        ),
    ] = False,
    unbiased: Annotated[
        bool, typer.Option("--unbiased", help="Only those that are unbiased.")
    ] = False,
    secure_aggregation: Annotated[
        bool, typer.Option("--secure-aggregation", help="Only those that it hides wholly.")
    ] = False,
    asks: Annotated[
        str | None, typer.Option(help="Only those that ask or listen to this; 'nothing' for none.")
    ] = None,
    hardened: Annotated[
        bool, typer.Option("--hardened", help="What still holds with --hardened, as in `compare`.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List every scheme: what it claims, asks, tells and takes."""
    wanted, behind = None, HARDENED if hardened else ()
    if unbiased or secure_aggregation or asks:
        wanted = _filtered(names or list(SCHEMES), unbiased, secure_aggregation, asks, behind)
        names = names and wanted
    if bibtex and not as_json:
        chosen = names if wanted is None else wanted
        print(bibliography({name: find(name).paper for name in chosen} if chosen else cited()))
        return
    if not (names or cite or as_json):
        _print_all(behind, wanted)
        return
    listed = wanted if wanted is not None else names or SCHEMES
    rows = [describe(find(name), behind) for name in listed]
    if as_json:
        print(json.dumps(rows, indent=2))
    elif cite:
        for row in rows:
            print(f"{row['name']}: {row['paper']}")
    else:
        for row in rows:
            _print_one(row, wide())


def _filtered(
    names: Iterable[str],
    unbiased: bool,
    secure: bool,
    asks: str | None,
    behind: tuple[Guard, ...] = (),
) -> list[str]:
    """The names of the schemes that are as wanted, behind guards as far as that holds there."""
    if asks not in (None, "nothing"):
        known = {s.name for name in SCHEMES for s in find(name).asks | find(name).listens}
        if asks not in known:
            raise UnknownName("signal", str(asks), sorted({*known, "nothing"}))
    out = []
    for name in names:
        scheme = _usual(find(name))
        heard = {signal.name for signal in scheme.asks | scheme.listens}
        fits = not unbiased or Claim.UNBIASED in scheme.claims - withdrawn(scheme, behind)
        fits = fits and (not secure or _secure(scheme, behind) == "yes")
        if fits and (asks is None or (asks in heard if asks != "nothing" else not heard)):
            out.append(name)
    if not out:
        where = " in a hardened run" if behind else ""
        raise BadInput(f"No scheme is like that{where}; leave out one of the options.")
    return out


def cited() -> dict[str, Citation]:
    """Everything with a citation: schemes, and what is combined with them."""
    from fedcohort.server._aggregators import AGGREGATORS
    from fedcohort.server._optimizers import OPTIMISERS
    from fedcohort.training._algorithms import (
        ALGORITHMS,  # a list of schemes need not wait for these
    )

    out: dict[str, Citation] = {f"scheme {name}": find(name).paper for name in SCHEMES}
    others: tuple[Kind[Any], ...] = (ALGORITHMS, AGGREGATORS, OPTIMISERS)
    for kind in others:
        for name, part in kind.all().items():
            if isinstance(getattr(part, "paper", None), Citation):
                out[f"{kind.name} {name}"] = part.paper
    return out


def describe(cls: type[Scheme[Any]], behind: tuple[Guard, ...] = ()) -> dict[str, Any]:
    """All that a scheme declares, in plain values; behind guards, as far as it holds there."""
    declared, given_up = constraints(cls), withdrawn(cls, behind)
    text = inspect.getdoc(cls) or ""
    return {
        "name": cls.name,
        "summary": summary(text),
        "unbiased": Claim.UNBIASED in cls.claims - given_up,
        "claims": sorted(claim.value for claim in cls.claims - given_up),
        **({"withdrawn": sorted(claim.value for claim in given_up)} if behind else {}),
        "asks": sorted(signal.name for signal in cls.asks),
        "listens": sorted(signal.name for signal in cls.listens),
        "parameters": {
            field.name: {
                "must be": str(declared.get(field.name, "")),
                "default": None if field.default is MISSING else field.default,
                "required": field.default is MISSING,
            }
            for field in fields(cls)  # type: ignore[arg-type]
        },
        "discloses": _discloses(cls),
        "secure_aggregation": _secure(_usual(cls), behind),
        "privacy": _privacy(cls, behind),
        "paper": str(cls.paper),
        "bibtex": cls.paper.bibtex(),
        "text": text,
    }


def _usual(cls: type[Scheme[Any]]) -> Scheme[Any] | type[Scheme[Any]]:
    """A scheme with its default settings; the class itself, where one has no default."""
    try:
        return cls()
    except (FedcohortError, TypeError):
        return cls


def _discloses(cls: type[Scheme[Any]]) -> list[str]:
    """What the server learns of a client in a run of a hundred rounds, with default settings."""
    scheme = _usual(cls)
    if isinstance(scheme, Scheme):
        return [str(each) for each in scheme.disclosures(100)]
    return [signal.discloses for signal in sorted_signals(cls.asks | cls.listens)]


def _secure(scheme: Scheme[Any] | type[Scheme[Any]], behind: tuple[Guard, ...]) -> str:
    """Whether it works with secure aggregation; a guard may need what that hides."""
    seeing = " and ".join(f"'{guard.name}'" for guard in behind if guard.needs_rows)
    if not seeing:
        return secure_of(scheme)
    others = "+".join(guard.name for guard in behind if not guard.needs_rows)
    return f"no: the guard {seeing} must see single updates; harden by hardened='{others}'"


def _private(scheme: Scheme[Any], behind: tuple[Guard, ...]) -> Setup:
    """A run in which nothing but its guards could keep noise from hiding a client."""
    return Setup(scheme, 0, dropouts=dropout_rule("none"), quorum=0.0, guards=behind)


def _privacy(cls: type[Scheme[Any]], behind: tuple[Guard, ...] = ()) -> str:
    """What its price in privacy rests on, for clients of equal size and default settings."""
    try:
        scheme, clients = cls(), Federation.from_sizes([1] * 100)
        refused = behind and Gaussian(noise=1.0).unfit(_private(scheme, behind))
        if refused:
            return f"no epsilon. {refused}"
        known = law(scheme, clients, 1)
        try:
            cost = price(scheme, clients, 100, 1.0, 1e-5)
        except MissingExtra:
            return known.why
        alone = "" if known.covered else ", of the sums alone"
        return (
            f"{known.why}; epsilon {cost.epsilon:.3g}{alone} (100 equal clients, 100 rounds, noise "
            "1, delta 1e-5; see `fedcohort price`)"
        )
    except (FedcohortError, TypeError):  # a setting has no default, or does not fit
        return "see `fedcohort price`"


def _print_all(behind: tuple[Guard, ...], wanted: list[str] | None = None) -> None:
    """A line each, from the source: a list need not wait for what schemes compute with."""
    console, listed = wide(), SCHEMES.listed()
    listed = {name: part for name, part in listed.items() if wanted is None or name in wanted}
    widest = max(map(len, listed))
    given_up = any(Claim.UNBIASED in guard.withdraws for guard in behind)
    yes = "withdrawn" if given_up else "yes"
    lines = [Text(f"{'scheme':{widest}}  {'unbiased':{len(yes)}}  what it does", "bold")]
    for name, part in listed.items():
        unbiased = yes if part.declares("claims", Claim.UNBIASED.name) else "no"
        lines.append(Text(f"{name:{widest}}  {unbiased:{max(8, len(yes))}}  {part.summary}"))
    for line in lines:
        line.truncate(console.width, overflow="ellipsis")
        console.print(line)
    more = "What one asks, tells and takes: fedcohort schemes NAME. Papers: --cite or --bibtex."
    console.print(f"\n{more}", highlight=False)


def _print_one(row: dict[str, Any], console: Console) -> None:
    """Everything about one scheme: what it declares, then its text."""
    console.print(Text(f"{row['name']}\n", "bold"))
    facts = Table(box=None, show_header=False, pad_edge=False)
    listed = (("claims", "; "), ("withdrawn", "; "), ("asks", ", "), ("listens", ", "))
    for key, between in listed:
        if key in row:
            facts.add_row(Text(key), Text(between.join(row[key]) or "nothing"))
    for number, (name, each) in enumerate(row["parameters"].items()):
        default = "required" if each["required"] else f"by default {each['default']!r}"
        known = f"{name}: {each['must be']}; {default}" if each["must be"] else f"{name}: {default}"
        facts.add_row("" if number else "parameters", Text(known))
    if not row["parameters"]:
        facts.add_row("parameters", "none")
    for number, told in enumerate(row["discloses"] or ["nothing of single clients"]):
        facts.add_row("" if number else "discloses", Text(told))
    facts.add_row("secure agg.", Text(_in_words(row)))
    facts.add_row("privacy", Text(row["privacy"]))
    facts.add_row("paper", Text(row["paper"]))
    console.print(facts)
    print(f"\n{reflowed(row['text'], console.width)}\n")


def _in_words(row: dict[str, Any]) -> str:
    """What secure aggregation would hide, as `advise` says it."""
    told = str(row["secure_aggregation"])
    said = secure(SchemeFacts(row["name"], row["name"], "", secure_aggregation=told))
    return f"{told.partition(':')[0]}: {said}"


def reflowed(text: str, width: int) -> str:
    r"""A docstring for a narrower window: prose is filled anew, everything else is left.

    Lines that belong together have the same indentation; items of a list begin anew. Examples
    stay, as do blocks that begin indented (formulas), headings and their underlines.

    >>> print(reflowed("one two three\nfour five", 12))
    one two
    three four
    five
    """
    if max(map(len, text.splitlines()), default=0) <= width:
        return text
    return "\n\n".join(_refilled(block, width) for block in text.split("\n\n"))


def _refilled(block: str, width: int) -> str:
    if block.startswith((">>>", " ")):
        return block
    lines = block.splitlines()
    heading = 2 if len(lines) > 1 and set(lines[1]) == {"-"} else 0
    runs: list[tuple[int, list[str]]] = []  # how far what follows is indented, and the lines
    for line in lines[heading:]:
        indent, item = len(line) - len(line.lstrip()), _ITEM.match(line)
        if item or not runs or runs[-1][0] != indent:
            runs.append((len(item[0]) if item else indent, [line]))
        else:
            runs[-1][1].append(line.strip())
    filled = [
        textwrap.fill(
            " ".join(run), width, subsequent_indent=" " * margin, break_long_words=False,
            break_on_hyphens=False,
        )
        for margin, run in runs
    ]  # fmt: skip
    return "\n".join([*lines[:heading], *filled])


_ITEM = re.compile(r" *(\d+\.|[-*]) +")
