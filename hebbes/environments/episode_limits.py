"""Limits on the env steps of an episode: an environment's own, and lines for the user on how they matter.

All functions take a description whose environment has been registered (`hebbes.environments.ids.register`).
"""

import gymnasium

from hebbes.environments.environment_spec import EnvironmentSpec
from hebbes.registry.tables import ENVIRONMENTS

_TIME_LIMIT = "gymnasium.wrappers:TimeLimit"


def has_time_limit(spec: EnvironmentSpec) -> bool:
    """Whether the environment limits the env steps of its own episodes."""
    ends_by_itself = spec.environment not in gymnasium.registry or spec.environment in ENVIRONMENTS
    return find_time_limit(spec) is not None or (ends_by_itself and spec.env_kwargs.get("max_episode_steps") != -1)


def find_time_limit(spec: EnvironmentSpec) -> int | None:
    """The largest number of env steps in an episode; None if there is no limit, or an unknown one.

    `max_episode_steps` of `gymnasium.make` replaces the registered limit: -1 means none. A wrapper can only lower it.
    """
    registered = gymnasium.registry.get(spec.environment)
    limit = spec.env_kwargs.get("max_episode_steps") or (registered.max_episode_steps if registered else None)
    wrappers = [each.kwargs.get("max_episode_steps") for each in spec.gymnasium_wrappers if each.name == _TIME_LIMIT]
    return min((each for each in (limit, *wrappers) if each is not None and each != -1), default=None)


def choose_evaluation_cap(spec: EnvironmentSpec, trained: int | None) -> int | None:
    """The cap of training episodes, `trained`, if the environment has no time limit of its own, else None.

    Without a limit an evaluation might never end.
    """
    return None if has_time_limit(spec) else trained


def advise_episode_limit(spec: EnvironmentSpec, cap: int | None) -> str:
    """A line for the user if episodes may never end: no limit and no `cap` on env steps. Otherwise empty."""
    if cap is not None or has_time_limit(spec):
        return ""
    return (
        f"{spec.environment} has no limit on the env steps of an episode: set --max_episode_steps if they may never end"
    )


def describe_episode_cap(spec: EnvironmentSpec, cap: int | None) -> str:
    """How the episodes of training are shorter than those of evaluations. Empty if they are not.

    `cap` is the option `max_episode_steps`.
    """
    limit = find_time_limit(spec)
    if cap is None or not has_time_limit(spec) or (limit is not None and cap >= limit):
        return ""
    return f"training episodes are cut after {cap:,} env steps" + (f", evaluations after {limit:,}" if limit else "")
