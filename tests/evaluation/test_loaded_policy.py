"""A loaded policy in a user's own loop: the same episodes as in an evaluation, and errors of one line."""

import warnings
from dataclasses import replace
from unittest.mock import Mock

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium.utils.env_checker import check_env

import hebbes
from hebbes.environments.environment_spec import EnvironmentSpec
from hebbes.environments.part_spec import PartSpec
from hebbes.files.policy_file import SavedPolicy, save_policy
from hebbes.policies.linear import Linear
from hebbes.policies.torch_modules import as_module
from tests.evaluation.files_to_play import CARTPOLE, EVERY_KIND, save_balancing_policy
from tests.files.saved_policies import act

SCRIPTED = EnvironmentSpec("Scripted-v0", "gymnasium", imports=("tests.scripted",))


@pytest.fixture
def balancing(tmp_path):
    return save_balancing_policy(tmp_path / "a.dat")


def play_by_hand(policy, env, *, seed, episode, cap):
    """Return and env steps of an episode in the loop of a user."""
    observation, info = env.reset()
    assert info == {"episode": episode}
    session, episode_return, env_steps, ended = policy.start(seed, episode=episode), 0.0, 0, False
    while not ended and env_steps < cap:
        observation, reward, terminated, truncated, _ = env.step(session.act(observation))
        session.reward(reward)
        episode_return, env_steps, ended = episode_return + reward, env_steps + 1, terminated or truncated
    return episode_return, env_steps


@pytest.mark.parametrize("kind", EVERY_KIND)
def test_a_loop_by_hand_plays_the_episodes_of_an_evaluation_bit_for_bit(kind, tmp_path):
    path, cap = tmp_path / "a.dat", 60
    save_policy(path, EVERY_KIND[kind])
    found = hebbes.evaluate(path, episodes=5, seed=7, threads=1, max_episode_steps=cap)
    policy = hebbes.load_policy(path)
    env = policy.make_env(seed=7)
    played = [play_by_hand(policy, env, seed=7, episode=k, cap=cap) for k in range(5)]
    env.close()
    assert [each for each, _ in played] == found.returns.tolist()
    assert [env_steps for _, env_steps in played] == found.env_steps.tolist()
    assert len(set(found.returns)) > 1 and np.isfinite(found.returns).all()


def test_a_closed_environment_is_stepped_only_after_a_reset(tmp_path):
    path = tmp_path / "a.dat"
    save_policy(path, next(iter(EVERY_KIND.values())))
    env = hebbes.load_policy(path).make_env(seed=7)
    first, _ = env.reset()
    action = env.action_space.sample()
    env.close()
    with pytest.raises(ValueError, match="step cannot follow close: call reset first"):
        env.step(action)
    again, _ = env.reset(options={"episode": 0})
    assert np.array_equal(first, again)
    assert np.isfinite(env.step(action)[1])
    env.close()


def test_after_a_reset_that_failed_the_environment_is_closed(tmp_path, monkeypatch):
    path = tmp_path / "a.dat"
    save_policy(path, next(iter(EVERY_KIND.values())))
    env = hebbes.load_policy(path).make_env(seed=7)
    first, _ = env.reset()
    with monkeypatch.context() as patched, pytest.raises(OSError, match="no simulator"):
        patched.setattr(env, "_make", Mock(side_effect=OSError("no simulator")))
        env.reset()
    with pytest.raises(ValueError, match="step cannot follow close: call reset first"):
        env.step(env.action_space.sample())
    assert np.array_equal(first, env.reset(options={"episode": 0})[0])
    env.close()


def collect_actions(session, rewards):
    observations = np.random.default_rng(0).normal(size=(len(rewards) + 1, 17))
    actions = [session.act(observations[0])]
    for reward, observation in zip(rewards, observations[1:], strict=True):
        if reward is not None:
            session.reward(reward)
        actions.append(session.act(observation))
    return np.array(actions)


def test_rewards_reach_the_policy_once_and_those_that_are_not_told_are_zero(tmp_path):
    save_policy(tmp_path / "a.dat", EVERY_KIND["hebbian_with_traces"])
    policy = hebbes.load_policy(tmp_path / "a.dat")
    silent = collect_actions(policy.start(), [None] * 5)
    assert np.array_equal(collect_actions(policy.start(), [0.0] * 5), silent)
    assert not np.array_equal(collect_actions(policy.start(), [1.0] * 5), silent)
    once = collect_actions(policy.start(), [1.0, None, None, None, None])
    assert np.array_equal(collect_actions(policy.start(), [1.0, 0.0, 0.0, 0.0, 0.0]), once)
    summed = policy.start()
    summed.act(np.zeros(17))
    summed.reward(1.5)
    summed.reward(-0.5)
    told = policy.start()
    told.act(np.zeros(17))
    told.reward(1.0)
    assert np.array_equal(summed.act(np.ones(17)), told.act(np.ones(17)))


def test_sessions_are_independent_and_draw_their_start_from_seed_and_episode(tmp_path):
    save_policy(tmp_path / "a.dat", EVERY_KIND["hebbian_with_traces"])
    policy, observation = hebbes.load_policy(tmp_path / "a.dat"), np.ones(17)
    first, other = policy.start(seed=3, episode=2), policy.start(seed=3, episode=2)
    action = first.act(observation)
    first.reward(1.0)
    assert not np.array_equal(first.act(observation), action)  # it has learned
    assert np.array_equal(other.act(observation), action)
    for different in (policy.start(seed=4, episode=2), policy.start(seed=3, episode=1)):
        assert not np.array_equal(different.act(observation), action)


def test_searched_initial_weights_are_not_changed_by_what_an_episode_learns(tmp_path):
    save_policy(tmp_path / "a.dat", EVERY_KIND["hebbian_coevolved"])
    policy = hebbes.load_policy(tmp_path / "a.dat")
    session = policy.start()
    for _ in range(5):
        session.act(np.ones(4))
    assert np.array_equal(policy.weights, EVERY_KIND["hebbian_coevolved"].weights)


def test_actions_are_those_that_the_wrapped_environment_takes(balancing, tmp_path):
    action = hebbes.load_policy(balancing).act([0.0, 0.0, 0.1, 0.0])
    assert (type(action), action) == (int, 1)
    save_policy(tmp_path / "b.dat", EVERY_KIND["mlp_with_statistics"])
    policy = hebbes.load_policy(tmp_path / "b.dat")
    observation = np.random.default_rng(0).normal(size=17)
    action = policy.act(observation)
    assert (action.shape, action.dtype) == ((6,), np.float32)
    assert np.array_equal(action, act(EVERY_KIND["mlp_with_statistics"], observation[np.newaxis])[0])
    assert np.array_equal(action, policy.start().act(observation))


def test_a_module_of_its_weights_and_buffers_is_the_same_network():
    policy = hebbes.load_policy("zoo:HalfCheetah-v5")
    observation = np.linspace(-1, 1, 17, dtype=np.float32)
    module = as_module(policy.policy, policy.weights, policy.buffers)
    outputs = module(torch.from_numpy(observation[np.newaxis])).detach().numpy()[0]
    assert policy.action_head == "identity"
    assert policy.act(observation) == pytest.approx(outputs, rel=1e-4, abs=1e-4)


@pytest.mark.parametrize("kind", ["lstm", "hebbian"])
def test_a_policy_with_a_state_acts_only_in_a_session(kind, tmp_path):
    save_policy(tmp_path / "a.dat", EVERY_KIND[kind])
    policy = hebbes.load_policy(str(tmp_path / "a.dat"))
    with pytest.raises(TypeError, match=rf"^policy '{kind}' has a state in each episode: use start\(\)\.act\(\)$"):
        policy.act(np.zeros(4))


def test_what_a_file_holds_can_be_read_and_not_changed(balancing):
    policy = hebbes.load_policy(balancing)
    assert (policy.environment, policy.num_params, policy.score) == ("CartPole-v1", 8, 500.0)
    assert policy.policy == Linear((4,), 2)
    assert policy.provenance == {"score": 500.0, "generation": 3}
    assert (policy.action_head, policy.buffers) == ("argmax", {})
    policy.weights[:] = 0
    assert policy.act([0.0, 0.0, 0.1, 0.0]) == 1
    assert repr(policy) == "<LoadedPolicy linear for CartPole-v1, 8 parameters>"
    assert hebbes.load_policy(save_balancing_policy(balancing, provenance={})).score is None


def test_wrong_observations_and_endless_outputs_are_refused(balancing):
    policy = hebbes.load_policy(balancing)
    with pytest.raises(ValueError, match=r"^observation must have shape \(4,\), as make_env has it, got \(2, 4\)$"):
        policy.act(np.zeros((2, 4)))
    with pytest.raises(ValueError, match="the policy's outputs are not finite"):
        policy.act([0.0, 0.0, np.nan, 0.0])
    with pytest.raises(ValueError, match=r"^observation must be an array of real numbers, got complex128$"):
        policy.act(np.full(4, 1j))
    with pytest.raises(ValueError, match=r"^reward must be a number that float32 can hold, got 'good'$"):
        policy.start().reward("good")
    session = policy.start()
    session.reward(3e38)
    with pytest.raises(
        ValueError, match=r"^reward must keep the sum since the last action within float32, got 3e\+38$"
    ):
        session.reward(3e38)
    scaled = replace(CARTPOLE, wrappers=(PartSpec("scale"),))
    for image, file in ((np.zeros(4), scaled), (np.zeros(4, np.uint8), CARTPOLE)):
        hebbes.load_policy(save_balancing_policy(balancing, environment=file)).act(image)
    with pytest.raises(ValueError, match=r"^observation must have numbers from 0 to 1, as make_env has it, got bytes$"):
        hebbes.load_policy(save_balancing_policy(balancing, environment=scaled)).act(np.zeros(4, np.uint8))
    env = policy.make_env()
    env.reset()
    with pytest.raises(TypeError, match=r"^actions must be of type int64, got float64$"):
        env.step(1.5)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda policy: policy.start(-1), "seed must be >= 0, got -1"),
        (lambda policy: policy.start(episode=0.5), "episode must be a whole number, got 0.5"),
        (lambda policy: policy.make_env(seed=True), "seed must be a whole number, got True"),
        (lambda policy: policy.make_env().reset(seed=-1), "seed must be >= 0, got -1"),
        (
            lambda policy: policy.make_env().reset(options={"episode": -1}),
            "episode must be >= 0, got -1",
        ),
        (
            lambda policy: policy.make_env().reset(options="ab"),
            "options must be a mapping such as {'episode': 7}, got 'ab'",
        ),
        (lambda policy: hebbes.load_policy(""), "the path of a policy file must not be empty"),
    ],
)
def test_seeds_and_episodes_are_whole_numbers(call, message, balancing):
    with pytest.raises(ValueError, match=f"^{message}$"):
        call(hebbes.load_policy(balancing))


def test_code_of_the_user_is_imported_only_if_allowed(tmp_path):
    saved = SavedPolicy(Linear((2,), 2), "linear", np.zeros(4, np.float32), {}, "identity", SCRIPTED, {})
    save_policy(tmp_path / "a.dat", saved)
    with pytest.raises(ValueError, match=r"needs code from the module 'tests\.scripted'"):
        hebbes.load_policy(tmp_path / "a.dat")
    with pytest.raises(ValueError, match="imports must be a list of names of packages"):
        hebbes.load_policy(tmp_path / "a.dat", imports="tests.scripted")
    policy = hebbes.load_policy(tmp_path / "a.dat", imports=["tests.scripted"])
    assert policy.make_env().reset()[0].shape == (2,)


def test_the_environment_keeps_gymnasiums_rules(balancing):
    env = hebbes.load_policy(balancing).make_env(seed=2)
    assert isinstance(env, gymnasium.Env)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check_env(env, skip_render_check=True)
    first = env.reset(seed=2)[0]
    assert np.array_equal(hebbes.load_policy(balancing).make_env(seed=2).reset()[0], first)
    second = env.reset()[0]
    assert not np.array_equal(second, first)
    assert np.array_equal(env.reset(options={"episode": 1})[0], second)
    assert not np.array_equal(env.reset(seed=3)[0], first)
    assert np.array_equal(env.reset(seed=np.int64(2))[0], first)
    env.close()
    env.close()


def test_training_wrappers_are_left_out_and_a_failing_simulator_ends_the_episode(tmp_path):
    spec = replace(SCRIPTED, env_kwargs={"rewards": [-1.0], "truncate_at": 9, "raise_at": 2})
    spec = replace(spec, training_wrappers=(PartSpec("early_stop", {"negative_streak": 0}),))
    save_policy(
        tmp_path / "a.dat", SavedPolicy(Linear((2,), 2), "linear", np.zeros(4, np.float32), {}, "identity", spec, {})
    )
    policy = hebbes.load_policy(tmp_path / "a.dat", imports=["tests.scripted"])
    env, session = policy.make_env(), policy.start()
    observation, _ = env.reset()
    observation, *_ = env.step(session.act(observation))
    _, reward, terminated, truncated, info = env.step(session.act(observation))
    session.reward(reward)
    assert np.isnan(reward) and terminated and not truncated
    assert "scripted failure at env step 2" in info["fault"]


def test_images_are_rendered_on_request(balancing):
    env = hebbes.load_policy(balancing).make_env(render_mode="rgb_array")
    assert env.metadata == {"render_modes": ["human", "rgb_array"], "render_fps": 50}
    env.reset()
    assert env.render().shape == (400, 600, 3)
    env.close()


def test_a_policy_that_does_not_fit_the_environment_is_refused(tmp_path):
    path = save_balancing_policy(tmp_path / "a.dat", environment=replace(CARTPOLE, environment="Acrobot-v1"))
    with pytest.raises(ValueError, match=r"a.dat: the policy takes observations of shape \(4,\)"):
        hebbes.load_policy(path).make_env()
