"""Wrappers that return something other than an env step, each in a different way."""

from copy import copy
from dataclasses import replace

import numpy as np

from hebbes.wrappers.base import BatchWrapper


def change(stepped, **values):
    """The env step with other values, made without its constructor, whose arguments the tests check."""
    changed = copy(stepped)
    for name, value in values.items():
        object.__setattr__(changed, name, value)
    return changed


class StepsWrongly(BatchWrapper):
    """Returns what `spoil` makes of an env step, from its call number `from_call` on."""

    def __init__(self, env, from_call=1):
        super().__init__(env)
        self.from_call, self.num_calls = from_call, 0

    def step(self, actions, active):
        stepped = super().step(actions, active)
        self.num_calls += 1
        return stepped if self.num_calls < self.from_call else self.spoil(stepped)


def _spoil(spoil):
    """A wrapper whose env steps are spoilt by this function, later."""
    return type("Spoils", (StepsWrongly,), {"spoil": lambda self, stepped: spoil(stepped)})


def _drop_row(stepped):
    arrays = ("observations", "rewards", "terminated", "truncated")
    return change(stepped, **{name: getattr(stepped, name)[:-1] for name in arrays})


StepsToNothing = _spoil(lambda stepped: None)
RewardsInList = _spoil(lambda stepped: change(stepped, rewards=stepped.rewards.tolist()))
RewardsInColumn = _spoil(lambda stepped: change(stepped, rewards=stepped.rewards[:, np.newaxis]))
RewardTooFew = _spoil(lambda stepped: change(stepped, rewards=stepped.rewards[:-1]))
RowTooFew = _spoil(_drop_row)
RewardsMasked = _spoil(lambda stepped: change(stepped, rewards=np.ma.masked_array(stepped.rewards)))
IntegersTerminate = _spoil(lambda stepped: change(stepped, terminated=stepped.terminated.astype(np.int64)))
NarrowObservations = _spoil(lambda stepped: change(stepped, observations=stepped.observations[:, :1]))


class HidesTheEnd(BatchWrapper):
    def step(self, actions, active):
        stepped = super().step(actions, active)
        return replace(stepped, terminated=stepped.terminated & False, truncated=stepped.truncated & False)


class StartsWithList(BatchWrapper):
    def start(self, episode):
        return super().start(episode).tolist()


class FailsToClose(BatchWrapper):
    def close(self):
        super().close()
        raise KeyError("handle")


class Forwards(BatchWrapper):
    """Reads what it is given, and does nothing wrong itself."""

    def step(self, actions, active):
        stepped = super().step(actions, active)
        assert len(stepped.rewards) == len(active)
        return stepped


class Counts(BatchWrapper):
    """Has an attribute that no other wrapper has."""

    def start(self, episode):
        self.count = 0
        return super().start(episode)

    def step(self, actions, active):
        self.count += 1
        return super().step(actions, active)


class Scales(BatchWrapper):
    scale = 1.0

    def step(self, actions, active):
        stepped = super().step(actions, active)
        return change(stepped, rewards=stepped.rewards * self.scale)


class ReadsAndWrites(BatchWrapper):
    """Uses attributes of the wrapper that it is around, and of the one within that."""

    def start(self, episode):
        observations = super().start(episode)
        self.env.scale = 0.0
        assert len(self.env.np_random) == self.num_envs and self.env._episode == episode
        return observations

    def step(self, actions, active):
        stepped = super().step(actions, active)
        assert self.env.env.count > 0 and not stepped.rewards.any()
        return stepped


class Helper:
    """Has something called step that is none of an environment."""

    step = 0

    def fail(self):
        raise ZeroDivisionError("helper")


class FailsInHelper(BatchWrapper):
    def step(self, actions, active):
        Helper().fail()
