"""EvolutionOptions: what is evolved, by which strategy, and how its members are evaluated."""

from dataclasses import dataclass

from hebbes.contracts.option import check_options, option
from hebbes.evaluation.arguments import MAX_EPISODES

LARGEST_GROWTH = 10
"""A population grows to at most this many times population_size if population_size_max is not given."""

LARGEST_SHIFT = 1e30
"""Largest absolute value of `reward_shift`. The sum of larger ones over an episode might not be finite."""

MEMBERS_PER_SEED = {"common": None, "paired": 2, "independent": 1}
"""Values of `episode_seeds` -> how many consecutive members share their start states. None: all members do."""


@dataclass(frozen=True)
class EvolutionOptions:
    """Options of the generations of an evolution strategy."""

    policy: str = option(
        "auto", "policy by name, or package.module:Class; auto is cnn for images of 16 x 16 pixels or more, else mlp"
    )
    strategy: str = option("openai_es", "strategy by name, or package.module:Class")
    generations: int | None = option(
        300, "generations to run; none: until another limit, such as max_env_steps", range=">= 1", changeable=True
    )
    observation_normalization: bool = option(
        False, "normalize observations by the running mean and standard deviation of all those seen in training"
    )
    observation_std_min: float = option(
        0.001,
        "lower bound of the standard deviation of observations; a higher one weakens those that hardly vary",
        range="in [1e-6, 1e6]",
        needs={"observation_normalization": ()},
    )
    episodes_per_member: int = option(
        1, "episodes whose mean return is a member's fitness", range=f"in [1, {MAX_EPISODES}]"
    )
    num_interactions: int | None = option(
        None,
        "smallest number of env steps in a generation: its population grows by population_size until then, up "
        "to population_size_max",
        range=">= 1",
    )
    population_size_max: int | None = option(
        None,
        "largest size of a growing population, at least twice population_size (default: ten times population_size)",
        range=">= 1",
        needs={"num_interactions": ()},
    )
    reward_shift: float = option(
        0.0,
        "added to the reward of every env step, for the fitness only; -1 removes a survival bonus of 1",
        range=f"in [{-LARGEST_SHIFT:g}, {LARGEST_SHIFT:g}]",
    )
    episode_seeds: str = option(
        "common",
        "common: all members of a generation have the same start states (common random numbers); "
        "paired: members 2k and 2k + 1 do, which are an antithetic pair if the strategy draws such; "
        "independent: each member has its own",
        choices=tuple(MEMBERS_PER_SEED),
    )
    episode_cap_factor: float | None = option(
        None,
        "cap training episodes at this many times the mean length of the generation before, without failed ones",
        range="> 1",
    )
    episode_cap_min: int | None = option(
        None,
        "smallest value of that cap, and its value in the first generation; max_episode_steps still holds",
        range=">= 1",
        needs={"episode_cap_factor": ()},
    )

    def __post_init__(self) -> None:
        check_options(self)

    def limit_growth(self, population_size: int) -> int:
        """The largest number of members to which a population of this size may grow."""
        return LARGEST_GROWTH * population_size if self.population_size_max is None else self.population_size_max


@dataclass(frozen=True)
class HebbianEvolutionOptions(EvolutionOptions):
    """The same options, for learning rules."""

    policy: str = option("hebbian", "policy by name, or package.module:Class")
