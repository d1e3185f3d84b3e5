"""The command that continues training from a policy file makes the same environment again."""

import shlex
from dataclasses import replace

import pytest

from hebbes.environments.environment_spec import EnvironmentSpec
from hebbes.environments.wrapper_spec import WrapperSpec
from hebbes.options.command_line import parse_config
from hebbes.policies.hebbian import Hebbian
from hebbes.programs.continuation import make_train_command
from hebbes.registry.lookup import list_names
from hebbes.training.assembly import find_spaces, make_agent, make_environment_spec
from tests.files.saved_policies import make_saved_policy

TRAININGS = {
    "Pong-v5": [["--atari_42", "--fire_reset"], ["--grayscale", "--resize", "50", "40", "--frame_stack", "2"]],
    "FrozenLake-v1": [[]],
    "Pendulum-v1": [
        ["--action_bounds", "none"],
        ["--settle_steps", "2", "--early_stop_negative_streak", "5", "--early_stop_grace_steps", "3"],
        ["--action_bounds", "rescale", "--backend", "gymnasium", "--env_kwargs", "{g: 5.0}"],
    ],
    "tests.many_spaces:Spaces-v0": [
        ["--env_kwargs", "{observations: channels_first, actions: multi}"],
        ["--env_kwargs", "{observations: dict, actions: real_matrix}"],
    ],
}
NEVER_ADDED = {"opening", "bullet_distance", "bullet_grace"}
"""Base classes of other wrappers, and classes for `--gymnasium_wrappers`."""


def test_every_wrapper_that_training_adds_is_added_again():
    seen = set()
    for environment, trainings in TRAININGS.items():
        for flags in trainings:
            config = parse_config("hebbian", ["--environment", environment, *flags], "")
            spec = make_environment_spec(config)
            agent = make_agent(config, *find_spaces(spec))
            saved = make_saved_policy(agent.policy, action_head=agent.action_head, environment=spec)
            words = shlex.split(make_train_command("a.dat", saved))
            again = parse_config("hebbian", words[2:], "")
            assert make_environment_spec(again) == spec
            assert make_agent(again, *find_spaces(spec)) == agent
            seen |= {wrapper.name for wrapper in (*spec.wrappers, *spec.training_wrappers)}
    assert seen == set(list_names("wrapper")) - NEVER_ADDED


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"wrappers": (WrapperSpec("rescale_action"),)},
            r"^a.dat: no options of training make its environment: wrappers would be \(\), not \(.*rescale_action",
        ),
        ({"training_wrappers": (WrapperSpec("clip_action"),)}, r"training_wrappers would be \(\), not .*clip_action"),
    ],
)
def test_an_environment_that_no_options_make_is_named(changes, message):
    spec = EnvironmentSpec("Pendulum-v1", "gymnasium", wrappers=(WrapperSpec("clip_action"),))
    saved = make_saved_policy(Hebbian((3,), 1), action_head="identity", environment=spec)
    assert make_train_command("a.dat", saved)
    with pytest.raises(ValueError, match=message):
        make_train_command("a.dat", replace(saved, environment=replace(spec, **changes)))


@pytest.mark.parametrize("grace", [0, 200])
def test_early_stopping_of_files_without_counts_grace_continues(grace):
    former = WrapperSpec("early_stop", {"negative_streak": 30, "grace_steps": grace})
    spec = make_environment_spec(parse_config("hebbian", ["--environment", "Pendulum-v1"], ""))
    spec = replace(spec, training_wrappers=(former,))
    saved = make_saved_policy(Hebbian((3,), 1), action_head="identity", environment=spec)
    again = parse_config("hebbian", shlex.split(make_train_command("a.dat", saved))[2:], "")
    (rebuilt,) = make_environment_spec(again).training_wrappers
    assert {"counts_grace": True, **rebuilt.kwargs} == {"counts_grace": True, **former.kwargs}


def test_an_option_that_the_policy_does_not_use_is_left_out():
    spec = make_environment_spec(parse_config("hebbian", ["--environment", "Pendulum-v1"], ""))
    words = {}
    for sharing in ("synapse", "modulo"):
        policy = Hebbian((3,), 1, sharing=sharing, num_rules=64)
        saved = make_saved_policy(policy, action_head="identity", environment=spec)
        words[sharing] = shlex.split(make_train_command("a.dat", saved))
        assert parse_config("hebbian", words[sharing][2:], "").sharing == sharing
    assert "--num_rules=64" in words["modulo"]
    assert "--num_rules=64" not in words["synapse"]
