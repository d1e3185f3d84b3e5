"""A recall task: the last action must repeat the cue of the first observation. Only a policy with memory can."""

import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete

from hebbes.contracts.environment import EnvStep
from hebbes.execution.episode import Agent, run_episode
from hebbes.policies.gru import GRU
from hebbes.policies.lstm import LSTM
from hebbes.policies.mlp import MLP
from hebbes.strategies.openai_es import OpenAIES, OpenAIESSettings
from tests.strategies.every_strategy import make_results

pytestmark = pytest.mark.slow

DELAY = 4


class Recall:
    """Observes (cue, whether it is time to answer). The cue, -1 or 1 by the episode's number, is shown once."""

    observation_space = Box(-1.0, 1.0, (2,), np.float32)
    action_space = Discrete(2)

    def __init__(self, num_envs):
        self.num_envs = num_envs

    def start(self, episode):
        self._cue, self._env_step = episode % 2, 0
        return np.repeat(np.array([[2 * self._cue - 1, 0]], np.float32), self.num_envs, axis=0)

    def step(self, actions, active):
        self._env_step += 1
        over = self._env_step > DELAY
        observations = np.repeat(np.array([[0, self._env_step == DELAY]], np.float32), len(active), axis=0)
        rewards = np.where(over & (actions == self._cue), 1.0, 0.0)
        return EnvStep(observations, rewards, np.full(len(active), over), np.zeros(len(active), bool), {})

    def close(self):
        pass


def compute_fitness(policy, weights):
    """Share of the two cues that each member recalls."""
    rngs = [np.random.default_rng(0)] * len(weights)
    played = (run_episode(Agent(policy, "argmax"), Recall(len(weights)), weights, k, rngs, buffers={}) for k in (0, 1))
    return np.mean([result.returns for result in played], axis=0)


def train(policy):
    """The fitness of the mean policy after training."""
    settings = OpenAIESSettings(population_size=100, learning_rate=0.1, optimizer="adam", sigma=0.3, weight_penalty=0.0)
    es = OpenAIES(settings, policy.initial_params(np.random.default_rng(0)), seed=0)
    for generation in range(60):
        population = es.ask(generation)
        weights = population.weights(range(len(population)))
        es.tell(population, make_results(population, compute_fitness(policy, weights)))
    return compute_fitness(policy, es.mean[np.newaxis])[0]


@pytest.mark.parametrize("kind", [LSTM, GRU])
def test_a_recurrent_policy_learns_to_remember(kind):
    assert train(kind((2,), 2, hidden_sizes=(), recurrent_size=4)) == 1


def test_a_static_policy_stays_at_chance():
    assert train(MLP((2,), 2, hidden_sizes=(8,), bias=True)) == 0.5
