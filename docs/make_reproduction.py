"""docs/reproduction.md: every claim of every recipe, from the results in docs/results."""

from __future__ import annotations

from pathlib import Path

from fedcohort.recipes import recipes
from fedcohort.reproduction.page import kept, outdated, page

HERE = Path(__file__).parent
PAGE = HERE / "reproduction.md"


def made() -> str:
    return page(PAGE.read_text(encoding="utf-8"), recipes().values(), kept(HERE / "results"))


if __name__ == "__main__":
    PAGE.write_text(made(), encoding="utf-8")
    print(f"Written: {PAGE}")
    for line in outdated(recipes(), kept(HERE / "results")):
        print(f"Does not count: {line}")
