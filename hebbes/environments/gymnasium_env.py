"""GymnasiumEnv: copies of any Gymnasium environment, stepped one after another in this process."""

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Discrete
from gymnasium.wrappers import AtariPreprocessing, TimeLimit
from jaxtyping import Int, Shaped, UInt8

from hebbes.contracts.environment import EnvStep
from hebbes.contracts.errors import reason, show_once
from hebbes.environments.ids import atari_game
from hebbes.environments.morphologies import INTACT, SPECIES, body_file
from hebbes.environments.quiet_simulators import has_display, quieten
from hebbes.environments.spaces import check_spaces, flat_space, flatten_observation, is_flattened
from hebbes.environments.step_results import Result, Results, gathered, stacked
from hebbes.environments.stepping_guard import Copies, check_episode, episode_seeds

ATARI_SCREEN = 160, 210
"""Width and height of a full Atari frame."""

ATARI_FRAMES = 108_000
"""Longest Atari episode in frames of the game, half an hour of play."""


class GymnasiumEnv:
    """A BatchEnv over `gymnasium.make`; `info` has `elapsed_step`, and `lives` for Atari.

    Where `step` of a copy raises or returns what it should not, that copy alone has failed, and is made anew before
    the next episode. What happens in a constructor or in `reset` is raised.

    Args:
        environment: today's id, already registered.
        seeds: one environment seed a copy, in [0, 2^31).
        env_kwargs: options of the simulator's constructor.
        wrappers: a user's `gymnasium.Wrapper` classes with their options, innermost first.
        body: as `hebbes.environments.morphologies.body_file` takes it.
        render_mode: Gymnasium's, for copy 0.
    """

    def __init__(
        self,
        environment: str,
        seeds: Sequence[int],
        env_kwargs: Mapping[str, Any],
        *,
        wrappers: Sequence[tuple[Callable[..., gymnasium.Env], Mapping[str, Any]]] = (),
        body: str = INTACT,
        render_mode: str | None = None,
    ) -> None:
        self.num_copies = len(seeds)
        self._seeds = tuple(seeds)
        self._environment, self._env_kwargs, self._wrappers = environment, env_kwargs, tuple(wrappers)
        self._body, self._render_mode = body, render_mode
        self._envs: list[gymnasium.Env] = []
        self._broken: set[int] = set()
        self._has_lives = atari_game(environment) is not None
        try:
            with body_file(environment, body) as path:
                self._build(path)
        except BaseException:
            self.close()
            raise

    def start(self, episode: int) -> Shaped[np.ndarray, "copies ..."]:
        """Begins one episode in every copy and returns the first observations."""
        check_episode(episode)
        while self._broken:
            self._renew(self._broken.pop())
        self._first = self._reset(episode_seeds(self._seeds, episode))
        self._copies.begin()
        self._elapsed[:] = 0
        return self._first

    def step(self, actions: Shaped[np.ndarray, "active ..."], active: Int[np.ndarray, " active"]) -> EnvStep:
        """Steps the copies named; row k of `actions` is for copy `active[k]`."""
        ids = self._copies.named(active)
        actions = self._copies.checked(actions, len(ids))
        is_discrete = isinstance(self.action_space, Discrete)
        choices = actions.tolist() if is_discrete else [actions[row, ...] for row in range(len(ids))]
        faults: dict[int, str] = {}
        results = []
        for copy, action in zip(ids.tolist(), choices, strict=True):
            try:
                results.append(self._read(self._envs[copy].step(action)))
            except Exception as error:  # whatever a user's simulator raises
                results.append(self._failed(copy, error, faults))
        rows = self._gathered(ids, results, faults)
        self._copies.end(ids, rows.terminated | rows.truncated)
        self._elapsed[ids] += 1
        info = {"elapsed_step": self._elapsed[ids]}
        if self._has_lives:
            info["lives"] = np.array([info.get("lives", 0) for info in rows.infos], np.int32)
        return EnvStep(rows.observations, rows.rewards, rows.terminated, rows.truncated, info, faults)

    def render(self) -> UInt8[np.ndarray, "height width 3"]:
        """The frame that copy 0 shows, where it was made with `render_mode="rgb_array"`; OSError where it cannot."""
        if self._render_mode != "rgb_array":
            raise ValueError(f"render needs render_mode 'rgb_array', got {self._render_mode!r}")
        try:
            return np.asarray(self._envs[0].render(), np.uint8)
        except Exception as error:  # whatever a simulator, or OpenGL under it, raises
            raise OSError(f"{self._environment} cannot be rendered: {reason(error)}") from error

    def close(self) -> None:
        """Frees the simulators; calling it twice is harmless."""
        while self._envs:
            _close(self._envs.pop())

    def _build(self, body: Path | None) -> None:
        """Makes the copies, each with the body in this file, which is not read after the first reset."""
        for copy in range(self.num_copies):
            self._envs.append(self._made(copy, body))
        self._observed_space, self.action_space = self._envs[0].observation_space, self._envs[0].action_space
        check_spaces(self._environment, self._observed_space, self.action_space)
        self.observation_space = flat_space(self._observed_space)
        self._copies = Copies(self.num_copies, self.action_space, np.dtype(self.action_space.dtype))
        self._elapsed = np.zeros(self.num_copies, np.int32)
        # PyBullet's first episode after loading differs in the last bits from later ones with the same seed.
        self._first = self._reset(self._seeds)

    def _made(self, copy: int, body: Path | None) -> gymnasium.Env:
        def make(**options: Any) -> gymnasium.Env:
            render_mode = self._render_mode if copy == 0 else None
            return _make(self._environment, {**self._env_kwargs, **options}, render_mode)

        env = make() if body is None else SPECIES[self._environment].embodied(make, body)
        try:
            for wrapper, kwargs in self._wrappers:
                env = wrapper(env, **kwargs)
        except BaseException:
            _close(env)
            raise
        return env

    def _renew(self, copy: int) -> None:
        """Puts a simulator in the place of one that failed, in the state in which the constructor leaves it."""
        _close(self._envs[copy])
        with body_file(self._environment, self._body) as path:
            self._envs[copy] = self._made(copy, path)
            self._envs[copy].reset(seed=self._seeds[copy])

    def _reset(self, seeds: Sequence[int]) -> Shaped[np.ndarray, "copies ..."]:
        results = [env.reset(seed=seed) for env, seed in zip(self._envs, seeds, strict=True)]
        if not all(isinstance(result, tuple) and len(result) == 2 for result in results):
            raise ValueError("reset must return two things, the observation and a mapping of info")
        first = [self._read(result)[0] for result in results]
        return stacked("observation of reset", first, self.observation_space)

    def _read(self, result: Any) -> Any:
        """What `reset` or `step` returned, with the observation flattened if it has several parts."""
        if not is_flattened(self._observed_space) or not isinstance(result, tuple):
            return result
        return flatten_observation(self._observed_space, result[0]), *result[1:]

    def _gathered(self, ids: Int[np.ndarray, " active"], results: list[Result], faults: dict[int, str]) -> Results:
        """The results in arrays, those of copies that returned what they should not replaced."""
        with suppress(Exception):
            return gathered(results, self.observation_space)
        sound = []
        for copy, result in zip(ids.tolist(), results, strict=True):
            try:
                row = gathered([result], self.observation_space)
            except Exception as error:  # whatever NumPy makes of it
                row = gathered([self._failed(copy, error, faults)], self.observation_space)
            sound.append((row.observations[0], row.rewards[0], row.terminated[0], row.truncated[0], row.infos[0]))
        return gathered(sound, self.observation_space)

    def _failed(self, copy: int, error: Exception, faults: dict[int, str]) -> Result:
        """What stands for the result of a copy that failed."""
        show_once(f"{self._environment} failed in an env step", error)
        faults[copy] = reason(error)
        self._broken.add(copy)
        return self._first[copy], np.nan, True, False, {}


def _close(env: gymnasium.Env) -> None:
    """Frees a simulator, which may be broken."""
    try:
        env.close()
    except Exception as error:  # nobody needs it any more
        show_once("an environment failed to close", error)


def _make(environment: str, env_kwargs: Mapping[str, Any], render_mode: str | None) -> gymnasium.Env:
    """One copy; ValueError where the id, an option or a package is at fault."""
    try:
        if atari_game(environment) is not None:
            return _make_atari(environment, env_kwargs, render_mode)
        quieten(str(gymnasium.spec(environment).entry_point), render_mode)
        return gymnasium.make(environment, disable_env_checker=True, **_rendering(render_mode), **env_kwargs)
    except Exception as error:  # whatever a constructor raises, a user's own included
        options = f" with options {dict(env_kwargs)}" if env_kwargs else ""
        reason = f"{type(error).__name__}: {error}"
        raise ValueError(f"environment {environment!r} cannot be made{options}: {reason}") from error


def _make_atari(environment: str, env_kwargs: Mapping[str, Any], render_mode: str | None) -> gymnasium.Env:
    """One copy of today's Atari id: what `hebbes.environments.ids` says that it means, as EnvPool has it."""
    options = {"frameskip": 4, "repeat_action_probability": 0.0, **env_kwargs}
    frameskip = options.pop("frameskip")
    if not isinstance(frameskip, int) or frameskip < 1:
        raise ValueError(f"frameskip of {environment!r} must be an integer >= 1, got {frameskip!r}")
    quieten("ale_py", render_mode)
    env = gymnasium.make(
        f"ALE/{environment}",
        disable_env_checker=True,
        frameskip=1,
        max_num_frames_per_episode=None,
        **_rendering(render_mode),
        **options,
    )
    env = AtariPreprocessing(env, noop_max=1, frame_skip=frameskip, screen_size=ATARI_SCREEN, grayscale_obs=False)
    return TimeLimit(env, ATARI_FRAMES // frameskip)


def waits_for_fire(environment: str) -> bool:
    """Whether today's id is an Atari game that has a FIRE button; false for all that is no game."""
    if atari_game(environment) is None:
        return False
    env = _make_atari(environment, {}, None)
    try:
        return "FIRE" in env.unwrapped.get_action_meanings()  # type: ignore[attr-defined]  # Atari's have it
    finally:
        env.close()


def _rendering(render_mode: str | None) -> dict[str, Any]:
    """Nothing where nothing is asked for: a user's environment need not know the argument."""
    if render_mode is None:
        return {}
    if not has_display():
        os.environ.setdefault("MUJOCO_GL", "egl")  # MuJoCo would look for a display
    return {"render_mode": render_mode}
