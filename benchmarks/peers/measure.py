"""Trains with one peer once, and evaluates its policy now and then while the clock is stopped.

`python -m benchmarks.peers` starts this in a process of its own for each run. A peer is a module with the functions of
the protocol `Peer`.
"""

import json
import os
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any, Protocol, TypeAlias

import gymnasium
import numpy as np

from hebbes.execution.provenance import find_conditions
from hebbes.files.atomic_file import write_atomically

MINUTES = (1, 5, 15)
"""Policies are evaluated after these too."""
EPISODES, FIRST_SEED = 10, 20_000
"""Of each evaluation. Episode k starts with seed `FIRST_SEED + k`."""

Act: TypeAlias = Callable[[np.ndarray], Any]
"""Maps an observation of Gymnasium's environment to its action."""
Keep: TypeAlias = Callable[[int, Act], None]
"""A peer calls it after each update, with the env steps so far and its present policy. It raises TimeIsOver."""


class TimeIsOver(Exception):  # noqa: N818
    """Ends the training of a peer."""


class Peer(Protocol):
    """A module that trains as a program does."""

    PACKAGES: tuple[str, ...]
    """Those that hebbes does not need."""

    def find_settings(self, environment: str) -> Mapping[str, Any]:
        """The peer's settings, as JSON values."""

    def train(self, environment: str, seed: int, cores: int, keep: Keep) -> None:
        """Trains until `keep` raises."""


@dataclass(frozen=True)
class Plan:
    """What is measured."""

    peer: str
    """Name of its module."""
    environment: str
    seed: int
    seconds: float
    cores: int
    evaluations: int

    @property
    def file_name(self) -> str:
        """That of the result."""
        how = f"{self.seconds:g}s-{self.cores}cores-{self.evaluations}evaluations"
        return f"{self.environment}-{self.peer}-{how}-seed{self.seed}.json"


def find_peer(name: str) -> Peer:
    """The module of this name."""
    peer: Any = import_module(f"benchmarks.peers.{name}")
    return peer


class Evaluations:
    """Evaluates policies when they are due: at the start, after each of equal parts of the budget, after `MINUTES`.

    The clock runs from the moment at which this is made, except during evaluations.
    """

    def __init__(
        self,
        seconds: float,
        parts: int,
        evaluate: Callable[[Act], float],
        clock: Callable[[], float] = time.perf_counter,
    ):
        ends = [seconds * part / parts for part in range(parts + 1)]
        self._due = sorted({*ends, *(60.0 * each for each in MINUTES if 60 * each < seconds)})
        self._seconds, self._evaluate, self._clock = seconds, evaluate, clock
        self._start = clock()
        self.points: list[tuple[float, int, float]] = []
        """Seconds of training, env steps and mean return."""

    def keep(self, env_steps: int, act: Act) -> None:
        """Evaluates the policy if that is due. TimeIsOver at the end of the budget."""
        now = self._clock()
        seconds = now - self._start
        if seconds >= self._due[0]:
            self.points.append((seconds, env_steps, self._evaluate(act)))
            self._due = [each for each in self._due if each > seconds]
            self._start += self._clock() - now
        if seconds >= self._seconds:
            raise TimeIsOver


def play(env: gymnasium.Env, act: Act) -> float:
    """The mean return of the episodes of an evaluation."""
    total = 0.0
    for episode in range(EPISODES):
        observation, _ = env.reset(seed=FIRST_SEED + episode)
        done = False
        while not done:
            observation, reward, terminated, truncated, _ = env.step(act(observation))
            total, done = total + float(reward), terminated or truncated
    return total / EPISODES


def measure(plan: Plan) -> dict[str, Any]:
    """Trains, and returns the result as JSON values. The imports of a peer's module do not count, all else does."""
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: plan.cores])  # for all processes of the peer
    peer, env = find_peer(plan.peer), gymnasium.make(plan.environment)
    versions = {name: version(name) for name in peer.PACKAGES}
    evaluations = Evaluations(plan.seconds, plan.evaluations, lambda act: play(env, act))
    with suppress(TimeIsOver):
        peer.train(plan.environment, plan.seed, plan.cores, evaluations.keep)
    return {
        "plan": asdict(plan),
        "settings": peer.find_settings(plan.environment),
        "conditions": {**find_conditions(), **versions},
        "points": evaluations.points,
    }


if __name__ == "__main__":
    wanted, path = Plan(**json.loads(sys.argv[1])), Path(sys.argv[2])
    write_atomically(path, json.dumps(measure(wanted), indent=1).encode())
