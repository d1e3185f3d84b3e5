"""Random streams: the only way in which the toolkit makes a generator or the seed of a simulator.

Every stream is a function of (seed, purpose, generation, member, episode), so that a draw does not depend on
who else is in the batch or on the number of workers.
"""

from enum import IntEnum

import numpy as np


class Purpose(IntEnum):
    """What a stream or an evaluation is for. The numbers determine the streams: never change a released one."""

    INITIAL_PARAMS = 0
    NOISE = 1
    TRAINING = 2
    EVALUATION = 3
    TEST = 4
    BOOTSTRAP = 5
    VIRTUAL_BATCH = 6
    TIES = 7
    GRADIENTS = 8
    EXPLORATION = 9
    RL_SHARE = 10
    SWEEP = 11
    WRAPPERS = 12


def make_generator(
    seed: int, purpose: Purpose, *, generation: int = 0, member: int = 0, episode: int = 0
) -> np.random.Generator:
    """A generator that depends only on these five numbers, each >= 0."""
    sequence = np.random.SeedSequence((seed, purpose, generation, member, episode))
    return np.random.Generator(np.random.PCG64(sequence))


def derive_simulator_seed(seed: int, purpose: Purpose, *, member: int = 0, episode: int = 0) -> int:
    """A seed in [0, 2^31) that depends only on these numbers, for simulators that take an int32."""
    return derive_seed(seed, purpose, 0, member, episode)


def derive_seed(*numbers: int) -> int:
    """A seed in [0, 2^31) that depends only on these numbers, each >= 0."""
    return int(np.random.SeedSequence(numbers).generate_state(1)[0] >> np.uint32(1))
