"""The number of threads or workers changes nothing in whole runs with growth, recurrence or a virtual batch."""

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box
from threadpoolctl import threadpool_info

from hebbes.files.policy_file import read_policy_file
from hebbes.recording.metrics import read_metrics
from tests.training.scripted_runs import make_config, make_scripted_config, read_outcome, train

CREWS = [(1, "in_process"), (2, "in_process"), (1, "workers"), (2, "workers")]
"""Number of threads or workers, and the engine."""


class Pictures(gymnasium.ObservationWrapper):
    """Gray images, drawn at random with the environment's observation as seed."""

    def __init__(self, env):
        super().__init__(env)
        self.observation_space = Box(0, 255, (42, 42, 1), np.uint8)

    def observation(self, observation):
        rng = np.random.default_rng(observation.view(np.uint32))
        return rng.integers(0, 256, (42, 42, 1), dtype=np.uint8)


class Threads(gymnasium.RewardWrapper):
    """The reward is the number of threads that NumPy's linear algebra may use."""

    def reward(self, reward):
        return float(sum(pool["num_threads"] for pool in threadpool_info() if "numpy" in pool["filepath"]))


def collect_outcomes(configure, folder):
    """The outcomes of a run on each crew, and the folder of the last."""
    found = []
    for threads, engine in CREWS:
        run = train(configure(folder / f"{engine}{threads}", threads=threads, engine=engine))
        found.append(read_outcome(run))
    return found, run


def make_growing_lstm_config(folder, **crew):
    return make_config(
        environment="CartPole-v1",
        policy="lstm",
        hidden_sizes=(6,),
        recurrent_size=5,
        observation_normalization=True,
        population_size=4,
        learning_rate=0.1,
        sampler="low_rank",
        generations=3,
        num_interactions=250,
        chunk_size=3,
        eval_every=1,
        eval_episodes=2,
        test_episodes=0,
        folder=str(folder),
        run_name="run",
        **crew,
    )


@pytest.mark.slow
def test_low_rank_noise_on_a_recurrent_policy_in_a_population_that_grows(tmp_path):
    (alone, *others), run = collect_outcomes(make_growing_lstm_config, tmp_path)
    assert all(other == alone for other in others)
    assert read_metrics(run / "metrics.csv")["num_members"].max() > 4


@pytest.mark.slow
def test_linear_algebra_has_one_thread_wherever_members_are_evaluated(tmp_path):
    def configure(folder, **crew):
        rewards = {
            "gymnasium_wrappers": (f"{__name__}:Threads",),
            "generations": 1,
            "population_size": 2,
        }
        return make_scripted_config(folder, **rewards, **crew)

    found, _ = collect_outcomes(configure, tmp_path)
    assert all(other == found[0] for other in found)
    for metrics in tmp_path.rglob("metrics.csv"):
        assert read_metrics(metrics)["return_mean"].tolist() == [5]  # five env steps with one thread


@pytest.mark.slow
@pytest.mark.parametrize(("policy", "sizes"), [("cnn", {"hidden_sizes": (4,)}), ("conv_lstm", {})])
def test_virtual_batch_normalization_of_images(policy, sizes, tmp_path):
    def configure(folder, **crew):
        small = {"virtual_batch": 3, "chunk_size": 2, "generations": 2}
        seen = {"observation_normalization": False, "gymnasium_wrappers": (f"{__name__}:Pictures",)}
        return make_scripted_config(folder, policy=policy, **sizes, **small, **seen, population_size=4, **crew)

    (alone, *others), run = collect_outcomes(configure, tmp_path)
    assert all(other == alone for other in others)
    saved = read_policy_file(run / "best.dat", ["tests", __name__])
    assert saved.buffers["virtual_batch"].shape == (3, 42, 42, 1)
    metrics = read_metrics(run / "metrics.csv")
    assert (metrics["return_max"] > metrics["return_mean"]).all()
