"""Environment and algorithm give the numbers of the algorithm's own code.

The table is from KyunghyunLee/aes-rl 5b69a06 (config/), apourchot/CEM-RL 1a45822 (es_grad.py) and, for the variants of
TD3, sfujim/TD3 34770cc (main.py, TD3.py) and stable-baselines3 e05d2db (td3.py, policies.py).
"""

import pytest

from hebbes.contracts.plain_values import make_list
from hebbes.options.command_line import parse_config
from hebbes.registry.tables import ALGORITHMS

MEAN_SCALES = {"HalfCheetah": 2000, "Hopper": 600, "Walker2d": 800, "Ant": 960, "Swimmer": 48, "Humanoid": 960}
LARGE, SMALL = [400, 300], [256, 256]
ASYNCHRONOUS = ("aes_rl", "acem_rl", "one_plus_one_rl")
EVERYWHERE = {
    "td3": {"hidden_sizes": SMALL, "learning_rate": 3e-4, "batch_size": 256, "replay_size": 1_000_000},
    "cem_rl": {"hidden_sizes": LARGE, "learning_rate": 1e-3, "batch_size": 100, "replay_size": 1_000_000},
    "p_cem_rl": {"hidden_sizes": LARGE, "learning_rate": 1e-3, "batch_size": 256, "replay_size": 1_000_000},
} | {
    name: {"hidden_sizes": LARGE, "learning_rate": 1e-3, "batch_size": 256, "replay_size": 200_000, "rl_share": 0.5}
    for name in ASYNCHRONOUS
}
OF_ALL = {
    **{"start_steps": 10_000, "max_env_steps": 1_000_000, "eval_every": 5000, "eval_episodes": 10, "discount": 0.99},
    **{"target_rate": 0.005, "target_noise": 0.2, "target_noise_clip": 0.5, "action_bounds": "rescale"},
    **{"activation": "tanh", "critic_activation": "leaky_relu", "critic_hidden_sizes": None, "bias": True},
}
OF_TD3 = {"exploration_noise": 0.1, "policy_delay": 2}
OF_CEM = {"population_size": 10, "rl_population": 5, "initial_variance": 1e-3}
OF_ASYNCHRONOUS = {"initial_variance": 1e-3, "actor_workers": 5}
OF_AES = {"mean_rule": "baseline_relative", "variance_rule": "adaptive", "variance_window": 10}
OF_ONE = {
    **{"td3": OF_TD3, "cem_rl": OF_CEM, "p_cem_rl": OF_CEM, "acem_rl": OF_ASYNCHRONOUS},
    **{"one_plus_one_rl": OF_ASYNCHRONOUS, "aes_rl": {**OF_ASYNCHRONOUS, **OF_AES}},
}


def find_numbers(environment, algorithm):
    """The numbers of the algorithm's code for the environment."""
    numbers = {**OF_ALL, **EVERYWHERE[algorithm], **OF_ONE[algorithm]}
    if algorithm == "aes_rl":
        numbers["mean_scale"] = MEAN_SCALES[environment]
        if environment == "Swimmer":
            numbers["rl_share"] = 0.1
        if environment == "Humanoid":
            numbers |= {"hidden_sizes": SMALL, "learning_rate": 3e-4}
    return numbers


def read_options(capsys, *flags):
    """The options of a command, of which nothing is left out."""
    options = parse_config("hybrid", flags, "test").as_options()
    assert capsys.readouterr().err == ""
    return {name: make_list(value) for name, value in options.items()}


@pytest.mark.parametrize("environment", MEAN_SCALES)
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_environment_and_algorithm_give_the_numbers_of_its_code(environment, algorithm, capsys):
    options = read_options(capsys, "--environment", f"{environment}-v5", "--algorithm", algorithm)
    expected = {"algorithm": algorithm, **find_numbers(environment, algorithm)}
    assert {name: options[name] for name in expected} == expected


@pytest.mark.parametrize("environment", MEAN_SCALES)
def test_the_environments_preset_chooses_aes_rl(environment, capsys):
    chosen, named = (
        read_options(capsys, "--environment", f"{environment}-v5", *flags) for flags in ([], ["--algorithm", "aes_rl"])
    )
    assert chosen == named


@pytest.mark.parametrize(
    ("preset", "differing"),
    [
        ("td3_original", {"start_steps": 25_000}),
        ("td3_stable_baselines", {"start_steps": 100, "hidden_sizes": LARGE, "learning_rate": 1e-3}),
    ],
)
@pytest.mark.parametrize("environment", MEAN_SCALES)
def test_variants_of_td3(environment, preset, differing, capsys):
    options = read_options(capsys, "--environment", f"{environment}-v5", "--preset", preset)
    relu = {"activation": "relu", "critic_activation": "relu"}
    expected = {**OF_ALL, **EVERYWHERE["td3"], **OF_ONE["td3"], **relu, **differing}
    assert {name: options[name] for name in expected} == expected


def test_flags_and_files_choose_the_algorithm_too(capsys, tmp_path):
    file = tmp_path / "options.yaml"
    file.write_text("hybrid.algorithm: acem_rl\n")
    options = read_options(capsys, "--environment", "Humanoid-v5", "--config", str(file))
    assert (options["algorithm"], options["hidden_sizes"], options["learning_rate"]) == ("acem_rl", LARGE, 1e-3)
    assert read_options(capsys, "--environment", "Ant-v5", "--mean_scale", "5")["mean_scale"] == 5
