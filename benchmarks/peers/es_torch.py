"""es-torch's update (github.com/neuro-soup/es-torch) in a plain loop over a vector environment of Gymnasium.

The settings are those of its `examples/train_half_cheetah_local.py` at commit 0595775, which promises a return of about
3000: population 30, learning rate 0.04, standard deviation 0.025, weight decay 0.0025, an MLP of 64 and 64
units with biases. It has published them for HalfCheetah-v5 alone. They are used for all environments, with the largest
output as a discrete action, and with the reference's network for images.

As there, each member has a sub-environment and thereby a process of its own, actions are not clipped, start states are
independent, and all members act until the last episode has ended. Env steps after the end of a member's episode are
not counted. Departures: the last reward of an episode counts (es-torch drops it, which is a bug), and the simulators
are seeded at the start.
"""

from collections.abc import Mapping
from contextlib import closing
from functools import partial
from typing import Any

import numpy as np
import torch
from gymnasium.spaces import Discrete
from gymnasium.vector import AsyncVectorEnv
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.utils import parameters_to_vector, vector_to_parameters

from benchmarks.peers.measure import Keep
from benchmarks.peers.networks import list_hidden_sizes, make_env, make_network, prepare

PACKAGES = ("torch",)
POPULATION, LEARNING_RATE, SIGMA, WEIGHT_DECAY, HIDDEN = 30, 0.04, 0.025, 0.0025, (64, 64)


def find_settings(environment: str) -> Mapping[str, Any]:
    """The same for all environments, but for the network of images."""
    names = ("population_size", "learning_rate", "sigma", "weight_decay", "hidden_sizes")
    values = POPULATION, LEARNING_RATE, SIGMA, WEIGHT_DECAY, list_hidden_sizes(environment, HIDDEN)
    return dict(zip(names, values, strict=True))


@torch.no_grad()
def train(environment: str, seed: int, cores: int, keep: Keep) -> None:
    """Trains until `keep` raises. The processes share the cores."""
    torch.manual_seed(seed)
    first, env_steps = make_env(environment), 0
    network, is_discrete = make_network(first, HIDDEN, bias=True), isinstance(first.action_space, Discrete)
    if isinstance(network, nn.Sequential):
        network.apply(_initialize)
    mean = parameters_to_vector(network.parameters())

    def act(observation: np.ndarray) -> Any:
        vector_to_parameters(mean, network.parameters())
        outputs = network(prepare(observation))
        return int(outputs.argmax()) if is_discrete else outputs.numpy()

    with closing(AsyncVectorEnv([partial(make_env, environment)] * POPULATION)) as envs:
        envs.reset(seed=seed)
        while True:
            keep(env_steps, act)
            noise = torch.randn(POPULATION // 2, len(mean))
            noise = torch.cat([noise, -noise])
            returns, lengths = play_population(envs, network, mean + SIGMA * noise, is_discrete)
            step = noise.T @ rank(returns) / POPULATION - WEIGHT_DECAY * mean
            mean, env_steps = mean + LEARNING_RATE * step, env_steps + int(lengths.sum())


def _initialize(layer: nn.Module) -> None:
    if isinstance(layer, nn.Linear):
        nn.init.xavier_uniform_(layer.weight)
        nn.init.zeros_(layer.bias)


def rank(returns: np.ndarray) -> Float[Tensor, " population"]:
    """Ranks from -0.5 to 0.5. Ties share their mean rank."""
    ordered = np.sort(returns)
    mean_ranks = (ordered.searchsorted(returns) + ordered.searchsorted(returns, side="right") - 1) / 2
    return torch.as_tensor(mean_ranks / (len(returns) - 1) - 0.5, dtype=torch.float32)


def play_population(
    envs: AsyncVectorEnv, network: nn.Module, members: Float[Tensor, "population params"], is_discrete: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Return and number of env steps of each member's episode."""
    sizes = [each.numel() for each in network.parameters()]
    named = zip(network.named_parameters(), members.split(sizes, dim=1), strict=True)
    weights = {name: rows.reshape(-1, *parameter.shape) for (name, parameter), rows in named}
    act = torch.vmap(lambda own, observation: torch.func.functional_call(network, own, (observation,)))
    observations, _ = envs.reset()
    active, returns, lengths = np.ones(len(members), bool), np.zeros(len(members)), np.zeros(len(members), int)
    while active.any():
        outputs = act(weights, torch.as_tensor(observations, dtype=torch.float32))
        actions = outputs.argmax(dim=1) if is_discrete else outputs
        observations, rewards, terminated, truncated, _ = envs.step(actions.numpy())
        returns, lengths = returns + rewards * active, lengths + active
        active &= ~(terminated | truncated)
    return returns, lengths
