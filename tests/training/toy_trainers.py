"""Trainers that are not evolution: a random search, and one that learns from a replay buffer of growing size."""

from dataclasses import dataclass
from math import inf

import numpy as np

from hebbes.contracts.notices import Notice
from hebbes.contracts.option import check_options, option
from hebbes.contracts.randomness import Purpose, make_generator
from hebbes.contracts.trainer import Segment, Trainer, TrainerState, UnitResult
from hebbes.evaluation.play import play_on

TOYS = {"random": f"{__name__}:RandomSearch", "replay": f"{__name__}:ReplaySearch"}
"""What the tests add to the table of trainers."""


@dataclass(frozen=True)
class RandomSearchOptions:
    policy: str = option("linear", "policy by name")
    generations: int = option(9, "tries", range=">= 1", changeable=True)
    reach: float = option(1.0, "standard deviation of the noise of a try", range="> 0")

    def __post_init__(self):
        check_options(self)


class RandomSearch(Trainer):
    """Tries weights near the best so far."""

    Options, owner = RandomSearchOptions, "random_search"
    unit = "try"

    def __init__(self, config, task, weights, buffers):
        self.num_units, self.reach = config.trainer_options.generations, config.trainer_options.reach
        self.weights, self.buffers, self.score = weights, buffers, -inf

    def advance(self, progress, engine):
        noise = make_generator(0, Purpose.NOISE, generation=progress.units).normal(size=len(self.weights))
        tried = self.weights + np.float32(self.reach * noise)
        options = {"purpose": Purpose.TRAINING, "max_episode_steps": None}
        played = play_on(engine, tried, self.buffers, episodes=2, number=progress.units, **options)
        if played.fitness.mean() > self.score:
            self.weights, self.score = tried, float(played.fitness.mean())
        notices = [Notice(f"tried {self.score:g}", ["tried"])]
        return UnitResult(int(played.env_steps.sum()), {"score": self.score, "update_norm": 1.0}, notices)

    policy = property(lambda self: (self.weights, self.buffers))

    def get_state(self):
        return TrainerState({"weights": self.weights}, {"score": self.score})

    def set_state(self, state):
        self.weights, self.score = state.arrays["weights"], state.values["score"]


BLOCK, ROWS_PER_UNIT, MOST_BLOCKS = 25, 10, 2


class ReplaySearch(RandomSearch):
    """A random search whose weights also depend on a replay buffer: blocks of rows, of which the oldest is dropped."""

    eval_counter = "env_steps"

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.full, self.block, self.size = {}, np.empty((BLOCK, 3), np.float32), 0

    def advance(self, progress, engine):
        rng = make_generator(1, Purpose.NOISE, generation=progress.units)
        for row in rng.normal(size=(ROWS_PER_UNIT, 3)):
            self.block[self.size] = row
            self.size += 1
            if self.size == BLOCK:
                self.full[f"block{progress.units}"] = Segment({"rows": self.block})
                self.block, self.size = np.empty_like(self.block), 0
                for name in list(self.full)[:-MOST_BLOCKS]:
                    del self.full[name]
        replay = np.concatenate([*(each.arrays["rows"] for each in self.full.values()), self.block[: self.size]])
        self.weights = self.weights + replay[rng.integers(len(replay))].mean()
        return super().advance(progress, engine)

    def get_state(self):
        state, last = super().get_state(), Segment({"rows": self.block[: self.size]})
        return TrainerState(state.arrays, state.values, {**self.full, "last": last})

    def set_state(self, state):
        super().set_state(state)
        *full, (_, last) = sorted(state.segments.items(), key=lambda each: (each[0] == "last", int(each[0][5:] or 0)))
        self.full, self.size = dict(full), len(last.arrays["rows"])
        self.block[: self.size] = last.arrays["rows"]
