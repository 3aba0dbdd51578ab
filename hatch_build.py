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

RELATIVE = r"(?!https?:|mailto:|#)([^)\s]+)"
PICTURE = re.compile(rf"(!\[[^\]]*\])\({RELATIVE}\)")
LINK = re.compile(rf"(\])\({RELATIVE}\)")


def absolute(text: str, home: str) -> str:
    """Markdown with every relative link and picture as one to the repository at ``home``."""
    text = PICTURE.sub(rf"\1({home}/raw/main/\2)", text)  # first: a picture may be a link's words
    return LINK.sub(rf"\1({home}/blob/main/\2)", text)


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
