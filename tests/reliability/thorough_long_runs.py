"""Longer runs, and more simulators, than in test_long_runs.py; run by `make reliability`."""

import pytest
from long_runs import Holding, measure_growth
from test_long_runs import CARTPOLE

TINY = ["--popsize", "4", "--threads", "2", "--eval_episodes", "1", "--test_episodes", "0", "--print_every", "100"]
GYMNASIUM = ["--backend", "gymnasium", "--engine", "workers", "--chunk_size", "2"]
RUNS = {
    "CartPole-v1": (20_000, CARTPOLE),
    "CartPole-v1, workers": (10_000, [*CARTPOLE, *GYMNASIUM]),
    "Pendulum-v1, workers": (2_000, ["--environment", "Pendulum-v1", "--max_episode_steps", "5", *TINY, *GYMNASIUM]),
    "HalfCheetah-v5": (5_000, ["--environment", "HalfCheetah-v5", "--max_episode_steps", "5", *TINY]),
    "CarRacing-v3": (800, ["--environment", "CarRacing-v3", "--max_episode_steps", "3", "--eval_every", "1000", *TINY]),
    "Pong-v5": (500, ["--environment", "Pong-v5", "--max_episode_steps", "3", "--eval_every", "1000", *TINY]),
}


@pytest.mark.parametrize("name", RUNS)
def test_nothing_grows(name, tmp_path, tell):
    generations, flags = RUNS[name]
    found = measure_growth(flags, generations, tmp_path)
    tell(f"{name}, from generation {generations // 4:,} to {generations:,}: {found}", generations=generations)
    assert found.is_within(Holding(4000, files=0, threads=0, processes=0))
