"""Several run folders as one comparison."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from fedcohort.core.errors import BadInput

if TYPE_CHECKING:
    from fedcohort.simulation import Comparison


def combined(comparisons: Sequence[Comparison]) -> Comparison:
    """All runs of several comparisons; a scheme that comes twice is named with its folder.

    Settings that are the same everywhere are kept, the others are listed run by run.
    """
    if not comparisons:
        raise BadInput("A report needs at least one run folder; got none.")
    if len(comparisons) == 1:
        return comparisons[0]
    from fedcohort.simulation import Comparison

    names = _names(comparisons)
    twice = Counter(label for comparison in comparisons for label in comparison.labels)
    traces, schemes = [], {}
    for name, comparison in zip(names, comparisons, strict=True):
        for trace in comparison.traces:
            label = f"{trace.label} ({name})" if twice[trace.label] > 1 else trace.label
            schemes[label] = str(comparison.settings.get("schemes", {}).get(trace.label, ""))
            traces.append(replace(trace, settings={**trace.settings, "label": label}))
    settings: dict[str, Any] = {"runs": names, "schemes": schemes}
    for key in dict.fromkeys(key for c in comparisons for key in c.settings if key != "schemes"):
        values = [c.settings.get(key) for c in comparisons]
        same = all(value == values[0] for value in values)
        settings[key] = values[0] if same else dict(zip(names, values, strict=True))
    return Comparison(tuple(traces), settings, comparisons[0].folder)


def _names(comparisons: Sequence[Comparison]) -> list[str]:
    names = [c.folder.name if c.folder else f"run {i + 1}" for i, c in enumerate(comparisons)]
    counts = Counter(names)
    return [f"{name} #{i + 1}" if counts[name] > 1 else name for i, name in enumerate(names)]
