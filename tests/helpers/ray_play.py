"""A comparison on a Ray cluster of two nodes, one of which is killed in the middle.

Run by tests/simulation/test_ray.py as a program of its own: ``python -m helpers.ray_play FOLDER``.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from ray.cluster_utils import Cluster

from fedcohort import Comparison, LocalWork, Problem, compare, tune
from fedcohort._internal.errors import FedcohortError

SCHEME = '''
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from fedcohort.selection import Cohort, Scheme


@dataclass(frozen=True)
class Noting(Scheme):
    """Chooses everybody and notes on which node every round is.

    The second node never gets beyond round 4: it waits there to be killed. Until it is there the
    first waits in round 1 (trials have one round alone), or it might have done everything by then.
    """

    name: ClassVar[str] = "noting"
    note: str = ""
    weight: float = 1.0

    def select(self, state, federation, context, rng):
        node, stuck = os.environ.get("PLAY_NODE", "here"), Path(self.note + "-stuck")
        with open(self.note, "a") as file:
            file.write(f"{node} {context.round}\\n")
        if node == "second" and context.round == 4:
            stuck.touch()
            time.sleep(600)
        until = time.monotonic() + 120
        while node == "first" and context.round == 1 and not stuck.exists():
            assert time.monotonic() < until, "The second node was given nothing to do."
            time.sleep(0.02)
        return Cohort.of(range(len(federation)), federation.importance * self.weight)
        yield
'''
OPTIONS: dict[str, Any] = {"rounds": 10, "seeds": 4, "work": LocalWork(steps=2, batch=5, lr=0.1)}
PROBLEM = Problem("digits", "iid:n=4", model="mlp:hidden=8")


def same(one: Comparison, other: Comparison) -> bool:
    """Bit for bit, but for how long it took."""
    return [trace.label for trace in one.traces] == [trace.label for trace in other.traces] and all(
        a.model.tobytes() == b.model.tobytes()
        and a.accuracy.tobytes() == b.accuracy.tobytes()
        and a.cohort_clients.tobytes() == b.cohort_clients.tobytes()
        for a, b in zip(one.traces, other.traces, strict=True)
    )


def said(call: Any) -> str:
    try:
        call()
    except FedcohortError as error:
        return str(error)
    return ""


def two_nodes() -> tuple[Cluster, Any]:
    """A head and a second node; Ray gives up on a node that starts slowly, as on a busy machine."""
    for _ in range(3):
        cluster = Cluster()
        try:
            first, second = ({"PLAY_NODE": name} for name in ("first", "second"))
            cluster.add_node(num_cpus=1, include_dashboard=False, wait=False, env_vars=first)
            node = cluster.add_node(num_cpus=1, wait=False, env_vars=second)
            cluster.wait_for_nodes(timeout=60)
        except Exception:
            cluster.shutdown()
        else:
            return cluster, node
    sys.exit("Ray did not start.")


def main(folder: Path) -> dict[str, Any]:
    cluster, node = two_nodes()
    scheme, notes = folder / "noting.py", folder / "notes"
    scheme.write_text(SCHEME)
    arms = [f"{scheme}:note={notes}", f"{scheme}:note={notes},weight=0.5"]

    def kill(done: int, total: int, trace: Any) -> None:
        if done == 2:  # two of the first node: the second is in the middle of a run
            cluster.remove_node(node, allow_graceful=False)

    found: dict[str, Any] = {}
    there = {"ray": cluster.address, "folder": folder / "runs"}
    on_ray = compare(PROBLEM, arms, **OPTIONS, **there, finished=kill)
    noted = notes.read_text().splitlines()
    found["begun"] = sum(line.endswith(" 0") for line in noted)
    found["lost"] = [line for line in noted if line.startswith("second")][-5:]  # after trials
    found["files"] = len(list((folder / "runs").glob("*.npz")))
    before = [path.stat().st_mtime_ns for path in sorted((folder / "runs").glob("*.npz"))]
    compare(PROBLEM, arms, **OPTIONS, **there)
    after = [path.stat().st_mtime_ns for path in sorted((folder / "runs").glob("*.npz"))]
    found["kept"] = before == after
    here = compare(PROBLEM, arms, **OPTIONS, jobs=1)
    found["same"] = same(on_ray, here) and same(Comparison.load(folder / "runs"), here)
    longer, before = {**OPTIONS, "rounds": 14}, len(notes.read_text().splitlines())
    extended = compare(PROBLEM, arms, **longer, **there)
    noted = notes.read_text().splitlines()[before:]
    found["went on"] = sorted({int(line.split()[1]) for line in noted if line != "first 0"})
    found["extended"] = same(extended, compare(PROBLEM, arms, **longer, jobs=1))
    grid = {"lr": [0.01, 0.1], "weight": [0.5, 1.0]}
    tried = {"rounds": 2, "seeds": 2, "work": OPTIONS["work"]}
    chosen = [tune(PROBLEM, arms[:1], grid, **tried, **how).as_dict() for how in ways(cluster)]
    found["tuned"] = chosen[0] == chosen[1]
    bad = f"{scheme}:note={folder / 'no' / 'notes'}"
    found["refused"] = said(lambda: compare(PROBLEM, "uniform:m=9", **OPTIONS, **ways(cluster)[0]))
    found["own error"] = _type(lambda: compare(PROBLEM, bad, **OPTIONS, **ways(cluster)[0]))
    cluster.shutdown()
    return found


def ways(cluster: Any) -> list[dict[str, Any]]:
    return [{"ray": cluster.address}, {"jobs": 1}]


def _type(call: Any) -> str:
    try:
        call()
    except Exception as error:
        return f"{type(error).__name__}: {error}"[:300]
    return ""


if __name__ == "__main__":
    sys.stdout.write(json.dumps(main(Path(sys.argv[1]))))
