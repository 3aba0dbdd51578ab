"""The gallery: every picture that the library draws, and where it comes from."""

from __future__ import annotations

from fedcohort.schemes import SCHEMES
from measured import everything
from pictures import picture

PAGES = (
    ("images/report.png", "The report of a comparison", "report.md"),
    ("images/clustered-similarity.png", "A tree of clients", "schemes/clustered-similarity.md"),
    ("images/hcsfed.png", "Strata and draws of HCSFed", "schemes/hcsfed.md"),
    ("images/label-clusters.png", "Clients grouped by their labels", "schemes/label-clusters.md"),
    ("images/haccs.png", "Clusters of devices", "schemes/haccs.md"),
)  # fmt: skip


def pages() -> dict[str, str]:
    """One page."""
    pictures = "\n".join(
        f'<a class="tile" href="{target.removesuffix(".md")}.html"><img src="{source}" '
        f'alt="{words}" loading="lazy"><span>{words}</span></a>'
        for source, words, target in PAGES
    )
    schemes = "\n".join(
        f'<a class="tile" href="schemes/{name}.html">{picture(everything()[name], name)}'
        f"<span>{name}</span></a>"
        for name in SCHEMES
    )
    text = f"""# Gallery

<div class="gallery" markdown="0">
{pictures}
</div>

## Every scheme on the same 24 clients

Bars are m times the importance of clients, the largest first; lines the chance to be chosen;
below, the cohorts of the first rounds.

<div class="gallery" markdown="0">
{schemes}
</div>
"""
    return {"gallery.md": text}
