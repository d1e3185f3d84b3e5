"""P-CEM-RL: CEM-RL whose RL individuals are trained at the same time.

Lee, Lee, Shin & Kweon 2020, arXiv 2012.05417; code KyunghyunLee/aes-rl 5b69a06, algorithm/pcemrl.py. The critics take
the steps of all RL individuals first. These are then trained together, each on batches of its own, while the critics
stay. `hebbes.hybrids.cem_rl` has all else, and its departures hold here too.

With `parallel_critic`, one job of a worker trains the critics, with the mean policy as the fixed target actor, while
the individuals are trained on the critics of the generation before, and evaluated. Its steps are fixed when the
generation begins: the smallest multiple of 1000 with which the critics have taken at least as many steps as there are
env steps so far. The generation ends when job and evaluation have ended. So results depend neither on the number of
workers nor on who is faster.

Departures:

- With fewer actor workers than RL individuals, groups of that size take turns, critics first. One worker is CEM-RL.
  Their critics take all steps first, whatever the number of workers.
- Until `start_steps`, individuals act themselves, and their returns count. Theirs act at random. Training begins with
  the first generation that starts with more env steps, theirs with one that starts with as many.
- The job of `parallel_critic` samples the replay as it was when the generation began. Theirs as it is at each step.
- The extra variance falls by a factor of 0.95, as in CEM-RL. Theirs ignores its option, and takes 0.90.
- The steps of `parallel_critic` are bounded by the env steps, and the critics are exchanged between generations. Theirs
  are trained without a pause, and individuals take the latest ones. No individual is trained before the critics are.
"""

from dataclasses import dataclass, replace
from math import ceil
from typing import ClassVar

import numpy as np
from jaxtyping import Float32

from hebbes.contracts.engine import Engine, Rollouts
from hebbes.contracts.option import option
from hebbes.contracts.trainer import Progress
from hebbes.hybrids import jobs
from hebbes.hybrids.cem_rl import CEMRL, CEMRLSettings
from hebbes.hybrids.trained_population import TrainedPopulation
from hebbes.strategies.core.populations import GaussianPopulation


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
    parallel_critic: bool = option(
        False, "train the critics while the individuals play, on a worker of the engine, with the mean policy's actions"
    )

    def count_worker_jobs(self) -> int:
        """One trains the critics with `parallel_critic`."""
        return 1 if self.parallel_critic and self.count_actors() else 0

    def count_actors_at_once(self) -> int:
        """The individuals that are trained together."""
        return self.rl_population if self.actor_workers is None else self.actor_workers


class PCEMRL(CEMRL):
    """Unit: one generation."""

    Settings: ClassVar[type[PCEMRLSettings]] = PCEMRLSettings
    _settings: PCEMRLSettings
    _job: tuple[int, jobs.CriticsJob] | None = None  # under way, with its ticket

    def _train(
        self, population: GaussianPopulation, progress: Progress, engine: Engine
    ) -> dict[int, Float32[np.ndarray, " params"]]:
        """The RL individuals after their gradient steps, while the critics' job is under way if there is one."""
        if self._settings.parallel_critic and self._may_train(progress):
            critic_steps = self._start_critics(progress, engine)
            if critic_steps == 0:
                return {}
        return super()._train(population, progress, engine)

    def _train_critics(self, rows: Float32[np.ndarray, "individuals params"], rng: np.random.Generator) -> None:
        """Trains the critics with each of these individuals, unless a job trains them."""
        if not self._settings.parallel_critic:
            super()._train_critics(rows, rng)

    def _evaluate(self, population: TrainedPopulation, generation: int, engine: Engine) -> Rollouts:
        """One episode of each individual. Then the critics' job is done too."""
        rollouts = super()._evaluate(population, generation, engine)
        if self._job is not None:
            (ticket, job), self._job = self._job, None
            _, answer = engine.collect([ticket])
            self.learner.take_critics(answer.critics, answer.loss, job.critic_steps)
            rollouts = replace(rollouts, tallies={**rollouts.tallies, "critics_seconds": answer.seconds})
        return rollouts

    def _start_critics(self, progress: Progress, engine: Engine) -> int:
        """Starts the critics' job, if they have taken fewer steps than there are env steps. Returns these steps."""
        critics, replay = self.learner.critics.get_state(), self.learner.replay
        critic_steps = int(critics["adam_steps"][0])
        num_batches = ceil((progress.env_steps - critic_steps) / jobs.CRITIC_STEPS)
        if num_batches > 0:
            steps = num_batches * jobs.CRITIC_STEPS
            job = jobs.CriticsJob(progress.units, progress.units, replay.count, steps, self.actor)
            ticket = jobs.submit_gradients(engine, jobs.train_critics, self._setup, job, replay, critics, urgent=True)
            self._job = ticket, job
        return critic_steps
