"""Counts of what an asynchronous hybrid has started and finished, and sums of what its jobs have brought."""

from dataclasses import dataclass, field

from hebbes.contracts.notices import Notice


@dataclass
class Counters:
    """What has been started and finished so far."""

    individuals: int = 0
    """Started, those that act at random included."""
    means: int = 0
    """Jobs of the mean policy that were started."""
    critics: int = 0
    """Jobs of the critics that were started."""
    told: int = 0
    """Individuals that the distribution has been told."""
    critics_version: int = 0
    """Jobs of the critics that are done."""
    critic_steps: int = 0
    """Gradient steps of these jobs."""
    completions: int = 0
    env_steps: int = 0
    """Of individuals that have come back."""
    lengths: list[int] = field(default_factory=list)
    """Of their last episodes."""
    history: str = ""
    """Checksum of the completions so far, see `hebbes.hybrids.completion_log.extend_history`."""


@dataclass
class JobTally:
    """What the jobs have brought since the last row of metrics."""

    work_seconds: float = 0.0
    """Seconds of work, added up over the workers."""
    wait_seconds: float = 0.0
    """Seconds in which a job or its answer waited."""
    notices: list[Notice] = field(default_factory=list)
    """What the user should know about episodes that failed."""
