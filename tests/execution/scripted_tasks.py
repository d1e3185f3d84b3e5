"""Task, context and population for the tests of faults: 21 members in scripted simulators (Gymnasium back end)."""

import numpy as np

from hebbes.contracts.engine import Context
from hebbes.contracts.randomness import Purpose
from hebbes.environments.environment_spec import EnvironmentSpec
from hebbes.execution.chunks import Task
from hebbes.execution.episode import Agent
from hebbes.policies.linear import Linear
from hebbes.strategies.core.populations import GaussianPopulation

POPULATION = GaussianPopulation(np.zeros(4, np.float32), 0.5, 3, 4, 20)


def make_task(**script):
    """Episodes of four env steps whose rewards depend on the actions. `script` overrides this."""
    options = {"truncate_at": 4, "action_weight": 1.0, **script}
    spec = EnvironmentSpec("Scripted-v0", "gymnasium", options, imports=("tests.scripted",))
    return Task(Agent(Linear((2,), 2), "tanh"), spec, 11)


def make_context(**changes):
    """Two training episodes with moments of the observations. `changes` override this."""
    defaults = {
        "purpose": Purpose.TRAINING,
        "generation": 4,
        "episodes": (8, 9),
        "members_per_seed": None,
        "max_episode_steps": None,
        "buffers": {},
        "observe_moments": True,
    }
    return Context(**{**defaults, **changes})
