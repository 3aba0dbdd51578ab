"""What mkdocs runs when it builds the site: pages that are made of the library, links, maths."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

import explorer_data
import gallery
import links
import maths
import notebooks
import reference
import scheme_pages

ROOT = Path(__file__).parents[2]
SQUARES = {"🟩": "green", "🟨": "yellow", "🟥": "red", "⬜": "gray", "▫️": "open"}
log = logging.getLogger("mkdocs.hooks.fedcohort")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Put the sections whose pages are made here into the navigation."""
    sections = {
        "SCHEMES": scheme_pages.navigation(),
        "REFERENCE": reference.navigation(),
        "DECISIONS": links.decisions(),
        "NOTEBOOKS": notebooks.navigation(),
    }
    config.nav = _filled(config.nav, sections)
    return config


def _filled(nav: Any, sections: dict[str, Any]) -> Any:
    if isinstance(nav, list):
        return [_filled(each, sections) for each in nav]
    if isinstance(nav, dict):
        return {title: _filled(each, sections) for title, each in nav.items()}
    return sections.get(nav, nav)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that nobody writes by hand."""
    made = {
        **links.project_pages(),
        **scheme_pages.pages(),
        **reference.pages(),
        **notebooks.pages(),
        **gallery.pages(),
        **explorer_data.files(),
    }
    for path, content in made.items():
        if files.get_file_from_path(path) is None:
            files.append(File.generated(config, path, content=content))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Links out of docs/ lead to pages of the site; a scheme's own words follow its facts."""
    path = page.file.src_uri
    if page.file.generated_by is None:
        markdown = links.relinked(markdown, Path("docs") / path, path)
        markdown = scheme_pages.joined(path, markdown)
    return markdown


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Formulas become MathML, which browsers draw by themselves; squares need no emoji font."""
    for square, name in SQUARES.items():
        html = html.replace(square, f'<i class="square {name}">■</i>')
    return maths.drawn(html)
