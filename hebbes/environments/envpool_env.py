"""EnvPoolEnv: sub-environments in EnvPool's C++ thread pool.

EnvPool cannot reseed a pool, but a start state must depend only on the seed and the episode number. Two ways:

    kept       Gymnasium's MuJoCo tasks and CarRacing. Their env steps draw no random numbers: the pool is kept and
               reset once per episode. If it has already passed the episode asked for, it is built again. EnvPool 1.2.5
               never frees about 17 kB per CarRacing simulator, so that building it for every episode would fill the
               memory.
    rebuilt    Everything else: a new pool for each episode. With two threads and 8 simulators, building and reset
               together take 0.04 to 0.14 ms per simulator, for DeepMind's control suite 30 ms and for Atari 45 ms. A
               reset leaves Atari's console as it was, timer and memory: games such as Seaquest and BeamRider go on
               differently after one.

EnvPool checks little and aborts or corrupts memory on bad input. `SteppingGuard` prevents that. We call `_send` and
`_recv` instead of `step`, which would convert and check everything again.
"""

import inspect
import os
import warnings
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from gymnasium.envs.registration import load_env_creator
from gymnasium.spaces import Box, Dict
from jaxtyping import Int, Shaped

from hebbes.contracts.environment import EnvStep, Space
from hebbes.environments.envpool_import import import_envpool
from hebbes.environments.freed_memory import return_free_memory
from hebbes.environments.gymnasium_simulator import ATARI_FRAMES, ATARI_SCREEN, check_atari_options
from hebbes.environments.morphologies import INTACT, provide_morphology_file
from hebbes.environments.simulator_threads import SimulatorThreads
from hebbes.environments.spaces import check_spaces, flatten_observation, is_flattened, iterate_parts, make_flat_space
from hebbes.environments.stepping_guard import SteppingGuard, check_episode, derive_episode_seeds

# About float64 bounds of float32 spaces. Set once, here: a filter around each call would not be thread-safe.
warnings.filterwarnings("ignore", ".*Box (low|high)'s precision lowered by casting", UserWarning)

envpool = import_envpool()
registry = envpool.registration.registry

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
"""Keys of EnvPool's config that concern the pool."""

_OTHER_OBSERVATIONS = {"Blackjack-v1"}
"""Environments whose observations differ from those of Gymnasium, on which policies are tested."""

EPISODES_OF_CAR_RACING = 100
"""Episodes that one pool plays. With more, a new pool would replay more starts, each of which makes a track. With
fewer, more pools would be freed, each of which leaks some 17 kB a simulator."""

_NOT_OPTIONS = {"seed", "env_seed", "gym_reset_return_info", "reward_threshold", "max_episode_steps", "xml_file"}
"""Other keys that are not options of an environment. See `_make_morphology_config` for `xml_file`."""


def explain_refusal(environment: str, env_kwargs: Mapping[str, Any]) -> str | None:
    """Why EnvPool cannot make this environment with these options, as a text; None if it can."""
    task, options = _translate_options(environment, env_kwargs)
    if task not in registry.specs:
        return f"EnvPool has no {environment!r}"
    if task in _OTHER_OBSERVATIONS:
        return f"EnvPool's {environment} has other observations than Gymnasium's"
    foreign = sorted(set(options) - _find_shared_options(environment, task)) if options else []
    return f"EnvPool's {environment} has no option {', '.join(foreign)}" if foreign else None


class EnvPoolEnv:
    """A BatchEnv over EnvPool; `info` has `lives` for Atari.

    Args:
        environment: an id for which `explain_refusal` returns None with these options.
        seeds: one per sub-environment, in [0, 2^31).
        env_kwargs: options of the simulator's constructor, under their Gymnasium names.
        threads: number of threads that step the simulators, >= 1.
        morphology: as `hebbes.environments.morphologies.provide_morphology_file` takes it.
    """

    def __init__(
        self,
        environment: str,
        seeds: Sequence[int],
        env_kwargs: Mapping[str, Any],
        *,
        threads: int,
        morphology: str = INTACT,
    ) -> None:
        self.num_envs = len(seeds)
        self.seeds = tuple(seeds)
        self._task, options = _translate_options(environment, env_kwargs)
        self._family = registry.specs[self._task][0]
        self._config = {
            **_complete_config(environment, self._family, options),
            "num_envs": self.num_envs,
            "num_threads": min(threads, self.num_envs),
        }
        self._all = np.arange(self.num_envs, dtype=np.int32)
        self._episodes_a_pool = _count_episodes_a_pool(self._task, self._family)
        self._morphology = morphology
        self._pool: Any = None
        self._threads = SimulatorThreads()
        self._pool_number = self._resets = 0
        self._environment = environment
        self._read_spec()

    def start(self, episode: int) -> Shaped[np.ndarray, "envs ..."]:
        """The first observations of a new episode in every sub-environment."""
        check_episode(episode)
        size = self._episodes_a_pool
        pool_number, place = (0, episode) if size is None else divmod(episode, size)
        if self._pool is None or pool_number != self._pool_number or self._resets > place:
            self._build(self.seeds if size is None else derive_episode_seeds(self.seeds, pool_number))
            self._pool_number = pool_number
        self._threads.follow_caller()
        while self._resets <= place:
            self._pool._reset(self._all)
            state = self._pool._recv()
            self._resets += 1
        self._guard.begin_episodes()
        return self._read_observations(state)

    def step(self, actions: Shaped[np.ndarray, "active ..."], active: Int[np.ndarray, " active"]) -> EnvStep:
        """Steps the sub-environments in `active`, `active[k]` with row k of `actions`."""
        ids = self._guard.check_ids(active)
        self._pool._send([ids, ids, self._guard.check_actions(actions, len(ids))])
        state = self._pool._recv()
        done, truncated = state[self._done], state[self._truncated]
        self._guard.end_episodes(ids, done)
        return EnvStep(
            observations=self._read_observations(state),
            rewards=state[self._reward].astype(np.float64),
            terminated=done > truncated,  # done, and not by the time limit
            truncated=truncated,
            info={name: state[index] for name, index in self._info.items()},
        )

    def close(self) -> None:
        """Frees the simulators. Calling it twice is harmless."""
        self._pool = None

    def _read_spec(self) -> None:
        """Sets the spaces, and the indices into EnvPool's lists of arrays."""
        environment = self._environment
        spec = _call_envpool(envpool.make_spec, environment, self._task, self._config)
        self._observed_space = _sort_keys(spec.gymnasium_observation_space)
        self.action_space: Space = spec.gymnasium_action_space
        check_spaces(environment, self._observed_space, spec.gymnasium_action_space)
        if spec.config.max_num_players != 1:
            raise ValueError(f"environment {environment!r} is a game of several players, and a policy plays only one")
        self.observation_space: Space = make_flat_space(self._observed_space)
        if self._family == _ATARI:
            channels, height, width = spec.gymnasium_observation_space.shape
            self.observation_space = Box(0, 255, (height, width, channels), np.uint8)
        keys = list(spec.state_array_spec)
        self._done, self._truncated = keys.index("done"), keys.index("trunc")
        self._reward = keys.index("reward")
        self._parts = {path: _find_part(keys, path) for path, _ in iterate_parts(self._observed_space)}
        self._info = {"lives": keys.index("info:lives")} if "info:lives" in keys else {}
        self._guard = SteppingGuard(self.num_envs, self.action_space, spec.action_array_spec["action"].dtype)

    def _build(self, seeds: Sequence[int]) -> None:
        self._pool = None  # frees the old pool's threads before new ones start
        if self._resets > 1:  # a pool of one episode is followed by the next at once, which takes the same memory
            return_free_memory()
        with provide_morphology_file(self._environment, self._morphology) as path:
            config = {**self._config, **_make_morphology_config(self._task, path), "seed": list(seeds)}
            self._threads = SimulatorThreads()
            # those of a pool of one episode are on the right cores already
            with nullcontext() if self._episodes_a_pool == 1 else self._threads.record_started():
                self._pool = _call_envpool(envpool.make_gymnasium, self._environment, self._task, config)
        self._resets = 0

    def _read_observations(self, state: Sequence[np.ndarray]) -> Shaped[np.ndarray, "rows ..."]:
        if is_flattened(self._observed_space):
            rows = [self._read_row(state, number) for number in range(len(state[self._done]))]
            return np.stack([flatten_observation(self._observed_space, row) for row in rows])
        observations = state[self._parts[()]]
        return observations.transpose(0, 2, 3, 1) if self._family == _ATARI else observations

    def _read_row(self, state: Sequence[np.ndarray], number: int) -> Any:
        """The observation in one row: an array, or nested dicts of arrays."""

        def part(space: gymnasium.Space, path: tuple[str, ...]) -> Any:
            if isinstance(space, Dict):
                return {key: part(inner, (*path, key)) for key, inner in space.items()}
            return state[self._parts[path]][number]

        return part(self._observed_space, ())


def _count_episodes_a_pool(task: str, family: str) -> int | None:
    """Number of episodes that one pool plays; None if it plays all.

    Env steps of Gymnasium's MuJoCo tasks and CarRacing draw no random numbers, so a start state depends on the number
    of resets alone.
    """
    if family == _MUJOCO:
        return None
    return EPISODES_OF_CAR_RACING if task.startswith("CarRacing") else 1


def _translate_options(environment: str, env_kwargs: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """EnvPool's id and options for those of Gymnasium."""
    options = dict(env_kwargs)
    if environment == "LunarLander-v3" and "continuous" in options:
        return ("LunarLanderContinuous-v3" if options.pop("continuous") else environment), options
    if "frameskip" in options and environment in registry.specs and registry.specs[environment][0] == _ATARI:
        options["frame_skip"] = options.pop("frameskip")
    return environment, options


def _find_shared_options(environment: str, task: str) -> set[str]:
    """Options that exist both in EnvPool's config and in the constructor of Gymnasium's environment."""
    if registry.specs[task][0] == _ATARI:
        return {"frame_skip", "repeat_action_probability", "full_action_space", "mode", "difficulty"}
    ours = set(envpool.make_spec(task).config._fields) - _POOL_CONFIG - _NOT_OPTIONS
    if environment not in gymnasium.registry:
        return ours
    entry_point = gymnasium.registry[environment].entry_point
    creator = load_env_creator(entry_point) if isinstance(entry_point, str) else entry_point
    return ours & set(inspect.signature(creator).parameters) if creator else set()


def _complete_config(environment: str, family: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """The options, with what must equal the Gymnasium back end added: the time limit and Atari's frames."""
    config = dict(options)
    if family == _ATARI:
        frameskip = config.get("frame_skip", 4)
        check_atari_options(environment, {"repeat_action_probability": 0.0, **config, "frameskip": frameskip})
        return {**_ATARI_CONFIG, **config, "max_episode_steps": ATARI_FRAMES // frameskip}
    registered = gymnasium.registry.get(environment)
    if registered is not None and registered.max_episode_steps is not None:
        config["max_episode_steps"] = registered.max_episode_steps
    return config


def _make_morphology_config(task: str, morphology: Path | None) -> dict[str, str]:
    """The `xml_file` option for a morphology in this file; empty for None.

    EnvPool appends the path to its own folder, even if it is absolute. So the path must be relative to that folder.
    MuJoCo then removes each `..` together with the name before it, even if that is a link. So links are resolved first.
    """
    if morphology is None:
        return {}
    folder = Path(envpool.make_spec(task).config.base_path, "mujoco", "assets_gym")
    return {"xml_file": os.path.relpath(morphology.resolve(), folder.absolute())}


def _sort_keys(space: gymnasium.Space) -> gymnasium.Space:
    """The space with the keys of Dicts sorted, as Gymnasium sorts plain dicts: both back ends flatten alike."""
    return Dict({key: _sort_keys(part) for key, part in space.items()}) if isinstance(space, Dict) else space


def _find_part(keys: Sequence[str], path: tuple[str, ...]) -> int:
    """Index of the part of the observations at this path. Families join keys by "." or ":", or hide a single key."""
    names = {":".join(("obs", *path)), f"obs:{'.'.join(path)}"}
    (found,) = names.intersection(keys) or {key for key in keys if key.startswith("obs:")}
    return keys.index(found)


def _call_envpool(make: Any, environment: str, task: str, config: Mapping[str, Any]) -> Any:
    """What `make` returns; ValueError if EnvPool refuses an option."""
    try:
        return make(task, **config)
    except (TypeError, ValueError, RuntimeError, ImportError) as error:
        reason = str(error).splitlines()[0]
        raise ValueError(f"environment {environment!r} cannot be made by EnvPool: {reason}") from error
