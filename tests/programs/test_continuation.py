"""The command that continues training from a policy file makes the same environment and policy again."""

import shlex

import numpy as np
import pytest

from hebbes.environments.environment_spec import EnvironmentSpec
from hebbes.options.command_line import parse_config
from hebbes.policies.hebbian import Hebbian
from hebbes.programs.continuation import make_train_command
from hebbes.registry.lookup import list_names
from hebbes.training.agent_and_environment import find_spaces, make_agent, make_environment_spec
from hebbes.wrappers.early_stop import EarlyStop
from tests.files.saved_policies import make_saved_policy

PENDULUM = "Pendulum-v1"
ANYTHING_ELSE = ["--settle_steps", "2", "--early_stop_negative_streak", "5", "--early_stop_grace_steps", "3"]
TRAININGS = {
    "Pong-v5": [
        ["--atari_42", "--fire_reset"],
        ["--crop", "34", "16", "0", "2", "--grayscale", "--resize", "50", "40", "--frame_stack", "2"],
    ],
    "FrozenLake-v1": [[]],
    "AntBulletEnv-v0": [[], ["--gymnasium_wrappers"], ["--settle_steps", "0"]],
    PENDULUM: [
        ["--action_bounds", "none"],
        ANYTHING_ELSE,
        [*ANYTHING_ELSE, "--early_stop_counts_grace"],
        ["--action_bounds", "rescale", "--backend", "gymnasium", "--env_kwargs", "{g: 5.0}"],
        ["--wrappers", "early_stop: {negative_streak: 5}", "tests.programs.own_classes:ScaledRewards: {scale: 3.0}"],
        ["--wrappers", "tests.programs.own_classes:ScaledRewards", "--scale", "3"],
        ["--gymnasium_wrappers", "TimeLimit: {max_episode_steps: 100}"],
        ["--hidden_sizes", "5", "--hebb_rule", "AD", "--sharing", "modulo", "--num_rules", "4"],
        ["--policy", "tests.programs.own_classes:SmallHebbian", "--hidden_sizes", "128", "64"],
        ["--observation_normalization", "--episodes_per_member", "2", "--generations", "7"],
        ["--strategy", "snes", "--sigma", "0.3"],
    ],
    "tests.many_spaces:Spaces-v0": [
        ["--env_kwargs", "{observations: channels_first, actions: multi}"],
        ["--env_kwargs", "{observations: dict, actions: real_matrix}"],
    ],
}
NEVER_ADDED = {"opening", "bullet_distance", "bullet_grace"}
"""Base classes of other wrappers, and classes for `--gymnasium_wrappers`."""


def read_options(command):
    """The config of a printed command."""
    words = shlex.split(command, comments=True)
    assert words[:2] == ["python", "train_hebbian.py"]
    return parse_config("hebbian", words[2:], "")


def make_trained_policy(config):
    """The policy that a training with this config saves."""
    spec = make_environment_spec(config)
    agent = make_agent(config, *find_spaces(spec))
    options = config.list_used_options(without=("run", "engine", "logger"))
    provenance = {"options": options}
    name = config.choices.policy
    return make_saved_policy(
        agent.policy, policy_name=name, action_head=agent.action_head, environment=spec, provenance=provenance
    )


@pytest.mark.parametrize(
    ("environment", "flags"), [(environment, flags) for environment in TRAININGS for flags in TRAININGS[environment]]
)
def test_environment_policy_and_search_are_made_again(environment, flags, capsys):
    config = parse_config("hebbian", ["--environment", environment, *flags], "")
    saved = make_trained_policy(config)
    capsys.readouterr()
    command = make_train_command("my file.dat", saved, ["tests"])
    assert capsys.readouterr().err == ""
    again = read_options(command)
    assert make_environment_spec(again) == saved.environment
    agent = make_agent(again, *find_spaces(saved.environment))
    assert (agent.policy, agent.action_head) == (saved.policy, saved.action_head)
    assert again.change(run={"init_from": None}).as_options() == config.as_options()
    assert again.run.init_from == "my file.dat"


def test_every_wrapper_that_training_adds_was_among_them():
    configs = (
        parse_config("hebbian", ["--environment", environment, *flags], "")
        for environment in TRAININGS
        for flags in TRAININGS[environment]
    )
    specs = [make_environment_spec(config) for config in configs]
    seen = {wrapper.name for spec in specs for wrapper in (*spec.wrappers, *spec.training_wrappers)}
    assert {name for name in seen if ":" not in name} == set(list_names("wrapper")) - NEVER_ADDED


def test_only_what_the_preset_does_not_set_is_named():
    config = parse_config("hebbian", ["--environment", "HalfCheetah-v5", "--update_every", "3", "--seed", "9"], "")
    command = make_train_command("a.dat", make_trained_policy(config))
    assert command == "python train_hebbian.py --environment=HalfCheetah-v5 --update_every=3 --init_from=a.dat"


def test_values_that_only_another_strategy_has_by_default_are_named():
    """A preset's values for one strategy do not hold for another, even if both have the option."""
    by_preset = parse_config("hebbian", ["--environment", "HalfCheetah-v5"], "").as_options()
    flags = ["--strategy", "snes", "--sigma", str(by_preset["sigma"]), "--popsize", str(by_preset["population_size"])]
    config = parse_config("hebbian", ["--environment", "HalfCheetah-v5", *flags], "")
    again = read_options(make_train_command("a.dat", make_trained_policy(config)))
    assert (again.settings.sigma, again.settings.population_size) == (
        by_preset["sigma"],
        by_preset["population_size"],
    )


def test_an_option_that_the_policy_does_not_use_is_left_out():
    config = parse_config("hebbian", ["--environment", PENDULUM], "")
    spec, options = make_environment_spec(config), config.list_used_options()
    commands = {}
    for sharing in ("synapse", "modulo"):
        policy = Hebbian((3,), 1, sharing=sharing, num_rules=64)
        for provenance in ({}, {"options": options}):
            saved = make_saved_policy(policy, action_head="identity", environment=spec, provenance=provenance)
            commands[sharing] = make_train_command("a.dat", saved)
            assert read_options(commands[sharing]).as_options()["sharing"] == sharing
    assert "--num_rules=64" in commands["modulo"]
    assert "--num_rules=64" not in commands["synapse"]


def test_the_command_of_a_file_without_options_has_what_the_file_tells_and_a_comment():
    spec = EnvironmentSpec("Scripted-v0", "gymnasium", {"truncate_at": 9}, imports=("tests.scripted",))
    policy = Hebbian((2,), 2, hidden_sizes=(5,), hebb_rule="AD")
    moments = {"observation_count": np.array([9]), "observation_mean": np.zeros(2), "observation_std": np.ones(2)}
    saved = make_saved_policy(policy, buffers=moments, environment=spec)
    command = make_train_command("a.dat", saved)
    comment = "  # and the options of its training, which this file lacks (it was written by an earlier version)"
    assert command.endswith(f"--init_from=a.dat{comment}")
    config = read_options(command)
    found = make_environment_spec(config)
    assert (found.environment, found.imports, found.env_kwargs) == (spec.environment, spec.imports, spec.env_kwargs)
    assert make_agent(config, *find_spaces(found)).policy == policy
    assert config.trainer_options.observation_normalization
    without = make_saved_policy(policy, environment=spec)
    assert not read_options(make_train_command("a.dat", without)).trainer_options.observation_normalization


def test_options_that_name_code_which_is_not_allowed_are_left_out_with_the_reason():
    module = "hebbes_test_module_that_nobody_has"
    config = parse_config("hebbian", ["--environment", PENDULUM], "")
    saved = make_trained_policy(config)
    saved.provenance["options"]["wrappers"] = [f"{module}:Mine"]
    command = make_train_command("a.dat", saved)
    assert command.startswith("python train_hebbian.py --environment=Pendulum-v1 --init_from=a.dat  # ")
    assert f"needs code from the module '{module}'" in command
    assert make_environment_spec(read_options(command)) == saved.environment
    assert f"cannot import '{module}'" in make_train_command("a.dat", saved, [module])  # it is imported if allowed


def test_a_file_without_options_says_on_which_morphologies_it_was_trained():
    spec = EnvironmentSpec("Ant-v5", "gymnasium", morphologies=("none", "left"))
    command = make_train_command("a.dat", make_saved_policy(Hebbian((105,), 8), environment=spec))
    assert read_options(command).environment.morphologies == ("none", "left")


def test_the_defaults_of_early_stopping_are_those_of_a_training_without_it():
    config = parse_config("hebbian", ["--environment", PENDULUM, "--early_stop_negative_streak", "30"], "")
    (wrapper,) = make_environment_spec(config).training_wrappers
    assert wrapper.kwargs.get("counts_grace", EarlyStop.counts_grace) is False
