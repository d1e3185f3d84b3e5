"""The episode loop: the only place where rewards are summed and env steps are counted.

A terminal reward counts once and nothing after it counts. Rewards add up in float64. A non-finite observation, output
or reward, or a simulator that fails, ends the member's episode and makes its return NaN; so does a sum that overflows.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from threading import Event
from time import perf_counter

import numpy as np
from jaxtyping import Bool, Float, Float64, Int, Shaped

from hebbes.contracts.environment import BatchEnv, EnvStep
from hebbes.contracts.policy import Buffers, LowRankWeights, Policy, State, Weights
from hebbes.execution.observation_moments import MomentTally
from hebbes.execution.tallies import Tallies
from hebbes.policies.action_heads import HEADS

OVERFLOWED = "return overflowed"
"""Reason of failure of finite rewards whose sum, or mean over episodes, is not finite."""


class AbandonedError(Exception):
    """Nobody waits for the episode's result any more."""


@dataclass(frozen=True)
class Agent:
    """A policy and the head that turns its outputs into actions."""

    policy: Policy
    action_head: str


@dataclass(frozen=True)
class EpisodeResult:
    """One episode of every member."""

    returns: Float64[np.ndarray, " members"]
    env_steps: Int[np.ndarray, " members"]
    faults: dict[str, int]
    """How many members failed for each reason."""
    tallies: dict[str, float]
    """As those of `hebbes.contracts.engine.Rollouts`."""


def _all_finite(array: Shaped[np.ndarray, "rows ..."]) -> bool:
    return array.dtype.kind != "f" or bool(np.isfinite(array).all())


def _failed_rows(array: Shaped[np.ndarray, "rows ..."]) -> Bool[np.ndarray, " rows"]:
    """Which rows hold a number that is not finite."""
    if array.dtype.kind != "f":
        return np.zeros(len(array), np.bool_)
    return ~np.isfinite(array.reshape(len(array), -1)).all(axis=1)


def _taken(state: State, keep: Bool[np.ndarray, " members"]) -> State:
    """The members kept, of every array of a tree."""
    if isinstance(state, dict):
        return {name: _taken(branch, keep) for name, branch in state.items()}
    if isinstance(state, (tuple, list)):
        return type(state)(_taken(branch, keep) for branch in state)
    return None if state is None else state[keep]


def _views(state: State, rows: Shaped[np.ndarray, "members params"]) -> bool:
    """Whether an array of a tree may lie in these rows."""
    if isinstance(state, dict):
        state = tuple(state.values())
    if isinstance(state, (tuple, list)):
        return any(_views(branch, rows) for branch in state)
    return isinstance(state, np.ndarray) and np.may_share_memory(state, rows)


class _Live:
    """The members whose episode goes on, and the results of all: row k of every array is of member `members[k]`."""

    def __init__(self, weights: Weights, observations: Shaped[np.ndarray, "members ..."], state: State):
        self.result = EpisodeResult(np.zeros(len(weights)), np.zeros(len(weights), np.int64), {}, {})
        self.members = np.arange(len(weights))
        if isinstance(weights, np.ndarray) and (not weights.flags.writeable or _views(state, weights)):
            weights = weights.copy()  # rows will move, and a state may read them where they are
        self.weights = weights
        self._rows, self._order = weights, np.arange(len(weights))
        self.observations = observations
        self.rewards = np.zeros(len(weights), np.float32)
        self.state = state

    def drop(self, gone: Bool[np.ndarray, " live"]) -> None:
        """Goes on without these rows, so that finished episodes cost nothing."""
        if gone.any():
            kept = ~gone
            self._drop_rows(kept)
            self.members = self.members[kept]
            self.observations, self.rewards = self.observations[kept], self.rewards[kept]
            self.state = _taken(self.state, kept)

    def _drop_rows(self, kept: Bool[np.ndarray, " live"]) -> None:
        """Moves the weights kept up within their array: copies of large networks would take as much memory again."""
        rows, count = self.weights, int(kept.sum())
        if isinstance(rows, LowRankWeights):
            self.weights = rows[kept]
            return
        if count:
            behind = rows[~kept]
            for new, old in enumerate(np.flatnonzero(kept)):
                if new != old:
                    rows[new] = rows[old]
            rows[count:] = behind
            order = self._order[: len(kept)]
            order[:] = np.concatenate([order[kept], order[~kept]])
        self.weights = rows[:count]

    def restore_rows(self) -> None:
        """Puts the weights back in the order in which they were lent."""
        rows, order = self._rows, self._order
        if isinstance(rows, LowRankWeights):
            return  # they were copied
        for place in range(len(order)):
            while (other := order[place]) != place:
                rows[[place, other]] = rows[[other, place]]
                order[[place, other]] = order[[other, place]]

    def fail(self, members: Int[np.ndarray, " failed"], reason: str) -> None:
        """The episodes of these members have failed."""
        if len(members):
            self.result.returns[members] = np.nan
            self.result.faults[reason] = self.result.faults.get(reason, 0) + len(members)

    def outputs(self, policy: Policy, buffers: Buffers) -> Float[np.ndarray, "live outputs"]:
        """What the policy says in every row; those where it is not finite have failed."""
        outputs = policy.act(self.weights, self.observations, self.rewards, self.state, buffers)
        if not _all_finite(outputs):
            failed = _failed_rows(outputs)
            self.fail(self.members[failed], "non-finite output")
            self.drop(failed)
            outputs = outputs[~failed]
        return outputs

    def take(self, stepped: EnvStep) -> None:
        """Counts an env step of all rows, and drops those that it ended."""
        self.result.returns[self.members] += stepped.rewards
        self.result.env_steps[self.members] += 1
        self.observations, self.rewards = stepped.observations, stepped.rewards.astype(np.float32)
        gone = stepped.terminated | stepped.truncated
        if stepped.faults or not (_all_finite(stepped.observations) and _all_finite(stepped.rewards)):
            gone = gone | self._fail_some(stepped)
        self.drop(gone)

    def _fail_some(self, stepped: EnvStep) -> Bool[np.ndarray, " live"]:
        """Fails every row that has reason to, for the first that it has."""
        failed = np.zeros(len(self.members), np.bool_)
        for copy, reason in stepped.faults.items():
            self.fail(np.array([copy]), reason)
            failed |= self.members == copy
        for what, array in (("observation", stepped.observations), ("reward", stepped.rewards)):
            ill = _failed_rows(array) & ~failed
            self.fail(self.members[ill], f"non-finite {what}")
            failed |= ill
        return failed


def run_episode(
    agent: Agent,
    env: BatchEnv,
    weights: Weights,
    episode: int,
    rngs: Sequence[np.random.Generator],
    *,
    buffers: Buffers,
    max_env_steps: int | None = None,
    tally: MomentTally | None = None,
    abandoned: Event | None = None,
) -> EpisodeResult:
    """Lets member k (row k of `weights`) act in copy k of the environment until every episode has ended.

    Args:
        env: as many copies as there are members, rows of `weights`.
        weights: lent for the episode; the rows change places and are put back.
        episode: number of the episode, which with the copies' seeds fixes the start states.
        rngs: one generator a member, for the policy's state.
        buffers: the policy's constants.
        max_env_steps: cap on the length of an episode; None leaves the environment's own limit alone.
        tally: gathers the observations acted on, if given.
        abandoned: once set, the next env step raises AbandonedError instead.
    """
    head = HEADS[agent.action_head]
    observations = env.start(episode)
    live = _Live(weights, observations, agent.policy.initial_state(weights, rngs, buffers))
    failed = _failed_rows(observations)
    live.fail(live.members[failed], "non-finite observation")
    live.drop(failed)
    step_count, tallies = 0, Tallies(env)
    while len(live.members) and step_count != max_env_steps:
        if abandoned is not None and abandoned.is_set():
            raise AbandonedError
        if tally is not None:
            tally.add(live.members, live.observations)
        begun = perf_counter()
        actions = head(live.outputs(agent.policy, buffers))
        tallies.acted(begun)
        if len(live.members):
            live.take(tallies.step(actions, live.members))
        step_count += 1
    live.fail(np.flatnonzero(np.isinf(live.result.returns)), OVERFLOWED)
    live.restore_rows()
    live.result.tallies.update(tallies.sums)
    return live.result
