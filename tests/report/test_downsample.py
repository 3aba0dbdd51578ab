import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fedcohort.report._measures import bucket_edges, envelope, keep_extremes, means

CURVE = st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=400).map(np.array)


@given(CURVE, st.integers(4, 60))
def test_the_extremes_and_the_ends_stay(values, limit):
    kept = keep_extremes(values, limit)
    assert len(kept) <= max(limit, 4)
    assert {0, len(values) - 1} <= set(kept.tolist())
    assert values[kept].min() == values.min()
    assert values[kept].max() == values.max()
    assert (np.diff(kept) > 0).all()


def test_gaps_are_left_out_but_not_the_ends():
    values = np.full(1000, np.nan)
    values[500] = 7
    assert keep_extremes(values, 20).tolist() == [0, 500, 999]


@given(CURVE, st.integers(2, 50))
def test_a_thinned_band_covers_the_whole_band(values, limit):
    x = np.arange(len(values), dtype=float)
    _, low, high = envelope(x, values - 1, values + 1, limit)
    assert len(low) <= max(limit, 2)
    assert low.min() == (values - 1).min()
    assert high.max() == (values + 1).max()
    edges = bucket_edges(len(values), min(limit, len(values)))
    for i in range(len(edges) - 1):
        piece = values[edges[i] : edges[i + 1]]
        assert low[i] <= piece.min() - 1
        assert high[i] >= piece.max() + 1


def test_a_picture_keeps_its_mean():
    matrix = np.random.default_rng(0).random((12, 30))
    assert means(matrix, 4, 5).shape == (4, 5)
    assert np.isclose(means(matrix, 4, 5).mean(), matrix.mean())
    assert np.array_equal(means(matrix, 100, 100), matrix)
