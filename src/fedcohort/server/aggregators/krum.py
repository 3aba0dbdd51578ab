"""The weighted mean of the answers that have near neighbours."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from fedcohort._internal.parameters import Maybe, Whole
from fedcohort._internal.types import Floats
from fedcohort.selection._citation import Citation
from fedcohort.server.aggregators._robust import Robust


@dataclass(frozen=True)
class Krum(Robust):
    """The answers whose nearest neighbours are nearest, and their weighted mean.

    The score of an answer is the sum of its squared distances to the k - f - 2 nearest of the
    others; those with the lowest scores are kept. Blanchard, El Mhamdi, Guerraoui, Stainer,
    "Machine Learning with Adversaries" (NeurIPS 2017), Section 4 (Multi-Krum), whose guarantee
    needs k > 2 f + 2 answers; with fewer at least one neighbour is looked at. Weights do not
    enter the scores, so that they buy nothing there.

    Parameters
    ----------
    f
        How many of the answers may be attacks.
    keep
        How many answers are kept: 1 is Krum as first published; None keeps k - f.

    >>> from fedcohort.selection._cohort import Cohort
    >>> updates, cohort = np.array([[0.9], [1.0], [1.1], [1.2], [1e9]]), Cohort.equal(range(5))
    >>> Krum(f=1).direction(None, cohort, cohort.clients, updates)[0].round(3)
    array([1.05])
    """

    f: Annotated[int, Whole(0)] = 1
    keep: Annotated[int | None, Maybe(Whole(1))] = None

    name: ClassVar[str] = "krum"
    paper: ClassVar[Citation | None] = Citation(
        "Peva Blanchard, El Mahdi El~Mhamdi, Rachid Guerraoui, Julien Stainer",
        "Machine Learning with Adversaries: Byzantine Tolerant Gradient Descent",
        "NeurIPS",
        2017,
        "Section 4, Multi-Krum",
    )

    def centre(self, weights: Floats, rows: Floats) -> Floats:
        k = len(rows)
        scaled = rows / max(float(np.abs(rows).max(initial=0.0)), 1e-300)  # squares stay finite
        squares = np.einsum("ij,ij->i", scaled, scaled)
        apart = np.maximum(0.0, squares[:, None] + squares - 2.0 * scaled @ scaled.T)
        np.fill_diagonal(apart, np.inf)
        near = min(max(1, k - self.f - 2), k - 1)
        scores = np.sort(apart, axis=1)[:, :near].sum(axis=1)
        number = max(1, k - self.f) if self.keep is None else min(self.keep, k)
        kept = np.argsort(scores, kind="stable")[:number]
        total = float(weights[kept].sum())
        by = weights[kept] / total if total > 0 else np.full(number, 1.0 / number)
        return np.asarray(by @ rows[kept])
