"""`--config` with a policy file makes the environment, the policy and the search of its training again."""

import pytest

from hebbes.environments.environment_spec import EnvironmentSpec
from hebbes.environments.trial import find_spaces
from hebbes.files.policy_file import read_policy_file, save_policy
from hebbes.files.zoo import ZOO
from hebbes.options.command_line import parse_config
from hebbes.options.method import has_default
from hebbes.policies.hebbian import Hebbian
from hebbes.registry.lookup import list_names
from hebbes.training.agent_and_environment import make_agent, make_environment_spec
from hebbes.training.owners import INCIDENTAL
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


def save_trained_policy(config, path):
    """The policy file that a training with this config leaves."""
    spec = make_environment_spec(config)
    agent = make_agent(config, *find_spaces(spec))
    provenance = {"options": config.list_used_options(without=INCIDENTAL)}
    name, head = config.choices.policy, agent.action_head
    saved = make_saved_policy(agent.policy, policy_name=name, action_head=head, environment=spec, provenance=provenance)
    save_policy(path, saved)
    return saved


def parse(*flags):
    return parse_config("hebbian", list(flags), "")


@pytest.mark.parametrize(
    ("environment", "flags"), [(environment, flags) for environment in TRAININGS for flags in TRAININGS[environment]]
)
def test_environment_policy_and_search_are_made_again(environment, flags, tmp_path):
    config, path = parse("--environment", environment, *flags), tmp_path / "my file.dat"
    saved = save_trained_policy(config, path)
    again = parse("--config", str(path), "--import", "tests")
    assert make_environment_spec(again).wrappers == saved.environment.wrappers
    agent = make_agent(again, *find_spaces(saved.environment))
    assert (agent.policy, agent.action_head) == (saved.policy, saved.action_head)
    found, expected = (each.list_used_options(without=INCIDENTAL) for each in (again, config))
    assert {**found, "import": []} == {**expected, "import": []}


def test_every_wrapper_that_training_adds_was_among_them():
    configs = (
        parse_config("hebbian", ["--environment", environment, *flags], "")
        for environment in TRAININGS
        for flags in TRAININGS[environment]
    )
    specs = [make_environment_spec(config) for config in configs]
    seen = {wrapper.name for spec in specs for wrapper in (*spec.wrappers, *spec.training_wrappers)}
    assert {name for name in seen if ":" not in name} == set(list_names("wrapper")) - NEVER_ADDED


def test_flags_override_the_file(tmp_path):
    path = tmp_path / "a.dat"
    save_trained_policy(parse("--environment", "HalfCheetah-v5", "--strategy", "snes", "--sigma", "0.3"), path)
    config = parse("--config", str(path), "--sigma", "0.7")
    assert (config.choices.method, config.settings.sigma, config.environment.id) == ("snes", 0.7, "HalfCheetah-v5")


@pytest.mark.parametrize("path", sorted(ZOO.glob("*.dat")), ids=lambda path: path.stem)
def test_a_released_policy_has_the_options_of_its_training(path, capsys):
    saved = read_policy_file(path)
    trained, name = saved.provenance["options"], f"zoo:{path.stem}"
    is_plastic = isinstance(saved.policy, Hebbian)
    trainer = "hybrid" if "algorithm" in trained else "hebbian" if is_plastic else "static"
    found = parse_config(trainer, ["--config", name], "").list_used_options(without=INCIDENTAL)
    assert {name: found[name] for name in trained} == trained
    assert all(has_default(name, found[name]) for name in found.keys() - trained.keys())  # options that are newer
    assert capsys.readouterr().err == ""


def test_a_file_that_does_not_hold_options_is_refused(tmp_path):
    path = tmp_path / "a.dat"
    save_policy(path, make_saved_policy(Hebbian((3,), 1), environment=EnvironmentSpec(PENDULUM, "gymnasium")))
    with pytest.raises(ValueError, match=r"config .*a.dat does not hold the options of its training"):
        parse("--config", str(path))


MODULE = "hebbes_test_module_that_nobody_has"


@pytest.mark.parametrize(
    "options",
    [
        {"wrappers": [f"{MODULE}:Mine"]},
        {"environment.wrappers": [{f"{MODULE}:Mine": {}}]},
        {"import": [MODULE]},
        {"environment.imports": [MODULE]},
        {"strategy": f"{MODULE}:Mine"},
        {"evolution.policy": f"{MODULE}:Mine"},
    ],
)
def test_options_that_name_code_which_is_not_allowed_are_refused(options, tmp_path):
    path = tmp_path / "a.dat"
    saved = save_trained_policy(parse("--environment", PENDULUM), path)
    saved.provenance["options"] = {"environment": PENDULUM, **options}
    save_policy(path, saved)
    with pytest.raises(ValueError, match=rf"a.dat: needs code from the module '{MODULE}'; .* --import {MODULE}"):
        parse("--config", str(path))
    with pytest.raises(ValueError, match=f"cannot import '{MODULE}'"):  # it is imported if allowed
        parse("--config", str(path), "--import", MODULE)


def test_options_of_the_run_in_a_file_are_left_out(tmp_path):
    path = tmp_path / "a.dat"
    saved = save_trained_policy(parse("--environment", PENDULUM), path)
    saved.provenance["options"] |= {"run.folder": "elsewhere", "resume": "elsewhere", "loggers": [f"{MODULE}:Mine"]}
    save_policy(path, saved)
    config = parse("--config", str(path))
    assert (config.run.folder, config.run.resume, config.run.loggers) == ("weights", None, ())


@pytest.mark.parametrize("wrappers", [None, [None], [[]], "text", 3])
def test_options_that_make_no_sense_are_refused_in_one_line(wrappers, tmp_path):
    path = tmp_path / "a.dat"
    saved = save_trained_policy(parse("--environment", PENDULUM), path)
    saved.provenance["options"]["wrappers"] = wrappers
    save_policy(path, saved)
    with pytest.raises(ValueError, match=r"a\.dat: ") as refused:
        parse("--config", str(path))
    assert "\n" not in str(refused.value)


def test_a_file_of_an_earlier_version_has_the_names_and_values_of_today(tmp_path):
    path = tmp_path / "a.dat"
    saved = save_trained_policy(parse("--environment", PENDULUM), path)
    earlier = {"strategy": "strategies.cma_es:CmaEs", "early_stop_negative_streak": 20, "early_stop_grace_steps": 5}
    kept = {name: saved.provenance["options"][name] for name in ("environment", "policy")}
    saved.provenance["options"] = {**kept, **earlier}
    save_policy(path, saved)
    config = parse("--config", str(path))
    (wrapper,) = make_environment_spec(config).training_wrappers
    assert config.choices.method.endswith("cma_es:CMAES") and wrapper.kwargs["counts_grace"]


def test_the_defaults_of_early_stopping_are_those_of_a_training_without_it():
    config = parse_config("hebbian", ["--environment", PENDULUM, "--early_stop_negative_streak", "30"], "")
    (wrapper,) = make_environment_spec(config).training_wrappers
    assert wrapper.kwargs.get("counts_grace", EarlyStop.counts_grace) is False
