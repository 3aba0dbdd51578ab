"""What the explorer has of the library: words and headings, and golden vectors for its test."""

from __future__ import annotations

import json
from typing import Any

from fedcohort.advice import SchemeFacts, advise
from fedcohort.advice._assessment import declared
from fedcohort.advice._recommendation import about_m, learns, secure
from fedcohort.cli import tables as headings
from fedcohort.schemes import SCHEMES, scheme

NAMES = (
    "full", "uniform", "md", "clustered-size", "pivotal", "systematic", "poisson", "binomial",
    "fedavg",
)  # fmt: skip
"""The schemes that need nothing but sizes, and whose law is known."""


def files() -> dict[str, str]:
    """A script with the library's own words; made when the site is built."""
    made = {"WORDS": words_of(), "HEADINGS": headings_of()}
    lines = (
        f"window.Explorer.{name} = {json.dumps(value, ensure_ascii=False, indent=1)};\n"
        for name, value in made.items()
    )
    return {"assets/explorer/words.js": "".join(lines)}


def headings_of() -> dict[str, tuple[str, ...]]:
    """Names of columns, as the command line knows them."""
    return {
        "size": headings.SIZE_NAMES,
        "id": headings.ID_NAMES,
        "idWords": headings.ID_WORDS,
        "noAnswers": headings.NO_ANSWERS,
    }


def words_of() -> dict[str, dict[str, str]]:
    """What each scheme does, what the server learns, and whether updates can be hidden."""
    out = {}
    for name in NAMES:
        row = SchemeFacts(name, name, "exact", **declared(scheme(name), rounds=100))
        does = str(SCHEMES[name].__doc__).partition("\n")[0].replace("`", "")
        out[name] = {"does": does, "learns": learns(row), "secure": secure(row)}
    return out


def golden(
    sizes: list[int], m: int, rounds: int, heterogeneity: float, noise: float | None = None
) -> dict[str, Any]:
    """What the library says of one federation, as the explorer should."""
    model = 1_000_000
    advice = advise(
        sizes, m, rounds, heterogeneity=heterogeneity, model_bytes=model, only=NAMES, noise=noise
    )
    given = {"m": m, "rounds": rounds, "heterogeneity": heterogeneity, "modelBytes": model}
    return {
        "sizes": sizes,
        "given": given,
        "noise": noise,
        "best": advice.recommended,
        "plain": advice.plain,
        "aboutM": about_m(advice),
        "rows": {row.name: _row(row, sizes, m) for row in advice.rows},
    }


def _row(row: SchemeFacts, sizes: list[int], m: int) -> dict[str, Any] | None:
    """Sums of the law, and its chances and weights from the largest client to the smallest."""
    if row.status != "exact":
        return None
    from fedcohort import Federation, Selector

    built = scheme(row.name) if row.name == "full" else scheme(row.name, m=m)
    design = Selector(built, Federation.from_sizes(sizes), seed=0).design()
    order = sorted((i for i, size in enumerate(sizes) if size), key=lambda i: -sizes[i])
    return {
        "bias": row.bias,
        "sigma": row.sigma,
        "sumVariance": row.weight_sum_variance,
        "distinct": row.expected_distinct,
        "neverMean": row.never_mean,
        "neverWorst": row.never_worst,
        "bytesTotal": row.bytes_total,
        "score": row.score,
        "epsilon": row.epsilon,
        "chance": sorted(design.inclusion()[order].tolist(), reverse=True),
        "weight": design.value[order].tolist(),
        "variance": sorted(design.variance()[order].tolist()),
    }
