"""Runs with low-rank noise learn and resume, and the number of workers changes nothing."""

import pytest

from hebbes.recording.metrics import read_metrics
from tests.training.scripted_runs import make_config, make_scripted_config, read_outcome, resume, train


def make_cartpole_config(folder, **changes):
    settings = {"population_size": 100, "learning_rate": 0.02, "sampler": "low_rank", "weight_penalty": 0.01}
    fixed = {"environment": "CartPole-v1", "policy": "mlp", "hidden_sizes": (32, 32), "bias": True, "test_episodes": 0}
    small = {"generations": 2, "eval_episodes": 2, "max_episode_steps": 40}
    return make_config(
        **{**fixed, **small, **settings, "folder": str(folder), "run_name": "run", "chunk_size": 8, **changes}
    )


@pytest.mark.slow
def test_cartpole_is_learned(tmp_path):
    metrics = read_metrics(train(make_cartpole_config(tmp_path, generations=12, max_episode_steps=200)) / "metrics.csv")
    assert metrics["return_mean"][0] < 60
    assert metrics["return_mean"][-1] > 120  # at most 200


@pytest.mark.slow
def test_a_run_stopped_and_resumed_is_the_run_never_stopped(tmp_path):
    whole = train(make_scripted_config(tmp_path / "whole", sampler="low_rank"))
    dense = train(make_scripted_config(tmp_path / "dense"))
    assert read_outcome(whole)["strategy.mean"] != read_outcome(dense)["strategy.mean"]
    cut_short = train(make_scripted_config(tmp_path, sampler="low_rank", generations=4))
    assert read_outcome(resume(cut_short)) == read_outcome(whole)


@pytest.mark.slow
def test_the_number_of_threads_and_workers_changes_nothing(tmp_path):
    crews = {"one": (1, "in_process"), "three": (3, "in_process"), "workers": (2, "workers")}
    runs = {
        name: read_outcome(
            train(make_cartpole_config(tmp_path / name, threads=threads, engine=engine, observation_normalization=True))
        )
        for name, (threads, engine) in crews.items()
    }
    assert runs["one"] == runs["three"] == runs["workers"]
