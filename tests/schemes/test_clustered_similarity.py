from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedcohort import Federation, Selector, scheme
from fedcohort._internal.errors import BadInput, BadParameter, TooLarge
from fedcohort._internal.random import stream
from fedcohort.maths._distances import pairwise
from fedcohort.maths._groups import exact_masses, split_large
from fedcohort.maths._tree import cut, rows_apart_of
from fedcohort.schemes import clustered as clustered_similarity
from fedcohort.schemes.clustered import ClusteredSimilarity, Similar
from fedcohort.selection import Claim, Cohort, Replies, RoundContext
from fedcohort.theory import enumerated_moments

ANGLES = [0, 5, 90, 95, 180, 178, None, None]  # golden "alg2_pipeline_float"; None: never seen


def after(chooser: ClusteredSimilarity, federation: Federation, updates, seed=0) -> Similar:
    """The state when all clients with an update have been seen, one after the other."""
    state = chooser.start(federation, stream(seed, "start"))
    for i, update in enumerate(updates):
        if update is not None:
            row = np.asarray(update, dtype=float)[None]
            cohort = Cohort.of([i], 1.0)
            state = chooser.observe(
                state, federation, cohort, Replies(cohort.clients, {"update": row})
            )
    return state


def directions(angles):
    return [None if a is None else (np.cos(np.radians(a)), np.sin(np.radians(a))) for a in angles]


def groups_of(state: Similar) -> list[list[int]]:
    return [np.flatnonzero(state.groups == g).tolist() for g in range(state.groups.max() + 1)]


@pytest.mark.parametrize(
    ("m", "linkage", "zero", "groups"),
    [
        (4, "ward", "auto", [[0, 1], [2, 3], [4, 5], [6, 7]]),
        (2, "ward", "auto", [[0, 1], [2, 3, 6, 7], [4, 5]]),
        (4, "average", "apart", [[0, 1], [2, 3], [4, 5], [6, 7]]),
        (4, "average", "auto", [[0, 1], [2, 3], [4, 5], [6, 7]]),
    ],
)
@pytest.mark.parametrize("seed", range(3))
def test_golden_pipeline_from_updates_to_groups(m, linkage, zero, groups, seed):
    chooser = ClusteredSimilarity(m=m, linkage=linkage, zero=zero)
    state = after(chooser, Federation.from_sizes([1] * 8), directions(ANGLES), seed)
    assert sorted(groups_of(state)) == groups


def test_golden_zero_convention_of_the_authors_breaks_with_other_linkages():
    chooser = ClusteredSimilarity(m=4, linkage="average", zero="alike")
    state = after(chooser, Federation.from_sizes([1] * 8), directions(ANGLES))
    assert any(len(set(group) & {6, 7}) == 1 for group in groups_of(state))


@pytest.mark.parametrize("similarity", ["arccos", "l2", "l1"])
@pytest.mark.parametrize("zero", ["alike", "apart"])
def test_refreshed_matrices_are_those_computed_from_nothing(similarity, zero):
    n, d = 17, 6
    federation, rng = Federation.from_sizes(np.arange(1, n + 1)), np.random.default_rng(0)
    chooser = ClusteredSimilarity(m=3, similarity=similarity, zero=zero)
    selector, latest = Selector(chooser, federation, seed=3), np.zeros((n, d))
    for _ in range(25):
        chosen = selector.select().clients
        updates = rng.standard_normal((len(chosen), d)).astype(np.float32)
        latest[chosen] = updates
        selector.observe(Replies(chosen, {"update": updates}))
        state = selector.start()
        slow = pairwise(latest, similarity, zero)[np.ix_(state.line, state.line)]
        np.testing.assert_allclose(state.distances, slow, atol=2e-6)
        np.testing.assert_allclose(state.rows_apart, rows_apart_of(slow), atol=2e-3)


SIZES = st.lists(st.integers(0, 40), min_size=1, max_size=7).filter(any)


@pytest.mark.filterwarnings("ignore:.*have no data:fedcohort._internal.errors.FedcohortWarning")
@given(SIZES, st.integers(1, 5), st.integers(0, 3), st.booleans())
def test_no_silent_bias_with_large_clients(sizes, m, rounds, huge):
    """The reference code loses m p_i > 1; here every column sums to m n_i, exactly."""
    if huge:
        sizes = [size * 10**18 for size in sizes]
    n = len(sizes)
    federation = Federation(sizes=sizes)
    chooser = ClusteredSimilarity(m=m)
    updates = [None] * n
    for i in range(min(n, 2 * rounds)):
        updates[i] = np.random.default_rng(i).standard_normal(3)
    state = after(chooser, federation, updates)
    design = chooser.design(state, federation, RoundContext())
    row, client, mass = design.entries
    columns, lines = [0] * n, [0] * m
    for k, i, part in zip(row.tolist(), client.tolist(), mass.tolist(), strict=True):
        assert part > 0
        columns[i] += int(part)
        lines[k] += int(part)
    assert columns == [m * size for size in sizes]
    assert lines == [sum(sizes)] * m


@pytest.mark.parametrize("linkage", clustered_similarity.LINKAGES)
def test_any_linkage_is_unbiased_and_varies_no_more_than_md(linkage):
    federation = Federation.from_sizes([9, 1, 4, 2, 2, 5, 1, 3])
    updates = list(np.random.default_rng(1).standard_normal((8, 3)))
    chooser = ClusteredSimilarity(m=3, linkage=linkage)
    law = chooser.design(after(chooser, federation, updates), federation, RoundContext())
    p = federation.importance
    assert law.mean() == pytest.approx(p)
    assert np.all(law.variance() <= p * (1 - p) / 3 + 1e-12)


def test_the_property_test_sees_the_bias_of_the_reference_code():
    """The planted defect: each row renormalised to 1, the excess of a large client lost."""
    sizes, m = [10, 3, 2, 1], 3
    rows = [[min(m * 10, 16), 0, 0, 0], [0, 9, 6, 0], [0, 0, 0, 3]]
    kept = [[Fraction(part, sum(line)) for part in line] for line in rows]
    columns = [sum(line[i] for line in kept) / m for i in range(4)]
    assert columns != [Fraction(size, 16) for size in sizes]


@pytest.mark.parametrize("sizes", [[10, 3, 2, 1], [40, 40, 10, 10], [50, 20, 20, 10], [7]])
def test_exact_moments_by_enumeration_with_large_clients(sizes):
    federation = Federation.from_sizes(sizes)
    chooser = ClusteredSimilarity(m=3)
    updates = [np.random.default_rng(i).standard_normal(3) for i in range(len(sizes))]
    design = chooser.design(after(chooser, federation, updates), federation, RoundContext())
    found = enumerated_moments(design.enumerate(), len(sizes))
    total = sum(sizes)
    assert found.mean.tolist() == [Fraction(size, total) for size in sizes]
    assert found.weight_sum_variance == 0
    md = [Fraction(s, total) * (1 - Fraction(s, total)) / 3 for s in sizes]
    assert all(mine <= theirs for mine, theirs in zip(found.variance, md, strict=True))


def test_golden_second_moment_of_the_aggregate():
    """Sizes 5, 4, 3, 2, 1 before anybody was seen: Algorithm 1, whose variance is known."""
    federation = Federation.from_sizes([5, 4, 3, 2, 1])
    x = np.array([3.0, -1.0, 2.0, 0.0, 5.0])
    for m, variance in ((2, Fraction(797, 450)), (3, Fraction(8, 15))):
        chooser = ClusteredSimilarity(m=m)
        design = chooser.design(
            chooser.start(federation, stream(0, "start")), federation, RoundContext()
        )
        assert design.aggregate_variance(x) == pytest.approx(float(variance))


def test_before_anybody_was_seen_clients_are_not_grouped_by_position():
    federation = Federation.from_sizes([1] * 40)
    chooser = ClusteredSimilarity(m=4)
    pairs = []
    for seed in range(20):
        state = chooser.start(federation, stream(seed, "start"))
        row, client, _ = chooser.design(state, federation, RoundContext()).entries
        where = np.empty(40, dtype=int)
        where[client] = row
        pairs.append(np.mean(where[::2] == where[1::2]))
    assert np.mean(pairs) < 0.4  # 0.23 by chance, 1 by position


def test_clients_never_seen_are_drawn_like_the_others():
    """Two of 40 seen: the rest must not be cut by position either, and nobody is left out."""
    federation = Federation.from_sizes([1] * 40)
    updates = [None] * 40
    updates[0], updates[1] = [1.0, 0.0], [0.0, 1.0]
    chooser = ClusteredSimilarity(m=4)
    design = chooser.design(after(chooser, federation, updates), federation, RoundContext())
    np.testing.assert_allclose(design.mean(), 1 / 40)


def test_a_perfect_clustering_draws_one_client_of_each_kind():
    n, kinds = 40, 4
    federation, rng = Federation.from_sizes([7] * n), np.random.default_rng(1)
    centres = rng.standard_normal((kinds, 30))
    updates = centres[np.arange(n) % kinds] + 0.05 * rng.standard_normal((n, 30))
    for settings_ in ({}, {"sketch": 12}, {"similarity": "l2"}, {"linkage": "complete"}):
        selector = Selector(
            scheme("clustered-similarity", m=kinds, **settings_), federation, seed=0
        )
        for _ in range(40):
            chosen = selector.select().clients
            selector.observe(Replies(chosen, {"update": updates[chosen]}))
        for _ in range(20):
            chosen = selector.select().clients
            assert sorted(chosen % kinds) == list(range(kinds)), settings_
            selector.observe(Replies(chosen, {"update": updates[chosen]}))


def test_clients_come_leave_and_change_their_size():
    rng = np.random.default_rng(2)
    updates = {f"c{i}": rng.standard_normal(4) for i in range(9)}
    sizes = {f"c{i}": i + 1 for i in range(7)}
    chooser = ClusteredSimilarity(m=2)
    selector = Selector(chooser, Federation.from_sizes(sizes), seed=0)

    def play(rounds):
        for _ in range(rounds):
            chosen = selector.select().clients
            rows = np.array([updates[selector.federation.ids[i]] for i in chosen])
            selector.observe(Replies(chosen, {"update": rows}))

    def check():
        state, ids = selector.start(), selector.federation.ids
        known = state.latest.rows(np.arange(len(ids)))
        for i, name in enumerate(ids):
            assert not known[i].any() or np.allclose(known[i], updates[name])
        slow = pairwise(known.astype(float))[np.ix_(state.line, state.line)]
        np.testing.assert_allclose(state.distances, slow, atol=2e-6)
        np.testing.assert_allclose(state.rows_apart, rows_apart_of(slow), atol=2e-3)
        np.testing.assert_allclose(selector.design().mean(), selector.federation.importance)

    play(10)
    check()
    sizes |= {"c7": 3, "c8": 50}
    del sizes["c1"], sizes["c4"]
    selector.update(Federation.from_sizes(sizes))
    check()
    play(10)
    check()
    before = selector.start()
    sizes["c0"] = 100
    selector.update(Federation.from_sizes(sizes))
    assert selector.start().tree is before.tree  # only a size changed
    check()


def test_the_picture_shows_the_groups_of_the_sizes_of_now():
    chooser = ClusteredSimilarity(m=2)
    selector = Selector(chooser, Federation.from_sizes([1] * 6), seed=0)
    updates = np.array(directions([0, 2, 4, 90, 92, 94]))
    for _ in range(12):
        chosen = selector.select().clients
        selector.observe(Replies(chosen, {"update": updates[chosen]}))
    assert selector.picture()["labels"].tolist() == [0, 0, 0, 1, 1, 1]
    selector.update(Federation.from_sizes([1, 1, 1, 4, 1, 1]))  # 90, 92, 94 are too heavy together
    shown, state = selector.picture()["labels"], selector.start()
    masses = exact_masses([1, 1, 1, 4, 1, 1], 2)[state.line]
    assert len(np.unique(shown)) > 2
    _, rest = split_large(masses, 9)
    np.testing.assert_array_equal(shown[state.line], cut(state.tree, rest, 9))


def test_clients_may_come_before_anybody_was_seen():
    selector = Selector(ClusteredSimilarity(m=1), Federation.from_sizes([1, 1]), seed=0)
    selector.start()
    selector.update(Federation.from_sizes([1, 1, 1]))
    np.testing.assert_allclose(selector.design().mean(), 1 / 3)


def test_absent_clients_keep_what_is_known_of_them():
    federation = Federation.from_sizes([1] * 8)
    chooser = ClusteredSimilarity(m=3)
    state = after(chooser, federation, directions([0, 5, 90, 95, 180, 178, 270, 275]))
    here = federation.among([0, 1, 2, 3, 4, 5])
    rows = chooser.design(state, here, RoundContext()).matrix.toarray()
    assert sorted(np.flatnonzero(row).tolist() for row in rows) == [[0, 1], [2, 3], [4, 5]]


def test_rounds_without_answers_change_nothing():
    federation = Federation.from_sizes([1, 1])
    chooser = ClusteredSimilarity(m=1)
    state = chooser.start(federation, stream(0, "start"))
    nobody = Replies(np.empty(0, dtype=np.int64), {"update": np.empty(0)})
    assert chooser.observe(state, federation, Cohort.empty(), nobody) is state
    assert chooser.picture(state) == {}


def test_parallel_and_zero_updates_are_no_nan():
    federation = Federation.from_sizes([1] * 5)
    base = np.array([0.1, 0.7, 0.3])
    state = after(ClusteredSimilarity(m=2), federation, [base, 3 * base, -base, 0 * base, base])
    assert np.isfinite(state.distances).all()
    assert np.isfinite(state.tree).all()
    assert state.distances.max() <= np.float32(np.pi)


def test_the_sketch_bounds_what_is_kept_and_keeps_angles():
    federation = Federation.from_sizes([1] * 6)
    rng = np.random.default_rng(0)
    updates = list(rng.standard_normal((6, 5000)))
    exact, short = (
        after(ClusteredSimilarity(m=2, sketch=k), federation, updates) for k in (None, 256)
    )
    assert short.latest.dimension == 256
    order = np.argsort(short.line), np.argsort(exact.line)
    gap = short.distances[np.ix_(order[0], order[0])] - exact.distances[np.ix_(order[1], order[1])]
    assert np.abs(gap).max() < 4.5 / np.sqrt(256)
    assert after(ClusteredSimilarity(sketch=9000), federation, updates).latest.dimension == 5000


def test_the_picture_shows_clients_at_their_positions():
    federation = Federation.from_sizes([1] * 8)
    chooser = ClusteredSimilarity(m=4)
    updates = directions([0, 90, 180, 270, 2, 92, 182, 272])
    shown = chooser.picture(after(chooser, federation, updates))
    assert shown["distances"][0, 4] == pytest.approx(np.radians(2), abs=1e-6)
    assert shown["distances"][0, 2] == pytest.approx(np.pi, abs=1e-3)
    first = {frozenset(pair) for pair in shown["linkage"][:4, :2].astype(int).tolist()}
    assert first == {frozenset({i, i + 4}) for i in range(4)}
    assert (shown["labels"][:4] == shown["labels"][4:]).all()


@pytest.mark.parametrize("similarity", ["l2", "l1", "arccos"])
@pytest.mark.parametrize("factor", [1e3, 1e6, 1e12])
def test_one_huge_update_is_forgotten_when_the_next_comes(similarity, factor):
    n, kinds, d = 60, 6, 30
    rng, federation = np.random.default_rng(0), Federation.from_sizes([1] * n)
    updates = rng.standard_normal((kinds, d))[np.arange(n) % kinds]
    updates += 0.1 * rng.standard_normal((n, d))
    chooser = ClusteredSimilarity(m=kinds, similarity=similarity)

    def seen(state, clients, rows):
        cohort = Cohort.of(np.array(clients), 1.0)
        replies = Replies(cohort.clients, {"update": rows})
        return chooser.observe(state, federation, cohort, replies)

    state = seen(chooser.start(federation, stream(0, "start")), range(n), updates)
    usual = state.groups
    assert len(np.unique(np.stack([usual, np.arange(n) % kinds]), axis=1).T) == kinds
    state = seen(state, [0], factor * updates[:1])
    state = seen(state, [0], updates[:1])
    np.testing.assert_array_equal(state.groups, usual)
    np.testing.assert_allclose(state.rows_apart, rows_apart_of(state.distances), rtol=1e-3)


def test_too_many_clients_are_refused_whenever_they_come(monkeypatch):
    many = Federation.from_sizes(np.ones(25_000, dtype=int))
    with pytest.raises(
        TooLarge, match=r"would take 15\.0 GB\. Use clustered-size or hcsfed beyond"
    ):
        ClusteredSimilarity().start(many, stream(0, "start"))
    monkeypatch.setattr(clustered_similarity, "MOST_CLIENTS", 3)
    for rounds in (0, 2):
        selector = Selector(ClusteredSimilarity(m=1), Federation.from_sizes([1, 1]), seed=0)
        selector.start()
        for _ in range(rounds):
            selector.observe(Replies(selector.select().clients, {"update": np.ones((1, 2))}))
        with pytest.raises(TooLarge, match="4 of them"):
            selector.update(Federation.from_sizes([1, 1, 1, 1]))


@pytest.mark.parametrize("sketch", [None, 2])
def test_updates_of_another_length_are_refused(sketch):
    federation = Federation.from_sizes([1, 1])
    for length in (3, 5, 9):
        with pytest.raises(BadInput, match=f"4 numbers like those before it; got {length}"):
            after(ClusteredSimilarity(m=1, sketch=sketch), federation, [[1.0] * 4, [1.0] * length])


@pytest.mark.parametrize("settings_", [{}, {"sketch": 2}, {"similarity": "l2"}])
@pytest.mark.parametrize("bad", [1e39, 1e300, np.nan])
def test_what_cannot_be_kept_is_refused_in_one_sentence(settings_, bad):
    with pytest.raises(BadInput, match=r"finite, .* sum to at most 1e\+18; leave out"):
        after(ClusteredSimilarity(m=1, **settings_), Federation.from_sizes([1]), [[bad, 1.0, 2.0]])


def test_the_largest_updates_that_fit_give_finite_numbers():
    for similarity in ("arccos", "l2", "l1"):
        chooser = ClusteredSimilarity(m=2, similarity=similarity)
        rows = [[5e17, 5e17], [-5e17, 5e17], [1.0, 0.0], [1e18, 0.0]]
        state = after(chooser, Federation.from_sizes([1] * 4), rows)
        assert np.isfinite(state.distances).all()
        assert np.isfinite(state.tree).all()
        assert np.isfinite(state.lost)


def test_a_sketch_does_not_keep_l1_distances():
    with pytest.raises(BadParameter, match="'sketch' parameter of clustered-similarity must be No"):
        ClusteredSimilarity(similarity="l1", sketch=10)
    ClusteredSimilarity(similarity="l2", sketch=10)


def test_version_printed_is_biased_unless_groups_fill_their_distributions():
    corrected, printed = (
        ClusteredSimilarity(m=2, version=each) for each in ("corrected", "printed")
    )

    def means(sizes, updates):
        federation = Federation.from_sizes(sizes)
        state = after(corrected, federation, updates)
        for chooser in (corrected, printed):
            law = chooser.design(state, federation, RoundContext())
            assert law.matrix.sum(axis=1) == pytest.approx(1)
            yield law.mean() - federation.importance

    exact, biased = means([1] * 11, np.eye(3)[[0, 1, 2] * 3 + [0, 1]])
    assert exact == pytest.approx(0, abs=1e-15)
    assert np.abs(biased).max() > 0.05
    for mean in means([1] * 4, np.eye(2)[[0, 1, 0, 1]]):
        assert mean == pytest.approx(0, abs=1e-15)
    assert printed.claims == {Claim.SUMS_TO_ONE}
