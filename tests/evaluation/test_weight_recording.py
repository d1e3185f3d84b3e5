import pytest

from hebbes.evaluation import weight_recording
from hebbes.evaluation.weight_recording import record_weights
from tests.evaluation.files_to_play import CARTPOLE, EVERY_KIND


@pytest.mark.parametrize("cap", [None, 9])
def test_only_the_beginning_of_a_long_evaluation_is_recorded(cap, monkeypatch):
    monkeypatch.setattr(weight_recording, "NUM_EPISODES", 2)
    monkeypatch.setattr(weight_recording, "MAX_EPISODE_STEPS", 3)
    recordings = record_weights(EVERY_KIND["hebbian"], CARTPOLE, episodes=5, seed=0, max_episode_steps=cap)
    assert [len(layer) for each in recordings for layer in each.trajectories] == [3, 3, 3, 3]
