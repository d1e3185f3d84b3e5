"""Random streams: their numbers are those of the released versions, written out here."""

import numpy as np

from hebbes.contracts.randomness import Purpose, derive_simulator_seed, make_generator
from hebbes.environments.stepping_guard import derive_episode_seeds

NUMBERS = {
    "INITIAL_PARAMS": 0,
    "NOISE": 1,
    "TRAINING": 2,
    "EVALUATION": 3,
    "TEST": 4,
    "BOOTSTRAP": 5,
    "VIRTUAL_BATCH": 6,
    "TIES": 7,
    "GRADIENTS": 8,
    "EXPLORATION": 9,
    "RL_SHARE": 10,
    "SWEEP": 11,
    "WRAPPERS": 12,
}


def draw_seed(*numbers):
    """The upper 31 bits of NumPy's first word."""
    return int(np.random.SeedSequence(numbers).generate_state(1)[0]) // 2


def test_no_purpose_has_got_another_number():
    assert {each.name: each.value for each in Purpose} == NUMBERS


def test_streams_and_seeds_depend_on_these_numbers_in_this_order():
    expected = np.random.Generator(np.random.PCG64(np.random.SeedSequence((7, 8, 3, 2, 5)))).random(4)
    assert np.array_equal(make_generator(7, Purpose.GRADIENTS, generation=3, member=2, episode=5).random(4), expected)
    assert derive_simulator_seed(7, Purpose.TEST, member=2, episode=5) == draw_seed(7, 4, 0, 2, 5)
    assert derive_episode_seeds([11, 12, 11], 6) == [draw_seed(11, 6), draw_seed(12, 6), draw_seed(11, 6)]
