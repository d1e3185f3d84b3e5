"""The loop of the reference (Najarro & Risi 2020, arXiv 2007.02686, github.com/enajx/ES): processes over Gymnasium.

The settings are the defaults of its program, which it uses for every environment: population 200, learning rate 0.2
that decays by 0.995 until 0.001, standard deviation 0.1 that decays by 0.999 until 0.01, networks without biases (128
and 64 units, for images a convolutional one). Ranks are divided by their standard deviation. The weight penalty is 0.01
times the mean squared weight.

As there, a pool of processes plays one episode for each member, and every episode makes its simulator and its network
anew. CarRacing's episodes end after more than 20 negative rewards in a row. Departures: noise and update are computed
by NumPy over whole arrays, not by Python over single weights, which is faster; noise and simulators are seeded.
"""

from collections.abc import Mapping
from multiprocessing import Pool
from typing import Any, TypeAlias

import gymnasium
import numpy as np
import torch
from gymnasium.spaces import Box
from jaxtyping import Float32
from torch import nn
from torch.nn.utils import parameters_to_vector, vector_to_parameters

from benchmarks.peers.measure import Keep
from benchmarks.peers.networks import make_env, make_network, prepare

PACKAGES = ("torch",)
POPULATION, LEARNING_RATE, DECAY, SIGMA, HIDDEN = 200, 0.2, 0.995, 0.1, (128, 64)
SIGMA_DECAY, LEAST_LEARNING_RATE, LEAST_SIGMA, WEIGHT_PENALTY, NEGATIVE_STREAK = 0.999, 0.001, 0.01, 0.01, 20

Job: TypeAlias = tuple[str, np.ndarray, int]
"""Environment, weights and seed of the simulator."""


def find_settings(environment: str) -> Mapping[str, Any]:
    """The same for all environments."""
    return {
        **{"population_size": POPULATION, "hidden_sizes": HIDDEN, "weight_penalty": WEIGHT_PENALTY},
        **{"learning_rate": LEARNING_RATE, "learning_rate_decay": DECAY, "learning_rate_min": LEAST_LEARNING_RATE},
        **{"sigma": SIGMA, "sigma_decay": SIGMA_DECAY, "sigma_min": LEAST_SIGMA},
    }


def train(environment: str, seed: int, cores: int, keep: Keep) -> None:
    """Trains until `keep` raises."""
    torch.manual_seed(seed)
    rng, env = np.random.default_rng(seed), make_env(environment)
    network = make_network(env, HIDDEN, bias=False)
    mean = parameters_to_vector(network.parameters()).detach().numpy().copy()
    learning_rate, sigma, env_steps = LEARNING_RATE, SIGMA, 0

    def act(observation: np.ndarray) -> Any:
        load_weights(network, mean)
        return choose_action(network, prepare(observation), env)

    with Pool(cores) as pool:
        while True:
            keep(env_steps, act)
            half = rng.standard_normal((POPULATION // 2, len(mean)), np.float32)
            noise = np.stack([half, -half], axis=1).reshape(POPULATION, -1)
            seeds = rng.integers(2**31, size=POPULATION).tolist()
            jobs = [(environment, mean + sigma * row, own) for row, own in zip(noise, seeds, strict=True)]
            fitness, lengths = np.array(pool.map(play_member, jobs)).T
            ranks = fitness.argsort().argsort() / (POPULATION - 1) - 0.5
            mean = mean + learning_rate / (POPULATION * sigma) * ((ranks / ranks.std()).astype(np.float32) @ noise)
            env_steps += int(lengths.sum())
            learning_rate *= DECAY if learning_rate > LEAST_LEARNING_RATE else 1
            sigma *= SIGMA_DECAY if sigma > LEAST_SIGMA else 1


@torch.no_grad()
def play_member(job: Job) -> tuple[float, int]:
    """Fitness and number of env steps of a member's episode."""
    environment, weights, seed = job
    env = make_env(environment)
    network = make_network(env, HIDDEN, bias=False)
    load_weights(network, weights)
    observation, _ = env.reset(seed=seed)
    total, env_steps, streak, done = 0.0, 0, 0, False
    while not done:
        action = choose_action(network, torch.as_tensor(observation, dtype=torch.float32), env)
        observation, reward, terminated, truncated, _ = env.step(action)
        total, env_steps, streak = total + float(reward), env_steps + 1, streak + 1 if float(reward) < 0 else 0
        done = terminated or truncated or (environment.startswith("CarRacing") and streak > NEGATIVE_STREAK)
    env.close()
    return total - WEIGHT_PENALTY * float(np.mean(weights**2)), env_steps


def load_weights(network: nn.Module, weights: Float32[np.ndarray, " params"]) -> None:
    """Puts the weights into the network."""
    vector_to_parameters(torch.as_tensor(weights, dtype=torch.float32), network.parameters())


@torch.no_grad()
def choose_action(network: nn.Module, observation: torch.Tensor, env: gymnasium.Env) -> Any:
    """The largest output, or clipped outputs; CarRacing's through tanh and sigmoids."""
    outputs, space = network(observation), env.action_space
    if not isinstance(space, Box):
        return int(outputs.argmax())
    if observation.ndim == 3:
        return torch.cat([outputs[:1].tanh(), outputs[1:].sigmoid()]).numpy()
    return np.clip(outputs.numpy(), space.low, space.high)
