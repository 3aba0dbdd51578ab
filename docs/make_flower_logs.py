"""A stock Flower app before and after three lines change: runs both, writes the page.

``make flower-logs``, or ``python docs/make_flower_logs.py``: both apps run in this process with
the strategies of Flower and of this library, and what they log is what the page shows.
"""

from __future__ import annotations

import html
import importlib
import logging
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from flwr.app import Context, RecordDict

from fedcohort.flower import InProcessGrid

ROOT = Path(__file__).parents[1]
STOCK = ROOT / "examples" / "flower" / "stock"
PAGE = ROOT / "docs" / "flower-before-after.md"
NODES = 10
CHANGES = {
    "server_app.py": {
        "from flwr.serverapp.strategy import FedAvg": "from fedcohort.flower import CohortStrategy",
        "    strategy = FedAvg(fraction_train=0.3)": (
            '    strategy = CohortStrategy("pow-d:m=3,d=6", clients=10, importance="equal")'
        ),
    },
    "client_app.py": {
        "from flwr.clientapp import ClientApp": "from fedcohort.flower import ClientApp"
    },
}
CONFIG = {"num-server-rounds": 3, "local-epochs": 2, "learning-rate": 0.1}
PACKAGE = "stockexample"


def changed(folder: Path) -> Path:
    """A copy of the stock app with the lines changed; its folder."""
    shutil.copytree(STOCK / PACKAGE, folder / PACKAGE, ignore=shutil.ignore_patterns("__pycache__"))
    for file, lines in CHANGES.items():
        path = folder / PACKAGE / file
        text = path.read_text(encoding="utf-8")
        for old, new in lines.items():
            if text.splitlines().count(old) != 1:
                raise SystemExit(f"{file} must have the line {old!r} once.")
            text = text.replace(f"{old}\n", f"{new}\n")
        path.write_text(text, encoding="utf-8")
    return folder


@contextmanager
def _imported(folder: Path) -> Iterator[None]:
    """The app of a folder can be imported, and is forgotten afterwards."""
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        sys.path.remove(str(folder))
        for name in [name for name in sys.modules if name.split(".")[0] == PACKAGE]:
            del sys.modules[name]


class _Lines(logging.Handler):
    """Keeps what is logged, as Flower's console shows it."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a line."""
        self.lines.append(f"{record.levelname:<7} : {record.getMessage()}".expandtabs(4).rstrip())


def log_of(folder: Path) -> list[str]:
    """Run the app of a folder in this process; the lines that it logs."""
    handler, logger = _Lines(), logging.getLogger("flwr")
    logger.addHandler(handler)
    try:
        with _imported(folder):
            client = importlib.import_module(f"{PACKAGE}.client_app")
            server = importlib.import_module(f"{PACKAGE}.server_app")
            grid = InProcessGrid(client.app, NODES, run_config=CONFIG, raises=True)
            server.main(grid, Context(1, 1, {}, RecordDict(), CONFIG))
    finally:
        logger.removeHandler(handler)
    return handler.lines


def page(before: list[str], after: list[str]) -> str:
    """The page, with both logs."""
    diff = [
        line
        for file, each in CHANGES.items()
        for line in [f"  {file}"]
        + [f"{sign}{text}" for old, new in each.items() for sign, text in (("-", old), ("+", new))]
    ]
    return "\n".join(
        [
            "# A stock Flower app before and after",
            "",
            "[`examples/flower/stock`](../examples/flower/stock) is an app as Flower's templates",
            "make it. Three lines change, and clients are chosen by a scheme (here by their",
            "losses, which the app's own `@app.evaluate()` tells):",
            "",
            "```diff",
            *diff,
            "```",
            "",
            "Sizes are not told by these lines, so every client counts the same; where sizes are",
            "to count, a fourth line tells them: `app = ClientApp(size=lambda context: ...)`, and",
            '`importance="equal"` goes.',
            "",
            f"Both logs below are real: `make flower-logs` runs both apps on {NODES} nodes in one",
            "process and writes this page. The words are Flower's; what is ours is the scheme and",
            "what it lets the server learn, what evaluation costs, and who was chosen with which",
            "weight. Flower's choice has no seed, so numbers differ from run to run.",
            "",
            *_side_by_side(before, after),
            "",
        ]
    )


def _side_by_side(before: list[str], after: list[str]) -> list[str]:
    """Two columns of one table; no line is empty, so that it is one block of HTML."""
    logs = ("\n".join(html.escape(line) for line in lines) for lines in (before, after))
    cells = [f'<td valign="top"><pre>{log}</pre></td>' for log in logs]
    head = "<th>before: FedAvg</th><th>after: CohortStrategy</th>"
    return ["<table>", f"<tr>{head}</tr>", "<tr>", *cells, "</tr>", "</table>"]


def main() -> None:
    """Run both and write the page."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    with tempfile.TemporaryDirectory() as place:
        before, after = log_of(STOCK), log_of(changed(Path(place)))
    PAGE.write_text(page(before, after), encoding="utf-8")
    print(f"Wrote {PAGE}.")


if __name__ == "__main__":
    main()
