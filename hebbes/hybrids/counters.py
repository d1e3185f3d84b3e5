"""Counts of what an asynchronous hybrid has started and finished."""

from dataclasses import dataclass, field


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
