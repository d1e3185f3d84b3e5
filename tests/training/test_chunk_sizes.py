"""The size of chunks changes nothing in whole runs."""

import pytest

from tests.training.scripted_runs import make_config, read_outcome, train

SIZES = (1, 7, 40)
MLP = {"policy": "mlp", "hidden_sizes": (8,), "bias": True}
LSTM = {"policy": "lstm", "hidden_sizes": (8,), "recurrent_size": 5}
RUNS = {
    "openai_es": {**MLP, "weight_penalty": 0.01, "observation_normalization": True},
    "low_rank": {**MLP, "sampler": "low_rank", "weight_penalty": 0.01},
    "orthogonal": {**MLP, "sampler": "orthogonal"},
    "pgpe": {**MLP, "strategy": "pgpe"},
    "snes": {**MLP, "strategy": "snes"},
    "ars": {**MLP, "strategy": "ars", "num_interactions": 2000},
    "cma_es": {**MLP, "strategy": "cma_es"},
    "cem": {**MLP, "strategy": "cem"},
    "lstm": LSTM,
    "plastic": {"policy": "hebbian", "hidden_sizes": (8,)},
}


QUICK = ("openai_es", "plastic")
"""The other runs are for the slow tests."""


@pytest.mark.parametrize("name", [pytest.param(name, marks=[] if name in QUICK else pytest.mark.slow) for name in RUNS])
def test_the_size_of_chunks_changes_nothing(name, tmp_path):
    """75 members are three parts of the noise sums."""

    def run(chunk_size):
        return train(
            make_config(
                "hebbian" if name == "plastic" else "static",
                **{"environment": "CartPole-v1", "population_size": 74, "generations": 2},
                **RUNS[name],
                **{"max_episode_steps": 30, "eval_episodes": 3, "test_episodes": 0, "threads": 1},
                **{"folder": str(tmp_path / str(chunk_size)), "run_name": "run", "chunk_size": chunk_size},
            )
        )

    first, *others = (read_outcome(run(size)) for size in SIZES)
    assert all(other == first for other in others)
