"""Collects the reference batch of virtual batch normalization by random play (Salimans et al. 2017, sec. 2.2)."""

from copy import deepcopy

import numpy as np
from jaxtyping import Shaped

from hebbes.contracts.engine import EngineError
from hebbes.contracts.environment import BatchEnv, Space
from hebbes.contracts.errors import describe_error
from hebbes.contracts.randomness import Purpose, derive_simulator_seed
from hebbes.environments.environment_spec import EnvironmentSpec
from hebbes.environments.make_batch_env import make_batch_env

FRAME_INTERVAL = 10
"""Env steps between two observations of the batch, so that they show different scenes."""


def collect_reference_batch(spec: EnvironmentSpec, num_frames: int, seed: int) -> Shaped[np.ndarray, "frames ..."]:
    """`num_frames` observations of the wrapped environment (`spec.training_wrappers` too) under random actions.

    Actions are uniform within bounds, and normal without. The batch has the first and then every tenth observation of
    an episode, over as many episodes as needed. It depends only on the arguments. ValueError if the environment cannot
    be made, or fails.
    """
    env = make_batch_env(spec, [derive_simulator_seed(seed, Purpose.VIRTUAL_BATCH)], threads=1, training=True)
    try:
        space = deepcopy(env.action_space)
        space.seed(derive_simulator_seed(seed, Purpose.VIRTUAL_BATCH, member=1))
        frames: list[np.ndarray] = []
        episode = 0
        while len(frames) < num_frames:
            frames += _play_episode(env, space, episode, num_frames - len(frames))
            episode += 1
    finally:
        env.close()
    return np.stack(frames)


def _play_episode(env: BatchEnv, space: Space, episode: int, max_frames: int) -> list[np.ndarray]:
    """Up to `max_frames` observations from one episode."""
    active = np.zeros(1, np.int64)
    try:
        frames = [env.start(episode)[0].copy()]
    except EngineError:
        raise
    except Exception as error:  # a user's own environment or wrapper may raise anything
        raise ValueError(f"virtual_batch: the environment could not be started: {describe_error(error)}") from error
    env_steps = 0
    while len(frames) < max_frames:
        result = env.step(np.asarray(space.sample())[np.newaxis], active)
        if result.faults:
            raise ValueError(f"virtual_batch: the environment failed in random play: {result.faults[0]}")
        if result.terminated[0] or result.truncated[0]:
            break
        env_steps += 1
        if env_steps % FRAME_INTERVAL == 0:
            frames.append(result.observations[0].copy())
    return frames
