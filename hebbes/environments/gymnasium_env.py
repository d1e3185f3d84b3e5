"""GymnasiumEnv: sub-environments of any Gymnasium environment, stepped one after another in this process."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Discrete
from gymnasium.utils.seeding import np_random
from jaxtyping import Int, Shaped, UInt8

from hebbes.contracts.environment import EnvStep, Space
from hebbes.contracts.errors import describe_error, show_once
from hebbes.environments.gymnasium_simulator import close_simulator, make_simulator
from hebbes.environments.ids import find_atari_game
from hebbes.environments.morphologies import INTACT, SPECIES, provide_morphology_file
from hebbes.environments.spaces import check_and_flatten, check_spaces, is_flattened, make_flat_space
from hebbes.environments.step_results import StepResult, gather_results, stack_observations
from hebbes.environments.stepping_guard import SteppingGuard, check_episode, derive_episode_seeds

_KEEPS_STATE = (
    *("BipedalWalker-v3", "BipedalWalkerHardcore-v3"),  # the Box2D world
    *("HumanoidFlagrunHarderBulletEnv-v0", "ThrowerBulletEnv-v0"),  # PyBullet's env steps differ now and then anyway
)
"""Environments whose `reset` keeps something of the episode before, so that the next one would depend on it."""


class GymnasiumEnv:
    """A BatchEnv over `gymnasium.make`; `info` has `lives` for Atari.

    If `step` of a simulator raises or returns something invalid, only that sub-environment has failed. A new simulator
    replaces it before the next episode. Those of `_KEEPS_STATE` are replaced before each episode but the first.
    Exceptions in a constructor or in `reset` are raised.

    Args:
        environment: the current id, already registered.
        seeds: one per sub-environment, in [0, 2^31).
        env_kwargs: options of the simulator's constructor.
        wrappers: a user's `gymnasium.Wrapper` classes with their options, innermost first.
        morphology: as `hebbes.environments.morphologies.provide_morphology_file` takes it.
        render_mode: Gymnasium's, for sub-environment 0.
    """

    def __init__(
        self,
        environment: str,
        seeds: Sequence[int],
        env_kwargs: Mapping[str, Any],
        *,
        wrappers: Sequence[tuple[Callable[..., gymnasium.Env], Mapping[str, Any]]] = (),
        morphology: str = INTACT,
        render_mode: str | None = None,
    ) -> None:
        self.num_envs = len(seeds)
        self.seeds = tuple(seeds)
        self._environment, self._env_kwargs, self._wrappers = environment, env_kwargs, tuple(wrappers)
        self._morphology, self._render_mode = morphology, render_mode
        self._envs: list[gymnasium.Env] = []
        self._used_up: set[int] = set()
        self._has_lives = find_atari_game(environment) is not None
        try:
            with provide_morphology_file(environment, morphology) as path:
                self._build(path)
        except BaseException:
            self.close()
            raise

    def start(self, episode: int) -> Shaped[np.ndarray, "envs ..."]:
        """The first observations of a new episode in every sub-environment."""
        check_episode(episode)
        while self._used_up:
            self._renew(self._used_up.pop())
        self._first = self._reset(derive_episode_seeds(self.seeds, episode))
        if self._environment in _KEEPS_STATE:
            self._used_up |= set(range(self.num_envs))
        self._guard.begin_episodes()
        return self._first

    def step(self, actions: Shaped[np.ndarray, "active ..."], active: Int[np.ndarray, " active"]) -> EnvStep:
        """Steps the sub-environments in `active`, `active[k]` with row k of `actions`."""
        ids = self._guard.check_ids(active)
        actions = self._guard.check_actions(actions, len(ids))
        is_discrete = isinstance(self.action_space, Discrete)
        # copied, because a simulator may change its action in place
        choices = actions.tolist() if is_discrete else [actions[row, ...].copy() for row in range(len(ids))]
        faults: dict[int, str] = {}
        results = []
        for index, action in zip(ids.tolist(), choices, strict=True):
            try:
                results.append(self._read(self._envs[index].step(action)))
            except Exception as error:  # whatever a user's simulator raises
                results.append(self._record_failure(index, error, faults))
        env_step = self._gather(ids, results, faults)
        self._guard.end_episodes(ids, env_step.terminated | env_step.truncated)
        lives = [(result[4] or {}).get("lives", 0) for result in results] if self._has_lives else []
        return replace(env_step, info={"lives": np.array(lives, np.int32)} if lives else {}, faults=faults)

    @property
    def metadata(self) -> Mapping[str, Any]:
        """Gymnasium's, of sub-environment 0: how it can be rendered."""
        return self._envs[0].metadata

    def render(self) -> UInt8[np.ndarray, "height width 3"]:
        """The image of sub-environment 0, which needs `render_mode="rgb_array"`; OSError if it cannot be rendered."""
        if self._render_mode != "rgb_array":
            raise ValueError(f"render needs render_mode 'rgb_array', got {self._render_mode!r}")
        try:
            image = np.asarray(rendered := self._envs[0].render())
        except Exception as error:  # whatever a simulator, or OpenGL under it, raises
            raise OSError(f"{self._environment} cannot be rendered: {describe_error(error)}") from error
        if image.shape[2:] != (3,):
            found = f"{type(rendered).__name__} of shape {image.shape}, not (height, width, 3)"
            raise OSError(f"{self._environment} cannot be rendered: render returned {found}")
        return image.astype(np.uint8, copy=False)

    def close(self) -> None:
        """Frees the simulators. Calling it twice is harmless."""
        while self._envs:
            close_simulator(self._envs.pop())

    def _build(self, morphology: Path | None) -> None:
        """Makes the simulators with the morphology in this file, which they do not read after the first reset."""
        for index in range(self.num_envs):
            self._envs.append(self._make_env(index, morphology))
        self._observed_space, action_space = self._envs[0].observation_space, self._envs[0].action_space
        check_spaces(self._environment, self._observed_space, action_space)
        self.observation_space: Space = make_flat_space(self._observed_space)
        self.action_space: Space = action_space
        self._guard = SteppingGuard(self.num_envs, self.action_space, np.dtype(self.action_space.dtype))
        # PyBullet's first episode after loading differs in the last bits from later ones with the same seed.
        try:
            self._first = self._reset(self.seeds)
        except Exception as error:  # whatever a user's environment raises
            reason = error if isinstance(error, ValueError) else describe_error(error)
            raise ValueError(f"environment {self._environment!r} cannot be started: {reason}") from error

    def _make_env(self, index: int, morphology: Path | None) -> gymnasium.Env:
        def make(**options: Any) -> gymnasium.Env:
            render_mode = self._render_mode if index == 0 else None
            return make_simulator(self._environment, {**self._env_kwargs, **options}, render_mode)

        env = make() if morphology is None else SPECIES[self._environment].make_with_morphology(make, morphology)
        try:
            for wrapper, kwargs in self._wrappers:
                env = wrapper(env, **kwargs)
        except BaseException:
            close_simulator(env)
            raise
        return env

    def _renew(self, index: int) -> None:
        """Replaces a simulator by a new one, in the state in which the constructor would leave it."""
        close_simulator(self._envs[index])
        with provide_morphology_file(self._environment, self._morphology) as path:
            self._envs[index] = self._make_env(index, path)
            self._reset_one(index, self.seeds[index])

    def _reset(self, seeds: Sequence[int]) -> Shaped[np.ndarray, "envs ..."]:
        results = [self._reset_one(index, seed) for index, seed in enumerate(seeds)]
        if not all(isinstance(result, tuple) and len(result) == 2 for result in results):
            raise ValueError("reset must return two things, the observation and a mapping of info")
        return stack_observations("observation of reset", [first for first, _ in results], self.observation_space)

    def _reset_one(self, index: int, seed: int) -> Any:
        env = self._envs[index]
        if self._wrappers:  # they draw from the environment's generator, and `reset` need not begin it anew
            env.unwrapped.np_random, _ = np_random(seed)
        return self._read(env.reset(seed=seed))

    def _read(self, result: Any) -> Any:
        """The result of `reset` or `step`, its observation flattened if it has several parts.

        Other observations are copied, because sub-environments may write theirs into one array of all.
        """
        if not isinstance(result, tuple) or not result:
            return result
        space, (observation, *others) = self._observed_space, result
        return check_and_flatten(space, observation) if is_flattened(space) else np.array(observation), *others

    def _gather(self, ids: Int[np.ndarray, " active"], results: list[Any], faults: dict[int, str]) -> EnvStep:
        """The results in arrays. Those of sub-environments that returned something invalid are replaced in the list."""
        with suppress(Exception):
            return gather_results(results, self.observation_space)
        for row, index in enumerate(ids.tolist()):
            try:
                gather_results([results[row]], self.observation_space)
            except Exception as error:  # whatever NumPy raises for it
                results[row] = self._record_failure(index, error, faults)
        return gather_results(results, self.observation_space)

    def _record_failure(self, index: int, error: Exception, faults: dict[int, str]) -> StepResult:
        """The result to use for a sub-environment that failed."""
        show_once(f"{self._environment} failed in an env step", error)
        faults[index] = describe_error(error)
        self._used_up.add(index)
        return self._first[index], np.nan, True, False, {}
