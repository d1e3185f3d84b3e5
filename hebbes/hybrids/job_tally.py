"""JobTally: what the jobs of an asynchronous hybrid have brought since its last row of metrics."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from hebbes.contracts.notices import Notice, make_failure_notices


@dataclass
class JobTally:
    """Sums and notices of the jobs of a row."""

    work_seconds: float = 0.0
    """Seconds of work, added up over the workers."""
    wait_seconds: float = 0.0
    """Seconds in which a job or its answer waited."""
    notices: list[Notice] = field(default_factory=list)
    """What the user should know about episodes that failed."""

    def add_failure(self, who: str, faults: Mapping[str, int]) -> None:
        """Notes why episodes failed, if they did."""
        self.notices += make_failure_notices(who, faults)

    def compute_metrics(self) -> dict[str, float]:
        """The metrics of these jobs."""
        return {"work_seconds": self.work_seconds, "job_wait_seconds": self.wait_seconds}
