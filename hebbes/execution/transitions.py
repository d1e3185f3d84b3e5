"""Transitions of episodes, collected for algorithms that learn from single env steps."""

import numpy as np
from jaxtyping import Bool, Int, Shaped

from hebbes.contracts.engine import Transitions
from hebbes.contracts.environment import EnvStep


class Collector:
    """Takes part in an episode: it may change the actions of the policies, and receives every env step.

    A subclass says what becomes of the transitions. An environment may write to the arrays that it has returned, so
    they are copied if they are kept over an env step.
    """

    def choose_actions(
        self, observations: Shaped[np.ndarray, "rows ..."], actions: Shaped[np.ndarray, "rows ..."]
    ) -> Shaped[np.ndarray, "rows ..."]:
        """What the members do instead of the actions of their policies, see `explore`. Keeps the observations."""
        self._observations = observations.copy()
        return self.explore(actions)

    def explore(self, actions: Shaped[np.ndarray, "rows ..."]) -> Shaped[np.ndarray, "rows ..."]:
        """The same actions."""
        return actions

    def record(
        self, members: Int[np.ndarray, " rows"], actions: Shaped[np.ndarray, "rows ..."], env_step: EnvStep
    ) -> None:
        """Takes what came of these actions."""

    def make_transitions(self, actions: Shaped[np.ndarray, "rows ..."], env_step: EnvStep) -> Transitions:
        """The transitions of the env step after the last call of `choose_actions`."""
        kept = (each.copy() for each in (env_step.rewards, env_step.terminated, env_step.observations))
        return Transitions(self._observations, actions.copy(), *kept)


class TransitionRecorder(Collector):
    """Keeps the transitions of every member, and changes nothing."""

    def __init__(self, num_members: int):
        self._num_members = num_members
        self._members: list[np.ndarray] = []
        self._parts: list[Transitions] = []

    def record(
        self, members: Int[np.ndarray, " rows"], actions: Shaped[np.ndarray, "rows ..."], env_step: EnvStep
    ) -> None:
        """Keeps the transitions of this env step."""
        self._members.append(members)
        self._parts.append(self.make_transitions(actions, env_step))

    def split_by_member(self) -> tuple[Transitions | None, ...]:
        """The finite transitions of each member in their order; None for a member without any."""
        if not self._parts:
            return (None,) * self._num_members
        members, joined = np.concatenate(self._members), join_transitions(self._parts)
        finite = find_finite(joined)
        split = (joined[finite & (members == member)] for member in range(self._num_members))
        return tuple(each if len(each) else None for each in split)


def join_transitions(parts: list[Transitions]) -> Transitions:
    """All transitions, part by part."""
    return Transitions(**{name: np.concatenate([getattr(part, name) for part in parts]) for name in vars(parts[0])})


def find_finite(transitions: Transitions) -> Bool[np.ndarray, " steps"]:
    """True for each transition all of whose numbers are finite in float32: those of a simulator that failed are not."""
    return ~np.logical_or.reduce([find_nonfinite_rows(array) for array in vars(transitions).values()])


def find_nonfinite_rows(array: Shaped[np.ndarray, "rows ..."]) -> Bool[np.ndarray, " rows"]:
    """True for each row that has a number that is not finite in float32."""
    if array.dtype.kind != "f":
        return np.zeros(len(array), np.bool_)
    with np.errstate(over="ignore"):
        rows: np.ndarray = array.reshape(len(array), -1).astype(np.float32, copy=False)
    return ~np.isfinite(rows).all(axis=1)
