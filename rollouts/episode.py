"""The episode loop: the only place where rewards are summed and env steps are counted.

A terminal reward counts once and nothing after it counts. Rewards add up in float64. A non-finite observation, output
or reward ends the member's episode and makes its return NaN.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float64, Int, Shaped

from contracts.environment import BatchEnv
from contracts.policy import Buffers, Policy, State, Weights
from policies.heads import HEADS
from rollouts.moments import MomentTally


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


def _failed_rows(array: Shaped[np.ndarray, "rows ..."]) -> Bool[np.ndarray, " rows"]:
    """Which rows hold a number that is not finite."""
    if array.dtype.kind != "f" or np.isfinite(array).all():
        return np.zeros(len(array), np.bool_)
    return ~np.isfinite(array.reshape(len(array), -1)).all(axis=1)


def _taken(state: State, keep: Bool[np.ndarray, " members"]) -> State:
    """The members kept, of every array of a tree."""
    if isinstance(state, dict):
        return {name: _taken(branch, keep) for name, branch in state.items()}
    if isinstance(state, (tuple, list)):
        return type(state)(_taken(branch, keep) for branch in state)
    return None if state is None else state[keep]


class _Live:
    """The members whose episode goes on: row k of every array belongs to member `members[k]`."""

    def __init__(self, weights: Weights, observations: Shaped[np.ndarray, "members ..."], state: State):
        self.members = np.arange(len(weights))
        self.weights = weights
        self.observations = observations
        self.rewards = np.zeros(len(weights), np.float32)
        self.state = state

    def drop(self, gone: Bool[np.ndarray, " live"]) -> None:
        """Goes on without these rows, so that finished episodes cost nothing."""
        if gone.any():
            kept = ~gone
            self.members, self.weights = self.members[kept], self.weights[kept]
            self.observations, self.rewards = self.observations[kept], self.rewards[kept]
            self.state = _taken(self.state, kept)


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
) -> EpisodeResult:
    """Lets member k (row k of `weights`) act in copy k of the environment until every episode has ended.

    Args:
        env: as many copies as there are members, rows of `weights`.
        episode: number of the episode, which with the copies' seeds fixes the start states.
        rngs: one generator a member, for the policy's state.
        buffers: the policy's constants.
        max_env_steps: cap on the length of an episode; None leaves the environment's own limit alone.
        tally: gathers the observations acted on, if given.
    """
    head = HEADS[agent.action_head]
    returns = np.zeros(len(weights))
    env_steps = np.zeros(len(weights), np.int64)
    observations = env.start(episode)
    live = _Live(weights, observations, agent.policy.initial_state(weights, rngs, buffers))

    failed = _failed_rows(observations)
    returns[failed] = np.nan
    live.drop(failed)
    step_count = 0
    while len(live.members) and step_count != max_env_steps:
        if tally is not None:
            tally.add(live.observations)
        outputs = agent.policy.act(live.weights, live.observations, live.rewards, live.state, buffers)
        failed = _failed_rows(outputs)
        returns[live.members[failed]] = np.nan
        live.drop(failed)
        if not len(live.members):
            break
        stepped = env.step(head(outputs[~failed]), live.members)
        step_count += 1
        returns[live.members] += stepped.rewards
        env_steps[live.members] += 1
        live.observations, live.rewards = stepped.observations, stepped.rewards.astype(np.float32)
        failed = _failed_rows(stepped.observations) | _failed_rows(stepped.rewards)
        returns[live.members[failed]] = np.nan
        live.drop(failed | stepped.terminated | stepped.truncated)
    return EpisodeResult(returns, env_steps)
