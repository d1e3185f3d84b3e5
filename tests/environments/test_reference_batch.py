"""The reference batch holds observations of random play, and depends only on the seed."""

from dataclasses import replace

import numpy as np
import pytest

from hebbes.environments import reference_batch
from hebbes.environments.environment_spec import EnvironmentSpec
from hebbes.environments.part_spec import PartSpec
from hebbes.environments.reference_batch import collect_reference_batch
from tests.scripted import ScriptedEnv


def make_spec(**script):
    return EnvironmentSpec("Scripted-v0", "gymnasium", script, imports=("tests.scripted",))


def test_every_tenth_observation_of_as_many_episodes_as_it_takes():
    frames = collect_reference_batch(make_spec(truncate_at=25), 7, seed=3)
    assert frames.shape == (7, 2) and frames.dtype == np.float32
    assert frames[:, 1].tolist() == [0, 10, 20, 0, 10, 20, 0]  # the env step
    assert len(np.unique(frames[:, 0])) == 3  # drawn at each reset


def test_a_function_of_the_seed():
    first, again, other = (
        collect_reference_batch(EnvironmentSpec("CartPole-v1", "envpool"), 20, seed) for seed in (1, 1, 2)
    )
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_actions_are_random():
    frames = collect_reference_batch(EnvironmentSpec("CartPole-v1", "envpool"), 40, seed=0)
    later = frames[np.abs(frames).max(axis=1) > 0.06]  # ten env steps past a start within 0.05
    assert len(np.unique(np.sign(later[:, 1]))) == 2


def test_an_environment_that_fails_is_reported():
    with pytest.raises(ValueError, match=r"virtual_batch: the environment failed in random play: .*scripted failure"):
        collect_reference_batch(make_spec(raise_at=3), 5, seed=0)


def test_an_environment_that_cannot_be_started_again_is_reported(monkeypatch):
    env = ScriptedEnv(1, truncate_at=5)
    starts = iter([env.start(0)])  # one episode
    monkeypatch.setattr(env, "start", lambda episode: next(starts))
    monkeypatch.setattr(reference_batch, "make_batch_env", lambda *_, **__: env)
    with pytest.raises(ValueError, match=r"^virtual_batch: the environment could not be started: StopIteration"):
        collect_reference_batch(make_spec(), 7, seed=3)


def test_a_wrapper_that_raises_is_named():
    wrapper = PartSpec("tests.training.unfit_classes:StepRaises", {"fail_at": 4})
    with pytest.raises(ValueError, match=rf"^wrappers '{wrapper.name}' cannot be used: scripted in two lines \("):
        collect_reference_batch(replace(make_spec(), wrappers=(wrapper,)), 5, seed=0)
