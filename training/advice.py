"""What helps when a run was stopped: the last line of its output."""

from typing import Any

from training.flags import flags_of

GO_ON = "to go on        {resume}"
"""Advice where a resume helps, `{resume}` being its command line."""

STEP_SIZES = ("lr", "sigma")


def begin_anew(settings: Any) -> str:
    """Advice after numbers that a resume would only meet again."""
    return f"what helps      a new run with {_other_steps(settings)}; a resume would meet the same numbers again"


def mend_first(settings: Any) -> str:
    """Advice after episodes that a resume would lose again, as long as the environment is what it is."""
    return f"what helps      mend the environment, then {{resume}}; or a new run with {_other_steps(settings)}"


def _other_steps(settings: Any) -> str:
    flags = [f"--{name}" for name in STEP_SIZES if name in flags_of(type(settings))]
    return f"other step sizes ({', '.join(flags)})" if flags else "other settings of the strategy"
