"""The page of every scheme: read off the registry, measured, and its own words where there are."""

from __future__ import annotations

import re
from inspect import getdoc
from typing import Any

from fedcohort._internal.parameters import constraints
from fedcohort._internal.registry import summary
from fedcohort.report._format import byte_count
from fedcohort.schemes import SCHEMES, find
from fedcohort.selection import Claim, Scheme
from measured import (
    COMMAND,
    DATA,
    DOCS,
    PARTITION,
    ROUNDS,
    SEEDS,
    M,
    Measured,
    everything,
    laws,
    task,
    word,
)
from pictures import picture

FOLDER = "schemes"
LOOKS_AT = {
    "loss": "losses",
    "batch_loss": "losses",
    "update": "updates",
    "update_norm": "updates",
    "compressed_gradient": "updates",
    "private_size": "sizes, privately",
    "label_histogram": "labels",
}
"""What a signal is about, for the list; the first that a scheme needs decides."""


def families() -> list[str]:
    """Pages about several schemes, none of which has their name."""
    written = {each.stem for each in (DOCS / FOLDER).glob("*.md")}
    return sorted(written - set(SCHEMES))


def navigation() -> list[Any]:
    """The overview, every scheme, and the pages about several."""
    single = [{name: f"{FOLDER}/{name}.md"} for name in SCHEMES]
    several = [f"{FOLDER}/{name}.md" for name in families()]
    return [f"{FOLDER}/index.md", {"Every scheme": single}, {"Families": several}]


def pages() -> dict[str, str]:
    """A page for each scheme; that of a scheme with words of its own is joined by `joined`."""
    made = {f"{FOLDER}/{name}.md": f"# {name}\n\n{facts(name)}" for name in SCHEMES}
    return {**made, f"{FOLDER}/index.md": index()}


def joined(path: str, words: str) -> str:
    """A page that was written by hand: after its title, the facts; then its own words."""
    name = path.removeprefix(f"{FOLDER}/").removesuffix(".md")
    if not path.startswith(f"{FOLDER}/") or name not in SCHEMES:
        return words
    title, _, rest = words.partition("\n")
    below = re.sub(r"^(#+) ", r"#\1 ", rest, flags=re.MULTILINE)
    told = title.lstrip("# ").strip()
    return f"# {name}\n\n{facts(name)}\n## {told}\n{below}"


def index() -> str:
    """All schemes at a glance."""
    rows = []
    for name in SCHEMES:
        cls = find(name)
        unbiased = "yes" if Claim.UNBIASED in cls.claims else "no"
        secure = everything()[name].facts.secure_aggregation.partition(":")[0].partition(";")[0]
        does = _code(summary(getdoc(cls) or ""))
        rows.append(f"| [`{name}`]({name}.md) | {does} | {looks_at(cls)} | {unbiased} | {secure} |")
    families_told = "\n".join(f"- [{name}]({name}.md)" for name in families())
    return f"""# Schemes

Every way of choosing that comes with the library; each page has a picture, the law, what is proved
of it, what it costs and tells, and what it did on a small federation. `fedcohort schemes NAME`
prints most of it in a terminal.

| scheme | what it does | looks at | unbiased | secure aggregation |
|---|---|---|---|---|
{chr(10).join(rows)}

Pages about several schemes, with what the authors' code does and where papers err:

{families_told}
"""


def looks_at(cls: type[Scheme[Any]]) -> str:
    """What a scheme needs to know, in a word or two."""
    names = {signal.name for signal in cls.asks | cls.listens}
    found = [about for signal, about in LOOKS_AT.items() if signal in names]
    return ", ".join(dict.fromkeys(found)) or (", ".join(sorted(names)) or "sizes")


def facts(name: str) -> str:
    """All that the library knows of a scheme."""
    cls, found, own = find(name), everything()[name], laws().get(name, {})
    text = getdoc(cls) or ""
    return "\n".join(
        [
            f"*{_code(summary(text))}*\n",
            _picture(name, found),
            _law(own, found),
            _when(name, own),
            "## What is proved\n",
            _claims(name, cls),
            "## What it costs, and what it tells\n",
            _costs(found),
            "## What it did here\n",
            _behaviour(name, found),
            "## Settings\n",
            _settings(cls),
            f'??? note "In the words of the source"\n\n{_indented(_fenced(text))}\n',
            "## Cite\n",
            f"{_code(str(cls.paper))}\n\n```bibtex\n{cls.paper.bibtex()}\n```\n",
        ]
    )


def _picture(name: str, found: Measured) -> str:
    drawn = picture(found, name)
    if not drawn:
        return f"No picture: {found.why_not}\n"
    known = "exactly" if found.exact else f"as the share of {ROUNDS * SEEDS} rounds"
    return (
        f'<figure markdown="0">{drawn}<figcaption>{len(task().sizes)} clients, the largest first: '
        f"bars are m times their importance, lines the chance to be chosen ({known}). Below, a row "
        "is a round: who was chosen, a disc as large as its weight, in the colour of the class "
        "that the client has most of.</figcaption></figure>\n"
    )


def _law(own: dict[str, Any], found: Measured) -> str:
    formulas = "\n\n".join(f"$$\n{line}\n$$" for line in own.get("law", ()))
    if not formulas:
        return ""
    return (
        f"## The law\n\n{formulas}\n\nwith $p_i$ the importance of client $i$ (its share of all "
        "samples unless you say otherwise) and $\\omega_i$ what its update is multiplied by: "
        "$\\theta \\leftarrow \\theta + \\eta_g \\sum_i \\omega_i \\Delta_i$.\n"
    )


def _when(name: str, own: dict[str, Any]) -> str:
    words = [own["use"]] if "use" in own else []
    more = own.get("read", f"{name}.md")
    if more != f"{name}.md":
        words.append(f"More, with the papers' errors: [{more.removesuffix('.md')}]({more}).")
    return f"## When to use it\n\n{' '.join(words)}\n" if words else ""


def _claims(name: str, cls: type[Scheme[Any]]) -> str:
    listed = [f"- {claim.value}" for claim in Claim if claim in cls.claims]
    none = "Nothing is claimed: it is biased on purpose, or by construction."
    proof = f"`fedcohort check {name}` proves it by enumerating every outcome of small cases."
    return "\n".join([*listed, "", proof, ""]) if listed else f"{none}\n"


def _costs(found: Measured) -> str:
    row = found.facts
    known = [
        ("needs", row.needs),
        ("bytes a round", None if row.bytes_per_round is None else byte_count(row.bytes_per_round)),
        ("clients that need the model", _number(row.computing)),
        ("secure aggregation", row.secure_aggregation),
        ("the server learns", "<br>".join(row.discloses)),
        ("epsilon of the run with noise 1", _number(row.epsilon) or "not covered by noise alone"),
        ("note", row.note or None),
    ]
    rows = [f"| {_cell(key)} | {_cell(value)} |" for key, value in known if value]
    return (
        f"For {len(task().sizes)} clients, m = {M}, a model of "
        f"{byte_count(4 * task().dimension)}:\n\n| | |\n|---|---|\n{chr(10).join(rows)}\n"
    )


def _behaviour(name: str, found: Measured) -> str:
    if not found.traces:
        return f"It was not run here: {found.why_not}\n"
    md = everything()["md"]
    command = COMMAND.format(name=word(name), other="uniform" if name == "md" else "md")
    rows = [_measures(name, found)] + ([] if name == "md" else [_measures("md", md)])
    heads = "| | accuracy at the end | bytes in all | clients a round | Gini | never chosen |"
    return (
        f"{heads}\n|---|---|---|---|---|---|\n{chr(10).join(rows)}\n\n"
        f"Handwritten digits on {len(task().sizes)} clients ({DATA}, {PARTITION}), "
        f"{ROUNDS} rounds, means over {SEEDS} seeds; a demonstration, not a verdict "
        "([experiments](../experiments.md), [reproduction](../reproduction.md) are for that). "
        f"Again:\n\n```sh\n{command}\n```\n"
    )


def _measures(name: str, found: Measured) -> str:
    runs, n = found.traces, len(found.traces)
    ends = [trace.last()[1] for trace in runs]
    mean = sum(ends) / n
    sd = (sum((each - mean) ** 2 for each in ends) / max(1, n - 1)) ** 0.5
    total = sum(int(trace.bytes_up.sum() + trace.bytes_down.sum()) for trace in runs) / n
    gini = sum(trace.gini for trace in runs) / n
    never = sum(int((trace.participation == 0).sum()) for trace in runs) / n
    a_round = sum(float(trace.distinct.mean()) for trace in runs) / n
    return (
        f"| `{name}` | {mean:.1%} ± {sd:.1%} | {byte_count(total)} | {a_round:.1f} | {gini:.2f} | "
        f"{never:.1f} |"
    )


def _settings(cls: type[Scheme[Any]]) -> str:
    declared = constraints(cls)
    rows = [
        f"| `{key}` | {_cell(declared.get(key, ''))} | `{setting.default!r}` |"
        for key, setting in SCHEMES.settings(cls).items()
    ]
    if not rows:
        return "None.\n"
    return f"| setting | must be | by default |\n|---|---|---|\n{chr(10).join(rows)}\n"


def _number(value: float | None) -> str | None:
    return None if value is None else f"{value:.4g}"


def _cell(value: object) -> str:
    return str(value).replace("|", "\\|").replace("\n", " ")


def _code(text: str) -> str:
    """Docstrings write ``x``; a page writes `x`, and has no other markup of its own."""
    return text.replace("``", "`").replace("<", "&lt;")


def _fenced(text: str) -> str:
    return f"```text\n{text}\n```"


def _indented(text: str) -> str:
    return "\n".join(f"    {line}" if line else "" for line in text.splitlines())
