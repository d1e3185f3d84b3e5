"""The episode loop: the only place where rewards are summed and env steps are counted.

The terminal reward counts once, and nothing after it counts. Rewards are summed in float64. A non-finite observation,
output or reward, or a simulator that fails, ends the member's episode and makes its return NaN. A number too large for
float32 counts as non-finite.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from threading import Event
from time import perf_counter

import numpy as np
from jaxtyping import Bool, Float, Float64, Int, Shaped

from hebbes.contracts.engine import NONFINITE_OUTPUT, EngineError
from hebbes.contracts.environment import MAX_FLOAT32, BatchEnv, EnvStep
from hebbes.contracts.policy import Buffers, LowRankWeights, Policy, State, Weights
from hebbes.environments.wrapper_errors import check_observations
from hebbes.execution.kernels import env_steps
from hebbes.execution.observation_moments import MomentTally
from hebbes.execution.tallies import Tallies
from hebbes.execution.transitions import Collector, find_nonfinite_rows
from hebbes.policies.action_heads import HEADS
from hebbes.registry.users_classes import describe_class

_OBSERVATION = "non-finite observation"


class AbandonedError(Exception):
    """The episode was stopped, because nobody waits for its result any more."""


@dataclass(frozen=True)
class Agent:
    """A policy and the head that turns its outputs into actions."""

    policy: Policy
    action_head: str


@dataclass(frozen=True)
class EpisodeResult:
    """The results of one episode of every member."""

    returns: Float64[np.ndarray, " members"]
    env_steps: Int[np.ndarray, " members"]
    faults: dict[str, int]
    """Reason -> number of members that failed for it."""
    tallies: dict[str, float]
    """As in `hebbes.contracts.engine.Rollouts`."""


def _is_all_finite(array: Shaped[np.ndarray, "rows ..."]) -> bool:
    if array.dtype.kind != "f" or float(np.vdot(array, array)) <= MAX_FLOAT32**2:  # no addend is larger than the sum
        return True
    return not find_nonfinite_rows(array).any()


def _select_members(state: State, keep: Bool[np.ndarray, " members"]) -> State:
    """The state of the members where `keep` is True: these rows of every array in the tree."""
    if isinstance(state, dict):
        return {name: _select_members(branch, keep) for name, branch in state.items()}
    if isinstance(state, (tuple, list)):
        return type(state)(_select_members(branch, keep) for branch in state)
    return None if state is None else state[keep]


def _may_share_memory(state: State, rows: Shaped[np.ndarray, "members params"]) -> bool:
    """Whether an array in the tree may share memory with `rows`."""
    if isinstance(state, dict):
        state = tuple(state.values())
    if isinstance(state, (tuple, list)):
        return any(_may_share_memory(branch, rows) for branch in state)
    return isinstance(state, np.ndarray) and np.may_share_memory(state, rows)


class _LiveMembers:
    """The members whose episode still runs, and the results of all. Row k of every array belongs to `members[k]`."""

    def __init__(self, weights: Weights, observations: Shaped[np.ndarray, "members ..."], state: State):
        self.result = EpisodeResult(np.zeros(len(weights)), np.zeros(len(weights), np.int64), {}, {})
        self.members = np.arange(len(weights))
        self._returns, self.num_env_steps = np.zeros(len(weights)), 0
        if isinstance(weights, np.ndarray) and (not weights.flags.writeable or _may_share_memory(state, weights)):
            weights = weights.copy()  # rows will be moved, and a state that views them must not change
        self.weights = weights
        self._rows, self._order = weights, np.arange(len(weights))
        self.observations = observations
        self.rewards = np.zeros(len(weights), np.float32)
        self.state = state

    def drop_rows(self, dropped: Bool[np.ndarray, " live"]) -> None:
        """Removes these rows and records their results, so that finished episodes cost no time."""
        if np.count_nonzero(dropped):  # faster than `any`
            kept = ~dropped
            self._record_results(dropped)
            self._returns = self._returns[kept]
            self._compact_weights(kept)
            self.members = self.members[kept]
            self.observations, self.rewards = self.observations[kept], self.rewards[kept]
            self.state = _select_members(self.state, kept)

    def _compact_weights(self, kept: Bool[np.ndarray, " live"]) -> None:
        """Moves the kept weights to the top of their array. A copy of large networks would double the memory."""
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

    def _restore_weights(self) -> None:
        """Puts the rows of the caller's weights back into their original order."""
        rows, order = self._rows, self._order
        if isinstance(rows, LowRankWeights):
            return  # only copies were changed
        for place in range(len(order)):
            while (other := order[place]) != place:
                rows[[place, other]] = rows[[other, place]]
                order[[place, other]] = order[[other, place]]

    def end(self, tallies: dict[str, float]) -> EpisodeResult:
        """The results of all members; those that still live end here. The caller's weights get their order back."""
        self._record_results(np.ones(len(self.members), np.bool_))
        self._restore_weights()
        self.result.tallies.update(tallies)
        return self.result

    def _record_results(self, ended: Bool[np.ndarray, " live"]) -> None:
        self.result.returns[self.members[ended]] = self._returns[ended]
        self.result.env_steps[self.members[ended]] = self.num_env_steps

    def record_failure(self, failed: Bool[np.ndarray, " live"], reason: str) -> None:
        """Records that the episodes of these rows failed."""
        self._returns[failed] = np.nan
        if count := int(failed.sum()):
            self.result.faults[reason] = self.result.faults.get(reason, 0) + count

    def compute_outputs(self, policy: Policy, buffers: Buffers) -> Float[np.ndarray, "live outputs"]:
        """The policy's outputs. Members with a non-finite output fail and are left out."""
        outputs = policy.act(self.weights, self.observations, self.rewards, self.state, buffers)
        if not isinstance(outputs, np.ndarray) or outputs.shape != (len(self.members), policy.num_outputs):
            expected, found = (len(self.members), policy.num_outputs), np.shape(outputs)
            raise EngineError(f"policy {describe_class(policy)}: act must return shape {expected}, got {found}")
        return outputs if _is_all_finite(outputs) else outputs[self.drop_nonfinite(NONFINITE_OUTPUT, outputs)]

    def drop_nonfinite(self, reason: str, array: Shaped[np.ndarray, "rows ..."]) -> Bool[np.ndarray, " rows"]:
        """Fails and removes the members whose row has a number that is not finite; returns which rows are left."""
        failed = find_nonfinite_rows(array)
        self.record_failure(failed, reason)
        self.drop_rows(failed)
        return ~failed

    def record_env_step(self, env_step: EnvStep) -> None:
        """Adds the rewards, counts the env step and drops members whose episode ended."""
        rewards = env_step.rewards.astype(np.float64, copy=False)
        some_ended, are_finite = env_steps.add_rewards(rewards, env_step.terminated, env_step.truncated, self._returns)
        if not are_finite:  # NaN, which unlike a number too large is converted to float32 without a warning
            rewards = np.where(np.abs(rewards) <= MAX_FLOAT32, rewards, np.nan)
        self.num_env_steps += 1
        self.observations, self.rewards = env_step.observations, rewards.astype(np.float32)
        failed = None
        if env_step.faults or not (are_finite and _is_all_finite(env_step.observations)):
            failed = self._fail_broken_rows(env_step)
        if some_ended or failed is not None:
            ended = env_step.terminated | env_step.truncated
            self.drop_rows(ended if failed is None else ended | failed)

    def _fail_broken_rows(self, env_step: EnvStep) -> Bool[np.ndarray, " live"]:
        """Records each broken row under its first reason and returns which rows failed."""
        failed = np.zeros(len(self.members), np.bool_)
        for member, reason in env_step.faults.items():
            row = self.members == member
            self.record_failure(row, reason)
            failed |= row
        for reason, array in ((_OBSERVATION, env_step.observations), ("non-finite reward", self.rewards)):
            broken = find_nonfinite_rows(array) & ~failed
            self.record_failure(broken, reason)
            failed |= broken
        return failed


def run_episode(
    agent: Agent,
    env: BatchEnv,
    weights: Weights,
    episode: int,
    rngs: Sequence[np.random.Generator],
    *,
    buffers: Buffers,
    max_episode_steps: int | None = None,
    tally: MomentTally | None = None,
    collector: Collector | None = None,
    abandoned: Event | None = None,
) -> EpisodeResult:
    """The results of one episode in which member k (row k of `weights`) acts in sub-environment k.

    Args:
        env: has one sub-environment per member.
        weights: may be reordered in place during the episode; the order is restored at the end.
        episode: its number, which determines the start states together with the seeds of the sub-environments.
        rngs: one generator per member, for the policy's initial state.
        max_episode_steps: largest number of env steps; None: only the environment's own limit.
        tally: collects the moments of the observations that members acted on, if given.
        collector: may change the actions, and receives every env step, if given.
        abandoned: once it is set, the episode raises AbandonedError before its next env step.
    """
    observations = env.start(episode)
    check_observations(observations, len(weights), env.observation_space)
    live = _LiveMembers(weights, observations, agent.policy.initial_state(weights, rngs, buffers))
    live.drop_nonfinite(_OBSERVATION, observations)
    tallies = Tallies(env)
    while len(live.members) and live.num_env_steps != max_episode_steps:
        if abandoned is not None and abandoned.is_set():
            raise AbandonedError
        if tally is not None:
            tally.add(live.members, live.observations)
        begun = perf_counter()
        actions = HEADS[agent.action_head](live.compute_outputs(agent.policy, buffers))
        tallies.record_policy_time(begun)
        if not len(live.members):
            break
        if collector is not None:
            actions = collector.choose_actions(live.observations, actions)
        begun = perf_counter()
        env_step = env.step(actions, live.members)
        tallies.record(actions, begun)
        if collector is not None:
            collector.record(live.members, actions, env_step)
        live.record_env_step(env_step)
    return live.end(tallies.sums)
