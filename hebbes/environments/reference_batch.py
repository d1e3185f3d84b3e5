"""The reference batch of virtual batch normalisation: observations of random play (Salimans et al. 2017, sec. 2.2)."""

from copy import deepcopy

import numpy as np
from gymnasium import Space
from jaxtyping import Shaped

from hebbes.contracts.environment import BatchEnv
from hebbes.contracts.randomness import Purpose, simulator_seed
from hebbes.environments.spec import EnvironmentSpec, make_batch_env

EVERY = 10
"""Env steps between the observations that are taken, so that the batch shows more than one scene."""


def collect(spec: EnvironmentSpec, num_frames: int, seed: int) -> Shaped[np.ndarray, "frames ..."]:
    """As many observations of the wrapped environment (`spec.training_wrappers` too) under random actions.

    Every tenth observation is taken, over as many episodes as that needs, the first of each among them. A function of
    these arguments. ValueError where the environment cannot be made, or fails.
    """
    env = make_batch_env(spec, [simulator_seed(seed, Purpose.VIRTUAL_BATCH)], threads=1, training=True)
    try:
        space = deepcopy(env.action_space)
        space.seed(simulator_seed(seed, Purpose.VIRTUAL_BATCH, member=1))
        frames: list[np.ndarray] = []
        episode = 0
        while len(frames) < num_frames:
            frames += _episode(env, space, episode, num_frames - len(frames))
            episode += 1
    finally:
        env.close()
    return np.stack(frames)


def _episode(env: BatchEnv, space: Space, episode: int, most: int) -> list[np.ndarray]:
    """At most so many observations from one episode."""
    copy = np.zeros(1, np.int64)
    frames = [env.start(episode)[0].copy()]
    step_count = 0
    while len(frames) < most:
        stepped = env.step(np.asarray(space.sample())[np.newaxis], copy)
        if stepped.faults:
            raise ValueError(f"virtual_batch: the environment failed in random play: {stepped.faults[0]}")
        if stepped.terminated[0] or stepped.truncated[0]:
            break
        step_count += 1
        if step_count % EVERY == 0:
            frames.append(stepped.observations[0].copy())
    return frames
