"""Formulas: LaTeX in, MathML out, when the site is built; no script, no fonts to fetch."""

from __future__ import annotations

import re
from functools import cache
from html import unescape

from latex2mathml.converter import convert

INLINE = re.compile(r'<span class="arithmatex">\\\((.*?)\\\)</span>', re.DOTALL)
BLOCK = re.compile(r'<div class="arithmatex">\s*\\\[(.*?)\\\]\s*</div>', re.DOTALL)


def drawn(html: str) -> str:
    """A page whose formulas a browser can draw."""
    html = BLOCK.sub(lambda m: f'<div class="formula">{mathml(m[1], "block")}</div>', html)
    return INLINE.sub(lambda m: mathml(m[1], "inline"), html)


@cache
def mathml(tex: str, display: str) -> str:
    """One formula."""
    return convert(unescape(tex).strip(), display=display)
