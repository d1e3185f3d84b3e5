"""Neither the size of chunks nor the number of threads, which decides it by default, changes anything in whole runs."""

import pytest

from tests.training.scripted_runs import make_config, read_outcome, train

CHUNKS = ((3, 1), (7, 1), (40, 1), (None, 1), (None, 3), (None, 5))
"""Sizes and numbers of threads. By default they make one chunk, three and four."""
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
    "cr_fm_nes": {**MLP, "strategy": "cr_fm_nes"},
    "gru": {**LSTM, "policy": "gru"},
    "normalized": {**MLP, "wrappers": ("running_normalization",)},
    "shared_rules": {"policy": "hebbian", "hidden_sizes": (8,), "sharing": "layer"},
    "neural_rules": {"policy": "hebbian", "hidden_sizes": (8,), "hebb_rule": "neural_9", "sharing": "layer"},
    "rewarded": {"policy": "hebbian", "hidden_sizes": (8,), "modulation": "reward", "eligibility": True},
}


QUICK = ("openai_es",)
"""The other runs are for the slow tests."""


@pytest.mark.parametrize("name", [pytest.param(name, marks=[] if name in QUICK else pytest.mark.slow) for name in RUNS])
def test_chunks_and_threads_change_nothing(name, tmp_path):
    """75 members are three parts of the noise sums."""

    def run(chunk_size, threads):
        return train(
            make_config(
                "hebbian" if RUNS[name].get("policy") == "hebbian" else "static",
                **{"environment": "CartPole-v1", "population_size": 74, "generations": 2},
                **RUNS[name],
                **{"max_episode_steps": 30, "eval_episodes": 3, "test_episodes": 0, "threads": threads},
                **{"folder": str(tmp_path / f"{chunk_size} {threads}"), "run_name": "run", "chunk_size": chunk_size},
            )
        )

    alone = [(1, 1)] if name in QUICK else []  # many chunks take a while
    first, *others = (read_outcome(run(*each)) for each in (*alone, *CHUNKS))
    assert all(other == first for other in others)
