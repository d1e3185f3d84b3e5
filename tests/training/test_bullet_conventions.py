"""PyBullet's walkers are played as in Najarro & Risi's code: they are compared with a loop written from its rules."""

from functools import partial
from itertools import pairwise

import gymnasium
import numpy as np
import pytest
import torch
from torch import nn

from hebbes.contracts.randomness import Purpose, derive_simulator_seed
from hebbes.environments.ids import register
from hebbes.environments.stepping_guard import derive_episode_seeds
from hebbes.evaluation.play import play
from hebbes.options.evaluation import EvaluateConfig
from hebbes.programs.evaluation_entries import load_entries
from hebbes.wrappers.early_stop import EarlyStop
from tests.files.saved_policies import act
from tests.scripted import ScriptedEnv

ANT, HOPPER = "AntBulletEnv-v0", "HopperBulletEnv-v0"
SOURCE_RULES = {"bullet": (30, 200), "car": (20, -1)}
"""More than this many negative rewards in a row end an episode; rewards up to this time, from 0, do not count."""


def compute_source_length(rewards, streak, unseen, falls=()):
    """The env step of the policy, from 1, at which the source's loop ends; `falls` are the times of falls."""
    negative = time = 0
    while True:
        if time > unseen:
            negative = negative + 1 if rewards[time] < 0 else 0
            if time in falls or negative > streak:
                return time + 1
        time += 1


def compute_our_lengths(rewards, streak, grace):
    """The env step at which our episode ends, for each row of rewards."""
    inner = ScriptedEnv(len(rewards), rewards=rewards)
    env = EarlyStop(inner, negative_streak=streak, grace_steps=grace, counts_grace=False)
    env.start(0)
    active, lengths = np.arange(len(rewards)), np.zeros(len(rewards), int)
    while len(active):
        truncated = env.step(np.zeros((len(active), 2), np.float32), active).truncated
        lengths[active[truncated]] = len(inner.calls)
        active = active[~truncated]
    return lengths.tolist()


@pytest.mark.parametrize(("rule", "grace"), [("bullet", 201), ("car", 0)])
def test_300_random_series_end_where_the_sources_do(rule, grace):
    """Each series has a long streak at its end."""
    rng, series = np.random.default_rng(0), []
    for _ in range(300):
        changes = rng.random(300) < rng.choice([0.02, 0.05, 0.2])
        signs = np.where(np.cumsum(changes) % 2 == rng.integers(2), 1.0, -1.0)
        series.append([*(signs * rng.random(300)), *[-1.0] * 300])
    streak, unseen = SOURCE_RULES[rule]
    expected = [compute_source_length(rewards, streak, unseen) for rewards in series]
    assert compute_our_lengths(series, streak, grace) == expected
    assert len(set(expected)) > 20


def test_always_negative_rewards_end_at_the_232nd_env_step():
    assert compute_source_length([-1.0] * 300, 30, 200) == 232
    assert compute_our_lengths([[-1.0] * 300], 30, 201) == [232]


def make_reference_network(rng, inputs, outputs):
    """A network of the reference with random weights, and the row that its file holds."""
    sizes = (inputs, 128, 64, outputs)
    layers = [nn.Linear(a, b, bias=False) for a, b in pairwise(sizes)]
    for layer in layers:
        layer.weight.data = torch.tensor(rng.normal(0, 0.1, layer.weight.shape), dtype=torch.float32)
    network = nn.Sequential(layers[0], nn.Tanh(), layers[1], nn.Tanh(), layers[2])
    return network, nn.utils.parameters_to_vector(network.parameters()).detach().numpy()


def play_by_source_rules(environment, network, act, seed):
    """One episode by the source's rules, with one departure: the policy first acts on what it sees after settling.

    `act` is the same network with the last bits of our episodes, because contacts turn small differences into large
    ones.
    """
    env = gymnasium.make(environment)
    env.reset(seed=0)  # PyBullet's first episode after loading differs in the last bits
    observation, _ = env.reset(seed=seed)
    if environment == ANT:
        for _ in range(40):
            observation, *_ = env.step(np.zeros(8, np.float32))
    total, time, negative = 0.0, 0, 0
    while True:
        with torch.no_grad():
            expected = torch.tanh(network(torch.as_tensor(observation, dtype=torch.float32))).numpy()
        action = act(observation[np.newaxis])[0]
        np.testing.assert_allclose(action, expected, atol=1e-5)
        observation, reward, fallen, timed_out, _ = env.step(action)
        reward = env.unwrapped.rewards[1] if environment == ANT else reward
        total += reward
        if time > 200:
            negative = negative + 1 if reward < 0 else 0
            if fallen or timed_out or negative > 30:
                env.close()
                return total, time + 1
        time += 1


@pytest.mark.slow
@pytest.mark.parametrize("environment", [ANT, HOPPER])
def test_a_file_of_the_reference_earns_what_it_earns_there(environment, tmp_path):
    register(environment, ())
    spaces = gymnasium.make(environment)
    network, row = make_reference_network(
        np.random.default_rng(1), spaces.observation_space.shape[0], spaces.action_space.shape[0]
    )
    spaces.close()
    path = tmp_path / "reference.dat"
    torch.save(row, path)
    options = EvaluateConfig(
        path_weights=(str(path),), environment=environment, policy="mlp", training_wrappers=True, episodes=3
    )
    (entry,) = load_entries(options)
    returns = play(entry.saved, entry.environment, episodes=3, seed=0, threads=1).fitness
    seeds = [derive_episode_seeds([derive_simulator_seed(0, Purpose.TEST, member=k)], 0)[0] for k in range(3)]
    expected, lengths = zip(
        *(play_by_source_rules(environment, network, partial(act, entry.saved), seed) for seed in seeds), strict=True
    )
    assert min(lengths) >= 202
    np.testing.assert_allclose(returns, expected, rtol=1e-12)
