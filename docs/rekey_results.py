"""docs/results: replace keys made of module paths and source text by keys made of plain settings.

A result gets the new key only if its old key matches the recipe of now. Then both keys describe
the same recipe object. All other files are left as they are.
"""

from __future__ import annotations

import json
from pathlib import Path

from fedcohort.core.fingerprint import Digest
from fedcohort.recipes import Recipe, Scale, recipes

RESULTS = Path(__file__).parent / "results"


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


def main() -> None:
    """Rewrite every result whose old key matches."""
    for path in sorted(RESULTS.glob("*.json")):
        facts = json.loads(path.read_text(encoding="utf-8"))
        if "digest" in facts:
            continue
        recipe = recipes()[facts["recipe"]]
        new = rekeyed(facts, recipe, recipe.scale(facts["scale"]))
        print(f"{path.name}: {'left as it is' if new is None else 'new key'}")
        if new is not None:
            path.write_text(json.dumps(new, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
