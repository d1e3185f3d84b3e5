"""Fitness over several morphologies: the same on any number of workers, and the mean over separate evaluations."""

import os
import time
from dataclasses import replace

import gymnasium
import numpy as np
import pytest

from hebbes.environments.environment_spec import EnvironmentSpec
from hebbes.environments.part_spec import PartSpec
from hebbes.execution.chunks import Task
from hebbes.execution.engine_options import EngineOptions
from hebbes.execution.engines import make_engine
from hebbes.execution.episode import Agent
from hebbes.execution.observation_moments import merge_moments
from hebbes.policies.linear import Linear
from hebbes.strategies.core.populations import GaussianPopulation
from tests.execution.scripted_tasks import make_context

SPEC = EnvironmentSpec("Ant-v5", "envpool", morphologies=("right", "none", "left"))
MEMBERS = GaussianPopulation(np.zeros(8 * 105, np.float32), 0.1, 3, 4, 8)
CONTEXT = make_context(max_episode_steps=12)


class Fatal(gymnasium.Wrapper):
    """Ends the process in the first env step of the ant with a short right ankle."""

    def step(self, action):
        if self.unwrapped.model.geom("fourth_ankle_geom").size[1] < 0.1:
            os._exit(3)
        return self.env.step(action)


class Slow(gymnasium.Wrapper):
    """Takes 1/30 s more for every env step."""

    def step(self, action):
        time.sleep(1 / 30)
        return self.env.step(action)


def evaluate(spec, threads=1, engine="in_process", contexts=(CONTEXT,), chunk_size=4, **options):
    task = Task(Agent(Linear((105,), 8), "tanh"), spec, 11)
    made = make_engine(task, EngineOptions(chunk_size=chunk_size, threads=threads, engine=engine, **options))
    try:
        return [made.evaluate(MEMBERS, each) for each in contexts][-1]
    finally:
        made.close()


@pytest.fixture(scope="module")
def together():
    """The rollouts of nine members in two episodes and three morphologies."""
    return evaluate(SPEC)


@pytest.mark.parametrize("backend", ["envpool", "gymnasium"])
def test_cases_are_ordered_by_episode_then_morphology_and_fitness_is_their_mean(backend):
    found = evaluate(replace(SPEC, backend=backend))
    alone = [evaluate(replace(SPEC, backend=backend, morphologies=(morphology,))) for morphology in SPEC.morphologies]
    assert [each.returns.shape for each in alone] == [(9, 2)] * 3
    for name in ("returns", "env_steps"):
        stacked = np.stack([getattr(each, name) for each in alone], axis=-1)
        np.testing.assert_array_equal(getattr(found, name).reshape(9, 2, 3), stacked)
    np.testing.assert_allclose(found.fitness, sum(each.fitness for each in alone) / 3)
    assert len(np.unique(found.returns)) == 9 * 6
    together, parts = merge_moments(found.moments), [merge_moments(each.moments) for each in alone]
    count = sum(part.count for part in parts)
    assert together.count == count
    np.testing.assert_allclose(together.mean, sum(part.mean * part.count for part in parts) / count, atol=1e-12)


@pytest.mark.parametrize(
    ("threads", "engine"),
    [(2, "in_process"), (3, "in_process"), pytest.param(1, "workers", marks=pytest.mark.slow), (2, "workers")],
)
def test_the_same_bits_on_any_number_of_threads_and_workers(threads, engine, together):
    found = evaluate(SPEC, threads, engine)
    for name in ("returns", "env_steps"):
        assert getattr(found, name).tobytes() == getattr(together, name).tobytes()
    for one, other in zip(found.moments, together.moments, strict=True):
        assert one.mean.tobytes() == other.mean.tobytes()
        assert one.squares.tobytes() == other.squares.tobytes()


def test_reused_environments_continue_like_new_ones(together):
    later = make_context(max_episode_steps=12, generation=5, episodes=(10, 11))
    for backend in ("envpool", "gymnasium"):
        spec = replace(SPEC, backend=backend)
        kept, fresh = evaluate(spec, contexts=(CONTEXT, later)), evaluate(spec, contexts=(later,))
        assert kept.returns.tobytes() == fresh.returns.tobytes() != together.returns.tobytes()


@pytest.mark.slow
def test_a_morphology_that_kills_its_workers_fails_every_case_of_the_chunk(capfd):
    spec = replace(
        SPEC, backend="gymnasium", gymnasium_wrappers=(PartSpec("tests.execution.test_morphology_cases:Fatal"),)
    )
    found = evaluate(spec, 2, "workers", chunk_size=9)
    assert np.isnan(found.returns).all() and found.returns.shape == found.env_steps.shape == (9, 6)
    assert found.faults == {"worker died (exit code 3)": 9 * 6}


@pytest.mark.slow
def test_the_time_limit_is_for_each_case():
    """Three morphologies take 1.8 s. That is above the limit of one case of nine members and below that of three."""
    slow = (PartSpec("tests.execution.test_morphology_cases:Slow"),)
    spec = replace(SPEC, backend="gymnasium", gymnasium_wrappers=slow)
    one_episode = make_context(max_episode_steps=2, episodes=(8,))
    found = evaluate(spec, 1, "workers", (one_episode,), chunk_size=9, episode_timeout=0.16)
    assert np.isfinite(found.returns).all()
