"""ARS of stable-baselines3-contrib, with the settings of RL Baselines3 Zoo (hyperparams/ars.yml at commit c6c209e).

The zoo has settings for CartPole-v1, HalfCheetah-v4 and Hopper-v4 ("Params closest to original paper"), whose tasks v5
has nearly kept. It has none for images: CarRacing-v3 gets the defaults of sb3-contrib, with a linear policy of all
pixels, because ARS has no network for images. The candidates are evaluated by `AsyncEval` with a process for each core,
as the zoo does with `n_envs` above 1.
"""

from collections.abc import Mapping
from contextlib import closing
from functools import partial
from typing import Any

import gymnasium
import numpy as np
from sb3_contrib import ARS
from sb3_contrib.common.vec_env import AsyncEval
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv, VecNormalize

from benchmarks.peers.measure import Keep

PACKAGES = ("stable-baselines3", "sb3-contrib", "torch")
SETTINGS: dict[str, dict[str, Any]] = {
    "HalfCheetah-v5": {"learning_rate": 0.02, "delta_std": 0.03, "n_delta": 32, "n_top": 4, "alive_bonus_offset": 0},
    "Hopper-v5": {"learning_rate": 0.01, "delta_std": 0.025, "n_delta": 8, "n_top": 4, "alive_bonus_offset": -1},
    "CartPole-v1": {"n_delta": 2},
    "CarRacing-v3": {},
}
NORMALIZED = ("HalfCheetah-v5", "Hopper-v5")
"""Observations are normalized."""


def find_settings(environment: str) -> Mapping[str, Any]:
    """Those of the zoo."""
    return {"policy": "LinearPolicy", "norm_obs": environment in NORMALIZED, **SETTINGS[environment]}


def train(environment: str, seed: int, cores: int, keep: Keep) -> None:
    """Trains until `keep` raises."""
    env = make_env(environment)
    model = ARS("LinearPolicy", env, seed=seed, **SETTINGS[environment])

    def act(observation: np.ndarray) -> Any:
        normalized = env.normalize_obs(observation) if isinstance(env, VecNormalize) else observation
        return model.predict(normalized, deterministic=True)[0]

    with closing(AsyncEval([partial(make_env, environment)] * cores, model.policy)) as processes:
        processes.seed(seed)
        model.learn(10**15, KeepPolicy(keep, act), log_interval=None, async_eval=processes)


def make_env(environment: str) -> VecEnv:
    """The environment as the zoo makes it."""
    env = DummyVecEnv([partial(gymnasium.make, environment)])
    return VecNormalize(env, norm_obs=True, norm_reward=False) if environment in NORMALIZED else env


class KeepPolicy(BaseCallback):
    """Calls `keep` before each iteration."""

    def __init__(self, keep: Keep, act: Any):
        super().__init__()
        self._keep, self._act = keep, act

    def _on_rollout_start(self) -> None:
        self._keep(self.num_timesteps, self._act)

    def _on_step(self) -> bool:
        return True
