"""A user's own wrapper, with a constructor of its own."""

from dataclasses import replace

from hebbes.wrappers.base import BatchWrapper


class Doubled(BatchWrapper):
    """Twice the reward, plus one."""

    def __init__(self, env, *, plus: float = 1.0):
        super().__init__(env)
        self.plus = plus

    def step(self, actions, active):
        step = super().step(actions, active)
        return replace(step, rewards=2 * step.rewards + self.plus)
