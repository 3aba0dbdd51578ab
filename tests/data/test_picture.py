from __future__ import annotations

import io

import numpy as np
import pytest

from fedcohort._internal.errors import BadInput, BadParameter
from fedcohort.data.heterogeneity import draw, facts

HISTOGRAMS = np.array([[0, 4], [0, 0], [3, 1], [0, 6], [8, 0]])


def test_facts_order_clients_by_main_label_and_size():
    picture = facts(HISTOGRAMS)
    assert picture.clients.tolist() == [4, 2, 1, 3, 0]
    assert picture.sizes.tolist() == [8, 4, 0, 6, 4]
    assert picture.shares.tolist() == [[1, 0], [0.75, 0.25], [0, 0], [0, 1], [0, 1]]
    assert facts(HISTOGRAMS, sort=False).clients.tolist() == [0, 1, 2, 3, 4]


def test_facts_of_many_clients_are_thinned_out_evenly():
    picture = facts(np.ones((1000, 3), dtype=int), at_most=4, sort=False)
    assert picture.clients.tolist() == [0, 250, 500, 750]
    assert picture.total == 1000


def test_drawing_shows_the_facts_and_stays_out_of_pyplot():
    picture = facts(HISTOGRAMS, at_most=3)
    figure = draw(picture, title="Five clients")
    assert figure.canvas.manager is None  # pyplot does not know of it: nothing to close
    above, below = figure.axes[:2]
    assert [bar.get_height() for bar in above.patches] == picture.sizes.tolist()
    assert np.array_equal(below.images[0].get_array(), picture.shares.T)
    assert below.get_xlabel() == "clients (3 of 5 shown)"
    out = io.BytesIO()
    figure.savefig(out, format="png")
    assert out.getvalue().startswith(b"\x89PNG")


@pytest.mark.parametrize("bad", [[[0.5]], [[-1]], [1, 2], np.zeros((0, 3), int)])
def test_bad_histograms_are_refused(bad):
    with pytest.raises(BadInput, match="label histograms must"):
        facts(np.array(bad))


def test_bad_settings_are_refused():
    with pytest.raises(BadParameter, match="at_most"):
        facts(HISTOGRAMS, at_most=0)
