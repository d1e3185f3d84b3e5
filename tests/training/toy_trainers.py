"""Trainers that are not evolution: a random search, and one that learns from a replay buffer of growing size."""

from math import inf

import numpy as np

from hebbes.contracts.randomness import Purpose, make_generator
from hebbes.contracts.trainer import Segment, Trainer, TrainerState, UnitResult
from hebbes.evaluation.play import play_on
from hebbes.training.assemble_run import TRAINER_CLASSES
from hebbes.training.evolution_options import EvolutionOptions
from hebbes.training.owners import TRAINERS


class RandomSearch(Trainer):
    """Tries weights near the best so far."""

    unit = "try"

    def __init__(self, config, task, weights, buffers):
        self.num_units, self.weights, self.buffers, self.score = config.evolution.generations, weights, buffers, -inf

    def advance(self, progress, engine):
        noise = make_generator(0, Purpose.NOISE, generation=progress.units).normal(size=len(self.weights))
        tried, options = self.weights + np.float32(noise), {"purpose": Purpose.TRAINING, "max_episode_steps": None}
        played = play_on(engine, tried, self.buffers, episodes=2, number=progress.units, **options)
        if played.fitness.mean() > self.score:
            self.weights, self.score = tried, float(played.fitness.mean())
        return UnitResult(int(played.env_steps.sum()), {"score": self.score, "update_norm": 1.0}, "tried")

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


for name, kind in {"random": RandomSearch, "replay": ReplaySearch}.items():
    TRAINERS[name], TRAINER_CLASSES[name] = EvolutionOptions, kind
