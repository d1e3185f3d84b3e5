"""The error that stops a run, and the line at the end of its output that says what helps."""

from collections.abc import Container

from hebbes.contracts.engine import EPISODE_TIMEOUT, NONFINITE_OUTPUT, EngineError
from hebbes.contracts.trainer import AllFailedError
from hebbes.training.config import TrainConfig

RESUME_ADVICE = "to go on        {resume}"
"""Advice where a resume helps. `{resume}` stands for its command line."""

METRICS_ADVICE = "what helps      metrics.csv, which has every row: a resume of a finished run writes none again"
"""Advice where a run is finished, but loggers have lost rows."""

STEP_SIZES = ("learning_rate", "lr", "sigma", "initial_variance")
"""Options of strategies, users' own ones included."""


class TrainingError(RuntimeError):
    """Training cannot go on, or its results cannot be saved.

    The first line of the message says why, and details may follow. `advice` is a line that says what helps.
    """

    def __init__(self, reason: str, advice: str = RESUME_ADVICE):
        super().__init__(reason)
        self.advice = advice


class DivergedError(TrainingError):
    """The numbers of the search are no longer finite: other step sizes may help."""


def find_advice(error: BaseException) -> str:
    """The line that says what helps after an error that has stopped a run."""
    if isinstance(error, EngineError):
        return " ".join(filter(None, (RESUME_ADVICE, error.resume_options)))
    return error.advice if isinstance(error, TrainingError) else RESUME_ADVICE


def advise_new_run(config: TrainConfig) -> str:
    """Advice for a run that diverged."""
    return f"what helps      a new run with {_describe_other_settings(config)}"


def advise_environment_fix(reasons: Container[str], config: TrainConfig) -> str:
    """Advice for a run whose members all failed for these reasons: they would fail again in the same environment."""
    is_plastic = "hebbian.normalization" in {each.full_name for each in config.options}
    weights = "another --normalization of plastic weights, or " * is_plastic
    other = f"a new run with {weights}{_describe_other_settings(config)}; or " * (NONFINITE_OUTPUT in reasons)
    return f"what helps      {other}mend the environment, then {{resume}}"


def explain_failure(unit: str, error: AllFailedError, config: TrainConfig) -> TrainingError:
    """What stops a run whose unit of this name has failed."""
    by_the_clock = EPISODE_TIMEOUT in error.faults  # another time they may be quicker
    advice = RESUME_ADVICE if by_the_clock else advise_environment_fix(error.faults, config)
    kind = DivergedError if NONFINITE_OUTPUT in error.faults else TrainingError
    return kind(f"{unit}: {error}", advice)


def _describe_other_settings(config: TrainConfig) -> str:
    names = {each.short_name for each in config.options}
    flags = [f"--{name}" for name in STEP_SIZES if name in names]
    return f"other step sizes ({', '.join(flags)})" if flags else "other options"
