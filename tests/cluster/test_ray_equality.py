"""A run on a Ray cluster has the bits of one in threads, whatever happens to nodes and workers."""

import pytest

from hebbes.environments.environment_spec import EnvironmentSpec
from hebbes.execution.chunks import Task
from hebbes.execution.episode import Agent
from hebbes.execution.in_process import InProcess
from hebbes.execution.ray_engine import RayEngine
from hebbes.policies.mlp import MLP
from tests.execution.test_engines import build_scripted_task, collect_answers

pytestmark = pytest.mark.ray


def make_ray_engine(nodes, task, **options):
    settings = {"chunk_size": 4, "threads": -1, "ray_address": nodes.address, "allow_mixed_nodes": False}
    return RayEngine(task, **{**settings, **options})


def make_half_cheetah_task():
    return Task(Agent(MLP((17,), 6, hidden_sizes=(8,)), "tanh"), EnvironmentSpec("HalfCheetah-v5", "envpool"), 11)


@pytest.mark.parametrize("make_task", [make_half_cheetah_task, build_scripted_task], ids=["HalfCheetah", "Gymnasium"])
def test_the_same_bits_as_in_threads(nodes, make_task):
    nodes.keep((1, 1))
    num_params = make_task().agent.policy.layout.num_params
    alone = collect_answers(InProcess(make_task(), chunk_size=4, threads=1), num_params)
    assert collect_answers(make_ray_engine(nodes, make_task()), num_params) == alone
