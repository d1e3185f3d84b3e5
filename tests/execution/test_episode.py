"""The episode loop, which sums rewards and counts env steps, with scripted environments."""

from dataclasses import dataclass, field, replace
from threading import Event

import numpy as np
import pytest

from hebbes.contracts.randomness import Purpose, make_generator
from hebbes.execution.episode import AbandonedError, Agent, run_episode
from hebbes.execution.observation_moments import MomentTally, merge_moments
from tests.scripted import ScriptedEnv


@dataclass(frozen=True)
class Echo:
    """Outputs its one parameter twice. Counts its acts in its state. Outputs NaN in act `nan_at`."""

    num_outputs = 2
    nan_at: int = 0
    seen: list = field(default_factory=list)
    """For each act, the counts, draws and previous rewards."""

    def initial_state(self, weights, rngs, buffers):
        return {"acts": np.zeros(len(weights)), "draw": (np.array([rng.random() for rng in rngs]),), "none": None}

    def act(self, weights, observations, previous_rewards, state, buffers):
        state["acts"] += 1
        outputs = np.repeat(weights, 2, axis=1)
        self.seen.append((state["acts"].copy(), state["draw"][0].copy(), previous_rewards.copy()))
        outputs[(state["acts"] == self.nan_at) & (weights[:, 0] > 0.5)] = np.nan
        return outputs


def run(env, *, policy=Echo(), values=None, **options):
    weights = np.zeros((env.num_envs, 1), np.float32) if values is None else np.array(values, np.float32)[:, None]
    rngs = [make_generator(0, Purpose.TRAINING, member=k) for k in range(env.num_envs)]
    return run_episode(Agent(policy, "identity"), env, weights, 7, rngs, buffers={}, **options)


def test_the_terminal_reward_counts_once_and_nothing_after_it():
    env = ScriptedEnv(3, rewards=[1.0, 10.0, 100.0, 1000.0], terminate_at=[1, 3, 4])
    result = run(env)
    assert result.returns.tolist() == [1.0, 111.0, 1111.0]
    assert result.env_steps.tolist() == [1, 3, 4]
    assert env.episodes == [7]


@pytest.mark.parametrize("ending", ["terminate_at", "truncate_at"])
def test_finished_sub_environments_are_not_stepped_again(ending):
    env = ScriptedEnv(4, **{ending: [2, 1, 3, 1]})
    run(env)
    assert [ids.tolist() for _, ids in env.calls] == [[0, 1, 2, 3], [0, 2], [2]]


def test_each_member_acts_with_its_own_weights_in_its_own_sub_environment():
    env = ScriptedEnv(3, rewards=[0.0], terminate_at=[2, 1, 3], action_weight=1.0)
    assert run(env, values=[0.25, 0.5, 1.0]).returns.tolist() == [1.0, 1.0, 6.0]


@pytest.mark.parametrize("seed", range(5))
def test_weights_are_lent_and_come_back_in_their_order(seed):
    ends = np.random.default_rng(seed).integers(1, 8, 20)
    env = ScriptedEnv(20, rewards=[0.0], terminate_at=ends, action_weight=1.0)
    weights = np.arange(20, dtype=np.float32)[:, None]
    rngs = [make_generator(0, Purpose.TRAINING, member=k) for k in range(20)]
    result = run_episode(Agent(Echo(), "identity"), env, weights, 0, rngs, buffers={})
    assert result.returns.tolist() == (2 * np.arange(20) * ends).tolist()  # both actions equal the weight
    assert weights[:, 0].tolist() == list(range(20))


class Viewer(Echo):
    """A policy whose state contains a view of the weights."""

    def initial_state(self, weights, rngs, buffers):
        return super().initial_state(weights, rngs, buffers) | {"mine": [weights[:, :1]]}

    def act(self, weights, observations, previous_rewards, state, buffers):
        return super().act(state["mine"][0], observations, previous_rewards, state, buffers)


@pytest.mark.parametrize("writeable", [True, False])
@pytest.mark.parametrize("policy", [Echo(), Viewer()])
def test_weights_that_a_state_views_or_that_may_not_be_written_stay_where_they_are(policy, writeable):
    env = ScriptedEnv(4, rewards=[0.0], terminate_at=[1, 3, 2, 3], action_weight=1.0)
    weights = np.array([[1.0], [2.0], [4.0], [8.0]], np.float32)
    weights.flags.writeable = writeable
    rngs = [make_generator(0, Purpose.TRAINING, member=k) for k in range(4)]
    result = run_episode(Agent(policy, "identity"), env, weights, 7, rngs, buffers={})
    assert result.returns.tolist() == [2.0, 12.0, 16.0, 48.0]
    assert weights.ravel().tolist() == [1, 2, 4, 8]


def test_members_that_drop_out_cost_no_copy_of_the_others_weights():
    rows = []

    class Watched(Echo):
        def act(self, weights, observations, previous_rewards, state, buffers):
            rows.append(weights)
            return super().act(weights[:, :1], observations, previous_rewards, state, buffers)

    weights = np.zeros((4, 1), np.float32)
    env, rngs = (
        ScriptedEnv(4, terminate_at=[3, 1, 2, 4]),
        [make_generator(0, Purpose.TRAINING, member=k) for k in range(4)],
    )
    run_episode(Agent(Watched(), "identity"), env, weights, 0, rngs, buffers={})
    assert [len(each) for each in rows] == [4, 3, 2, 1]
    assert all(np.shares_memory(each, weights) for each in rows)


def test_rewards_add_up_in_float64():
    env = ScriptedEnv(1, rewards=[2.0**25, 1.0, 1.0], terminate_at=3)  # float32 cannot represent 2^25 + 1
    assert run(env).returns[0] == 2.0**25 + 2


def test_a_cap_ends_the_episode():
    env = ScriptedEnv(2, terminate_at=[3, 9])
    assert run(env, max_episode_steps=5).env_steps.tolist() == [3, 5]


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_reward_that_is_not_finite_fails_its_member_only(bad):
    rewards = [[1.0, 1.0, 1.0], [1.0, bad, 1.0]]
    result = run(ScriptedEnv(2, rewards=rewards, terminate_at=3))
    assert result.returns[0] == 3.0 and np.isnan(result.returns[1])
    assert result.env_steps.tolist() == [3, 2]
    assert result.faults == {"non-finite reward": 1}


@pytest.mark.parametrize("last", [True, False])
def test_an_observation_that_is_not_finite_fails_its_member_only(last):
    env = ScriptedEnv(3, nan_at=[0, 2, 0], terminate_at=2 if last else 4)
    result = run(env)
    assert np.isnan(result.returns).tolist() == [False, True, False]
    assert result.env_steps[1] == 2
    assert result.faults == {"non-finite observation": 1}


def test_an_output_that_is_not_finite_never_reaches_the_environment():
    env = ScriptedEnv(3, terminate_at=4)
    result = run(env, policy=Echo(nan_at=2), values=[0.0, 1.0, 0.0])
    assert np.isnan(result.returns).tolist() == [False, True, False]
    assert result.env_steps.tolist() == [4, 1, 4]
    assert result.faults == {"non-finite output": 1}
    assert all(np.isfinite(actions).all() for actions, _ in env.calls)


def test_every_member_may_fail():
    result = run(ScriptedEnv(2, terminate_at=4), policy=Echo(nan_at=1), values=[1.0, 1.0])
    assert np.isnan(result.returns).all()
    assert result.faults == {"non-finite output": 2}


def test_a_simulator_that_fails_fails_its_member_only():
    result = run(ScriptedEnv(3, fault_at=[0, 2, 0], terminate_at=4))
    assert result.returns.tolist() == pytest.approx([4, np.nan, 4], nan_ok=True)
    assert result.env_steps.tolist() == [4, 2, 4]
    assert result.faults == {"fault of sub-environment 1": 1}


def test_each_episode_fails_for_one_reason_the_first():
    rewards = [[1.0, np.nan], [1.0, 1.0], [np.nan, np.nan], [1.0, 1.0]]
    result = run(ScriptedEnv(4, rewards=rewards, nan_at=[2, 2, 1, 0], fault_at=[2, 0, 0, 0], terminate_at=2))
    assert list(result.faults.items()) == [("non-finite observation", 2), ("fault of sub-environment 0", 1)]
    assert np.isnan(result.returns).tolist() == [True, True, True, False]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("reward", [1e39, -1e308])
def test_a_reward_beyond_float32_fails_its_member_without_a_warning(reward):
    class Huge(ScriptedEnv):
        def step(self, actions, active):
            step = super().step(actions, active)
            return replace(step, rewards=np.where(active == 1, reward, 3e38))

    result = run(Huge(2, terminate_at=3))
    assert result.returns.tolist() == pytest.approx([9e38, np.nan], nan_ok=True)
    assert result.faults == {"non-finite reward": 1}


def test_an_abandoned_episode_ends_at_the_next_env_step():
    abandoned = Event()

    class Leaving(ScriptedEnv):
        def step(self, actions, active):
            if len(self.calls) == 2:
                abandoned.set()
            return super().step(actions, active)

    env = Leaving(2)
    with pytest.raises(AbandonedError):
        run(env, abandoned=abandoned)
    assert len(env.calls) == 3


def test_state_and_previous_rewards_stay_with_their_member():
    policy = Echo()
    env = ScriptedEnv(3, rewards=[[1.0, 2.0, 3.0], [10.0, 20.0, 30.0], [100.0, 200.0, 300.0]], terminate_at=[3, 1, 2])
    run(env, policy=policy)
    seen, draws = policy.seen, policy.seen[0][1]
    assert [(acts.tolist(), rewards.tolist()) for acts, _, rewards in seen] == [
        ([1, 1, 1], [0, 0, 0]),
        ([2, 2], [1, 100]),
        ([3], [2]),
    ]
    assert len(set(draws)) == 3
    assert seen[1][1].tolist() == draws[[0, 2]].tolist()


def test_the_tally_counts_what_was_acted_on():
    tally = MomentTally(2)
    run(ScriptedEnv(2, terminate_at=[1, 3], nan_at=[0, 2]), tally=tally)
    moments = merge_moments(tally.compute_moments())
    # (sub-environment, env step, episode): both at the start, then 1 after one step; nobody acts on its NaN
    assert moments.count == 3
    assert moments.mean == pytest.approx([2 / 3, 1 / 3, 7])
    assert moments.squares == pytest.approx([2 / 3, 2 / 3, 0])
