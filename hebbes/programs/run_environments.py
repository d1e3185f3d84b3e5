"""What the evaluations of saved runs depend on, as far as it is known without the packages of their environments."""

from collections.abc import Sequence

from hebbes.environments.environment_spec import describe_environment
from hebbes.training.saved_runs import SavedRun


def describe_run_environment(run: SavedRun) -> str:
    """The environment of a run. Only runs in which it is equal are to be compared.

    If it has no limit of its own on the env steps of an episode, evaluations have the cap of training episodes.
    """
    cap = run.options.get("max_episode_steps")
    if cap is None or not _is_known(run):
        return describe_environment(run.spec)
    from hebbes.environments.episode_limits import choose_evaluation_cap  # imports Gymnasium

    return describe_environment(run.spec, choose_evaluation_cap(run.spec, cap))


def describe_caps(runs: Sequence[SavedRun]) -> str:
    """How training episodes are shorter than evaluations. Empty if they are not, or if it is not known."""
    from hebbes.environments.episode_limits import describe_episode_cap  # imports Gymnasium

    if not _is_known(runs[0]):
        return ""
    described = {describe_episode_cap(run.spec, run.options.get("max_episode_steps")) for run in runs}
    return " or ".join(sorted(described - {""})) + " (some runs)" * ("" in described and len(described) > 1)


def _is_known(run: SavedRun) -> bool:
    """Whether Gymnasium has the environment. It has none of a package that is not imported, or of EnvPool alone."""
    from hebbes.environments.ids import is_in_gymnasium, register  # imports Gymnasium

    register(run.environment, ())
    return is_in_gymnasium(run.environment)
