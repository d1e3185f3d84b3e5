"""Why a run was stopped, and what helps: the last line of its output."""

from typing import Any

from hebbes.contracts.option import flags_of

GO_ON = "to go on        {resume}"
"""Advice where a resume helps, `{resume}` being its command line."""

STEP_SIZES = ("lr", "sigma")


class TrainingError(RuntimeError):
    """Training cannot go on, or its results cannot be saved.

    One line that says why, and perhaps details below it; `advice` is a line that says what helps.
    """

    def __init__(self, reason: str, advice: str = GO_ON):
        super().__init__(reason)
        self.advice = advice


def begin_anew(settings: Any) -> str:
    """Advice after numbers that a resume would only meet again."""
    return f"what helps      a new run with {_other_steps(settings)}; a resume would meet the same numbers again"


def mend_first(settings: Any) -> str:
    """Advice after episodes that a resume would lose again, as long as the environment is what it is."""
    return f"what helps      mend the environment, then {{resume}}; or a new run with {_other_steps(settings)}"


def _other_steps(settings: Any) -> str:
    flags = [f"--{name}" for name in STEP_SIZES if name in flags_of(type(settings))]
    return f"other step sizes ({', '.join(flags)})" if flags else "other settings of the strategy"
