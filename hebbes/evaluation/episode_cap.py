"""The cap on the env steps of an episode in evaluations of a policy file, and what to say of it.

All functions take a description whose environment has been registered (`hebbes.environments.ids.register`).
"""

from hebbes.environments.environment_spec import EnvironmentSpec, describe_environment
from hebbes.environments.episode_limits import advise_episode_limit, choose_evaluation_cap, find_time_limit
from hebbes.files.policy_file import SavedPolicy


def choose_episode_cap(saved: SavedPolicy, environment: EnvironmentSpec, given: int | None) -> int | None:
    """The given cap, or else the one that evaluations had while the policy was trained."""
    if given is not None:
        return given
    options = saved.provenance.get("options")
    trained = options.get("max_episode_steps") if isinstance(options, dict) else None
    return choose_evaluation_cap(environment, trained if type(trained) is int and trained >= 1 else None)


def describe_played_environment(saved: SavedPolicy, environment: EnvironmentSpec, given: int | None) -> str:
    """The environment, with the cap that its episodes have from the training of the policy alone.

    Returns of episodes with different caps cannot be compared.
    """
    cap = choose_episode_cap(saved, environment, None) if given is None else None
    return describe_environment(environment, cap)


def find_longest_episode(saved: SavedPolicy, environment: EnvironmentSpec, given: int | None) -> int | None:
    """The largest number of env steps in an episode of an evaluation with this cap; None if it is not known."""
    limits = choose_episode_cap(saved, environment, given), find_time_limit(environment)
    return min((each for each in limits if each is not None), default=None)


def advise_episode_cap(saved: SavedPolicy, environment: EnvironmentSpec, given: int | None) -> str:
    """A line for the user if the cap is that of training, or if there is none and episodes may never end."""
    cap = choose_episode_cap(saved, environment, given)
    if cap != given:
        return f"episodes end after {cap:,} env steps, as in training: {environment.environment} has no limit"
    return advise_episode_limit(environment, cap)
