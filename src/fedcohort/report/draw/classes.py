"""The figure of the page that shows how well each class is told."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fedcohort.report import facts
from fedcohort.report.draw.drawing import Drawing, line
from fedcohort.simulation._storage import VALIDATION

if TYPE_CHECKING:
    from fedcohort.simulation import Comparison

SPREAD = 0.6  # of the room of a class, in which its schemes stand side by side


def f1(comparison: Comparison) -> tuple[Drawing, ...]:
    """F1 of every class under the last model, scheme by scheme; none where it is not known."""
    table = facts.f1_by_class(comparison)
    if table.empty:
        return ()
    traces, count = [], len(comparison.labels)
    for index, label in enumerate(comparison.labels):
        rows = table[table["scheme"] == label]
        if rows.empty:
            continue
        classes = rows["class"].to_numpy()
        beside = SPREAD * ((index + 0.5) / count - 0.5)
        hover = "Class %{customdata}<br>F1 %{y:.3f}"
        dots = line(index, label, classes + beside, rows["f1"].to_numpy(), hover)
        dots |= {
            "mode": "markers",
            "x": classes + beside,  # every class: nothing is thinned
            "y": rows["f1"].to_numpy(),
            "customdata": classes,
            "error_y": {
                "array": (rows["highest"] - rows["f1"]).to_numpy(),
                "arrayminus": (rows["f1"] - rows["lowest"]).to_numpy(),
                "thickness": 1.2,
                "width": 0,
            },
        }
        dots["marker"].pop("maxdisplayed")
        traces.append(dots)
    classes = int(table["class"].max()) + 1
    seen = "validation data" if VALIDATION in comparison.settings else "the test set"
    axis = {"title": {"text": "Class"}, "range": [-0.6, classes - 0.4], "zeroline": False}
    drawing = Drawing(
        "f1",
        "The last model, class by class",
        f"F1 on {seen}: the harmonic mean of how many samples of a class are found and how "
        "many that are said to be of it are. Mean over seeds, from the lowest to the highest. At 0 "
        "the class is never told rightly: to the model it does not exist.",
        tuple(traces),
        {
            "xaxis": axis | ({"dtick": 1} if classes <= 20 else {}),
            "yaxis": {"title": {"text": "F1"}, "range": [-0.03, 1.03]},
        },
        table=table,
    )
    return (drawing,)
