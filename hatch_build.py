"""What the index shows: README with links that work there, and the addresses of the project.

README's links are relative, as a repository wants them; on an index they would lead nowhere. The
home page is one variable, `home` under [tool.hatch.metadata.hooks.custom] in pyproject.toml (or
FEDCOHORT_HOME_PAGE, which wins): from it they become absolute when the package is built. Empty, as
long as there is none: nothing is invented.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

# A target that is a path of the repository: no address with a scheme, no place on the same page.
RELATIVE = r"(?![a-z][a-z0-9+.-]*:|//|\#|/?>)/?(?:\./)?(?=[^\s)\"'])"
FOUND = re.compile(
    rf"""
    (?P<code> ^\ {{0,3}}(?P<fence> `{{3,}}|~{{3,}}) .*? ^\ {{0,3}}(?P=fence)     # is left as it is
            | (?P<ticks> (?<!`)`+(?!`)) .*? (?<!`)(?P=ticks)(?!`)
            | <!-- .*? -->)
    | (?P<picture> !\[[^\]]*\]\(\s*<? | <img\b[^>]*?\bsrc\s*=\s*["']?) {RELATIVE}
    | (?P<link> \]\(\s*<? | <a\b[^>]*?\bhref\s*=\s*["']?) {RELATIVE}
    | (?P<named> ^\ {{0,3}}\[(?!\^)[^\]]+\]:\s*<?) {RELATIVE} (?P<path> [^\s>]+)
    """,
    re.VERBOSE | re.MULTILINE | re.DOTALL | re.IGNORECASE,
)
PICTURES = (".gif", ".jpeg", ".jpg", ".png", ".svg", ".webp")


def absolute(text: str, home: str) -> str:
    """Markdown with every relative link and picture as one to the repository at ``home``."""

    def one(found: re.Match[str]) -> str:
        path = found["path"] or ""
        if found["picture"] or path.lower().endswith(PICTURES):
            return f"{found['picture'] or found['named']}{home}/raw/main/{path}"
        before = found["link"] or found["named"]
        return f"{before}{home}/blob/main/{path}" if before else found[0]

    return FOUND.sub(one, text)  # in one pass: what it made is not read again


class CustomMetadataHook(MetadataHookInterface):
    """Fills in what pyproject.toml declares as dynamic."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Add readme and addresses."""
        home = os.environ.get("FEDCOHORT_HOME_PAGE", self.config.get("home", "")).rstrip("/")
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        metadata["readme"] = {
            "content-type": "text/markdown",
            "text": absolute(text, home) if home else text,
        }
        metadata["urls"] = (
            {
                "Homepage": home,
                "Documentation": f"{home}/blob/main/docs/index.md",
                "Changelog": f"{home}/blob/main/CHANGELOG.md",
                "Issues": f"{home}/issues",
            }
            if home
            else {}
        )
