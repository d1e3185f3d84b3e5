from dataclasses import replace

import numpy as np
import pytest

from hebbes.evaluation import weight_recording
from hebbes.evaluation.weight_recording import record_weights
from hebbes.policies.hebbian import Hebbian
from tests.evaluation.files_to_play import CARTPOLE, EVERY_KIND


@pytest.mark.parametrize("cap", [None, 9])
def test_only_the_beginning_of_a_long_evaluation_is_recorded(cap, monkeypatch):
    monkeypatch.setattr(weight_recording, "NUM_EPISODES", 2)
    monkeypatch.setattr(weight_recording, "MAX_EPISODE_STEPS", 3)
    monkeypatch.setattr(weight_recording, "NUM_DRAWN_SYNAPSES", 5)
    recordings = record_weights(EVERY_KIND["hebbian"], CARTPOLE, episodes=5, seed=0, max_episode_steps=cap)
    assert [layer.shape for each in recordings for layer in each.trajectories] == [(3, 5)] * 4


def test_an_endless_episode_is_recorded_up_to_the_cap_of_training():
    endless = replace(CARTPOLE, env_kwargs={"max_episode_steps": -1})
    saved = replace(EVERY_KIND["hebbian"], provenance={"options": {"max_episode_steps": 4}})
    (recording,) = record_weights(saved, endless, episodes=1, seed=0, max_episode_steps=None)
    assert [len(layer) for layer in recording.trajectories] == [4, 4]


def test_weights_that_are_no_longer_finite_are_not_recorded():
    policy = Hebbian((4,), 2, hidden_sizes=(6,), normalization="none")
    weights = np.full(policy.layout.num_params, 1e9, np.float32)
    saved = replace(EVERY_KIND["hebbian"], policy=policy, weights=weights)
    (recording,) = record_weights(saved, CARTPOLE, episodes=1, seed=0, max_episode_steps=50)
    assert len(recording.trajectories[0]) < 50
    assert all(np.isfinite(each).all() for each in (*recording.trajectories, recording.changes))


def test_changes_are_those_of_updates():
    saved = EVERY_KIND["hebbian"]
    saved = replace(saved, policy=replace(saved.policy, update_every=3))
    (recording,) = record_weights(saved, CARTPOLE, episodes=1, seed=0, max_episode_steps=8)
    trajectory = recording.trajectories[0]
    moved = np.flatnonzero((np.diff(trajectory, axis=0) != 0).any(axis=1)) + 1
    assert recording.updated_at.tolist() == moved.tolist() == [3, 6]
    assert (recording.changes > 0).all() and recording.changes.shape == (2, len(recording.trajectories))
