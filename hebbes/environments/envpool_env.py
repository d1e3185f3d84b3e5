"""EnvPoolEnv: copies of one environment in EnvPool's C++ thread pool.

EnvPool cannot reseed a pool, so that a start state which depends on the episode number alone needs one of three ways:

    replay     MuJoCo and CarRacing: their steps draw no random numbers, so the pool is kept and reset once an episode;
               a pool that is further on than the episode asked for is built again. EnvPool 1.2.5 never frees some
               20 kB of each copy of CarRacing, so that building it anew each time would fill the memory.
    reset      Atari without sticky actions: nothing is drawn at all, every episode of a game starts alike.
    rebuild    Everything else, sticky Atari included: a new pool for each episode. Measured with two threads, that
               and the reset take 0.02 to 0.1 ms a copy, Atari 90 ms.

EnvPool checks little and aborts or corrupts memory on bad input, hence `Copies`. Its `_send` and `_recv` are called in
place of `step`, which converts and checks the same again.
"""

import inspect
import os
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import envpool
import gymnasium
import numpy as np
from envpool.registration import registry
from gymnasium import Space
from gymnasium.envs.registration import load_env_creator
from gymnasium.spaces import Box, Dict
from jaxtyping import Int, Shaped

from hebbes.contracts.environment import EnvStep
from hebbes.environments.gymnasium_env import ATARI_FRAMES, ATARI_SCREEN
from hebbes.environments.morphologies import INTACT, body_file
from hebbes.environments.spaces import check_spaces, flat_space, flatten_observation, is_flattened, parts_of
from hebbes.environments.stepping_guard import Copies, check_episode, episode_seeds

# Of float64 bounds of float32 spaces. Set once, here: a filter for the time of a call would not be thread-safe.
warnings.filterwarnings("ignore", ".*Box (low|high)'s precision lowered by casting", UserWarning)

_ATARI, _MUJOCO = "envpool.atari", "envpool.mujoco.gym"

_ATARI_CONFIG = {
    "img_width": ATARI_SCREEN[0],
    "img_height": ATARI_SCREEN[1],
    "gray_scale": False,
    "stack_num": 1,
    "noop_max": 1,  # 0 crashes
    "use_fire_reset": False,
    "episodic_life": False,
    "reward_clip": False,
}

_POOL_CONFIG = {"num_envs", "batch_size", "num_threads", "max_num_players", "thread_affinity_offset", "base_path"}
"""What EnvPool's config has for the pool."""

_NOT_OPTIONS = {"seed", "env_seed", "gym_reset_return_info", "reward_threshold", "max_episode_steps", "xml_file"}
"""What else is no option of an environment; `xml_file` means another folder than Gymnasium's, see `_body_config`."""


def refusal(environment: str, env_kwargs: Mapping[str, Any]) -> str | None:
    """Why EnvPool cannot make this environment with these options; None if it can."""
    task, options = _translated(environment, env_kwargs)
    if task not in registry.specs:
        return f"EnvPool has no {environment!r}"
    foreign = sorted(set(options) - _shared_options(environment, task)) if options else []
    return f"EnvPool's {environment} has no option {', '.join(foreign)}" if foreign else None


class EnvPoolEnv:
    """A BatchEnv over EnvPool; `info` has `elapsed_step`, and `lives` for Atari.

    Args:
        environment: an id that `refusal` does not refuse with these options.
        seeds: one environment seed a copy, in [0, 2^31).
        env_kwargs: options of the simulator's constructor, by their Gymnasium names.
        threads: how many step the copies, >= 1.
        body: as `hebbes.environments.morphologies.body_file` takes it.
    """

    def __init__(
        self,
        environment: str,
        seeds: Sequence[int],
        env_kwargs: Mapping[str, Any],
        *,
        threads: int,
        body: str = INTACT,
    ) -> None:
        self.num_copies = len(seeds)
        self._seeds = tuple(seeds)
        self._task, options = _translated(environment, env_kwargs)
        self._family = registry.specs[self._task][0]
        self._config = {
            **_fixed_config(environment, self._family, options),
            "num_envs": self.num_copies,
            "num_threads": min(threads, self.num_copies),
        }
        self._all = np.arange(self.num_copies, dtype=np.int32)
        self._way = _way(self._task, self._family, options)
        self._body = body
        self._pool: Any = None
        self._resets = 0
        self._describe(environment)

    def start(self, episode: int) -> Shaped[np.ndarray, "copies ..."]:
        """Begins one episode in every copy and returns the first observations."""
        check_episode(episode)
        if self._way == "rebuild":
            self._build(episode_seeds(self._seeds, episode))
        elif self._pool is None or (self._way == "replay" and self._resets > episode):
            self._build(self._seeds)
        resets = episode + 1 - self._resets if self._way == "replay" else 1
        for _ in range(resets):
            self._pool._reset(self._all)
            state = self._pool._recv()
        self._resets += resets
        self._copies.begin()
        return self._observations(state)

    def step(self, actions: Shaped[np.ndarray, "active ..."], active: Int[np.ndarray, " active"]) -> EnvStep:
        """Steps the copies named; row k of `actions` is for copy `active[k]`."""
        ids = self._copies.named(active)
        self._pool._send([ids, ids, self._copies.checked(actions, len(ids))])
        state = self._pool._recv()
        done, truncated = state[self._done], state[self._truncated]
        self._copies.end(ids, done)
        return EnvStep(
            observations=self._observations(state),
            rewards=state[self._reward].astype(np.float64),
            terminated=done & ~truncated,
            truncated=truncated,
            info={name: state[index] for name, index in self._info.items()},
        )

    def close(self) -> None:
        """Frees the simulators; calling it twice is harmless."""
        self._pool = None

    def _describe(self, environment: str) -> None:
        """Spaces, and where in EnvPool's lists of arrays everything lies."""
        spec = _made(envpool.make_spec, environment, self._task, self._config)
        self._observed_space = _with_sorted_keys(spec.gymnasium_observation_space)
        self.action_space: Space = spec.gymnasium_action_space
        check_spaces(environment, self._observed_space, self.action_space)
        if spec.config.max_num_players != 1:
            raise ValueError(f"environment {environment!r} is a game of several players, and a policy is one")
        self.observation_space = flat_space(self._observed_space)
        if self._family == _ATARI:
            channels, height, width = spec.gymnasium_observation_space.shape
            self.observation_space = Box(0, 255, (height, width, channels), np.uint8)
        keys = list(spec.state_array_spec)
        self._done, self._truncated = keys.index("done"), keys.index("trunc")
        self._reward = keys.index("reward")
        self._parts = {path: _part_index(keys, path) for path, _ in parts_of(self._observed_space)}
        self._info = {"elapsed_step": keys.index("elapsed_step")}
        if "info:lives" in keys:
            self._info["lives"] = keys.index("info:lives")
        self._copies = Copies(self.num_copies, self.action_space, spec.action_array_spec["action"].dtype)
        self._environment = environment

    def _build(self, seeds: Sequence[int]) -> None:
        self._pool = None  # frees the old pool's threads before there are new ones
        with body_file(self._environment, self._body) as path:
            config = {**self._config, **_body_config(self._task, path), "seed": list(seeds)}
            self._pool = _made(envpool.make_gymnasium, self._environment, self._task, config)
        self._resets = 0

    def _observations(self, state: Sequence[np.ndarray]) -> Shaped[np.ndarray, "rows ..."]:
        if is_flattened(self._observed_space):
            rows = [self._row(state, number) for number in range(len(state[self._done]))]
            return np.stack([flatten_observation(self._observed_space, row) for row in rows])
        observations = state[self._parts[()]]
        return observations.transpose(0, 2, 3, 1) if self._family == _ATARI else observations

    def _row(self, state: Sequence[np.ndarray], number: int) -> Any:
        """The observation of one row: an array, or nested dicts of arrays."""

        def part(space: Space, path: tuple[str, ...]) -> Any:
            if isinstance(space, Dict):
                return {key: part(inner, (*path, key)) for key, inner in space.items()}
            return state[self._parts[path]][number]

        return part(self._observed_space, ())


def _translated(environment: str, env_kwargs: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """EnvPool's id and options for Gymnasium's."""
    options = dict(env_kwargs)
    if environment == "LunarLander-v3" and "continuous" in options:
        return ("LunarLanderContinuous-v3" if options.pop("continuous") else environment), options
    if "frameskip" in options and environment in registry.specs and registry.specs[environment][0] == _ATARI:
        options["frame_skip"] = options.pop("frameskip")
    return environment, options


def _shared_options(environment: str, task: str) -> set[str]:
    """Options that EnvPool's environment and the constructor of Gymnasium's both name."""
    if registry.specs[task][0] == _ATARI:
        return {"frame_skip", "repeat_action_probability", "full_action_space", "mode", "difficulty"}
    ours = set(envpool.make_spec(task).config._fields) - _POOL_CONFIG - _NOT_OPTIONS
    if environment not in gymnasium.registry:
        return ours
    entry_point = gymnasium.registry[environment].entry_point
    creator = load_env_creator(entry_point) if isinstance(entry_point, str) else entry_point
    return ours & set(inspect.signature(creator).parameters) if creator else set()


def _fixed_config(environment: str, family: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """The options, and what must be the same as on the Gymnasium back end: the time limit, and Atari's frames."""
    config = dict(options)
    if family == _ATARI:
        return {**_ATARI_CONFIG, **config, "max_episode_steps": ATARI_FRAMES // config.get("frame_skip", 4)}
    registered = gymnasium.registry.get(environment)
    if registered is not None and registered.max_episode_steps is not None:
        config["max_episode_steps"] = registered.max_episode_steps
    return config


def _body_config(task: str, body: Path | None) -> dict[str, str]:
    """The option for a body in this file, whose name EnvPool appends to its own folder even if it is absolute.

    MuJoCo then takes out each `..` with the name before it, be that a link or not.
    """
    if body is None:
        return {}
    folder = Path(envpool.make_spec(task).config.base_path, "mujoco", "assets_gym")
    return {"xml_file": os.path.relpath(body.resolve(), folder.absolute())}


def _way(task: str, family: str, options: Mapping[str, Any]) -> str:
    """How start states are kept a function of the episode: see the head of this file."""
    if family == _MUJOCO or task.startswith("CarRacing"):
        return "replay"
    return "reset" if family == _ATARI and not options.get("repeat_action_probability", 0.0) else "rebuild"


def _with_sorted_keys(space: Space) -> Space:
    """The space with its Dicts in the order that Gymnasium gives to plain dicts: the same id flattens alike on both."""
    return Dict({key: _with_sorted_keys(part) for key, part in space.items()}) if isinstance(space, Dict) else space


def _part_index(keys: Sequence[str], path: tuple[str, ...]) -> int:
    """Where the part of the observations with these keys lies; families join them by "." or ":", or hide a lone key."""
    names = {":".join(("obs", *path)), f"obs:{'.'.join(path)}"}
    (found,) = names.intersection(keys) or {key for key in keys if key.startswith("obs:")}
    return keys.index(found)


def _made(make: Any, environment: str, task: str, config: Mapping[str, Any]) -> Any:
    """EnvPool's answer; ValueError where it refuses an option."""
    try:
        return make(task, **config)
    except (TypeError, ValueError, RuntimeError, ImportError) as error:
        reason = str(error).splitlines()[0]
        raise ValueError(f"environment {environment!r} cannot be made by EnvPool: {reason}") from error
