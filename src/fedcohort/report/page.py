"""One self-contained HTML page: no server, no network, nothing beside the file."""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any

import pandas as pd

from fedcohort.core.files import FOR_ALL_TO_READ, replacing
from fedcohort.report import (
    clients,
    facts,
    figures,
    figures_answers,
    figures_clients,
    figures_clusters,
    prose,
)
from fedcohort.report.combine import RUNS, is_carried, parts
from fedcohort.report.drawing import Drawing
from fedcohort.report.encode import to_json
from fedcohort.report.format import byte_count, counted
from fedcohort.report.markup import card, figure, plain_table
from fedcohort.report.measures import measured
from fedcohort.report.scoreboard import Tested, pairs, scoreboard
from fedcohort.report.styles import DARK, LIGHT, swatch

if TYPE_CHECKING:
    from fedcohort.simulation import Comparison

NIGHT = (
    "--page: #0e131a; --surface: #161d27; --text: #e8edf3; --muted: #9fb0c3; --line: #2a3542; "
    "--accent: #6db3f2; --accent-soft: #1b2c40; --grid: #232d39; --shadow: none;"
)


def write(
    comparison: Comparison, path: str | os.PathLike[str], target: float | None = None
) -> Path:
    """Write the page of a comparison to ``path``; the old file stays until the new is whole."""
    place = Path(path)
    text = page(comparison, target)
    with replacing(place, FOR_ALL_TO_READ) as file:
        file.write(text.encode())
    return place


def page(comparison: Comparison, target: float | None = None) -> str:
    """The page of a comparison."""
    from plotly.offline import get_plotlyjs

    from fedcohort import __version__

    tested = pairs(comparison)
    tables = [facts.summary(part, target) for _, part in parts(comparison)]
    sections = _sections(comparison, tables, target, tested)
    drawings = [drawing for section in sections for drawing in section.drawings]
    plotly, script = get_plotlyjs(), _file("page.js")
    return Template(_file("page.html")).substitute(
        policy=_policy(plotly, script),
        version=escape(__version__),
        title=escape(_title(comparison)),
        css=_css(),
        what="<br>".join(escape(line) for line in _what(comparison)),
        links="".join(f'<li><a href="#{s.key}">{escape(s.title)}</a></li>' for s in sections),
        sections="\n".join(section.html() for section in sections),
        data=to_json(_data(comparison, tables, drawings, tested)),
        plotly=plotly,
        script=script,
    )


def _file(name: str) -> str:
    return (files("fedcohort.report") / "templates" / name).read_text(encoding="utf-8")


def _policy(*scripts: str) -> str:
    """Only these very scripts run, nothing is fetched, nothing is sent."""
    allowed = " ".join(f"'sha256-{_sha256(script)}'" for script in scripts)
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'"
    )


def _sha256(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode("ascii")


def _css() -> str:
    def variables(palette: Sequence[str]) -> str:
        return " ".join(f"--c{i}: {colour};" for i, colour in enumerate(palette))

    classes = "\n".join(f".c{i} {{ color: var(--c{i}); }}" for i in range(len(LIGHT)))
    return Template(_file("page.css")).substitute(
        light=variables(LIGHT), night=f"{NIGHT} {variables(DARK)}", colours=classes
    )


def _data(
    comparison: Comparison,
    tables: Sequence[pd.DataFrame],
    drawings: Sequence[Drawing],
    tested: Tested,
) -> dict[str, Any]:
    """What the script needs: figures, colours, and every scheme against every other."""
    order = {label: i for i, label in enumerate(comparison.labels)}
    ranked = [[order[label] for label in table["scheme"]] for table in tables]
    return {
        "schemes": list(comparison.labels),
        "palettes": {"light": LIGHT, "dark": DARK},
        "groups": {
            "all": [i for own in ranked for i in own],
            "best": [i for own in ranked for i in own[:5]],
            "none": [],
        },
        "pairs": tested,
        "figures": {
            drawing.key: {
                "traces": drawing.traces,
                "layout": drawing.layout,
                "layouts": drawing.layouts,
                "switches": [{"key": s.key, "options": s.options} for s in drawing.switches],
            }
            for drawing in drawings
        },
    }


def _title(comparison: Comparison) -> str:
    named = [name for name, _ in parts(comparison) if name]
    settings = comparison.traces[0].settings
    task = str(settings.get("carrier", settings.get("task", "?")))
    schemes = counted(len(comparison.labels), "scheme")
    if len(comparison.labels) == 1:
        schemes = comparison.labels[0]
    return f"{schemes} on {', '.join(named) or task}"


def _what(comparison: Comparison) -> list[str]:
    """What was run, a line for every problem."""
    return [f"{name}: {_run(part)}" if name else _run(part) for name, part in parts(comparison)]


def _run(comparison: Comparison) -> str:
    first, problem = comparison.traces[0], comparison.settings.get("problem")
    task = "" if is_carried(comparison) else str(first.settings.get("task", ""))
    told = _problem(problem) if problem else task
    said = [
        counted(len(comparison.labels), "scheme"),
        counted(len(first.importance), "client"),
        prose.how_far(comparison)
        or counted(max(trace.rounds for trace in comparison.traces), "round"),
        counted(len({trace.seed for trace in comparison.traces}), "seed"),
        told,
        *sorted({str(t.settings["carrier"]) for t in comparison.traces if "carrier" in t.settings}),
    ]
    if comparison.interrupted:
        said.append("interrupted: some runs are missing")
    return " · ".join(part for part in said if part)


def _problem(problem: Any) -> str:
    """Data, partition and model, each with its options in brackets; else as it stands."""
    if not isinstance(problem, Mapping):
        return str(problem)
    told = []
    for key in ("data", "partition", "model"):
        options = facts.in_words(problem.get(f"{key}_options", {}))
        told.append(
            f"{problem.get(key, '?')} ({options})" if options else str(problem.get(key, "?"))
        )
    return ", ".join(told)


@dataclass(frozen=True)
class _Section:
    """A part of the page: HTML, figures, and figures side by side."""

    key: str
    title: str
    content: tuple[str | Drawing | tuple[Drawing, ...], ...]

    @property
    def drawings(self) -> list[Drawing]:
        """All figures."""
        out: list[Drawing] = []
        for item in self.content:
            out += [item] if isinstance(item, Drawing) else item if isinstance(item, tuple) else []
        return out

    def html(self) -> str:
        """The section; the headline of the page is the heading of the first."""
        heading = "" if self.key == "result" else f"<h2>{escape(self.title)}</h2>"
        body = "".join(_shown(item) for item in self.content)
        return (
            f'<section id="{self.key}" aria-label="{escape(self.title)}">{heading}{body}</section>'
        )


def _shown(item: str | Drawing | tuple[Drawing, ...]) -> str:
    if isinstance(item, Drawing):
        return figure(item)
    if isinstance(item, tuple):
        return f'<div class="pair">{"".join(figure(each) for each in item)}</div>'
    return item


def _sections(
    comparison: Comparison, tables: Sequence[pd.DataFrame], target: float | None, tested: Tested
) -> list[_Section]:
    c = comparison
    pair = figures_clients.histogram(c), figures_clients.lorenz(c)
    weights = figures.weight_theory(c), figures.weight_ratio(c)
    curves = [figures.progress(c, target)] if any(m.among(c.traces) for m in measured(c)) else []
    level = [figures.cost(c)] if measured(c)[0].among(c.traces) else []
    sections = [
        _Section("result", "Result", (_result(c, tables, target, tested),)),
        _Section("curves", "Progress", (*_chips(c), *curves)),
        _Section("cost", "Cost", (*level, _ledger(c), _disclosures(c))),
        _Section("clients", "Who took part", (figures_clients.heat(c), pair)),
        _Section("answers", "Drop-outs", (*figures_answers.answers(c), *_answers(c))),
        _Section("labels", "Labels", (figures.labels(c),)),
        _Section("weights", "Weights", weights),
        _Section("worst", "Worst clients", _worst(c)),
        _Section("federation", "Federation", figures_clients.federations(c)),
        _Section("clusters", "Clusters", (figures_clusters.cluster_figures(c),)),
        _Section("settings", "Settings", (_settings(c),)),
    ]
    return [section for section in sections if section.content not in ((), ((),))]


def _result(
    comparison: Comparison, tables: Sequence[pd.DataFrame], target: float | None, tested: Tested
) -> str:
    """The headline, the answers and the table; for every problem its own."""
    why = prose.apart(comparison)
    out = f"<h1>{escape(why)}</h1>" if why else ""
    for (name, part), table in zip(parts(comparison), tables, strict=True):
        said, chance = escape(prose.headline(part, table)), escape(prose.chance(part, table))
        cards = "".join(card(item) for item in prose.cards(part, table, target))
        out += f"<h2>{escape(name)}: {said}</h2>" if why else f"<h1>{said}</h1>"
        notes = filter(None, (chance, _not_over(part), escape(prose.beside(part))))
        out += f'<p class="lead">{" ".join(notes)}</p>'
        out += f'<dl class="cards">{cards}</dl>'
        out += scoreboard(part, table, target, tested, comparison.labels)
    return out


def _not_over(comparison: Comparison) -> str:
    if len(comparison.traces) == 1 or not prose.how_far(comparison):
        return ""
    return f"{prose.how_far(comparison)}; of those that are not at their end, this is the state."


def _chips(comparison: Comparison) -> list[str]:
    """Which schemes are drawn; nothing to choose where there is one."""
    if len(comparison.labels) == 1:
        return []
    chips = "".join(
        f'<label class="chip" title="{escape(label)}">'
        f'<input type="checkbox" value="{index}" checked>{swatch(index)}'
        f"<span>{escape(label)}</span></label>"
        for index, label in enumerate(comparison.labels)
    )
    buttons = "".join(
        f'<button type="button" data-show="{key}">{words}</button>'
        for key, words in (("all", "All"), ("best", "Best five"), ("none", "None"))
    )
    return [
        '<div class="panel filter"><fieldset class="chips"><legend>Schemes in all figures</legend>'
        f"{buttons}{chips}</fieldset></div>"
    ]


def _ledger(comparison: Comparison) -> str:
    table = facts.ledger(comparison)
    for name in ("bytes_down", "bytes_up"):
        table[name] = [byte_count(value) for value in table[name]]
    table["messages"] = [f"{value:,.0f}" for value in table["messages"]]
    return _panel(
        "Ledger: what was sent",
        "Mean per run over seeds. A question costs messages and tells the server something about "
        "every client it is put to.",
        table.rename(columns={"bytes_down": "to clients", "bytes_up": "to server"}),
    )


def _disclosures(comparison: Comparison) -> str:
    return _panel(
        "What the server learns",
        "As every scheme declares it. Epsilon is what the answers of one client spend of its "
        "privacy over the whole run; a dash is no promise.",
        facts.disclosures(comparison),
    )


def _panel(title: str, lead: str, table: pd.DataFrame, before: str = "") -> str:
    """A box with a table."""
    shown = table.rename(columns={"discloses": "server learns"})
    return (
        f'<div class="panel">{before}<h3>{escape(title)}</h3><p class="lead">{escape(lead)}</p>'
        f'<div class="scroll" role="region" aria-label="{escape(title)}" tabindex="0">'
        f"{plain_table(shown)}</div></div>"
    )


def _answers(comparison: Comparison) -> tuple[str, ...]:
    table = facts.answers(comparison)
    if table.empty:
        return ()
    grouped = table.groupby("scheme", sort=False)
    shown = grouped.sum().drop(columns="round").assign(answered=100 * grouped["answered"].mean())
    names = {
        "answered": "% of draws answered",
        "void": "void rounds",
        "counted": "answers that counted",
    }
    return (
        _panel(
            "Who answered, in sum",
            "Over all rounds, mean over seeds. Reports that are missing or were rejected are "
            "counted by reason; in a void round too few answered, so the model stayed.",
            shown.rename(columns=names).reset_index(),
        ),
    )


def _worst(comparison: Comparison) -> tuple[Drawing | str, ...]:
    table = clients.worst_clients(comparison, 5)
    if table.empty:  # nobody evaluated the last model client by client
        return ()
    panel = _panel(
        "The five clients served worst, scheme by scheme",
        "Losses of the last model on the clients' own data, mean over seeds.",
        table.rename(columns={"rounds": "rounds taken part in"}),
    )
    return figures_clients.losses(comparison), panel


def _settings(comparison: Comparison) -> str:
    told = [comparison.settings, *comparison.settings.get(RUNS, {}).values()]
    commands = "\n".join(str(each["command"]) for each in told if each.get("command"))
    again = f"<h3>To repeat</h3><pre>{escape(commands)}</pre>" if commands else ""
    table = facts.settings(comparison)
    lead = (
        "Equal seeds start from the same model and give a client the same mini-batches whoever "
        "chose it, so differences between schemes are paired."
    )
    if is_carried(comparison):
        lead = "As the server knows it: what clients hold and how they train is their own affair."
    return _panel(
        "Everything that decided these runs",
        lead,
        table[table["setting"] != "command"],
        again,
    )
