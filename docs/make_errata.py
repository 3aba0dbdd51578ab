"""docs/errata.md: the errata of the five papers, from the records below.

Each record has the place, the printed text, the correction, a counterexample and a test. A
record without a test is a slip that the paper itself contradicts; `counterexample` says where.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

PAGE = Path(__file__).parent / "errata.md"

CLUSTERED, FEDSAMPLING, IMPACT, THESIS, HCSFED = PAPERS = (
    "Clustered sampling",
    "FedSampling",
    "Impact of client sampling",
    "Power-of-Choice with clusters",
    "HCSFed",
)
CITATIONS = {
    CLUSTERED: "Fraboni, Vidal, Kameni, Lorenzi: Clustered Sampling: Low-Variance and Improved "
    "Representativity for Clients Selection in Federated Learning (ICML 2021).",
    FEDSAMPLING: "Qi, Wu, Lyu, Huang, Xie: FedSampling: A Better Sampling Strategy for Federated "
    "Learning (IJCAI 2023).",
    IMPACT: "Fraboni, Vidal, Kameni, Lorenzi: A General Theory for Client Sampling in Federated "
    "Learning (FL-IJCAI 2022). Numbers are those of the preprint, On The Impact of Client Sampling "
    "on Federated Learning Convergence.",
    THESIS: "Giunta: Optimal Client Selection in Federated Learning based on the Power-Of-Choice "
    "Strategy (thesis, Sapienza University of Rome, 2024).",
    HCSFED: "Song et al.: Fast Heterogeneous Federated Learning with Hybrid Client Selection "
    "(UAI 2023).",
}


@dataclass(frozen=True)
class Erratum:
    """One error of a paper.

    Parameters
    ----------
    paper, place
        One of `PAPERS`, and the equation, line or section.
    printed, correct
        The printed statement, and the one that holds.
    counterexample
        The smallest case that shows the error, or the place that contradicts it.
    test
        The test that checks it, ``path::function``; empty for a slip of the text.
    """

    paper: str
    place: str
    printed: str
    correct: str
    counterexample: str
    test: str = ""


ERRATA = (
    # Clustered sampling
    Erratum(
        CLUSTERED,
        "Algorithm 1, line 13",
        "r'(a_i, i) ← b_i, also if client i stays in the current distribution",
        "r'(a_i, i) ← b_i − b_(i−1) there; b_i is a cumulative remainder",
        "Sizes 5, 4, 3, 2, 1 and m = 2: the second distribution is 3, 9, 13, 2, which sums to 27; "
        "it must sum to 15.",
        "tests/test_sabotage.py::test_the_printed_algorithm_1_is_caught",
    ),
    Erratum(
        CLUSTERED,
        "Algorithm 1, lines 3 and 8 to 14",
        "k starts at 1, but a_i counts from 0",
        "k starts at 0; the distributions are 0 to m − 1",
        "Sizes 10, 3, 2, 1 and m = 3: the first distribution stays empty.",
        "tests/designs/test_golden.py::test_where_the_printed_algorithm_1_fails",
    ),
    Erratum(
        CLUSTERED,
        "Algorithm 1, lines 10, 11 and 13",
        "b_0 is not defined; line 11 writes r'(k, i); the last client writes to distribution m",
        "b_0 = 0; line 11 writes r'(l, i); nothing is written if a_i = m",
        "Any sizes: the last client has a_n = m and b_n = 0.",
        "tests/designs/test_rows.py::test_the_line_cut_into_rows_is_algorithm_1",
    ),
    Erratum(
        CLUSTERED,
        "Algorithm 1, line 2",
        "the order of clients of equal size is not given",
        "the order must be given; here it is random by default",
        "One class per client, clients stored class by class: in stored order Algorithm 1 is "
        "target sampling, in random order its aggregate varies as under uniform sampling.",
        "tests/schemes/test_unbiased_schemes.py"
        "::test_ties_by_index_are_the_oracle_of_clients_stored_class_by_class",
    ),
    Erratum(
        CLUSTERED,
        "Theorem 3, proof",
        "Algorithm 1 represents client i with probability 1 in a_i distributions",
        "The proof divides each client on its own. Algorithm 1 divides the cumulative sum, which "
        "gives a large client fewer full distributions and a larger variance.",
        "Sizes 31, 29, 20, 20 and m = 4: client 2 gets 76 + 40 of 100, not 100 + 16; "
        "m² Var is 0.4224, not 0.1344.",
        "tests/designs/test_golden.py::test_dedicated_rows_have_the_variance_of_the_proof",
    ),
    Erratum(
        CLUSTERED,
        "Theorem 2, (5) and (11)",
        "the mean squared gradient is of order 1/√(m N T) + m N/T",
        "A term of order √(N/(m T)) must be added.",
        "Two quadratic clients with minima −1 and 1, m = 1, T = N⁵: the left side is at least "
        "0.4 N times the printed sum, for N = 4 to 64.",
        "tests/theory/test_rates.py::test_no_constant_repairs_the_printed_rate",
    ),
    Erratum(
        CLUSTERED,
        "Algorithm 2, line 12",
        "r'(k, i) ← b_i with b_i = q_k + u_i; q_k is never updated",
        "r'(k, i) ← u_i and q_k ← q_k + u_i",
        "Two remaining clients in one distribution: the second entry contains the first.",
        "tests/maths/test_fill_rows.py::test_golden_allocation",
    ),
    Erratum(
        CLUSTERED,
        "Algorithm 2, line 3",
        "the rule that cuts the tree is not given",
        "The maximal subtrees with q ≤ M, as in the authors' code.",
        "Appendix C.2 refers to Section 5, which has no such rule.",
        "tests/maths/test_tree.py::test_cut_equals_the_authors_way",
    ),
    Erratum(
        CLUSTERED,
        "(56)",
        "clustered sampling chooses a client at most as often as MD",
        "at least as often, as in (23); (55) proves it",
        "Sizes 5, 4, 3, 2, 1 and m = 2: client 1 has 2/3 under Algorithm 1 and 5/9 under MD.",
        "tests/designs/test_golden.py::test_clustered_sampling_chooses_every_client_more_often",
    ),
    Erratum(
        CLUSTERED,
        "(17) and (23), equality",
        "equality if and only if every distribution is that of MD sampling",
        "For client i: if and only if r_(k,i) = p_i for every k; other clients may differ.",
        "p = (1/2, 1/4, 1/4), m = 2, distributions (1/2, 1/2, 0) and (1/2, 0, 1/2): client 1 has "
        "the variance and the chance of MD.",
        "tests/designs/test_rows.py::test_one_client_varies_as_under_md_though_the_rows_differ",
    ),
    Erratum(
        CLUSTERED,
        "Section 6 and Figure 1",
        "each client has 100 test images of its digit; the caption has n = 10",
        "80 test images, as in the authors' code; n = 100, as in the text",
        "The test set of MNIST has 892 images of the digit 5; ten clients need 1,000.",
    ),
    Erratum(
        CLUSTERED,
        "Section 6",
        "Theorem 4 shows that the bound is that of MD sampling",
        "Theorem 2 shows it",
        "Theorem 4 is about Algorithm 2.",
    ),
    # FedSampling
    Erratum(
        FEDSAMPLING,
        "(6) and (7)",
        "Ñ is an unbiased estimate of N",
        "It is unbiased for the sum of the clipped sizes. Then (15) fails, too.",
        "A tenth of the clients has 20 samples, the others 2, M = 6: per ten clients N = 38 and "
        "E Ñ = 23.",
        "tests/theory/test_rate_error.py::test_corollary_3_1_fails_where_sizes_are_clipped",
    ),
    Erratum(
        FEDSAMPLING,
        "Section 3.3, n_c = min(|D_c|, M − 1)",
        "every client has local differential privacy",
        "An empty client can answer 0, and no other client can: epsilon is infinite. Sizes must "
        "be clipped to 1 to M − 1.",
        "|D_c| = 0: the answer 0 has probability alpha, and 0 for any other size.",
        "tests/schemes/test_fedsampling.py::test_as_printed_an_empty_client_gives_itself_away",
    ),
    Erratum(
        FEDSAMPLING,
        "(2) and Section 4.1, M = 300 and epsilon = 3",
        "the rate is K/Ñ",
        "Ñ may be 0 or negative, and K/Ñ above 1: the rate needs a floor and a cap.",
        "57,033 clients of mean size 2.28, as the authors' generator makes them: the standard "
        "error of Ñ is 2.78 N.",
        "papers/tests/recipes/test_fedsampling.py::test_the_printed_setting_is_not_usable",
    ),
    Erratum(
        FEDSAMPLING,
        "Lemma 3.1, (9) to (11)",
        "a Taylor series at N gives the squared error of 1/Ñ",
        "The series converges only for |Ñ − N| < N. The expectation need not exist.",
        "Five clients, alpha = 1/5, M = 3: Ñ = 0 has a positive probability.",
        "tests/theory/test_rate_error.py::test_without_a_floor_the_expectation_does_not_exist",
    ),
    Erratum(
        FEDSAMPLING,
        "(12)",
        "the inequality of von Bahr and Esseen, for every order l ≥ 2",
        "It holds for orders 1 to 2.",
        "Two clients, alpha = 1/2, M = 6, order 4: the left side is larger.",
        "tests/theory/test_rate_error.py::test_inequality_12_fails_for_the_fourth_moment",
    ),
    Erratum(
        FEDSAMPLING,
        "Section 3.2",
        "the expected number of samples N E[K/Ñ] converges to K",
        "It is above K (Jensen), and tends to K only if no size is clipped.",
        "400 clients of mean size 2, alpha = 1/2, M = 6, K = 100: more than 100 samples.",
        "tests/theory/test_rate_error.py::test_more_samples_than_wanted_take_part",
    ),
    Erratum(
        FEDSAMPLING,
        "Algorithm 1, line 18",
        "Θ ← Θ + η Σ G, with G the mean of gradients",
        "Θ ← Θ − η Σ G",
        "With all samples it must be a step of gradient descent.",
        "tests/schemes/test_fedsampling.py"
        "::test_with_all_samples_it_is_gradient_descent_on_all_data",
    ),
    Erratum(
        FEDSAMPLING,
        "Section 3.5",
        "epsilon holds for the whole training",
        "A client that answers in T rounds spends T epsilon, unless its answers cannot be linked. "
        "One remembered answer spends epsilon once.",
        "epsilon = 3 and 12 rounds: 36.",
        "tests/schemes/test_fedsampling.py::test_every_round_asks_every_round_and_the_ledger_adds_up",
    ),
    Erratum(
        FEDSAMPLING,
        "Sections 4.1 and 4.5",
        "M = 300 in Section 4.1, M = 100 in Section 4.5",
        "not known; the authors' code sets alpha = 0.5 by hand with M = 100",
        "The two sections contradict each other.",
        "tests/privacy/test_response.py::test_epsilon_of_the_authors_alpha",
    ),
    Erratum(
        FEDSAMPLING,
        "Sections 4.1 and 4.4",
        "non-IID clients have 300 samples (MIND) and 6,000 (EMNIST); in Section 4.4 all have 300",
        "not known; the authors' code has clients of 600 images and M = 700",
        "Clients of 6,000 and M = 300: every size is clipped to 299, so that Ñ is 5 % of N.",
    ),
    # Impact of client sampling
    Erratum(
        IMPACT,
        "Table 1, MD",
        "Var ω_i = −p_i²/m + p_i/m²",
        "Var ω_i = −p_i²/m + p_i/m, as in (29)",
        "p_i = 1/2 and m = 2: printed 0, correct 1/8.",
        "tests/theory/test_comparison.py::test_golden_weight_statistics",
    ),
    Erratum(
        IMPACT,
        "Property 1",
        "0 ≤ alpha ≤ 1 for any client sampling",
        "alpha ≤ 1; alpha ≥ 0 is an assumption",
        "All clients with probability 1/2 and weight 2 p_i, otherwise no client: alpha = −1.",
        "tests/theory/test_decomposition.py::test_property_1_alpha_may_be_negative",
    ),
    Erratum(
        IMPACT,
        "Section 3.3",
        "with p_i = 1/n, Σ of uniform sampling is inversely proportional to n and m",
        "Σ = 1/m − 1/n, which grows with n at fixed m. Figure 2a is right: there m = n/2, and "
        "Σ of MD minus Σ of uniform sampling is (m − 1)/(m n).",
        "m = 2: Σ = 1/4 for n = 4 and 3/8 for n = 8.",
        "tests/theory/test_comparison.py::test_equal_importances_at_fixed_m_and_at_half_of_n",
    ),
    Erratum(
        IMPACT,
        "(47)",
        "only m ≥ 1/p_max can be sampled",
        "only m ≤ 1/p_max",
        "Sizes 8, 1, 1 and m = 2: client 1 would have the probability 1.6.",
        "tests/schemes/test_unbiased_schemes.py::test_poisson_says_what_it_needs",
    ),
    Erratum(
        IMPACT,
        "(63)",
        "the covariance of two clients is at most that under MD sampling, for every pair",
        "It is larger for clients of different distributions. Lemma 2 itself, a statement about "
        "sums, holds.",
        "Four equal clients, m = 2: 0 for clients of different distributions, −1/32 under MD.",
        "tests/theory/test_decomposition.py::test_equation_63_fails_for_pairs_in_different_rows",
    ),
    Erratum(
        IMPACT,
        "Lemma 2, (84)",
        "for a covariance of −alpha p_i p_j, that of MD sampling; equality if and only if Σ_i "
        "r_(k,i) x_i = Σ_j r_(k,j) x_j",
        "Clustered sampling has no such covariance, and the proof does not need it. The condition "
        "always holds; equality needs Σ_i r_(k,i) x_i = Σ_i r_(l,i) x_i for all k and l. The "
        "inequality itself holds.",
        "Four equal clients, m = 2: pairs have covariances 0 and −1/16, under MD −1/32.",
        "tests/theory/test_decomposition.py::test_equation_63_fails_for_pairs_in_different_rows",
    ),
    Erratum(
        IMPACT,
        "(80), (82), (93), (111); Theorem 1 for several noisy steps",
        "the noise of step k and the gradient of step l have mean product 0",
        "This is false for l > k: the later model contains the earlier noise. Theorem 1 is exact "
        "for one step, or without noise.",
        "One dimension, two steps, step size 0.1, unit noise, start at distance 1: 5.42, "
        "printed 5.62.",
        "tests/theory/test_decomposition.py::test_golden_noise_two_steps",
    ),
    Erratum(
        IMPACT,
        "(120) and (130)",
        "−1/2 + 1/4 + Ω = −(1 − Ω)/4",
        "= −(1 − 4 Ω)/4; the condition is 4 Ω ≤ 1/2",
        "Ten equal clients, MD with m = 1, step size 0.2: Ω = 0.3 passes the printed condition.",
        "tests/theory/test_convergence.py::test_omega_needs_a_quarter_not_a_half",
    ),
    Erratum(
        IMPACT,
        "(144) and (147)",
        "Σ of MD ≤ Σ of uniform sampling if Σ p² ≤ 1/(n − m + 1), and the same for γ",
        "The other direction. Corollary 1 is right.",
        "p = (5, 4, 3, 2, 1)/15 and m = 2: Σ p² = 11/45 ≤ 1/4, and 17/45 for MD, 11/30 for "
        "uniform sampling.",
        "tests/theory/test_comparison.py::test_144_and_147_are_printed_the_wrong_way_round",
    ),
    Erratum(
        IMPACT,
        "(155)",
        "the factor 1 − 2 η_g η_l",
        "1 − 2 η_g φ with φ = 1 − (1 − η_l)^K; they are equal for K = 1",
        "The example of the test, under MD: 1.272, printed 2.026.",
        "tests/theory/test_decomposition.py::test_equation_155_as_printed_is_wrong_for_several_steps",
    ),
    Erratum(
        IMPACT,
        "Section 4.1, diverging uniform sampling",
        "n = 10, m = 5, r = 0.9 diverges",
        "n = 100, as in the caption of Figure 4",
        "The factor per round is 0.672 for n = 10 and 1.254 for n = 100.",
        "papers/tests/recipes/test_impact.py::test_factors_of_the_text_and_of_the_caption",
    ),
    Erratum(
        IMPACT,
        "Section 2, MD sampling; (43) and (58)",
        "support {1, ..., m}; p_j p_k; a sum to K",
        "support {1, ..., n}; p_i p_j; a sum to m",
        "The clients are numbered to n, and m are drawn.",
    ),
    Erratum(
        IMPACT,
        "(91) and (139)",
        "w_i = Σ p_j a_j / Σ p_j a_j; the constants E and F",
        "w_i = p_i a_i / Σ p_j a_j; D and E, as in the theorem of Appendix C.3",
        "The printed fraction is 1 for every client.",
    ),
    Erratum(
        IMPACT,
        "Theorem 1, discussion",
        "an update that improves the model is collinear with the direction of the optimum",
        "Its inner product with that direction is positive.",
        "Optimum 0, model (1, 0), step (−1, −1)/2: it ends at (1, −1)/2, which is nearer.",
    ),
    # Thesis
    Erratum(
        THESIS,
        "Algorithm 10, lines 3 to 15",
        "Best-Loss-X selects clusters by size in its first x rounds, as after them",
        "It selects by loss in the first x rounds, as the text and Table 4.2 say.",
        "Both branches of the printed algorithm are the same.",
        "tests/schemes/test_label_clusters.py"
        "::test_algorithm_10_as_printed_is_data_loss_in_every_round",
    ),
    Erratum(
        THESIS,
        "Section 3.3, parameter w",
        "every strategy selects one client from each sampled cluster",
        "Static strategies select the largest candidates of all clusters together.",
        "Clusters of sizes (1, 2) and (8, 9), w = 2: both clients are from the second cluster.",
        "tests/schemes/test_label_clusters.py::test_static_takes_the_largest_over_all_candidates",
    ),
    Erratum(
        THESIS,
        "Algorithms 6 to 10, fill rule",
        "free places of a small cluster go to clients outside the chosen clusters",
        "A client that was selected before must be left out, or it is selected twice.",
        "Two chosen clusters of one client each, w = 2, d = 4: the same outside client has the "
        "highest loss of both lists.",
        "tests/schemes/test_label_clusters.py::test_as_printed_the_same_filler_wins_twice",
    ),
    Erratum(
        THESIS,
        "Section 4.1, Hellinger distance of 90 %",
        "the average distance of two clients",
        "The root of the mean square, as FedArtML computes it; it is never below the mean.",
        "K = 100, alpha = 0.05: 0.898, where the mean is 0.877.",
        "tests/data/test_heterogeneity.py::test_fashion_mnist_is_as_heterogeneous_as_in_the_thesis",
    ),
    Erratum(
        THESIS,
        "Table 4.1",
        "silhouettes; how noise counts is not given",
        "The printed values are near those without noise. This reading was chosen by its fit.",
        "With noise as a cluster of its own the silhouette is another one.",
        "tests/maths/test_silhouette.py::test_noise_as_a_cluster_would_score_differently",
    ),
    Erratum(
        THESIS,
        "Table 4.2 and Figure 4.21",
        "communication in kilobytes",
        "Sizes of Python lists and dictionaries (`sys.getsizeof`), not of messages; model weights "
        "are missing.",
        "All nine numbers follow from 88 bytes per reporting client and the containers.",
        "tests/schemes/test_label_clusters.py::test_thesis_table_4_2_to_the_digit",
    ),
    Erratum(
        THESIS,
        "(1.11)",
        "the selection skew of uniform selection is 1",
        "It is 1 for selection by importance; for uniform selection only if all p_k are equal.",
        "Two of five clients uniformly, unequal sizes: the skew is not 1.",
        "tests/theory/test_skew.py::test_uniform_selection_has_skew_where_importance_differs",
    ),
    Erratum(
        THESIS,
        "Section 3.4.2, process P1",
        "sample k elements from Q_i, for every i",
        "Sample k elements from X. The number Z_i from Q_i is then random, as the proof says. "
        "For unequal sizes E Z_i = k n_i / Σ n, not k/m.",
        "Sets {1, 2, 3} and {10}, k = 2: E S(Q_2) = 5, not 10.",
        "tests/theory/test_skew.py::test_for_unequal_clusters_claim_2_needs_their_sizes",
    ),
    Erratum(
        THESIS,
        "Algorithm 11",
        "Q ← X, S ← ∅, m + 1 passes, v drawn from U",
        "U ← X, Q ← ∅, m passes",
        "U is not defined, and Q would contain X.",
    ),
    Erratum(
        THESIS,
        "Section 3.3.1",
        "the server has d = z w candidates",
        "z w ≥ d, as z = ⌈d/w⌉; equal only if w divides d",
        "d = 10 and w = 4: z = 3, and 12 candidates.",
    ),
    Erratum(
        THESIS,
        "Algorithm 5",
        "the Hellinger distance of two histograms of counts",
        "of two histograms of shares, which sum to 1",
        "Counts 1 and 4 of the same class: 1/√2; the distributions are equal, and the distance is "
        "0.",
        "tests/maths/test_hellinger.py::test_counts_and_frequencies_are_the_same",
    ),
    # HCSFed
    Erratum(
        HCSFED,
        "(5), S_h",
        "S_h = Σ ‖X_i − X_j‖² / (N_h − 1), summed over j; i is free",
        "The sum over all pairs is 2 N_h s², the mean over pairs 2 s², with s² the variance.",
        "Points (0, 0), (2, 0), (0, 4), (2, 4): 160/3, 40/3 and s² = 20/3.",
        "tests/maths/test_allocation.py::test_golden_dispersion",
    ),
    Erratum(
        HCSFED,
        "(5) and (8)",
        "m_h ∝ N_h S_h with S_h a variance reduces the variance by (8)",
        "S_h must be a standard deviation (Neyman). With a variance, the result has exactly the "
        "variance of proportional allocation.",
        "N = (10, 30, 60), s = (5, 1, 1/2), m = 20: 59/400 both ways, Neyman 121/2000.",
        "tests/maths/test_allocation.py::test_variance_in_place_of_deviation_gains_nothing",
    ),
    Erratum(
        HCSFED,
        "(7)",
        "clusters always reduce the variance",
        "A term is missing, and the difference can be negative.",
        "Updates 0, 2 | 0, 2 and m = 2: two clusters are worse than none.",
        "tests/theory/test_strata.py::test_equation_7_needs_its_second_sum",
    ),
    Erratum(
        HCSFED,
        "Theorem 1",
        "hybrid ≤ re-allocated ≤ cluster ≤ random, for negligible m_h/N_h and 1/m_h",
        "In the paper's own runs m_h = 1. Without replacement, hybrid ≤ re-allocated fails for "
        "many populations; with replacement it holds.",
        "300 random populations, N = 10, H = 2, m = 4.",
        "tests/theory/test_strata.py::test_theorem_1_holds_in_its_middle_and_fails_at_its_end",
    ),
    Erratum(
        HCSFED,
        "Algorithm 2, line 15, and Lemma 4",
        "weights (N/m) ω_k are unbiased",
        "Only if every client is drawn m/N times on average. ω_k/(m_h p_k) is unbiased.",
        "Two clients of norms 4 and 1, two draws: expected weights 4/5 and 1/5, not 1/2 each.",
        "tests/theory/test_strongly_convex.py::test_lemma_4_by_enumeration",
    ),
    Erratum(
        HCSFED,
        "Remark 3, Lemma 5",
        "HCSFed satisfies Lemma 5, a variance of at most 1/m, because of Theorem 1",
        "It does not.",
        "Clusters of 8 and 1 clients, m = 2, unit updates that cancel out in the first: "
        "64/81 > 1/2.",
        "tests/theory/test_strongly_convex.py::test_lemma_5_as_printed_fails_for_strata",
    ),
    Erratum(
        HCSFED,
        "Theorem 2, (10)",
        "the bound subtracts O(ρ²/m) and O(χ²/m)",
        "These terms do not vanish with T, and the others do: the bound becomes negative.",
        "The corrected bound tends to 0 with T.",
        "tests/theory/test_strongly_convex.py::test_nothing_that_stays_can_be_subtracted",
    ),
    Erratum(
        HCSFED,
        "(5), m_h",
        "m_h is not a whole number",
        "m_h must be whole, at least 1 and at most N_h, and sum to m.",
        "m_h below 1/2 drops a cluster, and its clients are never drawn.",
        "tests/maths/test_allocation.py::test_every_allocation_keeps_its_bounds",
    ),
    Erratum(
        HCSFED,
        "Section 5.4 and Table 1",
        "clusters are 2.6 and importance 2.1 times as fast as FedAvg",
        "Table 1 has 96/31 = 3.1 and 96/35 = 2.7.",
        "The section and the table contradict each other.",
        "papers/tests/recipes/test_hcsfed.py::test_printed_rounds_are_those_of_the_table",
    ),
    Erratum(
        HCSFED,
        "(1)",
        "F := Σ ω_k F_k := (1/n_k) Σ f",
        "The second part defines F_k.",
        "Without F_k, the sum over k has no meaning.",
    ),
    Erratum(
        HCSFED,
        "Algorithm 1, lines 2, 10 and 12",
        "C_i = ∅ once; μ_i ← μ'_i, then until μ'_i = μ_i",
        "C_i = ∅ in every pass; μ'_i must be compared with the centre before it. An empty cluster "
        "needs a rule.",
        "Line 12 holds after the first pass, whatever the clients.",
    ),
    Erratum(
        HCSFED,
        "Algorithm 2, line 15, models",
        "the new model is Σ (N/m) ω_k w_k over the chosen clients",
        "The old model plus the weighted sum of the updates.",
        "Shares 4/10, 3/10, 2/10 and 1/10, m = 2, and the last two are chosen: the weights are "
        "4/10 and 2/10, so that a model which nobody changes shrinks to 6/10.",
        "tests/schemes/test_hcsfed.py::test_line_15_shrinks_a_model_that_nobody_changes",
    ),
    Erratum(
        HCSFED,
        "Algorithm 2, lines 6 and 22 to 25",
        "clusters of round t are made of X_t, which clients return at the end of round t",
        "Either all clients compute an update before the choice, or the choice is by X_(t−1).",
        "In the first round there is no X_t when line 6 needs it.",
    ),
    Erratum(
        HCSFED,
        "Section 5.3",
        "the compression rate with the highest within-group sum of squares",
        "A rule with an elbow, or the lowest rate that is good enough; it is not given.",
        "The sum is the highest for a single group and 0 for as many groups as components.",
    ),
)

HEAD = """# Errata of the five papers

Each erratum has a counterexample, and most have a test. Formulas use the papers' symbols.
An erratum of a formula does not say that the paper's experiments are wrong:
[reproduction](reproduction.md) judges those. [Theory](theory.md) derives the corrected formulas.

This page is made by `make errata` from the records in `docs/make_errata.py`. Please report an
error of this page as an issue: name the paper, the place, and the case that contradicts it.
"""


def made() -> str:
    """Return the text of the page."""
    return "\n".join([HEAD, *_lines()])


def _lines() -> Iterator[str]:
    yield "| paper | errata | with a test |"
    yield "| --- | --- | --- |"
    for paper in PAPERS:
        tested = [bool(each.test) for each in ERRATA if each.paper == paper]
        yield f"| {paper} | {len(tested)} | {sum(tested)} |"
    yield ""
    for paper in PAPERS:
        yield f"## {paper}\n\n{CITATIONS[paper]}\n"
        yield "| place | printed | correct | counterexample | test |"
        yield "| --- | --- | --- | --- | --- |"
        for each in ERRATA:
            if each.paper == paper:
                cells = (each.place, each.printed, each.correct, each.counterexample, _link(each))
                yield "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
        yield ""


def _link(erratum: Erratum) -> str:
    path, _, name = erratum.test.partition("::")
    return f"[`{name}`](../{path})" if name else "slip of the text"


if __name__ == "__main__":
    PAGE.write_text(made(), encoding="utf-8")
    print(f"Written: {PAGE}")
