"""The error that stops a run, and the last line of its output, which says what helps."""

from typing import Any

from hebbes.contracts.option import map_flags

RESUME_ADVICE = "to go on        {resume}"
"""Advice where a resume helps. `{resume}` stands for its command line."""

STEP_SIZES = ("learning_rate", "lr", "sigma", "initial_variance")
"""Options of strategies, users' own ones included."""


class TrainingError(RuntimeError):
    """Training cannot go on, or its results cannot be saved.

    The first line of the message says why, and details may follow. `advice` is a line that says what helps.
    """

    def __init__(self, reason: str, advice: str = RESUME_ADVICE):
        super().__init__(reason)
        self.advice = advice


def advise_new_run(settings: Any) -> str:
    """Advice for a run that diverged: a resume would only repeat the same numbers."""
    other = _describe_other_settings(settings)
    return f"what helps      a new run with {other}; a resume would meet the same numbers again"


def advise_environment_fix(settings: Any) -> str:
    """Advice for a run whose members all failed: they would fail again in the same environment."""
    other = _describe_other_settings(settings)
    return f"what helps      mend the environment, then {{resume}}; or a new run with {other}"


def _describe_other_settings(settings: Any) -> str:
    flags = [f"--{name}" for name in STEP_SIZES if name in map_flags(type(settings))]
    return f"other step sizes ({', '.join(flags)})" if flags else "other options"
