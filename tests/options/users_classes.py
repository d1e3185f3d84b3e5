"""A user's own strategy, policy, wrappers and loggers, with options of their own."""

from dataclasses import dataclass

from hebbes.contracts.option import option
from hebbes.policies.linear import Linear
from hebbes.recording.base import RunLogger
from hebbes.strategies.openai_es import OpenAIES, OpenAIESSettings
from hebbes.wrappers.base import BatchWrapper


@dataclass(frozen=True)
class SearchSettings(OpenAIESSettings):
    greed: float = option(0.5, "an option of its own", range="in [0, 1]")


class Search(OpenAIES):
    Settings = SearchSettings


@dataclass(frozen=True)
class SeededSettings(OpenAIESSettings):
    seed: int = option(5, "has the name of an option of the run")


class Seeded(OpenAIES):
    Settings = SeededSettings


@dataclass(frozen=True)
class Threaded(Linear):
    threads: int = 1  # an option too, because it has a default


@dataclass(eq=False, kw_only=True)
class Capped(BatchWrapper):
    cap: int = option(5, "has the name of an option of training", flag="max_episode_steps")


@dataclass(frozen=True)
class Scaled(Linear):
    gain: float = option(2.0, "factor on the outputs", range="> 0")

    def forward(self, weights, inputs):
        return super().forward(weights, inputs) * self.gain


@dataclass(eq=False, kw_only=True)
class Louder(BatchWrapper):
    """Multiplies rewards."""

    volume: float = option(1.0, "factor on rewards", range="> 0")
    steps: tuple[int, ...] = option((), "a list", range=">= 1")


class Plain(BatchWrapper):
    """A wrapper without options, whose arguments are given in the list alone."""

    def __init__(self, env, level=1):
        super().__init__(env)
        self.level = level


@dataclass(eq=False)
class Diary(RunLogger):
    """Writes a word for each row."""

    word: str = option("row", "what is written for each row")
    times: int = option(1, "how often it is written", range=">= 0")

    def write(self, row):
        with (self.folder / "diary.txt").open("a") as file:
            file.write(self.word * self.times + "\n")


@dataclass(eq=False)
class Quiet(Diary):
    quiet: bool = option(False, "has the name of an option of the run")


@dataclass(eq=False)
class Helpful(Diary):
    help: bool = option(False, "has the name of an option of every program")


@dataclass(eq=False)
class Scored(Diary):
    measured: str = option("", "has the name of the score in a file of options")


@dataclass(eq=False)
class Greedy(Diary):
    """A logger with the name of a strategy's option."""

    greed: float = option(1.0, "has the name of an option of the strategy")
