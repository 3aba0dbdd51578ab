"""docs/results: give results of FedSampling the names that their arms have now.

A result gets the new names, and the new key, if its settings with the new names are those of the
recipe now but for arms that were added since: every arm is tuned and run on its own. Where a scheme
has another word, a test shows that the runs are the same. All other files are left as they are.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from fedcohort_papers.recipes import Recipe, Scale, recipes
from fedcohort_papers.recipes.fedsampling._runs import (
    AS_PRINTED,
    BY_COUNTS,
    CORRECTED,
    ESTIMATED,
    KNOWN,
    SAME_SAMPLES,
)
from fedcohort_papers.reproduction.judged import overall

RESULTS = Path(__file__).parent / "results"
PUBLISHED = "fedsampling:K=2048,mechanism=paper,fresh=every-round,when_imprecise=accept"
NAMES = {
    "fedsampling, N known": KNOWN,
    "fedsampling, levels": CORRECTED,
    "fedsampling, paper": AS_PRINTED,
    PUBLISHED: f"{PUBLISHED},version=printed",
}
"""As printed and corrected are the same runs where K is at most the number of clients, and none is
empty: tests/schemes/test_fedsampling.py."""
RENAMED: Mapping[str, tuple[str, Mapping[str, str], Collection[str]]] = {
    "fedsampling-fig3-standard": ("fedsampling-fig3", NAMES, (BY_COUNTS, SAME_SAMPLES)),
    "fedsampling-fig4-standard": ("fedsampling-fig4", NAMES, ()),
    "fedsampling-fig5-standard": (
        "fedsampling-fig5-cnn",
        {**NAMES, "fedsampling, paper": ESTIMATED},
        (AS_PRINTED,),
    ),
    "fedsampling-fig6-standard": ("fedsampling-fig6", NAMES, ()),
    "fedsampling-published-standard": ("fedsampling-published", NAMES, ()),
    "fedsampling-table1-standard": (
        "fedsampling-table1",
        {"FedSampling": KNOWN},
        (AS_PRINTED, CORRECTED),
    ),
}
"""By file: the recipe now, new names by old ones, and arms that were added."""


def renamed(
    facts: Mapping[str, Any],
    recipe: Recipe,
    scale: Scale,
    names: Mapping[str, str],
    added: Collection[str] = (),
) -> dict[str, Any] | None:
    """Return a result with new names and its new key, or None if it is of other runs."""
    now, cells = recipe.settings(scale), {cell.name for cell in recipe.cells_at(scale)}
    then = _named({**facts["settings"], "recipe": recipe.name}, names)
    then["cells"] = {name: cell for name, cell in then["cells"].items() if name in cells}
    if _without(then, ()) != _without(now, added):
        return None
    claims = {str(claim.judge): claim for claim in recipe.claims}
    found = [
        {**told, "statement": claim.statement, "printed": claim.printed, "ours": claim.ours,
         "exploratory": claim.exploratory, "kind": claim.kind}
        for told in _named(facts["claims"], names)
        if (claim := claims.get(told["criterion"])) is not None
    ]  # fmt: skip
    verdicts = [told["verdict"] for told in found if not told["ours"]]
    changed = {
        "recipe": recipe.name,
        "title": recipe.title,
        "where": recipe.where,
        "changed": scale.changed,
        "digest": recipe.digest(scale),
        "settings": now,
        "verdict": overall(verdicts or [told["verdict"] for told in found]),
        "claims": found,
        "notes": list(recipe.notes),
        "tuned": {
            cell: _named(told, names)
            for cell, told in facts.get("tuned", {}).items()
            if cell in cells
        },
    }
    return {**facts, **changed, **({"added": sorted(added)} if added else {})}


def _named(value: Any, names: Mapping[str, str]) -> Any:
    """Return a value with new names in all of its texts."""
    if isinstance(value, str):
        either = "|".join(map(re.escape, names))
        ends = r"(?=$|\.(?:lr|eta_g)| \(| −|[:;,] | is | diverged| did | and )"
        return re.sub(rf"(?<!\w)({either}){ends}", lambda old: names[old[0]], value)
    if isinstance(value, Mapping):
        return {_named(key, names): _named(each, names) for key, each in value.items()}
    return [_named(each, names) for each in value] if isinstance(value, list) else value


def _without(value: Any, labels: Collection[str]) -> Any:
    """Return settings without some arms; the order of arms does not matter."""
    if isinstance(value, Mapping):
        kept = (key for key in value if key.rpartition(".")[0] not in labels and key not in labels)
        return {key: _without(value[key], labels) for key in kept}
    if isinstance(value, list | tuple):
        items = [_without(each, labels) for each in value if each not in labels]
        return sorted(items) if all(isinstance(each, str) for each in items) else items
    return value


def main() -> None:
    """Rewrite every result that is of the same runs."""
    for stem, (name, names, added) in RENAMED.items():
        path, recipe = RESULTS / f"{stem}.json", recipes()[name]
        if not path.is_file():
            continue
        facts = json.loads(path.read_text(encoding="utf-8"))
        scale = recipe.scale(facts["scale"])
        new = renamed(facts, recipe, scale, names, added)
        print(f"{path.name}: {'left as it is' if new is None else f'new names, {name}'}")
        if new is not None:
            text = json.dumps(new, indent=2) + "\n"
            (RESULTS / f"{name}-{facts['scale']}.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
