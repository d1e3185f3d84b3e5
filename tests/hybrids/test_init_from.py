"""Evolved weights start every hybrid, and a hybrid's actor starts an evolution and is played, on Pendulum-v1."""

import numpy as np
import pytest

import hebbes
from hebbes.options.command_line import parse_config
from hebbes.registry.tables import ALGORITHMS
from hebbes.training.assemble_run import assemble_run

NETWORK = {"policy": "mlp", "hidden_sizes": [16], "bias": True, "action_bounds": "rescale"}
SHORT = {"environment": "Pendulum-v1", "threads": 1, "test_episodes": 0, "max_episode_steps": 50, "eval_episodes": 1}
HYBRID = {
    **{"hidden_sizes": [16], "start_steps": 100, "batch_size": 8, "replay_size": 1000, "max_env_steps": 1000},
    **{"learning_rate": 0.001, "eval_every": 1000},
}
SMALL = {"population_size": 4, "rl_population": 2}
FEW = {"actor_workers": 2, "rl_share": 1.0}
OF_ONE = {
    **{"td3": {}, "cem_rl": SMALL, "p_cem_rl": SMALL, "acem_rl": FEW, "one_plus_one_rl": FEW},
    **{"aes_rl": {**FEW, "mean_scale": 500}},
}
STARTS = {
    **{"td3": ("actor.rows", "target"), "cem_rl": ("strategy.mean",), "p_cem_rl": ("strategy.mean",)},
    **dict.fromkeys(("aes_rl", "acem_rl", "one_plus_one_rl"), ("distribution.mean",)),
}
"""Algorithm -> the arrays of its state that hold the weights of a file from which it starts."""


def evolve(folder, **changes):
    """The files of a run of one generation."""
    options = {**SHORT, **NETWORK, "generations": 1, "population_size": 4, "folder": str(folder), **changes}
    return hebbes.train(options, quiet=True)


@pytest.fixture(scope="module")
def evolved(tmp_path_factory):
    """A policy file that an evolution strategy has written."""
    return evolve(tmp_path_factory.mktemp("evolved")).best


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_the_first_state_of_a_hybrid_has_exactly_the_weights_of_the_file(algorithm, evolved, tmp_path):
    options = {**SHORT, **HYBRID, **OF_ONE[algorithm], "algorithm": algorithm, "init_from": str(evolved)}
    flags = [f"--{name}={str(value).strip('[]')}" for name, value in options.items()]
    run = assemble_run(parse_config("hybrid", flags, "test"), tmp_path)
    expected, state = hebbes.load_policy(evolved).weights, run.trainer.get_state()
    np.testing.assert_array_equal(run.trainer.policy[0], expected)
    for name in STARTS[algorithm]:
        np.testing.assert_array_equal(state.arrays[name].ravel(), expected, name)
    run.close()


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_hybrid_goes_on_from_evolved_weights_and_evolution_from_its_actor(algorithm, evolved, tmp_path):
    options = {**SHORT, **HYBRID, **OF_ONE[algorithm], "algorithm": algorithm, "folder": str(tmp_path / "hybrid")}
    hybrid = hebbes.train({**options, "init_from": str(evolved)}, trainer="hybrid", quiet=True)
    latest = hybrid.folder / "latest.dat"
    first, trained = (hebbes.load_policy(path).weights for path in (evolved, latest))
    assert 1e-4 < np.abs(trained - first).max() < 2
    assert np.isfinite(hebbes.evaluate(latest, episodes=1, threads=1).mean)
    back = evolve(tmp_path / "back", init_from=str(latest), sigma=1e-6)
    np.testing.assert_allclose(hebbes.load_policy(back.best).weights, trained, atol=0.01)
