"""Statements of clustered sampling that no recipe runs, and criteria that were changed."""

from __future__ import annotations

from statements import Changed, Statement

ARMS = (
    "The arms ran the corrected algorithms under the paper's names. The claims are about the "
    "printed algorithms now, and stand again about the corrected ones, counted as sound."
)
ORACLE = "Target sampling knows the classes of all clients: the arm is named so, and the claims."

CHANGED: tuple[Changed, ...] = (
    *(
        Changed(
            f"clustered-{name}",
            "All claims about Algorithms 1 and 2, with the corrected algorithms as arms",
            verdict,
            "The same criteria with version=printed; 'corrected:' before the statement where the "
            "corrected algorithms are meant",
            ARMS,
        )
        for name, verdict in (
            ("fig1", "2 undecided, 3 reproduced"),
            ("fig2", "not run"),
            ("fig6", "not run"),
            ("fig8", "not run"),
            ("fig10", "undecided"),
            ("similarity", "3 reproduced"),
        )
    ),
    *(
        Changed(
            recipe,
            "Algorithm 2 becomes as good as target sampling, counted as printed",
            "reproduced",
            "The same criterion, counted as oracle",
            ORACLE,
        )
        for recipe in ("clustered-fig1", "clustered-similarity")
    ),
    Changed(
        "clustered-fig1",
        "Algorithm 1 chooses ten different clients, MD fewer: a difference above 0, and no "
        "difference to target sampling",
        "reproduced",
        "The expected numbers, exactly: 10 and 9.5618 (`clustered-fig3`)",
        "It cannot fail: with 100 equal clients the distributions have no client in common.",
    ),
    Changed(
        "clustered-fig1",
        "Every client's weight varies less under Algorithm 1 than under MD: the sums have the "
        "ratio 10/11",
        "reproduced",
        "The variance of every client, for both algorithms as printed and corrected "
        "(`clustered-fig3`)",
        "A ratio of sums says nothing of every client.",
    ),
    Changed(
        "clustered-fig1",
        "With ties by index Algorithm 1 is target sampling (ours)",
        "reproduced",
        "No claim: a test shows that both designs are the same",
        "It is an identity: the runs are the same bit for bit.",
    ),
    Changed(
        "clustered-fig3",
        "Algorithms 1 and 2, corrected, fill m distributions and give every client m times its "
        "share",
        "reproduced",
        "Every client is expected m times its share; both algorithms, as printed and corrected",
        ARMS,
    ),
    Changed(
        "clustered-fig3",
        "Weights vary less under Algorithm 1 than under MD: the sums of variances. At most two "
        "distributions share a small client: with the corrected algorithm as arm",
        "reproduced, both",
        "No weight varies more, for both algorithms as printed and corrected. The sums and the "
        "number of distributions stand for the corrected Algorithm 1, and say so",
        ARMS,
    ),
    Changed(
        "clustered-similarity",
        "Algorithm 2 has a fifth of the spread of MD, or less",
        "reproduced",
        "Algorithm 2 has less spread than MD",
        "The paper prints no factor; 5 was chosen by us.",
    ),
)

_ROWS = "tests/designs/test_rows.py::"
_GOLDEN = "tests/designs/test_golden.py::"
_SIMILAR = "tests/schemes/test_clustered_similarity.py::"
_RATES = "tests/theory/test_rates.py::"
_TREE = "tests/maths/test_tree.py::"
_ANY = _ROWS + "test_any_clustered_sampling_varies_no_more_than_md_and_chooses_as_often"
_EQUAL = _ROWS + "test_one_client_varies_as_under_md_though_the_rows_differ"

STATEMENTS: tuple[Statement, ...] = (
    Statement(
        "Proposition 1, (7) to (10)",
        "Rows that sum to 1 and columns that sum to m p_i make any clustered sampling unbiased.",
        _ANY,
    ),
    Statement("(17)", "No client's weight varies more than under MD sampling.", _ANY),
    Statement(
        "(17), equality",
        "Equality only if all distributions are that of MD sampling.",
        _EQUAL,
        holds=False,
    ),
    Statement(
        "(18) to (23)", "Every client is chosen at least as often as under MD sampling.", _ANY
    ),
    Statement(
        "(23), equality",
        "Equality only if all distributions are that of MD sampling.",
        _EQUAL,
        holds=False,
    ),
    Statement(
        "(13) to (16), (20), (22)",
        "The printed variances and chances of MD and of clustered sampling.",
        _GOLDEN + "test_algorithm_1",
    ),
    Statement(
        "(56)",
        "A client is chosen at most as often as under MD sampling.",
        _GOLDEN + "test_clustered_sampling_chooses_every_client_more_often",
        holds=False,
    ),
    Statement(
        "Lemma 5, (24) to (43)",
        "The second moment of the aggregate under clustered sampling is at most that under MD.",
        _RATES + "test_lemma_5_by_enumeration",
    ),
    Statement(
        "Section 3.1",
        "The bound of MD sampling, with its missing term, bounds any clustered sampling.",
        _RATES + "test_it_is_a_bound",
    ),
    Statement(
        "Theorem 3",
        "Algorithm 1, as printed, has m distributions that satisfy Proposition 1.",
        _GOLDEN + "test_version_printed_is_the_printed_algorithm_1",
        holds=False,
    ),
    Statement(
        "Theorem 3",
        "Algorithm 1, corrected, has m distributions that satisfy Proposition 1.",
        _ROWS + "test_the_line_cut_into_rows_is_algorithm_1",
    ),
    Statement(
        "Section 4",
        "Under Algorithm 1 a client is chosen at most floor(m p_i) + 2 times a round.",
        _ROWS + "test_a_client_is_in_at_most_floor_m_p_plus_2_rows",
    ),
    Statement(
        "Theorem 4",
        "Algorithm 2, as printed, has m distributions that satisfy Proposition 1.",
        "tests/maths/test_fill_rows.py::test_line_12_as_printed",
        holds=False,
    ),
    Statement(
        "Theorem 4",
        "Algorithm 2, corrected, has m distributions that satisfy Proposition 1.",
        "tests/maths/test_fill_rows.py::test_unbiased_for_any_sizes",
    ),
    Statement(
        "Section 5, p_i > 1/m",
        "Clients with m n_i >= M get floor(m n_i / M) distributions alone, the rest goes on.",
        _SIMILAR + "test_no_silent_bias_with_large_clients",
    ),
    Statement(
        "Section 5",
        "Any hierarchical clustering may be used: every linkage is unbiased.",
        _SIMILAR + "test_any_linkage_is_unbiased_and_varies_no_more_than_md",
    ),
    Statement(
        "Section 5",
        "Clients without a gradient yet, at 0, are grouped together (Ward, rows of the matrix).",
        _TREE + "test_zero_clients_merge_first_whatever_the_others",
    ),
    Statement(
        "Section 5",
        "The same for any other linkage.",
        _SIMILAR + "test_golden_zero_convention_of_the_authors_breaks_with_other_linkages",
        holds=False,
    ),
    Statement(
        "Section 5",
        "Other linkages than Ward serve Algorithm 2 as well.",
        minutes=60,
        why="The paper trains with Ward alone. Six more arms in `clustered-fig6` would show it.",
    ),
    Statement(
        "Section 6",
        "The step sizes are the best of {.001, .005, .01, .05, .1} for MD on each data set.",
        minutes=6000,
        why="Five times the runs of MD in Figures 2 and 8 at the printed 100 local steps; shorter "
        "runs prefer other steps.",
    ),
    Statement(
        "Appendix D.5",
        "mu = 0.1 is the best of {.001, .01, .1, 1} for MD with FedProx.",
        minutes=1200,
        why="Four times the runs of MD in Figure 10 at the printed 100 local steps.",
    ),
    Statement(
        "Section 6",
        "Every client is tested on its own test set, a fifth of its training size.",
        why="The recipes test on the common test set; test sets of clients are not written.",
    ),
    Statement(
        "Section 6",
        "The test accuracy on CIFAR-10 is smoother than with MD sampling.",
        minutes=2400,
        why="The claim on the training loss is in `clustered-fig2`; at fewer rounds accuracy only "
        "guesses.",
    ),
    Statement(
        "Section 2.2",
        "FedAvg's sampling is slow, as clients that are not chosen count with the old model.",
        minutes=5,
        why="The paper prints no run of FedAvg; an arm `fedavg:m=10` in `clustered-similarity` "
        "would show it.",
    ),
    Statement(
        "Theorems 3 and 4, Section 5",
        "Algorithm 1 takes O(n log n), Algorithm 2 O(n^2 d + X), and Ward's X is O(n^2 log n).",
        minutes=10,
        why="`benchmarks/similarity.py` measures one size; orders need a quiet machine.",
    ),
    Statement(
        "Abstract, Section 7",
        "Clustered sampling is compatible with privacy and with compression.",
        minutes=30,
        why="The paper shows neither. Algorithm 2 must see single updates, which secure "
        "aggregation hides.",
    ),
)
