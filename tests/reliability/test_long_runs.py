"""A run holds no more memory, files, threads or processes after 2,000 generations than after 500."""

import pytest
from long_runs import Holding, measure_growth

pytestmark = pytest.mark.slow

CARTPOLE = [
    *("--environment", "CartPole-v1", "--max_episode_steps", "5", "--popsize", "4", "--threads", "2"),
    *("--eval_every", "20", "--eval_episodes", "2", "--test_episodes", "0", "--print_every", "100"),
]
# About seven times the measured growth, 80 and 220 kB. A leak of 2 kB a generation gave 1,900 kB and more.
ENGINES = {
    "in_process": ([], Holding(kilobytes=600, files=0, threads=0, processes=0)),
    "workers": (["--backend", "gymnasium", "--chunk_size", "2"], Holding(1500, 0, 0, 0)),
}


@pytest.mark.parametrize("engine", ENGINES)
def test_two_thousand_generations(engine, tmp_path, tell):
    flags, bound = ENGINES[engine]
    found = measure_growth([*CARTPOLE, "--engine", engine, *flags], 2000, tmp_path)
    tell(f"CartPole-v1, {engine}, from generation 500 to 2,000: {found}", generations=2000)
    assert found.is_within(bound)
