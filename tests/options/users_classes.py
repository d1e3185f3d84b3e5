"""A user's own strategy, policy, wrappers and loggers, with options of their own."""

from dataclasses import dataclass

from hebbes.contracts.option import option
from hebbes.policies.linear import Linear
from hebbes.recording.base import RunLogger
from hebbes.strategies.openai_es import OpenAIES, OpenAIESSettings
from hebbes.wrappers.base import BatchWrapper


@dataclass(frozen=True)
class SearchSettings(OpenAIESSettings):
    seed: int = option(5, "has the name of an option of every run", range=">= 0")
    greed: float = option(0.5, "an option of its own", range="in [0, 1]")


class Search(OpenAIES):
    Settings = SearchSettings


@dataclass(frozen=True)
class ShadowSettings(OpenAIESSettings):
    policy: str = option("mine", "has the name of an option on which others depend")
    wrappers: tuple[str, ...] = option((), "has the name of an option that lists classes")
    seeds: int = option(7, "has the name of an option that a resume reads first")
    chunk_size: int = option(9, "has the name of an option of the engine")


class Shadow(OpenAIES):
    """A strategy whose options have the names of those that a resume reads."""

    Settings = ShadowSettings


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
