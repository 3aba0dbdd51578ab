"""Statements of the thesis that no recipe runs, and criteria that were changed."""

from __future__ import annotations

from statements import Changed, Statement

VERSIONS = (
    "Without removing a client that filled another list, and with Algorithm 10 as it stands, the "
    "schemes are other ones than ours. Ours were called by the names of the thesis."
)

CHANGED: tuple[Changed, ...] = (
    Changed(
        "thesis-fig-1-3",
        "Pow-6 is more accurate than Rand and FedAvg, has a lower loss, and gets there sooner, "
        "with 'fedavg:m=3' as FedAvg",
        "undecided, reproduced, undecided",
        "The same criteria with 'fedavg:m=3,weights=equal', judged on twelve federations that were "
        "not looked at before",
        "FedLab averages the chosen models. Weights of n_i/N move 3 % of a step. The lower loss "
        "was not seen on six new federations.",
        by_results=True,
    ),
    Changed(
        "thesis-fig-4-10",
        "OPTICS is slightly more accurate than DBSCAN, and has a slightly lower loss: above 0",
        "undecided, undecided",
        "Beside them: the accuracies are within 0.03. All three for the strategies as printed, and "
        "as sound for the corrected ones",
        f"'Comparable' is a claim of equivalence. {VERSIONS}",
    ),
    Changed(
        "thesis-fig-4-12",
        "In the worst case the loss of BestLoss is 1 % higher: Pow-16 has at least 0.99 times its "
        "loss",
        "not reproduced",
        "The loss of BestLoss over that of Pow-16 is within 0.05 of 1.01",
        "The printed number was the bound, so that the claim could not be decided if it was right.",
    ),
    Changed(
        "thesis-fig-4-12",
        "All claims about Data, AverageLoss, BestLoss, AverageLoss25 and BestLoss25, with the "
        "corrected schemes",
        "all seven not reproduced",
        "The same criteria for the schemes as printed, and as sound for the corrected ones",
        VERSIONS,
    ),
    Changed(
        "thesis-fig-4-16",
        "The mean F1 of three arms is within 0.1 of the printed one, with 30 clients and at HD 0.8",
        "undecided, undecided",
        "With 30 clients BestLoss has the lowest mean F1; at HD 0.8 its mean F1 is within 0.05 of "
        "that of Pow-6",
        "The distances to the printed means were as large as the margin: no number of federations "
        "would have decided. The text compares the arms.",
        by_results=True,
    ),
    Changed(
        "thesis-decay",
        "BestLoss is over 10 % more accurate than Power-of-Choice halfway, with the corrected "
        "scheme (ours)",
        "not reproduced",
        "The same criterion and runs, counted as sound",
        VERSIONS,
    ),
    Changed(
        "thesis-lowest-loss",
        "BestLoss against its opposite in three ways, with the corrected schemes (ours)",
        "reproduced, all 3",
        "The same criteria and runs, counted as sound",
        VERSIONS,
    ),
    Changed(
        "thesis-fig-4-16",
        "At HD 0.8 BestLoss matches Power-of-Choice; with 30 clients it is worse, and chooses 15 "
        "of them, with the corrected schemes",
        "not reproduced, reproduced, not reproduced",
        "The same criteria for the schemes as printed, and as sound for the corrected ones",
        VERSIONS,
    ),
    Changed(
        "thesis-fig-4-22",
        "Times to 30 % differ by two minutes at most, with the corrected schemes",
        "undecided, undecided",
        "The same criteria for the schemes as printed, and as sound for the corrected ones",
        VERSIONS,
    ),
    Changed(
        "thesis-table-4-3",
        "best-loss is ahead of pow-d by 10 % and of average-loss; average-loss has the best mean "
        "F1, with the corrected schemes",
        "not reproduced, not reproduced, undecided",
        "The same criteria for the schemes as printed, and as sound for the corrected ones",
        VERSIONS,
    ),
    Changed(
        "thesis-table-4-2",
        "Messages and bytes of BestLoss and Data, with the corrected schemes",
        "reproduced",
        "The same criteria for the schemes as printed, counted as theory",
        f"{VERSIONS} The counts follow from who is asked, without training.",
    ),
    Changed(
        "thesis-table-4-1",
        "Silhouettes of P(y) are within 0.1 of the printed ones",
        "reproduced",
        "The same criterion, marked as exploratory",
        "That clients alone are left out of the silhouette was chosen because it fits.",
    ),
    Changed(
        "thesis-fig-4-1",
        "About 30 % of the clients are alone",
        "reproduced",
        "The same criterion, marked as exploratory",
        "It depends on the settings with the highest silhouette, and so on the same choice.",
    ),
)

_SKEW = "tests/theory/test_skew.py::"
_GROUPS = "tests/schemes/test_label_clusters.py::"

STATEMENTS: tuple[Statement, ...] = (
    Statement(
        "Algorithm 1",
        "d candidates are drawn one after another with chances p_k; the m highest losses train.",
        "tests/schemes/test_pow_d.py::test_the_law_is_that_of_the_paper",
    ),
    Statement(
        "(1.6)",
        "The gap between global and local optimum is 0 where all optima agree, and above 0 "
        "elsewhere.",
        _SKEW + "test_gap_of_quadratics_is_the_spread_of_their_minima",
    ),
    Statement(
        "Fact 1",
        "Drawn one after another without replacement, every subset of m is equally likely.",
        "tests/maths/test_draws.py::test_distinct_is_uniform_over_all_sets",
    ),
    Statement(
        "Claim 1",
        "The sum of the k smallest of r draws is in expectation at most the sum of k draws.",
        _SKEW + "test_claim_1_the_best_of_more_is_no_worse",
    ),
    Statement(
        "Claim 2",
        "What a cluster gives to k plain draws is in expectation c S / n, whatever their number.",
        _SKEW + "test_claim_2_what_a_cluster_gives_to_a_plain_draw",
    ),
    Statement(
        "Claims 3 and 4",
        "The c smallest of r draws in every cluster sum to at most k plain draws, in expectation.",
        _SKEW + "test_claims_3_and_4_the_best_of_each_cluster",
    ),
    Statement(
        "(1.11)",
        "The selection skew of uniform selection is 1.",
        _SKEW + "test_uniform_selection_has_skew_where_importance_differs",
        holds=False,
    ),
    Statement(
        "Section 1.4",
        "The skew, and with it the bias, grows with the number of candidates.",
        _SKEW + "test_the_skew_grows_with_the_candidates",
    ),
    Statement(
        "Theorem 1",
        "Of the bound one part vanishes with T; the other is 0 for a selection without skew.",
        _SKEW + "test_what_vanishes_and_what_does_not",
    ),
    Statement(
        "Section 3.3, parameter w",
        "Every strategy selects one client from each sampled cluster.",
        _GROUPS + "test_as_printed_the_same_filler_wins_twice",
        holds=False,
    ),
    Statement(
        "Algorithm 10",
        "Best-Loss-X operates like Best-Loss for the first x rounds.",
        _GROUPS + "test_algorithm_10_as_printed_is_data_loss_in_every_round",
        holds=False,
    ),
    Statement(
        "Tables 4.3 to 4.5",
        "F1 of each of the ten classes: 90 numbers.",
        minutes=30,
        why="`thesis-table-4-3` and `thesis-fig-4-16` have them, for other federations than the "
        "thesis; only their means are claimed.",
    ),
    Statement(
        "Section 4.7",
        "At HD 0.8 BestLoss alone learns to recognize pullovers well.",
        minutes=17,
        why="It needs the F1 of one class as a measure.",
    ),
    Statement(
        "Section 1.4",
        "More candidates speed up the first rounds.",
        minutes=8,
        why="No round and no level are printed.",
    ),
    Statement(
        "Figures 4.12 and 4.13, (b) and (c)",
        "The order of the strategies is the same with (d, w) = (8, 4) and (16, 8).",
        minutes=180,
        why="The scale full runs them.",
    ),
    Statement(
        "Figure 4.18",
        "Some of the 15 clients that are ever chosen are chosen two or three times only.",
        minutes=17,
        why="The counts of single clients are in the figure alone.",
    ),
    Statement(
        "Abstract, Chapter 5",
        "The strategies gain where the distance is above 85 % and K is at least 100, and less "
        "elsewhere.",
        minutes=240,
        why="It needs a grid of federations; two others are in `thesis-fig-4-16`.",
    ),
    Statement(
        "Section 2.2.2",
        "HACCS improves the time to accuracy.",
        minutes=40,
        why="The thesis shows no run of HACCS.",
    ),
    Statement(
        "Section 3.3.2, Chapter 5",
        "Best-Loss-X and Average-Loss-X can be improved by other x than 25.",
        minutes=60,
        why="No x is printed. The schemes have it as a setting.",
    ),
    Statement(
        "Chapter 5",
        "The results hold on another data set, such as CIFAR-10.",
        minutes=900,
        why="Left to future research; a CNN that asks 100 clients for a loss in every round.",
    ),
    Statement(
        "Chapter 5",
        "The clusters can be used with other selection schemes than Power-of-Choice.",
        minutes=90,
        why="Left to future research; HACCS and IFCA are there, Oort over clusters is not written.",
    ),
    Statement(
        "Chapter 5",
        "MOON benefits from clusters of clients.",
        why="Left to future research; MOON is not written.",
    ),
)
