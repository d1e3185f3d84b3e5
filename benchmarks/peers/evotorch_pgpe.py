"""PGPE with ClipUp of EvoTorch, with settings that its authors publish, on an actor of Ray for each core.

CartPole-v1 has the settings of EvoTorch's notebook Functional_API/problem.ipynb (commit 5922358). The authors have
published none for the others, so these get those of the nearest task in EvoTorch's examples/scripts/rl_clipup.py
(commit 13bdaf1), which repeats their paper (Toklu et al. 2020, arXiv 2008.02387):

- Hopper-v5 those of Walker2d-v4; its survival bonus of 1 is taken away as there.
- HalfCheetah-v5 those of Walker2d-v4 too, without a survival bonus, because it has none.
- CarRacing-v3 those of LunarLanderContinuous-v2, with the reference's network for images.

The seed is that of the search. EvoTorch 0.6.1 does not seed the simulators, and cannot seed a problem that has actors.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
import ray
import torch
from evotorch.algorithms import PGPE
from evotorch.neuroevolution import GymNE
from gymnasium.spaces import Discrete

from benchmarks.peers.measure import Keep
from benchmarks.peers.networks import ImageNetwork, has_images, make_env, prepare

PACKAGES = ("evotorch", "ray", "torch")
_WALKER = {"max_speed": 0.015, "popsize": 100, "popsize_max": 800, "num_interactions": 75_000}
_LINEAR = {"network": "Linear(obs_length, act_length)", "observation_normalization": True}
SETTINGS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "HalfCheetah-v5": (_LINEAR, _WALKER),
    "Hopper-v5": ({**_LINEAR, "decrease_rewards_by": 1.0}, _WALKER),
    "CartPole-v1": (
        {"network": "Linear(obs_length, 16) >> Tanh() >> Linear(16, act_length)", "observation_normalization": True},
        {"max_speed": 0.15, "popsize": 100},
    ),
    "CarRacing-v3": ({"network": "ImageNetwork"}, {"max_speed": 0.3, "popsize": 200}),
}
"""Options of the problem, and of the search."""
CENTER_SPEED, RADIUS, MOMENTUM, STDEV = 0.75, 15, 0.9, {"stdev_learning_rate": 0.1, "stdev_max_change": 0.2}
"""The center's learning rate and the initial radius are these times the maximum speed."""


def find_settings(environment: str) -> Mapping[str, Any]:
    """All of them."""
    problem, search = SETTINGS[environment]
    return {**problem, **search, "center_speed": CENTER_SPEED, "radius": RADIUS, "momentum": MOMENTUM, **STDEV}


def train(environment: str, seed: int, cores: int, keep: Keep) -> None:
    """Trains until `keep` raises. Ray ends with the process."""
    torch.manual_seed(seed)
    ray.init(address="local", num_cpus=cores, include_dashboard=False, log_to_driver=False)
    of_problem, of_search = SETTINGS[environment]
    env, search = make_env(environment), dict(of_search)
    network = {"network": ImageNetwork(3)} if has_images(env) else {}
    problem = GymNE(partial(make_env, environment), num_actors=cores, **{**of_problem, **network})
    max_speed = search.pop("max_speed")
    searcher = PGPE(
        problem,
        center_learning_rate=CENTER_SPEED * max_speed,
        radius_init=RADIUS * max_speed,
        optimizer="clipup",
        optimizer_config={"max_speed": max_speed, "momentum": MOMENTUM},
        **STDEV,
        **search,
    )
    while True:
        policy = problem.to_policy(searcher.status["center"])
        keep(problem.interaction_count, partial(choose_action, policy, env))
        searcher.step()


@torch.no_grad()
def choose_action(policy: torch.nn.Module, env: Any, observation: np.ndarray) -> Any:
    """The largest output, or the outputs, which EvoTorch's policy clips."""
    outputs = policy(prepare(observation))
    return int(outputs.argmax()) if isinstance(env.action_space, Discrete) else outputs.numpy()
