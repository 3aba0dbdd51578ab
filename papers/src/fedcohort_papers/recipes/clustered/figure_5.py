"""Figure 5: what Dirichlet's alpha does to the labels of clients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fedcohort._internal.random import stream
from fedcohort._internal.types import Floats
from fedcohort.data.partition import PAPER1_SIZES, dirichlet_shares
from fedcohort_papers.recipes.clustered import PAPER
from fedcohort_papers.reproduction import Claim, Computed, Drawn, Own, Recipe, Results, Scale
from fedcohort_papers.reproduction.drawing import colour_of, dash_of

ALPHAS = (0.001, 0.01, 0.1, 10.0)
CLIENTS, CLASSES = 100, 10
ONE, FLAT = 0.95, 0.25
"""The mean share of a client's commonest label: nearly one class; nearly flat (0.1 is flat)."""
SAME, MUCH = 1.25, 2.0
"""The largest class over the smallest: about the same number of samples; much more of one."""


def compute(scale: Scale, seed: int) -> Computed:
    """Label shares of 100 clients for every alpha."""
    columns: dict[str, Any] = {"client": np.arange(CLIENTS)}
    samples: dict[str, Any] = {}
    for alpha in ALPHAS:
        shares = dirichlet_shares(CLIENTS, CLASSES, alpha, stream(seed, "partition"))
        columns |= {f"alpha {alpha:g}, class {k}": shares[:, k] for k in range(CLASSES)}
        samples[_commonest(alpha)] = float(shares.max(axis=1).mean())
        totals = np.array(PAPER1_SIZES) @ shares
        samples |= {_total(alpha, k): float(total) for k, total in enumerate(totals)}
        samples[_uneven(alpha)] = float(totals.max() / max(totals.min(), 1.0))
    return Computed(columns, samples)


def _commonest(alpha: float) -> str:
    return f"commonest label, alpha {alpha:g}"


def _total(alpha: float, k: int) -> str:
    return f"samples of class {k}, alpha {alpha:g}"


def _uneven(alpha: float) -> str:
    return f"largest class over smallest, alpha {alpha:g}"


def _falls(results: Results) -> Any:
    """How much the commonest label loses from one alpha to the next, at least."""
    found = np.array([results.values("computed", _commonest(a)).numbers for a in ALPHAS])
    return (found[:-1] - found[1:]).min(axis=0)


SAMPLES: dict[Callable[[float], str], str] = {
    _commonest: "the mean share of a client's commonest label",
    _uneven: "the samples of the largest class over those of the smallest",
}
"""What samples are, in words."""


def _below(sample: Callable[[float], str], alpha: float, bound: float) -> Own:
    return Own(
        f"{bound:g} minus {SAMPLES[sample]}, alpha = {alpha:g},",
        lambda results: bound - results.values("computed", sample(alpha)).numbers,
        above=0.0,
    )


def _above(sample: Callable[[float], str], alpha: float, bound: float) -> Own:
    return Own(
        f"{SAMPLES[sample]}, alpha = {alpha:g},",
        lambda results: results.values("computed", sample(alpha)),
        above=bound,
    )


def _draw(alpha: float) -> Drawn:
    def draw(axes: Any, results: Results) -> None:
        bottom = np.zeros(CLIENTS)
        for k in range(CLASSES):
            row = results.columns[f"alpha {alpha:g}, class {k}"]
            axes.stairs(bottom + row, np.arange(CLIENTS + 1) - 0.5, baseline=bottom, fill=True,
                        color=str(0.1 + 0.09 * k))  # fmt: skip
            bottom = bottom + row
        axes.set(xlabel="client", ylabel="share of each class", ylim=(0, 1))
        axes.set_title(f"alpha = {alpha:g}")

    return Drawn(draw)


def _totals(axes: Any, results: Results) -> None:
    """Column (b): samples of every class, the largest first, of the first division."""
    first = next(iter(results.computed.values())).samples
    for index, alpha in enumerate(ALPHAS):
        totals: Floats = np.sort([first[_total(alpha, k)] for k in range(CLASSES)])[::-1]
        axes.plot(np.arange(1, CLASSES + 1), totals, label=f"alpha = {alpha:g}",
                  color=colour_of(index), ls=dash_of(index), marker="o")  # fmt: skip
    axes.set(xlabel="classes, the largest first", ylabel="samples of all clients", ylim=(0, None))
    axes.legend()


FIGURE_5 = Recipe(
    "clustered-fig5",
    "What Dirichlet's alpha does to the labels of clients",
    PAPER,
    where="Figure 5",
    compute=compute,
    scales={"quick": Scale(seeds=5), "standard": Scale(seeds=20), "full": Scale(seeds=20)},
    claims=(
        Claim(
            "with alpha = 0.001 a client has nearly one class only",
            "column (a), first row",
            _above(_commonest, 0.001, ONE),
            kind="theory",
        ),
        Claim(
            "with alpha = 10 clients have nearly the same shares of all classes",
            "column (a), last row",
            _below(_commonest, 10.0, FLAT),
            kind="theory",
        ),
        Claim(
            "the smaller alpha, the fewer classes a client has",
            "column (a), from row to row",
            Own("what the commonest label loses from one alpha to the next", _falls, above=0.0),
            kind="theory",
        ),
        Claim(
            "with alpha = 10 all classes have the same number of samples",
            "column (b), last row; Appendix D.1",
            _below(_uneven, 10.0, SAME),
            kind="theory",
        ),
        Claim(
            "with alpha = 0.001 some classes have many more samples than others",
            "column (b), first row; Appendix D.1: much more represented",
            _above(_uneven, 0.001, MUCH),
            kind="theory",
        ),
    ),
    panels=(*(_draw(alpha) for alpha in ALPHAS), Drawn(_totals, "samples of every class")),
    shows="For alpha = 0.001, 0.01, 0.1 and 10 the share of every class of 100 clients, and how "
    "many samples of every class there are in all. With 0.001 a client has one class, with 10 "
    "all of them in similar shares.",
    readings=(
        "'one class': a mean share of the commonest label above 0.95 here; above 0.9, or of every "
        "client, are possible",
        "'the same number': a ratio of the largest to the smallest class below 1.25 here; what "
        "5,000 samples of every class allow is possible",
    ),
    notes=(
        "Samples of every class are the sizes of the clients times their shares, before the data "
        "set, which has 5,000 of each, sets a limit.",
    ),
)
