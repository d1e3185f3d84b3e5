"""EvaluationEnv: the environment of a policy file as a `gymnasium.Env`, with the episodes of an evaluation."""

from collections.abc import Mapping
from math import inf
from typing import Any

import gymnasium
import numpy as np
from jaxtyping import Shaped, UInt8
from numpy.typing import ArrayLike

from hebbes.contracts.option import check_argument
from hebbes.environments.environment_spec import EnvironmentSpec
from hebbes.evaluation.play import make_episode_env


class EvaluationEnv(gymnasium.Env):
    """One sub-environment in its wrappers, on its first morphology. The k-th reset begins episode k of an evaluation.

    Observations and actions are those of the outermost wrapper, and the spaces are its spaces. Each episode has a new
    simulator, so that nothing is left of the previous one.

    Examples:
        >>> import hebbes
        >>> env = hebbes.load_policy("cartpole.dat").make_env(seed=0)
        >>> observation, info = env.reset()
        >>> observation.shape, info
        ((4,), {'episode': 0})
        >>> observation, reward, terminated, truncated, info = env.step(1)
        >>> reward, terminated, truncated
        (1.0, False, False)
        >>> env.reset()[1], env.reset(options={"episode": 7})[1]
        ({'episode': 1}, {'episode': 7})
        >>> env.close()
    """

    def __init__(
        self,
        spec: EnvironmentSpec,
        *,
        seed: int = 0,
        max_episode_steps: int | None = None,
        render_mode: str | None = None,
    ) -> None:
        self.render_mode, self._cap = render_mode, inf if max_episode_steps is None else max_episode_steps
        self._spec, self._seed, self._next = spec, seed, 0
        self._env = self._make(0)
        self._is_closed, self._env_steps = False, 0
        self.metadata = {"render_modes": [], **getattr(self._env, "metadata", {})}
        self._fresh: int | None = 0  # number of the episode for which the simulator was made, if it is still unused
        self.observation_space, self.action_space = self._env.observation_space, self._env.action_space

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Shaped[np.ndarray, "..."], dict[str, Any]]:
        """The first observation of the next episode, and its number as `info["episode"]`.

        A `seed` is the new seed of the evaluation, whose episode 0 begins. `options={"episode": k}` begins episode k.
        """
        if seed is not None:
            seed = check_argument("seed", seed, int, range=">= 0")
            self._seed, self._next, self._fresh = seed, 0, None
        super().reset(seed=seed)
        if not isinstance(options, Mapping | None):
            raise ValueError(f"options must be a mapping such as {{'episode': 7}}, got {options!r}")
        episode = check_argument("episode", (options or {}).get("episode", self._next), int, range=">= 0")
        if self._fresh != episode:
            self.close()
            self._env = self._make(episode)
        self._fresh, self._next, self._is_closed = None, episode + 1, False
        self._env_steps = 0
        return _copy(self._env.start(0)[0]), {"episode": episode}

    def step(self, action: ArrayLike) -> tuple[Shaped[np.ndarray, "..."], float, bool, bool, dict[str, Any]]:
        """Observation, reward, terminated, truncated and info, as Gymnasium has them.

        If the simulator fails, the reward is NaN, the episode has terminated, and `info["fault"]` says why. ValueError
        after `close` or the end of the episode, until the next `reset`.
        """
        if self._is_closed:
            raise ValueError("step cannot follow close: call reset first")
        if self._env_steps >= self._cap:
            raise ValueError(f"the episode has ended after {self._env_steps} env steps: call reset first")
        stepped = self._env.step(np.asarray(action)[np.newaxis], np.zeros(1, np.int64))
        info: dict[str, Any] = {name: values[0] for name, values in stepped.info.items()}
        if stepped.faults:
            info["fault"] = stepped.faults[0]
        self._env_steps += 1
        reward, terminated = float(stepped.rewards[0]), bool(stepped.terminated[0])
        truncated = bool(stepped.truncated[0]) or (not terminated and self._env_steps >= self._cap)
        return _copy(stepped.observations[0]), reward, terminated, truncated, info

    def render(self) -> UInt8[np.ndarray, "height width 3"] | None:
        """The current image for the render mode "rgb_array". None for others: "human" shows every env step itself."""
        return self._env.render() if self.render_mode == "rgb_array" else None

    def close(self) -> None:
        """Frees the simulator. Calling it twice is harmless. `reset` makes another one."""
        self._env.close()
        self._is_closed, self._fresh = True, None

    def _make(self, episode: int) -> Any:
        return make_episode_env(self._spec, episode=episode, seed=self._seed, render_mode=self.render_mode)


def _copy(observation: Shaped[np.ndarray, "..."]) -> Shaped[np.ndarray, "..."]:
    """The observation for the caller, who may change it, in the same order in memory."""
    return np.array(observation, order="K")
