"""Transitions of episodes, collected for algorithms that learn from single env steps."""

import numpy as np
from jaxtyping import Int, Shaped

from hebbes.contracts.engine import Transitions
from hebbes.contracts.environment import EnvStep


class Collector:
    """Takes part in an episode: it may change the actions of the policies, and receives every env step. This one does
    nothing."""

    def choose_actions(
        self, members: Int[np.ndarray, " rows"], actions: Shaped[np.ndarray, "rows ..."]
    ) -> Shaped[np.ndarray, "rows ..."]:
        """What these members do instead of the actions of their policies."""
        return actions

    def record(
        self,
        members: Int[np.ndarray, " rows"],
        observations: Shaped[np.ndarray, "rows ..."],
        actions: Shaped[np.ndarray, "rows ..."],
        env_step: EnvStep,
    ) -> None:
        """Takes what these members saw, what they did, and what came of it. The arrays are not changed later."""


NO_COLLECTOR = Collector()
"""For episodes from which nothing is collected."""


class TransitionRecorder(Collector):
    """Keeps the transitions of every member, and changes nothing."""

    def __init__(self, num_members: int):
        self._num_members = num_members
        self._members: list[np.ndarray] = []
        self._parts: list[Transitions] = []

    def record(
        self,
        members: Int[np.ndarray, " rows"],
        observations: Shaped[np.ndarray, "rows ..."],
        actions: Shaped[np.ndarray, "rows ..."],
        env_step: EnvStep,
    ) -> None:
        """Keeps the transitions of this env step."""
        self._members.append(members)
        self._parts.append(make_transitions(observations, actions, env_step))

    def split_by_member(self) -> tuple[Transitions | None, ...]:
        """The finite transitions of each member in their order; None for a member without any."""
        if not self._parts:
            return (None,) * self._num_members
        members, joined = np.concatenate(self._members), join_transitions(self._parts)
        finite = find_finite(joined)
        split = (joined[finite & (members == member)] for member in range(self._num_members))
        return tuple(each if len(each) else None for each in split)


def make_transitions(
    observations: Shaped[np.ndarray, "rows ..."], actions: Shaped[np.ndarray, "rows ..."], env_step: EnvStep
) -> Transitions:
    """The transitions of one env step."""
    return Transitions(observations, actions, env_step.rewards, env_step.terminated, env_step.observations)


def join_transitions(parts: list[Transitions]) -> Transitions:
    """All transitions, part by part."""
    return Transitions(
        observations=np.concatenate([part.observations for part in parts]),
        actions=np.concatenate([part.actions for part in parts]),
        rewards=np.concatenate([part.rewards for part in parts]),
        terminated=np.concatenate([part.terminated for part in parts]),
        next_observations=np.concatenate([part.next_observations for part in parts]),
    )


def find_finite(transitions: Transitions) -> np.ndarray:
    """True for each transition all of whose numbers are finite: those of a simulator that failed are not."""
    arrays = transitions.observations, transitions.actions, transitions.rewards, transitions.next_observations
    return np.logical_and.reduce([np.isfinite(array).reshape(len(array), -1).all(axis=1) for array in arrays])
