"""GA: mutation and truncation selection, without crossover; the best member found is kept.

Such, Madhavan, Conti, Lehman, Stanley & Clune 2017, "Deep Neuroevolution: Genetic Algorithms Are a Competitive
Alternative for Training Deep Neural Networks for Reinforcement Learning", arXiv 1712.06567, algorithm 1. Departures:
the first generation are mutants of the initial parameters rather than initialised one by one; the elite is the
population's unperturbed member, evaluated anew in every generation in the same episodes as the others, where the paper
evaluates the ten best in 30 more episodes; the elite stays on a tie; failed members are nobody's parents; genomes of
more than eight mutations are rebased, so that workers get seeds and a row of weights for each parent, at most.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from jaxtyping import Float32, Float64

from hebbes.contracts.randomness import Purpose, stream
from hebbes.contracts.strategy import Combine, SearchMemory
from hebbes.strategies.core.adaptive import check_spread, movement
from hebbes.strategies.core.lineages import LineagePopulation, ParentLineages
from hebbes.strategies.core.ranges import check_ranges
from hebbes.strategies.core.selection import best_first, tied_share


@dataclass(frozen=True)
class GASettings:
    """Hyperparameters; every field is a flag of the command line and a key of a preset."""

    popsize: int = field(default=200, metadata={"help": "mutants per generation, beside the elite"})
    parents: int = field(
        default=20, metadata={"help": "best members at most, the elite included, that the next mutants come from"}
    )
    sigma: float = field(
        default=0.02, metadata={"help": "mutation power: standard deviation of the noise on the weights"}
    )

    def __post_init__(self) -> None:
        for name in ("popsize", "parents"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be >= 1, got {getattr(self, name)}")
        check_ranges(self, {"a finite number > 0": ("sigma",)})


class GA:
    """A population without a distribution: the best members, and mutants of them."""

    Settings: ClassVar[type[GASettings]] = GASettings
    grows: ClassVar[bool] = False

    @classmethod
    def memory(cls, settings: GASettings, num_params: int, popsize: int) -> SearchMemory:
        """Parents as bases, those before them while the next ones are made, and the numbers of each member's parent."""
        parents = 4 * min(settings.parents, popsize + 1) * num_params
        return SearchMemory(parents + 4 * num_params, 2 * parents, parents + 8 * popsize)

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
        """Mutants of parents drawn evenly, then the elite; FloatingPointError if mutation changes no weight."""
        check_spread(self._elite, self._settings.sigma)
        popsize = self._settings.popsize
        rng = stream(self._seed, Purpose.NOISE, generation=generation, member=popsize)  # the stream of no mutant
        return LineagePopulation(self._parents, rng.integers(len(self._parents), size=popsize), generation)

    def tell(
        self, population: LineagePopulation, fitness: Float64[np.ndarray, " members"], combine: Combine
    ) -> dict[str, float]:
        """The best members become the parents, the best of all the elite; nothing changes if every member failed."""
        before, elite_id = self._elite, self._settings.popsize
        order = best_first(fitness, ties=np.roll(np.arange(len(fitness)), -1))  # the elite comes first among its equals
        chosen = [int(member) for member in order if not np.isnan(fitness[member])][: self._settings.parents]
        if chosen:
            parents = [0 if member == elite_id else int(population.parent_of[member]) for member in chosen]
            steps = [() if member == elite_id else ((population.generation, member),) for member in chosen]
            self._parents = population.parents.select(parents, steps)
            self._elite = self._parents.row(0)
        return {
            **movement(self._settings.sigma, before.astype(np.float64), self._elite.astype(np.float64)),
            "tied_share": tied_share(fitness[:-1]),
        }

    def state_dict(self) -> dict[str, np.ndarray]:
        """The parents' lineages, the elite's first."""
        return self._parents.state_dict()

    def load_state_dict(self, state: Mapping[str, np.ndarray]) -> None:
        """Goes on from what `state_dict` returned."""
        self._parents = self._parents.restored(state)
        self._elite = self._parents.row(0)
