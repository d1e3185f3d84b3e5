"""EvolutionSize: what the memory of an evolution depends on."""

from dataclasses import dataclass
from inspect import ismethod
from typing import Any

from hebbes.contracts.policy import Policy
from hebbes.contracts.strategy import EstimatesMemory, SearchMemory
from hebbes.contracts.trainer import SearchSize
from hebbes.registry.lookup import find_class
from hebbes.registry.users_classes import convert_errors
from hebbes.strategies.core.samplers import LOW_RANK, ORTHOGONAL_BLOCK
from hebbes.training.config import TrainConfig
from hebbes.training.evolution_options import MEMBERS_PER_SEED, EvolutionOptions

UNKNOWN_VECTORS = 10
"""Vectors of float64, with a number per parameter, that are assumed for a user's own strategy."""


@dataclass(frozen=True, kw_only=True)
class EvolutionSize(SearchSize):
    """The quantities of a search by an evolution strategy."""

    strategy: str
    settings: Any
    num_params: int

    @property
    def advice(self) -> str:
        """Names a strategy without a matrix, if this one has one."""
        has_matrix = self.estimate_memory().state >= 8 * self.num_params**2 > 8 * self.num_params
        return f"sep_cma_es keeps only a diagonal, or {super().advice}" if has_matrix else super().advice

    def estimate_memory(self) -> SearchMemory:
        """What the class of the strategy says, or a guess for a user's own that does not say it."""
        vector = 8 * self.num_params
        return self._ask_class() or SearchMemory(UNKNOWN_VECTORS * vector, UNKNOWN_VECTORS * vector, vector)

    def check_state(self) -> None:
        """ValueError if the class of the strategy says that its state may become larger than a checkpoint holds."""
        from hebbes.files.checkpoint import MAX_STATE_BYTES  # imports safetensors

        memory = self._ask_class()
        if memory is not None and memory.state > MAX_STATE_BYTES:
            raise ValueError(
                f"strategy {self.strategy} may keep {memory.state:,} bytes, and a checkpoint holds "
                f"{MAX_STATE_BYTES:,} of them; {self.advice}"
            )

    def _ask_class(self) -> SearchMemory | None:
        """What the class of the strategy says; None if it does not say it."""
        found = find_class("strategy", self.strategy)
        if not (isinstance(found, EstimatesMemory) and ismethod(found.memory)):
            return None
        with convert_errors("strategy", self.strategy):
            return found.memory(self.settings, self.num_params, self.population_size)


def measure_evolution(config: TrainConfig, policy: Policy) -> EvolutionSize:
    """The quantities of the search that the config describes."""
    options, settings, num_params = config.trainer_options, config.settings, policy.layout.num_params
    population_size = _count_largest_population(options, _count_members(settings, num_params))
    grows = options.num_interactions is not None
    return EvolutionSize(
        strategy=options.strategy,
        settings=settings,
        num_params=num_params,
        population_size=population_size,
        episodes_per_member=options.episodes_per_member,
        rank=getattr(settings, "rank", 0) if getattr(settings, "sampler", "") == LOW_RANK else 0,
        noise_bytes=_count_noise_bytes(settings, population_size, num_params),
        members_per_seed=MEMBERS_PER_SEED[options.episode_seeds],
        grows=grows,
        options={
            "population_size_max" if grows else "population_size": ("population_size", 2),
            "episodes_per_member": ("episodes_per_member", 1),
        },
    )


def _count_members(settings: Any, num_params: int) -> int:
    """Members of a generation without the mean policy; 1 if the strategy's settings have no population_size."""
    members = getattr(settings, "choose_population_size", None)
    if callable(members):
        return int(members(num_params))
    return getattr(settings, "population_size", None) or getattr(settings, "popsize", None) or 1  # of a user's strategy


def _count_largest_population(options: EvolutionOptions, population_size: int) -> int:
    """The largest number of members, without the mean policy, to which a population may grow."""
    interactions, most = options.num_interactions, options.limit_growth(population_size)
    if interactions is None:
        return population_size
    return max(population_size, min(most, interactions + population_size))  # a member plays at least 1


def _count_noise_bytes(settings: Any, population_size: int, num_params: int) -> int:
    """Bytes of other members' noise, in float64, from which orthogonal noise is made; 0 for other samplers."""
    if getattr(settings, "sampler", "") != "orthogonal":
        return 0
    return 8 * num_params * min(ORTHOGONAL_BLOCK, num_params, (population_size + 1) // 2)
