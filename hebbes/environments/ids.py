"""Environment names: whatever a user calls an environment becomes today's id and the options of its constructor.

Retired ids (CarRacing-v0, HalfCheetah-v2) become the newest version, a bare name (CarRacing) too. An id is Gymnasium's,
save for Atari, which has one id a game, `Pong-v5`, that means the same on both back ends: full 210 x 160 colour frames,
one no-op at the start, the maximum of the last two frames of each `frameskip`, at most 108,000 frames, the game's
minimal action set. What is left to the options:

    name                    frameskip   repeat_action_probability
    Pong, Pong-v5           4           0      (EnvPool's Pong-v5)
    ALE/Pong-v5             4           0.25   (Gymnasium's, sticky actions)
    PongDeterministic-v4    4           0
    PongDeterministic-v0    4           0.25
    PongNoFrameskip-v4      1           0
    PongNoFrameskip-v0      1           0.25
"""

import importlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from typing import Any

import gymnasium

from hebbes.registry.lookup import did_you_mean, import_module
from hebbes.registry.tables import ENVIRONMENTS

REGISTERED_ON_IMPORT = ("ale_py", "pybullet_envs_gymnasium")
"""Packages that register Gymnasium environments when imported, which is done only for an id that needs it."""

for _name, _class in ENVIRONMENTS.items():  # of our own
    gymnasium.register(_name, entry_point=_class)

STICKY = 0.25
"""Probability that an Atari frame repeats the previous action, where a name asks for it (Machado et al. 2018)."""

_ATARI_OPTIONS: dict[str, dict[str, Any]] = {
    "{}-v5": {},
    "ALE/{}-v5": {"repeat_action_probability": STICKY},
    "{}Deterministic-v4": {},
    "{}Deterministic-v0": {"repeat_action_probability": STICKY},
    "{}NoFrameskip-v4": {"frameskip": 1},
    "{}NoFrameskip-v0": {"frameskip": 1, "repeat_action_probability": STICKY},
    "{}": {},
}

_OWN = "if it is registered by a package of yours, add --import PACKAGE"

_CONTINUOUS_LANDER = re.compile(r"LunarLanderContinuous(-v[0-3])?")


@dataclass(frozen=True)
class ResolvedId:
    """What a name stands for."""

    environment: str
    env_kwargs: Mapping[str, Any] = field(default_factory=dict)
    """Options that the name implies; a user's own take precedence."""
    notice: str | None = None
    """One line for the user where the name was not today's id."""
    imports: tuple[str, ...] = ()
    """Packages to import, the user's and the one that the name itself brings in."""


def resolve(name: str, imports: Sequence[str] = ()) -> ResolvedId:
    """Today's id and options for an environment's name; imports the user's packages first.

    `my_envs:Mine-v0`, Gymnasium's own syntax, is `Mine-v0` with `my_envs` among those packages.

    Raises:
        ValueError: no such environment, with a suggestion; or a package that cannot be imported.
    """
    package, colon, environment = name.rpartition(":")
    if colon:
        import_module(f"--environment {name}", package)
        imports = tuple(dict.fromkeys((*imports, package)))
    return replace(_resolve(environment, imports), imports=tuple(imports))


def _resolve(name: str, imports: Sequence[str]) -> ResolvedId:
    register(name, imports)
    if _CONTINUOUS_LANDER.fullmatch(name):
        return _renamed(name, "LunarLander-v3", {"continuous": True})
    if name in gymnasium.registry and not _is_atari(name) and not _is_old_mujoco(name):
        return ResolvedId(name)
    newest = _newest(name)
    if newest is not None:
        return _renamed(name, newest, {})
    return _atari(name) or _only_in_envpool(name) or _unknown(name, imports)


def register(environment: str, imports: Sequence[str]) -> None:
    """Imports the user's packages and, where the id is still unknown, those of ours that register environments."""
    for package in imports:
        import_module("--import", package)
    if environment not in gymnasium.registry:
        for package in REGISTERED_ON_IMPORT:
            if find_spec(package):
                importlib.import_module(package)


def atari_game(environment: str) -> str | None:
    """The game's name, such as "Pong" for today's id Pong-v5; None for an id that is not an Atari game's."""
    stem, version = _split(environment)
    if version != 5 or environment in gymnasium.registry:
        return None
    register(f"ALE/{environment}", ())
    return stem if f"ALE/{environment}" in gymnasium.registry else None


def is_in_gymnasium(environment: str) -> bool:
    """Whether Gymnasium has today's id, once it is registered; EnvPool has some of its own."""
    return environment in gymnasium.registry or atari_game(environment) is not None


def is_of_gymnasium(environment: str) -> bool:
    """Whether today's id is one of those that Gymnasium itself brings, Atari included."""
    if atari_game(environment) is not None:
        return True
    found = gymnasium.registry.get(environment)
    return found is not None and str(found.entry_point).startswith("gymnasium.envs.")


def has_time_limit(environment: str, env_kwargs: Mapping[str, Any]) -> bool:
    """Whether today's id, once it is registered, ends its episodes by itself after some env steps.

    `env_kwargs` go to `gymnasium.make`: a `max_episode_steps` of -1 there means no limit, none the registered one.
    """
    registered = gymnasium.registry.get(environment)
    asked = env_kwargs.get("max_episode_steps")
    if asked is not None or registered is None or environment in ENVIRONMENTS:
        return bool(asked != -1)
    return registered.max_episode_steps is not None


def endless(environment: str, env_kwargs: Mapping[str, Any], cap: int | None) -> str:
    """A line for the user where episodes may never end, with `cap` on their env steps; empty otherwise."""
    if cap is not None or has_time_limit(environment, env_kwargs):
        return ""
    return f"{environment} sets its episodes no limit of env steps: set --max_episode_steps if they can be endless"


def _split(name: str) -> tuple[str, int | None]:
    """("CarRacing", 3) of "CarRacing-v3"; a bare name has no version."""
    stem, separator, version = name.rpartition("-v")
    return (stem, int(version)) if separator and version.isdecimal() else (name, None)


def _is_atari(name: str) -> bool:
    return str(gymnasium.registry[name].entry_point).startswith("ale_py")


def _is_old_mujoco(name: str) -> bool:
    """Whether the id is one of Gymnasium's MuJoCo environments before their newest version."""
    newest = _newest(name)
    return newest is not None and str(gymnasium.registry[newest].entry_point).startswith("gymnasium.envs.mujoco")


def _newest(name: str) -> str | None:
    """The newest registered version, if it is newer than what `name` asks for; Atari apart."""
    wanted, asked = _split(name)
    splits = {other: _split(other) for other in gymnasium.registry if not _is_atari(other)}
    versions = {version: other for other, (stem, version) in splits.items() if stem == wanted and version is not None}
    newest = max(versions, default=None)
    return None if newest is None or (asked is not None and asked >= newest) else versions[newest]


def _renamed(name: str, environment: str, env_kwargs: dict[str, Any]) -> ResolvedId:
    options = ", ".join(f"{option}={value}" for option, value in env_kwargs.items())
    return ResolvedId(environment, env_kwargs, f"{name} means {environment}{' with ' * bool(options)}{options}")


def _atari(name: str) -> ResolvedId | None:
    for pattern, options in _ATARI_OPTIONS.items():
        match = re.fullmatch(pattern.format("([A-Za-z0-9]+)"), name)
        today = f"{match[1]}-v5" if match else ""
        if atari_game(today):
            return ResolvedId(name) if name == today else _renamed(name, today, dict(options))
    return None


def _only_in_envpool(name: str) -> ResolvedId | None:
    return ResolvedId(name) if name in _envpool_ids() else None


def _envpool_ids() -> list[str]:
    return importlib.import_module("envpool").list_all_envs() if find_spec("envpool") else []


def _unknown(name: str, imports: Sequence[str]) -> ResolvedId:
    stem, _ = _split(name)
    suggestion = _newest(stem)
    hint = f", did you mean {suggestion!r}?" if suggestion else did_you_mean(name, _todays_ids())
    missing = [package for package in REGISTERED_ON_IMPORT if not find_spec(package)]
    absent = f" ({' and '.join(missing)}, which may have it, cannot be found: not installed)" if missing else ""
    own = f"{' and '.join(imports)} did not register it" if imports else _OWN
    raise ValueError(f"unknown environment {name!r}{hint}{absent}{' ' if hint else '; '}{own}")


def _todays_ids() -> list[str]:
    gymnasiums = [name for name in gymnasium.registry if not _is_atari(name)]
    games = [name.removeprefix("ALE/") for name in gymnasium.registry if name.startswith("ALE/")]
    return gymnasiums + games + _envpool_ids()
