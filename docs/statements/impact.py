"""Statements of the impact of client sampling that no recipe runs, and changed criteria."""

from __future__ import annotations

from statements import Changed, Statement

CHANGED: tuple[Changed, ...] = (
    Changed(
        "impact-fig4",
        "MD converges: expectation and median of the runs do not both end above where they began",
        "4 reproduced",
        "Both end below where they began",
        "The old criterion also held where one of both diverged.",
    ),
    Changed(
        "impact-fig3",
        "Simulated distances lie among all outcomes, and MD has no spread at all (iid)",
        "2 reproduced",
        "The same criteria, counted as toy",
        "Both are identities: a simulation has no other outcomes, and iid MD moves by one number.",
    ),
)

_COMPARISON = "tests/theory/test_comparison.py::"
_PARTS = "tests/theory/test_decomposition.py::"
_BOUND = "tests/theory/test_convergence.py::"
_SCHEMES = "tests/schemes/test_unbiased_schemes.py::"

STATEMENTS: tuple[Statement, ...] = (
    Statement(
        "Table 1",
        "Var omega_i of MD sampling as printed, -p_i^2/m + p_i/m^2.",
        _COMPARISON + "test_golden_weight_statistics",
        holds=False,
    ),
    Statement(
        "Table 1, (29), Appendix A.3 to A.7",
        "Variances, alpha and numbers of clients of full, MD, uniform, binomial, Poisson binomial "
        "and clustered sampling.",
        "tests/designs/test_golden.py::test_weight_statistics",
    ),
    Statement(
        "Property 1, (9)",
        "Var of the sum of weights is the sum of variances less alpha (1 - sum p^2).",
        "tests/theory/test_moments.py::test_table_1_holds",
    ),
    Statement(
        "Property 1",
        "0 <= alpha for any client sampling.",
        _PARTS + "test_property_1_alpha_may_be_negative",
        holds=False,
    ),
    Statement(
        "Lemma 1",
        "With covariances of -alpha p_i p_j the second moment of the aggregate is 1 - alpha times "
        "that of its mean, plus gamma_i times every squared length.",
        _PARTS + "test_the_forms_agree",
    ),
    Statement(
        "Theorem 1, (7) and (8)",
        "The decomposition holds for one step, or without noise.",
        _PARTS + "test_every_design_against_enumeration",
    ),
    Statement(
        "Theorem 1, (80), (82)",
        "The decomposition holds for several noisy steps.",
        _PARTS + "test_golden_noise_two_steps",
        holds=False,
    ),
    Statement(
        "(155)",
        "The closed form of the quadratic example, with the factor 1 - 2 eta_g eta_l.",
        _PARTS + "test_equation_155_as_printed_is_wrong_for_several_steps",
        holds=False,
    ),
    Statement(
        "Theorem 2, (10) and (11)",
        "The printed terms bound the mean squared gradient, with sound constants.",
        _BOUND + "test_it_is_a_bound",
    ),
    Statement(
        "(120) and (130)",
        "The step size is small enough where Omega <= 1/2.",
        _BOUND + "test_omega_needs_a_quarter_not_a_half",
        holds=False,
    ),
    Statement(
        "Lemma 2, (84)",
        "The aggregate varies no more under clustered sampling than under MD.",
        _PARTS + "test_clustered_never_worse_than_md",
    ),
    Statement(
        "(63)",
        "Every pair of clients has at most the covariance that it has under MD.",
        _PARTS + "test_equation_63_fails_for_pairs_in_different_rows",
        holds=False,
    ),
    Statement(
        "Corollary 2",
        "Clustered sampling has the bound of MD sampling.",
        _BOUND + "test_clustered_by_corollary_2",
    ),
    Statement(
        "(12) and (13)",
        "Sigma and gamma of MD and of uniform sampling.",
        _COMPARISON + "test_golden_weight_statistics",
    ),
    Statement(
        "Corollary 1, (14)",
        "Uniform sampling has both constants below those of MD if and only if "
        "sum p^2 <= 1/(n - m + 1).",
        _COMPARISON + "test_corollary_1_as_an_equivalence",
    ),
    Statement(
        "(144) and (147)",
        "The same inequalities as printed in the proof.",
        _COMPARISON + "test_144_and_147_are_printed_the_wrong_way_round",
        holds=False,
    ),
    Statement(
        "Section 3.3",
        "With equal importances Sigma of uniform sampling is inversely proportional to n and m.",
        _COMPARISON + "test_equal_importances_at_fixed_m_and_at_half_of_n",
        holds=False,
    ),
    Statement(
        "Section 3.3",
        "With equal importances uniform sampling outperforms MD: the aggregate of any updates has "
        "(n - m)/(n - 1) of the variance.",
        _COMPARISON + "test_equal_importances_have_one_ratio_for_any_updates",
    ),
    Statement(
        "Figure 2a",
        "With equal importances and m = n/2 the difference of Sigma is inversely proportional to "
        "n: (m - 1)/(m n).",
        _COMPARISON + "test_equal_importances_at_fixed_m_and_at_half_of_n",
    ),
    Statement(
        "(47)",
        "Poisson binomial sampling needs m >= 1/p_max.",
        _SCHEMES + "test_poisson_says_what_it_needs",
        holds=False,
    ),
    Statement(
        "Appendix A.8",
        "Optimal sampling has the least variance of all Bernoulli designs of one expected size.",
        _SCHEMES + "test_optimal_has_the_least_variance_of_all_bernoulli_designs",
    ),
    Statement(
        "Section 3.2",
        "Theorem 2 covers local regularization: FedProx weighs its steps as the recursion says.",
        _BOUND + "test_proximal_weights_are_those_of_the_recursion",
    ),
    Statement(
        "Section 4.2",
        "Considering eta_g < 1 can speed up learning on heterogeneous data (Shakespeare).",
        minutes=60,
        why="The paper prints no run. Arms `md:m=5+sgd:eta_g=0.5` in `impact-fig2` would show it; "
        "the quadratic example is in `impact-fig4`.",
    ),
    Statement(
        "Appendix E.2",
        "eta_l = 1.5 is the best of {.1, .5, 1, 1.5, 2, 2.5} for n = 80 with full participation.",
        minutes=6000,
        why="Six runs of 600 rounds in which 80 clients take 50 steps of the LSTM.",
    ),
    Statement(
        "Section 3.3",
        "MD sampling takes O(n + m log n), uniform sampling O(m (1 + log(n/m))).",
        minutes=10,
        why="The table of MD is built once where importances stay; orders need a quiet machine.",
    ),
    Statement(
        "Section 3.3",
        "MD sampling is intractable for large cohorts of clients, uniform sampling is not.",
        minutes=2,
        why="Nothing says what is large. Ten million clients take seconds with either (home page).",
    ),
    Statement(
        "Section 3.2",
        "The conclusions of Theorem 2 hold for other solvers and for compression.",
        why="The paper proves and runs neither.",
    ),
    Statement(
        "Section 4.2",
        "CIFAR-10 agrees with Shakespeare in all scenarios, with equal importances, too.",
        minutes=2400,
        why="Figure 10 shows importances by size alone.",
    ),
)
