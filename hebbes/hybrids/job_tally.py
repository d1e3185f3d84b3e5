"""JobTally: what the jobs of an asynchronous hybrid have brought since its last row of metrics."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import nan

import numpy as np

from hebbes.contracts.notices import Notice, make_failure_notices
from hebbes.hybrids.jobs import CriticsAnswer, CriticsJob


@dataclass
class JobTally:
    """Sums and notices of the jobs of a row."""

    losses: list[float] = field(default_factory=list)
    """Mean losses of the jobs of the critics."""
    critic_steps: int = 0
    work_seconds: float = 0.0
    """Seconds of work, added up over the workers."""
    wait_seconds: float = 0.0
    """Seconds in which a job or its answer waited."""
    notices: list[Notice] = field(default_factory=list)
    """What the user should know about episodes that failed."""

    def add_critics(self, job: CriticsJob, answer: CriticsAnswer) -> None:
        """Counts a job of the critics."""
        self.losses.append(answer.loss)
        self.critic_steps += job.critic_steps

    def add_failure(self, who: str, faults: Mapping[str, int]) -> None:
        """Notes why episodes failed, if they did."""
        self.notices += make_failure_notices(who, faults)

    def compute_metrics(self) -> dict[str, float]:
        """The metrics of these jobs."""
        return {
            "critic_loss": float(np.mean(self.losses)) if self.losses else nan,
            "critic_steps": self.critic_steps,
            "work_seconds": self.work_seconds,
            "job_wait_seconds": self.wait_seconds,
        }
