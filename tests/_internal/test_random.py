from __future__ import annotations

import numpy as np
import pytest

from fedcohort._internal.errors import BadParameter
from fedcohort._internal.random import checked_seed, from_key, key_of, stream


def test_the_same_name_gives_the_same_words() -> None:
    one, other = (stream(3, "select", 7, 2).bit_generator.random_raw(5) for _ in range(2))
    assert (one == other).all()


def test_every_part_of_the_name_matters() -> None:
    names = [
        (0, "select", 0, None),
        (1, "select", 0, None),
        (0, "train", 0, None),
        (0, "select", 1, None),
        (0, "select", 0, 0),
        (0, "select", 0, 1),
        (0, "select", 11, None),
        (0, "select", 1, 1),
    ]
    words = {int(stream(*name).bit_generator.random_raw()) for name in names}
    assert len(words) == len(names)


def test_the_global_generator_is_left_alone() -> None:
    before = np.random.get_state()[1].tolist()  # noqa: NPY002 - that is what is tested
    stream(0, "x").random(5)
    assert np.random.get_state()[1].tolist() == before  # noqa: NPY002


@pytest.mark.parametrize("seed", [0, 2**128 - 1, np.int64(5)])
def test_seeds(seed: int) -> None:
    assert checked_seed(seed, "x") == seed


def test_no_seed_is_drawn() -> None:
    assert len({checked_seed(None, "x") for _ in range(5)}) == 5


@pytest.mark.parametrize("seed", [-1, 0.0, True, "1", 2**128, float("nan")])
def test_bad_seeds(seed: object) -> None:
    with pytest.raises(BadParameter, match="'seed' parameter of x"):
        checked_seed(seed, "x")  # type: ignore[arg-type]


def test_a_key_gives_the_words_that_numpy_gives_for_it() -> None:
    for client in range(200):
        key = key_of(1, "train", 3, client)
        slow = np.random.Generator(np.random.Philox(key=int.from_bytes(key, "little")))
        fast = from_key(key)
        assert (fast.bit_generator.random_raw(9) == slow.bit_generator.random_raw(9)).all()
        assert (fast.standard_normal(3) == slow.standard_normal(3)).all()


def test_a_generator_survives_a_trip_between_processes() -> None:
    import pickle  # of a generator that we made, to another process of ours

    rng = stream(1, "train", 3, 4)
    there = pickle.loads(pickle.dumps(rng))  # noqa: S301
    assert (there.bit_generator.random_raw(5) == rng.bit_generator.random_raw(5)).all()
