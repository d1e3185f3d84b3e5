"""GA: mutation and truncation selection without crossover. The best member found is kept.

Such, Madhavan, Conti, Lehman, Stanley & Clune 2017, "Deep Neuroevolution: Genetic Algorithms Are a Competitive
Alternative for Training Deep Neural Networks for Reinforcement Learning", arXiv 1712.06567, algorithm 1. Departures:

- The members of the first generation are mutants of the initial parameters. The paper initializes them one by one.
- The elite takes the place of the mean policy. It is evaluated again in every generation, in the same episodes as the
  others unless `--episode_seeds` gives them their own. The paper evaluates the ten best in 30 more episodes.
- The elite stays on a tie. Failed members never become parents.
- Genomes of more than eight mutations become a row of weights. Workers get seeds and at most one row per parent.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from jaxtyping import Float32

from hebbes.contracts.option import check_options, option
from hebbes.contracts.randomness import Purpose, make_generator
from hebbes.contracts.search_space import Choice, LogUniform
from hebbes.contracts.strategy import Results, SearchMemory
from hebbes.strategies.core.lineages import LineagePopulation, ParentLineages
from hebbes.strategies.core.selection import compute_tied_share, sort_best_first
from hebbes.strategies.core.spread import check_spread, compute_move_metrics


@dataclass(frozen=True)
class GASettings:
    """Hyperparameters; every field is a flag of the command line and a key of a preset."""

    population_size: int = option(
        200, "mutants per generation, in addition to the elite", range=">= 1", search=Choice((16, 32, 64, 128, 256))
    )
    parents: int = option(
        20,
        "maximum number of best members, the elite included, from which the next mutants come",
        range=">= 1",
        search=Choice((5, 10, 20, 40)),
    )
    sigma: float = option(
        0.02,
        "mutation power: standard deviation of the noise on the weights",
        range="> 0",
        search=LogUniform(0.002, 0.2),
    )

    def __post_init__(self) -> None:
        check_options(self)


class GA:
    """A population without a search distribution: the best members and their mutants."""

    Settings: ClassVar[type[GASettings]] = GASettings
    grows: ClassVar[bool] = False

    @classmethod
    def memory(cls, settings: GASettings, num_params: int, population_size: int) -> SearchMemory:
        """Memory for the parents, for both old and new ones during the update, and for each member's parent number."""
        parents = 4 * min(settings.parents, population_size + 1) * num_params
        return SearchMemory(parents + 4 * num_params, 2 * parents, parents + 8 * population_size)

    def __init__(self, settings: GASettings, initial_mean: Float32[np.ndarray, " params"], seed: int):
        self._settings = settings
        self._seed = seed
        start = np.array(initial_mean, np.float32)[np.newaxis]
        self._parents = ParentLineages(start, np.zeros(1, np.int64), ((),), seed, settings.sigma)
        self._elite = start[0]

    @property
    def mean(self) -> Float32[np.ndarray, " params"]:
        """The elite's parameters."""
        return self._elite.copy()

    def ask(self, generation: int, num_members: int | None = None) -> LineagePopulation:
        """Mutants of uniformly drawn parents, the elite last; FloatingPointError if mutation changes no weight."""
        check_spread(self._elite, self._settings.sigma)
        population_size = self._settings.population_size
        rng = make_generator(
            self._seed, Purpose.NOISE, generation=generation, member=population_size
        )  # no mutant has this stream
        return LineagePopulation(self._parents, rng.integers(len(self._parents), size=population_size), generation)

    def tell(self, population: LineagePopulation, results: Results) -> dict[str, float]:
        """Makes the best members the parents, and the best of all the elite; nothing changes if every member failed."""
        fitness, before, elite_id = results.fitness, self._elite, self._settings.population_size
        order = sort_best_first(fitness, ties=np.roll(np.arange(len(fitness)), -1))  # on a tie the elite comes first
        best = [int(member) for member in order if not np.isnan(fitness[member])][: self._settings.parents]
        if best:
            parents = [0 if member == elite_id else int(population.parent_of[member]) for member in best]
            mutations = [() if member == elite_id else ((population.generation, member),) for member in best]
            self._parents = population.parents.select(parents, mutations)
            self._elite = self._parents.make_row(0)
        sigma, mean = self._settings.sigma, self._elite.astype(np.float64)
        return {
            **compute_move_metrics(sigma, sigma, mean - before, mean),
            "tied_share": compute_tied_share(fitness[:-1]),
        }

    def state_dict(self) -> dict[str, np.ndarray]:
        """The lineages of the parents, that of the elite first."""
        return self._parents.state_dict()

    def load_state_dict(self, state: Mapping[str, np.ndarray]) -> None:
        """Continues from what `state_dict` returned."""
        self._parents = self._parents.restore(state)
        self._elite = self._parents.make_row(0)
