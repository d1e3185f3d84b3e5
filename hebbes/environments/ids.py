"""Environment names: turns a name that a user gives into the current id and options of the environment's constructor.

Retired ids (CarRacing-v0, HalfCheetah-v2) and bare names (CarRacing) become the newest version. Ids are Gymnasium's,
except for Atari. There each game has one id, such as `Pong-v5`, which means the same on both back ends: full 210 x 160
color frames, one no-op at the start, the maximum of the last two frames of each `frameskip`, at most 108,000 frames,
and the game's minimal action set. Other names set these options:

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

from hebbes.contracts.suggestion import suggest_name
from hebbes.environments.envpool_import import import_envpool
from hebbes.registry.lookup import import_users_module
from hebbes.registry.tables import ENVIRONMENTS

REGISTERED_ON_IMPORT = ("ale_py", "pybullet_envs_gymnasium")
"""Packages that register Gymnasium environments when imported. They are imported only for ids that need them."""

for _name, _class in ENVIRONMENTS.items():  # of our own
    gymnasium.register(_name, entry_point=_class)

_BUILT_IN = {
    name: spec for name, spec in gymnasium.registry.items() if str(spec.entry_point).startswith("gymnasium.envs.")
}
"""Gymnasium's own, before packages of users replace any."""

STICKY = 0.25
"""Probability that an Atari frame repeats the previous action, for names with sticky actions (Machado et al. 2018)."""

_ATARI_OPTIONS: dict[str, dict[str, Any]] = {
    "{}-v5": {},
    "ALE/{}-v5": {"repeat_action_probability": STICKY},
    "{}Deterministic-v4": {},
    "{}Deterministic-v0": {"repeat_action_probability": STICKY},
    "{}NoFrameskip-v4": {"frameskip": 1},
    "{}NoFrameskip-v0": {"frameskip": 1, "repeat_action_probability": STICKY},
    "{}": {},
}

ATARI_NAME_OPTIONS = {option for options in _ATARI_OPTIONS.values() for option in options}
"""What the name of an Atari game says."""

_OWN = "if a package of yours registers it, add --import PACKAGE"

_CONTINUOUS_LANDER = re.compile(r"LunarLanderContinuous(-v[0-3])?")


@dataclass(frozen=True)
class ResolvedId:
    """The environment that a name stands for."""

    environment: str
    env_kwargs: Mapping[str, Any] = field(default_factory=dict)
    """Options that the name implies. A user's own take precedence."""
    notice: str | None = None
    """One line for the user if the name was not the current id."""
    imports: tuple[str, ...] = ()
    """Packages to import: the user's, and the one in the name."""


def resolve(name: str, imports: Sequence[str] = ()) -> ResolvedId:
    """The current id and options for an environment's name. Imports the user's packages first.

    `my_envs:Mine-v0`, which is Gymnasium's syntax, means `Mine-v0` with `my_envs` among those packages.

    Raises:
        ValueError: there is no such environment (with a suggestion), or a package cannot be imported.
    """
    package, colon, environment = name.rpartition(":")
    if colon:
        import_users_module(f"--environment {name}", package)
        imports = tuple(dict.fromkeys((*imports, package)))
    return replace(_resolve(environment, imports), imports=tuple(imports))


def _resolve(name: str, imports: Sequence[str]) -> ResolvedId:
    register(name, imports)
    if _CONTINUOUS_LANDER.fullmatch(name):
        return _resolve_with_notice(name, "LunarLander-v3", {"continuous": True})
    newest = _find_newest(name)
    is_old_mujoco = newest is not None and str(gymnasium.registry[newest].entry_point).startswith(
        "gymnasium.envs.mujoco"
    )
    if name in gymnasium.registry and not _is_atari(name) and not is_old_mujoco:
        return ResolvedId(name)
    if newest is not None:
        return _resolve_with_notice(name, newest, {})
    if atari := _resolve_atari(name):
        return atari
    if name in _list_envpool_ids():
        return ResolvedId(name)
    raise ValueError(_describe_unknown(name, imports))


def register(environment: str, imports: Sequence[str]) -> None:
    """Imports the user's packages and, if the id is still unknown, `REGISTERED_ON_IMPORT`."""
    for package in imports:
        import_users_module("--import", package)
    if environment not in gymnasium.registry:
        for package in REGISTERED_ON_IMPORT:
            if find_spec(package):
                importlib.import_module(package)


def find_atari_game(environment: str) -> str | None:
    """The game of a current id, such as "Pong" for Pong-v5; None if it is not an Atari game."""
    stem, version = _split_id(environment)
    if version != 5 or environment in gymnasium.registry:
        return None
    register(f"ALE/{environment}", ())
    return stem if f"ALE/{environment}" in gymnasium.registry else None


def is_in_gymnasium(environment: str) -> bool:
    """Whether Gymnasium has a current id, after `register`. Some ids exist only in EnvPool."""
    return environment in gymnasium.registry or find_atari_game(environment) is not None


def is_built_into_gymnasium(environment: str) -> bool:
    """Whether a current id is an Atari game or comes with Gymnasium itself."""
    if find_atari_game(environment) is not None:
        return True
    found = gymnasium.registry.get(environment)
    return found is not None and found is _BUILT_IN.get(environment)


def _split_id(name: str) -> tuple[str, int | None]:
    """("CarRacing", 3) for "CarRacing-v3"; the version of a bare name is None."""
    stem, separator, version = name.rpartition("-v")
    return (stem, int(version)) if separator and version.isdecimal() else (name, None)


def _is_atari(name: str) -> bool:
    return str(gymnasium.registry[name].entry_point).startswith("ale_py")


def _find_newest(name: str) -> str | None:
    """The newest registered version, if newer than the one in `name`; None otherwise, and for Atari."""
    wanted, asked = _split_id(name)
    splits = {other: _split_id(other) for other in gymnasium.registry if not _is_atari(other)}
    versions = {version: other for other, (stem, version) in splits.items() if stem == wanted and version is not None}
    newest = max(versions, default=None)
    return None if newest is None or (asked is not None and asked >= newest) else versions[newest]


def _resolve_with_notice(name: str, environment: str, env_kwargs: dict[str, Any]) -> ResolvedId:
    options = ", ".join(f"{option}={value}" for option, value in env_kwargs.items())
    return ResolvedId(environment, env_kwargs, f"{name} means {environment}{' with ' * bool(options)}{options}")


def _resolve_atari(name: str) -> ResolvedId | None:
    for pattern, options in _ATARI_OPTIONS.items():
        match = re.fullmatch(pattern.format("([A-Za-z0-9]+)"), name)
        current = f"{match[1]}-v5" if match else ""
        if find_atari_game(current):
            return ResolvedId(name) if name == current else _resolve_with_notice(name, current, dict(options))
    return None


def _list_envpool_ids() -> list[str]:
    return import_envpool().list_all_envs() if find_spec("envpool") else []


def _describe_unknown(name: str, imports: Sequence[str]) -> str:
    """Why there is no such environment, and what may help."""
    stem, _ = _split_id(name)
    suggestion = _find_newest(stem)
    hint = f", did you mean {suggestion!r}?" if suggestion else suggest_name(name, _list_current_ids())
    missing = [package for package in REGISTERED_ON_IMPORT if not find_spec(package)]
    absent = f" ({' and '.join(missing)}, which may have it, cannot be found: not installed)" if missing else ""
    own = f"{' and '.join(imports)} did not register it" if imports else f"{_OWN}{'; otherwise' * bool(hint)}"
    return f"unknown environment {name!r}{absent}; {own}{hint}"


def _list_current_ids() -> list[str]:
    gymnasiums = [name for name in gymnasium.registry if not _is_atari(name)]
    games = [name.removeprefix("ALE/") for name in gymnasium.registry if name.startswith("ALE/")]
    return gymnasiums + games + _list_envpool_ids()
