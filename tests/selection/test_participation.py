"""What a client's part in the sum becomes where weights are cut or it is known who took part."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fedcohort.selection._design import Participation

KNOWN = Participation(
    at_least=np.array([[0.5, 0.25], [0.75, 0.125]]),
    weight=np.array([0.25, 0.5]),
    displaced=np.array([0.5, np.inf]),
    how="rows",
)


def test_draws_that_weigh_more_than_allowed_are_cut_and_so_is_what_gives_way() -> None:
    cut = KNOWN.cut(0.375)
    assert cut.weight.tolist() == [0.25, 0.375]
    assert cut.displaced.tolist() == [0.375, np.inf]
    assert cut.at_least is KNOWN.at_least


def test_where_it_is_known_who_took_part_a_client_counts_once() -> None:
    known = KNOWN.open(0.125)
    assert known.at_least.tolist() == [[0.5], [0.75]]
    assert known.weight.tolist() == [0.125, 0.125]
    assert known.displaced.tolist() == [np.inf, np.inf]


def test_everybody_in_every_round_displaces_nobody() -> None:
    sure = KNOWN.certain(0.125)
    assert sure.at_least.tolist() == [[1.0], [1.0]]
    assert sure.weight.tolist() == [0.125, 0.125]
    assert sure.displaced.tolist() == [0.0, 0.0]
    assert sure.how == KNOWN.how


def test_the_largest_weight_is_that_of_one_draw_of_a_client_that_can_come() -> None:
    assert KNOWN.largest_weight == 0.5
    assert replace(KNOWN, at_least=np.array([[0.5], [0.0]])).largest_weight == 0.25
    assert replace(KNOWN, at_least=np.zeros((2, 1))).largest_weight == 0.0
