"""Links of pages that are read in two places: in the repository and on the site."""

from __future__ import annotations

import posixpath
import re
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).parents[2]
PROJECT = {
    "README.md": "project/readme.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "SECURITY.md": "project/security.md",
    "CHANGELOG.md": "project/changelog.md",
    "examples/flower/README.md": "project/flower-example.md",
}
"""Pages that lie outside docs/, and where the site has them."""
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)")


def project_pages() -> dict[str, str]:
    """The pages outside docs/, with links that lead to pages of the site."""
    return {
        path: relinked((ROOT / source).read_text(encoding="utf-8"), Path(source), path)
        for source, path in PROJECT.items()
    }


def decisions() -> list[str]:
    """The decision records, by name."""
    return [f"decisions/{each.name}" for each in sorted((ROOT / "docs/decisions").glob("*.md"))]


def relinked(markdown: str, source: Path, path: str) -> str:
    """The markdown of a file of the repository as the site needs it.

    Links to what the site does not have (tests, source) become the words alone.
    """

    def new(match: re.Match[str]) -> str:
        picture, words, target = match.groups()
        place, mark, anchor = target.partition("#")
        if not place or re.match(r"[a-z]+:", place):
            return match[0]
        there = on_site(posixpath.normpath(str(PurePosixPath(source.parent.as_posix()) / place)))
        if there is None:
            return words
        relative = posixpath.relpath(there, posixpath.dirname(path) or ".")
        return f"{picture}[{words}]({relative}{mark}{anchor})"

    return LINK.sub(new, markdown)


def on_site(target: str) -> str | None:
    """Where the site has a file of the repository; None where it has not."""
    if target in PROJECT:
        return PROJECT[target]
    if target.startswith("examples/") and target.endswith(".ipynb"):
        return f"notebooks/{Path(target).stem}.md"
    if target.startswith("docs/") and not target.endswith(("/", ".py", ".json", ".toml")):
        return target.removeprefix("docs/") if (ROOT / target).is_file() else None
    return None
