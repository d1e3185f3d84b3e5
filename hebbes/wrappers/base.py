"""What batch wrappers share: base classes, and functions that put env steps together.

A wrapper is a BatchEnv around a BatchEnv. Row k of the arrays that it takes and returns belongs to sub-environment
`active[k]`. So its memory is arrays over all sub-environments, indexed with `active`. It never changes arrays of the
inner environment in place, because that may still use them.

A wrapper with options is a dataclass, and its options are keyword-only fields with `option()`. With their defaults it
does nothing. Random numbers come from `np_random` alone. Importing the module of a wrapper imports no simulator, no
compiler and no Gymnasium: what a wrapper needs of these is imported when it is made.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, TypeAlias

import numpy as np
from jaxtyping import Bool, Int, Shaped

from hebbes.contracts.environment import BatchEnv, EnvStep
from hebbes.contracts.option import check_options
from hebbes.contracts.randomness import Purpose, derive_simulator_seed, make_generator

Actions: TypeAlias = Shaped[np.ndarray, "active ..."]
Active: TypeAlias = Int[np.ndarray, " active"]
Observations: TypeAlias = Shaped[np.ndarray, "envs ..."]


@dataclass(eq=False)
class BatchWrapper:
    """Forwards everything to the inner environment. A wrapper overrides what it changes."""

    switch: ClassVar[str] = ""
    """The help text of the flag `--NAME` that puts on a wrapper without options; empty: there is no such flag."""
    training_only: ClassVar[bool] = False
    """Whether evaluations leave it out. Then it must change neither actions nor the shape or type of observations."""

    env: BatchEnv

    def __post_init__(self) -> None:
        check_options(self)
        self.num_envs = self.env.num_envs
        self.observation_space = self.env.observation_space
        self.action_space = self.env.action_space
        self._episode: int | None = None
        self._generators: list[np.random.Generator] = []

    @cached_property
    def seeds(self) -> Sequence[int]:
        """One of each sub-environment, made from that of the inner environment: two wrappers draw different numbers."""
        made = {seed: derive_simulator_seed(seed, Purpose.WRAPPERS) for seed in self.env.seeds}
        return [made[seed] for seed in self.env.seeds]

    @property
    def np_random(self) -> Sequence[np.random.Generator]:
        """The generator of each sub-environment, which depends only on its seed and on the episode."""
        if self._episode is None:
            raise RuntimeError("np_random is begun anew by super().start(episode), which start must call")
        if not self._generators:
            self._generators = [make_generator(seed, Purpose.WRAPPERS, episode=self._episode) for seed in self.seeds]
        return self._generators

    def start(self, episode: int) -> Observations:
        """Begins one episode in every sub-environment, and `np_random` anew. Returns the first observations."""
        self._episode, self._generators = episode, []
        return self.env.start(episode)

    def step(self, actions: Actions, active: Active) -> EnvStep:
        """Steps the sub-environments `active`; row k of `actions` is for `active[k]`."""
        return self.env.step(actions, active)

    @property
    def metadata(self) -> Mapping[str, Any]:
        """How the inner environment can be rendered, as Gymnasium describes it; empty if it cannot."""
        return getattr(self.env, "metadata", {})

    def render(self) -> Shaped[np.ndarray, "..."]:
        """The picture that the inner environment renders; TypeError if it cannot render."""
        render = getattr(self.env, "render", None)
        if render is None:
            raise TypeError(f"{type(self.env).__name__} cannot render")
        return render()

    def close(self) -> None:
        """Frees the simulators. It may be called twice."""
        self.env.close()


class ObservationWrapper(BatchWrapper):
    """Changes each observation by `transform`, without memory."""

    def transform(self, observations: Observations) -> Observations:
        """The new observations. The array given is not changed."""
        raise NotImplementedError

    def start(self, episode: int) -> Observations:
        """Begins one episode in every sub-environment and returns the first observations, transformed."""
        return self.transform(super().start(episode))

    def step(self, actions: Actions, active: Active) -> EnvStep:
        """Steps the sub-environments `active` and transforms their observations."""
        env_step = self.env.step(actions, active)
        return replace(env_step, observations=self.transform(env_step.observations))


def has_ended(env_step: EnvStep) -> Bool[np.ndarray, " active"]:
    """True for each row whose episode has ended, by termination or truncation."""
    return env_step.terminated | env_step.truncated


def select_envs(env_step: EnvStep, envs: Int[np.ndarray, " selected"]) -> EnvStep:
    """The rows of `envs`, in new arrays, from an env step of all sub-environments."""
    return EnvStep(
        observations=env_step.observations[envs],
        rewards=env_step.rewards[envs],
        terminated=env_step.terminated[envs],
        truncated=env_step.truncated[envs],
        info={key: values[envs] for key, values in env_step.info.items()},
        faults={env: reason for env, reason in env_step.faults.items() if env in envs},
    )


def replace_rows(env_step: EnvStep, rows: Int[np.ndarray, " replaced"], part: EnvStep) -> EnvStep:
    """A new `env_step` whose `rows` are those of `part`. Only info that both have is kept."""

    def replace_in(whole: np.ndarray, new_rows: np.ndarray) -> np.ndarray:
        copy = whole.copy()
        copy[rows] = new_rows
        return copy

    return EnvStep(
        observations=replace_in(env_step.observations, part.observations),
        rewards=replace_in(env_step.rewards, part.rewards),
        terminated=replace_in(env_step.terminated, part.terminated),
        truncated=replace_in(env_step.truncated, part.truncated),
        info={key: replace_in(values, part.info[key]) for key, values in env_step.info.items() if key in part.info},
        faults={**env_step.faults, **part.faults},
    )
