"""P-CEM-RL: CEM-RL whose RL individuals are trained at the same time.

Lee, Lee, Shin & Kweon 2020, arXiv 2012.05417 (P-CEM-RL with a serial critic); code KyunghyunLee/aes-rl 5b69a06,
algorithm/pcemrl.py. The critics take the steps of all RL individuals first. These are then trained together, each on
batches of its own, while the critics stay. `hebbes.hybrids.cem_rl` has all else, and its departures hold here too.

Departures:

- The critics are never trained beside the actors (their `parallel_critic`).
- With fewer actor workers than RL individuals, groups of that size take turns, critics first. One worker is CEM-RL.
  Their critics take all steps first, whatever the number of workers.
- Until `start_steps`, individuals act themselves, and their returns are told. Theirs act at random.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from jaxtyping import Float32

from hebbes.contracts.option import option
from hebbes.contracts.policy import Buffers
from hebbes.hybrids.cem_rl import CEMRL, CEMRLSettings

if TYPE_CHECKING:
    from hebbes.execution.chunks import Task


@dataclass(frozen=True)
class PCEMRLSettings(CEMRLSettings):
    """Hyperparameters of P-CEM-RL."""

    batch_size: int = option(256, "transitions of a gradient step", range=">= 1")
    actor_workers: int | None = option(
        None,
        "individuals that are trained together, after the steps of the critics for all of them; 1: one after another, "
        "as in CEM-RL (default: rl_population)",
        range=">= 1",
    )

    def count_batches(self) -> int:
        """The individuals that are trained together."""
        return self.rl_population if self.actor_workers is None else self.actor_workers


class PCEMRL(CEMRL):
    """Unit: one generation."""

    Settings: ClassVar[type[PCEMRLSettings]] = PCEMRLSettings

    def __init__(
        self,
        settings: PCEMRLSettings,
        task: "Task",
        weights: Float32[np.ndarray, " params"],
        buffers: Buffers,
        max_episode_steps: int | None,
    ) -> None:
        """Starts with these weights as the mean."""
        super().__init__(settings, task, weights, buffers, max_episode_steps)
        self._group_size = settings.count_batches()
