"""Scripted environments, for the tests of the whole project.

`ScriptedEnv` is a BatchEnv, `ScriptedGymnasiumEnv` a `gymnasium.Env`; importing this module registers the latter as
`Scripted-v0`, so that worker processes can find it as `tests.scripted:Scripted-v0`. Env steps are numbered from 1.
"""

import ctypes
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Discrete, Space

from hebbes.contracts.environment import EnvStep

ENV_ID = "Scripted-v0"


class ScriptedEnv:
    """A BatchEnv that observes (sub-environment, env step, episode), and checks that its caller keeps the contract.

    - `rewards`: one per env step, the last one repeated forever; or one such row per sub-environment, of equal length.
    - `terminate_at`, `truncate_at`, `nan_at`: the env step that does so (`nan_at`: its observation is NaN), one number
      for all sub-environments or one for each; 0: never.
    - `fault_at`: the env step in which the simulator fails, given in the same way.
    - `lives`: info["lives"] after each env step, given in the same way as `rewards`.
    - `action_weight`: this times the sum of the action is added to the reward.
    - `observation_space`: a float Box of shape (3,), a Discrete, or a uint8 Box of images; see `observe`.

    Returned arrays are read-only, so that changing one in place fails. Breaking the contract raises AssertionError.
    `episodes`, `calls` (actions and ids of every `step`) and `times_closed` record how it was used.
    """

    def __init__(
        self,
        num_envs: int,
        *,
        rewards: Sequence[float] | Sequence[Sequence[float]] = (1.0,),
        terminate_at: int | Sequence[int] = 0,
        truncate_at: int | Sequence[int] = 0,
        nan_at: int | Sequence[int] = 0,
        fault_at: int | Sequence[int] = 0,
        lives: Sequence[int] | Sequence[Sequence[int]] | None = None,
        action_weight: float = 0.0,
        observation_space: Space | None = None,
        action_space: Space | None = None,
    ) -> None:
        self.num_envs, self.seeds = num_envs, tuple(range(num_envs))
        vectors, unit_square = Box(-np.inf, np.inf, (3,), np.float32), Box(-1.0, 1.0, (2,), np.float32)
        self.observation_space = vectors if observation_space is None else observation_space
        self.action_space = unit_square if action_space is None else action_space
        self._rewards = self._broadcast_script(np.atleast_1d(rewards).astype(np.float32))
        self._lives = None if lives is None else self._broadcast_script(np.atleast_1d(lives))
        self._terminate_at, self._truncate_at, self._nan_at, self._fault_at = (
            np.broadcast_to(at, num_envs) for at in (terminate_at, truncate_at, nan_at, fault_at)
        )
        self._action_weight = action_weight
        self._env_steps = np.zeros(num_envs, np.int64)
        self._finished = np.ones(num_envs, bool)
        self.episodes: list[int] = []
        self.calls: list[tuple[np.ndarray, np.ndarray]] = []
        self.times_closed = 0

    def start(self, episode: int) -> np.ndarray:
        assert episode >= 0, f"episode {episode}"
        self.episodes.append(episode)
        self._env_steps[:] = 0
        self._finished[:] = False
        return self._observe(np.arange(self.num_envs))

    def step(self, actions: np.ndarray, active: np.ndarray) -> EnvStep:
        self._check(actions, active)
        self.calls.append((actions.copy(), active.copy()))
        self._env_steps[active] += 1
        env_steps = self._env_steps[active]
        rewards = _read_script(self._rewards, active, env_steps)
        rewards = rewards + np.float32(self._action_weight) * actions.reshape(len(active), -1).sum(axis=1)
        faulty = env_steps == self._fault_at[active]
        rewards[faulty] = np.nan
        terminated = (env_steps == self._terminate_at[active]) | faulty
        truncated = env_steps == self._truncate_at[active]
        self._finished[active] = terminated | truncated
        info = {"env_step": env_steps}
        if self._lives is not None:
            info["lives"] = _read_script(self._lives, active, env_steps)
        for array in (rewards, terminated, truncated, *info.values()):
            array.setflags(write=False)
        faults = {int(index): f"fault of sub-environment {index}" for index in active[faulty]}
        return EnvStep(self._observe(active), rewards, terminated, truncated, info, faults)

    def close(self) -> None:
        self.times_closed += 1

    def _check(self, actions: np.ndarray, active: np.ndarray) -> None:
        assert np.issubdtype(active.dtype, np.integer), f"ids of dtype {active.dtype}"
        assert active.ndim == 1 and len(active), f"ids of shape {active.shape}"
        assert ((active >= 0) & (active < self.num_envs)).all(), f"ids out of range: {active}"
        assert len(np.unique(active)) == len(active), f"ids named twice: {active}"
        assert not self._finished[active].any(), f"finished sub-environments stepped: {active[self._finished[active]]}"
        expected = (len(active), *(self.action_space.shape or ()))
        assert actions.shape == expected, f"actions of shape {actions.shape}, not {expected}"

    def _observe(self, active: np.ndarray) -> np.ndarray:
        rows = [observe(self.observation_space, i, self._env_steps[i], self.episodes[-1]) for i in active]
        observations = np.stack(rows)
        ill = (self._nan_at[active] > 0) & (self._env_steps[active] == self._nan_at[active])
        if ill.any():
            observations[ill] = np.nan
        observations.setflags(write=False)
        return observations

    def _broadcast_script(self, script: np.ndarray) -> np.ndarray:
        return np.broadcast_to(script, (self.num_envs, script.shape[-1]))


def observe(space: Space, index: int, env_step: int, episode: int) -> np.ndarray:
    """The observation of one sub-environment: the three numbers, or a Discrete value or an image made from them."""
    if isinstance(space, Discrete):
        return space.start + np.int64((index + 3 * env_step + 5 * episode) % space.n)
    assert isinstance(space, Box)
    if space.dtype == np.uint8:
        seed = np.random.SeedSequence((index, int(env_step), episode))
        return np.random.default_rng(seed).integers(0, 256, space.shape, dtype=np.uint8)
    return np.array([index, env_step, episode], space.dtype)


def _read_script(script: np.ndarray, active: np.ndarray, env_steps: np.ndarray) -> np.ndarray:
    return script[active, np.minimum(env_steps, script.shape[1]) - 1]


class ScriptedGymnasiumEnv(gymnasium.Env):
    """Observes (a number in [0, 1) drawn at reset, env step). Its keyword arguments are JSON values.

    - `rewards`, `terminate_at`, `truncate_at`, `nan_at`, `action_weight`: as for `ScriptedEnv`.
    - `raise_at`: the env step that raises RuntimeError; `exit_at`: the one that ends the process with status 3;
      `hang_at`: the one that prints "hanging in process PID" and never returns. With `hang_holds_lock` it also keeps
      the interpreter lock.
    - `crash_at`: the one that ends the process with SIGSEGV.
    - `wait_for`: the path of a file. A reset waits until it exists.
    - `only_above`: these four happen only if the sum of the action is above this; None: always.
    - `raise_in`: which of "constructor", "reset" and "close" raises RuntimeError.
    - `num_actions`: number of Discrete actions; 0 means a Box of shape (2,) in [-1, 1].
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 30}  # noqa: RUF012

    def __init__(
        self,
        rewards: Sequence[float] = (1.0,),
        terminate_at: int = 0,
        truncate_at: int = 0,
        nan_at: int = 0,
        raise_at: int = 0,
        exit_at: int = 0,
        crash_at: int = 0,
        wait_for: str = "",
        hang_at: int = 0,
        hang_holds_lock: bool = False,
        only_above: float | None = None,
        raise_in: str = "",
        action_weight: float = 0.0,
        num_actions: int = 0,
        render_mode: str | None = None,
    ) -> None:
        self.observation_space = Box(-np.inf, np.inf, (2,), np.float32)
        self.action_space = Discrete(num_actions) if num_actions else Box(-1.0, 1.0, (2,), np.float32)
        self.render_mode = render_mode
        self._rewards = rewards
        self._terminate_at, self._truncate_at = terminate_at, truncate_at
        self._nan_at, self._raise_at, self._exit_at, self._hang_at = nan_at, raise_at, exit_at, hang_at
        self._crash_at, self._wait_for = crash_at, wait_for
        self._hang_holds_lock, self._only_above, self._raise_in = hang_holds_lock, only_above, raise_in
        self._action_weight = action_weight
        self._raise_where("constructor")

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[np.ndarray, dict]:
        super().reset(seed=seed)
        self._raise_where("reset")
        while self._wait_for and not Path(self._wait_for).exists():
            time.sleep(0.01)
        self._start = self.np_random.random()
        self._env_step = 0
        return self._observe(), {}

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict]:
        assert self.action_space.contains(action), f"action {action!r} not in {self.action_space}"
        self._env_step += 1
        if self._only_above is None or np.sum(action) > self._only_above:
            self._fail_where_scripted()
        reward = self._rewards[min(self._env_step, len(self._rewards)) - 1]
        reward += self._action_weight * float(np.sum(action))
        terminated, truncated = self._env_step == self._terminate_at, self._env_step == self._truncate_at
        return self._observe(), reward, terminated, truncated, {}

    def render(self) -> np.ndarray:
        """A 32x32 image whose gray level is the number of the env step."""
        return np.full((32, 32, 3), self._env_step % 256, np.uint8)

    def close(self) -> None:
        self._raise_where("close")

    def _fail_where_scripted(self) -> None:
        if self._env_step == self._raise_at:
            raise RuntimeError(f"scripted failure at env step {self._env_step}")
        if self._env_step == self._exit_at:
            os._exit(3)
        if self._env_step == self._crash_at:
            ctypes.string_at(0)
        if self._env_step == self._hang_at:
            print("hanging in process", os.getpid(), flush=True)
            sleep = ctypes.PyDLL(None).sleep if self._hang_holds_lock else time.sleep
            sleep(3600)

    def _raise_where(self, place: str) -> None:
        if self._raise_in == place:
            raise RuntimeError(f"scripted failure in {place}")

    def _observe(self) -> np.ndarray:
        if self._env_step and self._env_step == self._nan_at:
            return np.full(2, np.nan, np.float32)
        return np.array([self._start, self._env_step], np.float32)


def register() -> None:
    """Registers `Scripted-v0` with Gymnasium. Calling it twice is harmless."""
    if ENV_ID not in gymnasium.registry:
        gymnasium.register(ENV_ID, entry_point="tests.scripted:ScriptedGymnasiumEnv", disable_env_checker=True)


register()
