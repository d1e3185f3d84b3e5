"""Makes one simulator of Gymnasium: its options, its render mode, and Atari games as EnvPool has them."""

import os
from collections.abc import Mapping
from contextlib import closing
from typing import Any

import gymnasium
from gymnasium.envs.registration import load_env_creator
from gymnasium.wrappers import AtariPreprocessing, TimeLimit

from hebbes.contracts.errors import close_part, describe_error
from hebbes.environments.bullet_walkers import accelerate_walker
from hebbes.environments.ids import find_atari_game
from hebbes.environments.quiet_simulators import has_display, quieten

ATARI_SCREEN = 160, 210
"""Width and height of a full Atari frame."""

ATARI_FRAMES = 108_000
"""Longest Atari episode, in frames of the game: half an hour of play."""

ATARI_FRAMES_PER_SECOND = 60
"""Of the game. An env step of ours takes several of them."""


def make_simulator(environment: str, env_kwargs: Mapping[str, Any], render_mode: str | None) -> gymnasium.Env:
    """One simulator; ValueError if the id, an option, a package or the render mode is at fault."""
    make = _make_with_gymnasium if find_atari_game(environment) is None else _make_atari
    try:
        env = make(environment, env_kwargs, render_mode)
    except Exception as error:  # whatever a constructor raises, a user's own included
        _check_render_mode(environment, _find_class_metadata(environment), render_mode)
        options = f" with options {dict(env_kwargs)}" if env_kwargs else ""
        raise ValueError(f"environment {environment!r} cannot be made{options}: {describe_error(error)}") from error
    try:
        _check_render_mode(environment, env.metadata, render_mode)
    except ValueError:
        close_simulator(env)
        raise
    return env


def close_simulator(env: gymnasium.Env) -> None:
    """Frees a simulator, even a broken one."""
    close_part("an environment", env)


def _check_render_mode(environment: str, metadata: Any, render_mode: str | None) -> None:
    """ValueError for a mode that the metadata of an environment do not name. Gymnasium only warns."""
    modes = metadata.get("render_modes") if isinstance(metadata, Mapping) else None
    if modes is None or render_mode is None or render_mode in modes:
        return
    if render_mode == "human" and "rgb_array" in modes:  # Gymnasium can show images in a window
        return
    raise ValueError(
        f"environment {environment!r} has no render mode {render_mode!r} in its metadata; "
        f"it has {', '.join(modes) or 'none'}"
    )


def _find_class_metadata(environment: str) -> Any:
    """The metadata of the class of an environment that cannot be made; None if it has no class, or cannot be loaded."""
    try:
        entry_point = gymnasium.spec(_find_gymnasium_id(environment)).entry_point
        creator = load_env_creator(entry_point) if isinstance(entry_point, str) else entry_point
    except Exception:  # whatever the module raises; the error of the constructor says it
        return None
    return getattr(creator, "metadata", None)


def _find_gymnasium_id(environment: str) -> str:
    """Gymnasium's id for a current one."""
    return environment if find_atari_game(environment) is None else f"ALE/{environment}"


def _make_with_gymnasium(environment: str, env_kwargs: Mapping[str, Any], render_mode: str | None) -> gymnasium.Env:
    entry_point = str(gymnasium.spec(environment).entry_point)
    quieten(entry_point, render_mode)
    arguments = {**_make_render_options(render_mode), **env_kwargs}
    if render_mode is not None and entry_point.startswith("gymnasium.envs.mujoco") and "camera_id" not in arguments:
        arguments.setdefault("camera_name", "track")  # else Gymnasium 1.4 looks at where HalfCheetah-v5 started
    return accelerate_walker(gymnasium.make(environment, disable_env_checker=True, **arguments))


def check_atari_options(environment: str, options: Mapping[str, Any]) -> None:
    """ValueError for what EnvPool would take in silence, or divide by, and Gymnasium refuses."""
    frameskip, sticky = options["frameskip"], options["repeat_action_probability"]
    if not isinstance(frameskip, int) or frameskip < 1:
        raise ValueError(f"frameskip of {environment!r} must be an integer >= 1, got {frameskip!r}")
    if not (isinstance(sticky, float | int) and 0 <= sticky <= 1):
        raise ValueError(f"repeat_action_probability of {environment!r} must be in [0, 1], got {sticky!r}")
    for name in ("mode", "difficulty"):
        value = options.get(name)
        if value is not None and not (isinstance(value, int) and value >= 0):
            raise ValueError(f"{name} of {environment!r} must be an integer >= 0, got {value!r}")


def _make_atari(environment: str, env_kwargs: Mapping[str, Any], render_mode: str | None) -> gymnasium.Env:
    """One simulator for a current Atari id, as `hebbes.environments.ids` defines it, and as EnvPool has it."""
    options = {"frameskip": 4, "repeat_action_probability": 0.0, **env_kwargs}
    check_atari_options(environment, options)
    frameskip = options.pop("frameskip")
    limit = options.pop("max_episode_steps", None)  # in env steps, which Gymnasium would take for frames
    quieten("ale_py", render_mode)
    fixed: dict[str, Any] = {"disable_env_checker": True, "frameskip": 1, "max_num_frames_per_episode": None}
    env = gymnasium.make(_find_gymnasium_id(environment), **fixed, **_make_render_options(render_mode), **options)
    env = AtariPreprocessing(env, noop_max=1, frame_skip=frameskip, screen_size=ATARI_SCREEN, grayscale_obs=False)
    env.metadata = {**env.metadata, "render_fps": ATARI_FRAMES_PER_SECOND / frameskip}
    return env if limit == -1 else TimeLimit(env, ATARI_FRAMES // frameskip if limit is None else limit)


def has_fire_action(environment: str) -> bool:
    """Whether a current id is an Atari game whose action 1 is FIRE, as of all but two games that have this button."""
    if find_atari_game(environment) is None:
        return False
    quieten("ale_py", None)
    with closing(gymnasium.make(_find_gymnasium_id(environment), disable_env_checker=True)) as env:
        return env.unwrapped.get_action_meanings()[1] == "FIRE"  # type: ignore[attr-defined]  # Atari's have it


def _make_render_options(render_mode: str | None) -> dict[str, Any]:
    """Empty without a render mode, because a user's environment need not know the argument."""
    if render_mode is None:
        return {}
    if not has_display():
        os.environ.setdefault("MUJOCO_GL", "egl")  # MuJoCo would look for a display
    return {"render_mode": render_mode}
