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

from fedcohort._internal.files import FOR_ALL_TO_READ, replacing
from fedcohort.report import _result, _settings
from fedcohort.report._figure import DARK, LIGHT, Drawing
from fedcohort.report._format import counted
from fedcohort.report._html import figure, to_json
from fedcohort.report._panel import Content, Panel, Shown, drawings, of_each
from fedcohort.report._runs import is_carried, parts

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

    shown = Shown.of(comparison, target)
    comparison = shown.comparison
    sections = _sections(shown)
    figures = [drawing for section in sections for drawing in drawings(section.content)]
    plotly, script = get_plotlyjs(), template("page.js")
    return Template(template("page.html")).substitute(
        policy=policy(plotly, script),
        version=escape(__version__),
        title=escape(_title(comparison)),
        css=css(),
        what="<br>".join(escape(line) for line in _what(comparison)),
        links="".join(section.link for section in sections),
        sections="\n".join(section.html() for section in sections),
        data=to_json(_data(shown, figures)),
        plotly=plotly,
        script=script,
    )


def template(name: str) -> str:
    """A file of the templates."""
    return (files("fedcohort.report") / "templates" / name).read_text(encoding="utf-8")


def policy(*scripts: str) -> str:
    """Only these very scripts run, nothing is fetched, nothing is sent."""
    allowed = " ".join(f"'sha256-{_sha256(script)}'" for script in scripts)
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'"
    )


def _sha256(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode("ascii")


def css() -> str:
    """The look of our pages, by day and by night."""

    def variables(palette: Sequence[str]) -> str:
        return " ".join(f"--c{i}: {colour};" for i, colour in enumerate(palette))

    classes = "\n".join(f".c{i} {{ color: var(--c{i}); }}" for i in range(len(LIGHT)))
    return Template(template("page.css")).substitute(
        light=variables(LIGHT), night=f"{NIGHT} {variables(DARK)}", colours=classes
    )


def _data(shown: Shown, figures: Sequence[Drawing]) -> dict[str, Any]:
    """What the script needs: figures, colours, and every scheme against every other."""
    labels = shown.comparison.labels
    order = {label: i for i, label in enumerate(labels)}
    ranked = [[order[label] for label in table["scheme"]] for table in shown.tables]
    return {
        "schemes": list(labels),
        "palettes": {"light": LIGHT, "dark": DARK},
        "groups": {
            "all": [i for own in ranked for i in own],
            "best": [i for own in ranked for i in own[:5]],
            "none": [],
        },
        "pairs": shown.tested,
        "figures": {
            drawing.key: {
                "traces": drawing.traces,
                "layout": drawing.layout,
                "layouts": drawing.layouts,
                "switches": [{"key": s.key, "options": s.options} for s in drawing.switches],
            }
            for drawing in figures
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
    divisions = len(comparison.partitions)
    task = "" if is_carried(comparison) else str(first.settings.get("task", ""))
    told = _problem(problem) if problem else task
    said = [
        counted(len(comparison.labels), "scheme"),
        counted(len(first.importance), "client"),
        _result.how_far(comparison)
        or counted(max(trace.rounds for trace in comparison.traces), "round"),
        counted(len({trace.seed for trace in comparison.traces}), "seed"),
        counted(divisions, "division") if divisions > 1 else "",
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
        options = _settings.in_words(problem.get(f"{key}_options", {}))
        told.append(
            f"{problem.get(key, '?')} ({options})" if options else str(problem.get(key, "?"))
        )
    return ", ".join(told)


@dataclass(frozen=True)
class _Section:
    """A panel with what it shows."""

    panel: Panel
    content: Content

    @property
    def link(self) -> str:
        """To the section."""
        return f'<li><a href="#{self.panel.name}">{escape(self.panel.title)}</a></li>'

    def html(self) -> str:
        """The section; the headline of the page is the heading of the first."""
        title = escape(self.panel.title)
        heading = "" if self.panel.name == "result" else f"<h2>{title}</h2>"
        body = "".join(_shown(item) for item in self.content)
        return f'<section id="{self.panel.name}" aria-label="{title}">{heading}{body}</section>'


def _shown(item: str | Drawing | tuple[Drawing, ...]) -> str:
    if isinstance(item, Drawing):
        return figure(item)
    if isinstance(item, tuple):
        return f'<div class="pair">{"".join(figure(each) for each in item)}</div>'
    return item


def _sections(shown: Shown) -> list[_Section]:
    """What the panels show; those with nothing to show are left out."""
    contents = of_each(lambda panel: panel.content(shown))
    return [_Section(panel, each) for panel, each in contents if each not in ((), ((),))]
