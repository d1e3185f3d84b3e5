"""Options that all asynchronous hybrids have. This module does not import PyTorch."""

from dataclasses import dataclass
from typing import ClassVar

from hebbes.contracts.option import option
from hebbes.contracts.search_space import Uniform
from hebbes.hybrids.core.settings import GradientSettings
from hebbes.hybrids.search_distribution import SearchSettings


@dataclass(frozen=True)
class AsynchronousSettings(SearchSettings, GradientSettings):
    """Hyperparameters of all asynchronous hybrids."""

    replay_slack: ClassVar[float] = 0.25

    rl_share: float = option(
        0.5,
        "share of the individuals that are trained by gradients; 0: pure evolution",
        range="in [0, 1]",
        search=Uniform(0.0, 1.0),
    )
    actor_workers: int = option(5, "individuals that are trained and evaluated at the same time", range="in [1, 256]")
    replay_size: int = option(
        200_000,
        "latest transitions that are kept, in memory of 5 bytes * (2 * observation + action + 2) each: a quarter more "
        "rows hold older ones that running jobs draw from",
        range=">= 1",
    )
    completion_log: str | None = option(
        None,
        "file for the order in which jobs are completed, which results depend on; a run follows the order that the "
        "file has for its seed, and appends what comes after; with the same options, a copy of the file gives the same "
        "bits on any number of threads, and a killed run that is resumed with its file goes on as it was",
        changeable=True,
    )

    def count_members(self) -> int:
        """The actor workers."""
        return self.actor_workers

    def count_actors(self) -> int:
        """Individuals that may be trained at the same time; 0 if none ever is."""
        return self.actor_workers if self.rl_share > 0 else 0

    def count_worker_jobs(self) -> int:
        """One for each of these, and one that trains the critics."""
        return self.count_actors() + 1 if self.count_actors() else 0
