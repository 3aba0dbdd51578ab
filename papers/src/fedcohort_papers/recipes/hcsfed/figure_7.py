"""Figure 7: what every part of HCSFed adds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from fedcohort_papers.recipes.hcsfed import PAPER
from fedcohort_papers.recipes.hcsfed._arms import (
    NOTES,
    READINGS,
    convex,
    corrected,
    dirichlet,
    stages,
)
from fedcohort_papers.reproduction import (
    Bars,
    Claim,
    Close,
    Curves,
    Every,
    Ratio,
    Recipe,
    Scale,
    difference,
)

ROUNDS_TO = "rounds-to:target=0.8,window=5"
LAST = "accuracy:last=0.1"
M, H = 10, 5
"""Two draws from every cluster on average: with one there would be nothing to re-allocate."""
UNSEEN = 1
"""The first division that was not looked at when settings were chosen."""
CHOSEN = "alpha and the sizes of clients, of three settings tried with one seed (see the notes)"


def _same(label: str) -> str:
    return label


def _claims(named: Callable[[str], str] = _same) -> tuple[Claim, ...]:
    """Of the parts as printed, or as corrected."""
    importance, cluster, both, ours = (
        named(label) for label in ("importance", "cluster", "cluster, importance", "HCSFed")
    )
    reallocated = named("cluster, re-allocated")
    return (
        Claim(
            "HCSFed ends at 91 %",
            "91 % after 200 rounds, Section 5.4",
            Close(LAST, ours, 0.91, 0.02),
        ),
        Claim(
            "clusters make FedAvg 2.6 times as fast, importance 2.1 times",
            "Section 5.4; Table 1 has 3.1 and 2.7",
            Every(
                Ratio(ROUNDS_TO, "random", cluster, 2.6, partly=1.0),
                Ratio(ROUNDS_TO, "random", importance, 2.1, partly=1.0),
            ),
            erratum="text and table differ",
            see="schemes/hcsfed.md#where-we-differ-from-the-paper",
        ),
        Claim(
            "clusters gain more than importance",
            "Section 5.4: more obvious",
            difference(ROUNDS_TO, importance, cluster),
        ),
        Claim(
            "re-allocation makes clusters faster",
            "Figure 7b",
            difference(ROUNDS_TO, cluster, reallocated),
            erratum="(5) allocates by variances, which gains nothing; (8) needs deviations",
            see="schemes/hcsfed.md#where-we-differ-from-the-paper",
        ),
        Claim(
            "importance inside clusters makes them faster",
            "Figure 7b",
            difference(ROUNDS_TO, cluster, both),
        ),
        Claim(
            "all together is fastest, faster than SCAFFOLD, too",
            "Figure 7",
            Every(
                *(difference(ROUNDS_TO, other, ours) for other in (reallocated, both, "SCAFFOLD"))
            ),
        ),
    )


FIGURE_7 = Recipe(
    "hcsfed-fig7",
    "The ablation of HCSFed: clusters, re-allocation, importance",
    PAPER,
    where="Figure 7",
    cells=(convex("MNIST, q = 0.1", "mnist", stages(M, H), dirichlet(100, 300), UNSEEN),),
    scales={
        "quick": Scale(
            seeds=2,
            rounds=15,
            changed="15 rounds instead of 200; 40 clients of 100 samples instead of 100 of 300; "
            "evaluated on 1,000 samples.",
            change={"problem": {"partition": dirichlet(40, 100)}, "options": {"evaluate_on": 1000}},
        ),
        "standard": Scale(
            partitions=5,
            changed="One seed on each of 5 divisions instead of one run; evaluated on 2,000 "
            "samples.",
            change={"options": {"evaluate_on": 2000}},
        ),
        "full": Scale(partitions=10, changed="One seed on each of 10 divisions instead of one."),
    },
    claims=tuple(replace(claim, exploratory=CHOSEN) for claim in (
        Claim(
            "plain FedAvg ends at 81 %",
            "81 % after 200 rounds, Section 5.4",
            Close(LAST, "random", 0.81, 0.02),
        ),
        *_claims(),
        *(replace(claim, statement=f"corrected: {claim.statement}", kind="sound")
          for claim in _claims(corrected)),
    )),
    panels=(
        Curves("accuracy", title="test accuracy"),
        Bars(ROUNDS_TO, xlabel="rounds until 80 % is held"),
    ),
    shows="Accuracy over 200 rounds and rounds to 80 %: FedAvg ends at 81 %, HCSFed at 91 %; "
    "clusters and importance alone are 2.6 and 2.1 times as fast as FedAvg, every further part "
    "adds to it.",
    notes=(
        "The paper says neither alpha nor the number of clusters nor how many samples a client "
        "has. Here alpha = 0.01, the smaller skew that it names for CIFAR-10, 300 samples each, so "
        "that no class runs out and clusters have unequal sizes, and H = 5, the fewest of its "
        "Section 5.3. With H = 10 every cluster gives one of the ten clients, however they are "
        "allocated, and with clusters of equal size H = 5 gives two of each: then 'cluster' and "
        "'cluster, re-allocated' are the same runs, and so are 'cluster, importance' and HCSFed.",
        "Alpha and the sizes were chosen after looking at one seed on the first division, which is "
        "not among those that are judged: with alpha = 0.01 and 600 samples each (30 rounds) the "
        "stages were the same runs; with alpha = 0.1 they differed, but random sampling held 83 % "
        "after 30 rounds, where the paper's needs 96 for 80 %; with these (40 rounds) they differ, "
        "and it was at 73 %. Criteria are those of the print.",
        *NOTES,
    ),
    readings=(
        "'importance' and 'cluster': the parts of HCSFed, equations (4) and (6), here; the "
        "baselines of Table 1, Chen et al. and Fraboni et al., are possible.",
        *READINGS,
    ),
)  # fmt: skip
