"""docs/results: give results the keys and the labels of now where the runs are the same.

A key made of module paths and source text becomes one made of plain settings only if it matches
the recipe of now. Then both keys describe the same recipe object. An arm gets another label only
if it has the same settings under both. All other files are left as they are.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from fedcohort._internal.fingerprint import Digest
from fedcohort._internal.types import settings_digest
from fedcohort_papers.recipes import Recipe, Scale, recipes

RESULTS = Path(__file__).parent / "results"
CLUSTERED = {f"Algorithm {k}": f"Algorithm {k}, corrected" for k in (1, 2)}
STRATEGIES = ("Data", "AverageLoss", "BestLoss", "AverageLoss25", "BestLoss25")
BY_LOSS = {label: f"{label}, corrected" for label in STRATEGIES}
RENAMED: dict[str, dict[str, str]] = {
    "clustered-fig1": {**CLUSTERED, "target": "target (oracle)"},
    "clustered-fig10": CLUSTERED,
    "hcsfed-fig7": {
        label: f"{label}, corrected"
        for label in (
            "importance",
            "cluster",
            "cluster, re-allocated",
            "cluster, importance",
            "HCSFed",
        )
    },
    "thesis-decay": BY_LOSS,
    "thesis-fig-4-10": {
        f"{name}, {method}": f"{name}, {method}, corrected"
        for name in ("best-loss", "average-loss", "data-loss")
        for method in ("OPTICS", "DBSCAN")
    },
    "thesis-fig-4-12": BY_LOSS,
    "thesis-fig-4-16": BY_LOSS,
    "thesis-fig-4-22": BY_LOSS,
    "thesis-lowest-loss": {**BY_LOSS, "LowestLoss": "LowestLoss, corrected"},
    "thesis-table-4-3": {
        "pow-d": "Pow-6",
        "average-loss": "AverageLoss, corrected",
        "best-loss": "BestLoss, corrected",
    },
}
"""By recipe: arms that have another label now."""


def old_key(recipe: Recipe, scale: Scale) -> str:
    """Return the key as it was: types by module path, ``compute`` by its source text."""
    digest = Digest(f"the recipe '{recipe.name}'")
    digest.add("cells", recipe.cells_at(scale))
    digest.add("numbers", dict(scale.numbers))
    if recipe.compute is not None:
        digest.add("compute", recipe.code)
    return digest.hex()


def rekeyed(facts: dict[str, object], recipe: Recipe, scale: Scale) -> dict[str, object] | None:
    """Return a result with its new key, or None if its old key does not match."""
    if facts.get("settings") != old_key(recipe, scale):
        return None
    new = {"digest": recipe.digest(scale), "settings": recipe.settings(scale)}
    return {name: part for key, each in facts.items()
            for name, part in (new if key == "settings" else {key: each}).items()}  # fmt: skip


def relabelled(
    facts: dict[str, Any], recipe: Recipe, scale: Scale, labels: dict[str, str]
) -> dict[str, Any] | None:
    """Return a result with new labels, or None if an arm has other settings under its new one.

    A claim stays if the recipe has its criterion under the new labels, and so do arms that the
    recipe no longer has. A result that has new labels is left alone.
    """
    every = {label for cell in facts["settings"]["cells"].values() for label in cell["arms"]}
    if not every & labels.keys() or every & set(labels.values()):
        return None
    cells, now = {}, recipe.settings(scale)["cells"]
    for name, cell in facts["settings"]["cells"].items():
        arms = {labels.get(label, label): word for label, word in cell["arms"].items()}
        new = now.get(name, {"arms": {}})
        both = {label: arms[label] for label in arms if label in new["arms"]}
        if {**cell, "arms": both} != {**new, "arms": {k: new["arms"][k] for k in both}}:
            return None
        cells[name] = {**cell, "arms": arms}
    old = re.compile("|".join(map(re.escape, sorted(labels, key=len, reverse=True))))
    current = {str(claim.judge): claim for claim in recipe.claims}
    claims = []
    for found in facts["claims"]:
        text = {key: old.sub(lambda label: labels[label[0]], found[key])
                for key in ("criterion", "found", "remedy")}  # fmt: skip
        if text["criterion"] in current:
            statement = current[text["criterion"]].statement
            claims.append({**found, **text, "statement": statement})
    settings = {**facts["settings"], "cells": cells}
    return {**facts, "digest": settings_digest(settings), "settings": settings, "claims": claims}


def main() -> None:
    """Rewrite every result whose old key matches, or whose arms have other labels now."""
    for path in sorted(RESULTS.glob("*.json")):
        facts = json.loads(path.read_text(encoding="utf-8"))
        recipe = recipes().get(facts["recipe"])
        labels = RENAMED.get(facts["recipe"])
        if recipe is None or ("digest" in facts and labels is None):
            continue
        scale = recipe.scale(facts["scale"])
        if "digest" in facts:
            new = relabelled(facts, recipe, scale, labels or {})
        else:
            new = rekeyed(facts, recipe, scale)
        print(f"{path.name}: {'left as it is' if new is None else 'new key'}")
        if new is not None:
            path.write_text(json.dumps(new, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
