"""Our presets: each parses and says what was measured with it; they override the shared ones."""

import gymnasium
import pytest
import yaml

from hebbes.environments.ids import register
from hebbes.options.command_line import parse_config
from hebbes.options.presets import PRESETS
from hebbes.training.trainers import TRAINERS


def parse(*arguments):
    return parse_config("static", arguments, "test")


SHARED = sorted((PRESETS / "shared").glob("*.yaml"))


@pytest.mark.parametrize("path", sorted({*PRESETS.glob("*/*.yaml")} - {*SHARED}), ids=lambda path: path.stem)
def test_our_presets_parse_and_say_what_was_measured(path):
    assert isinstance(yaml.safe_load(path.read_text())["measured"], str)
    environment, _, variant = path.stem.partition(".")
    flags = ["--environment", environment, *(["--preset", variant] if variant else [])]
    assert type(parse_config(path.parent.name, flags, "test")) is TRAINERS[path.parent.name]


def test_shared_presets_are_for_both_trainers_and_list_an_environment_once():
    listed = [name for path in SHARED for name in yaml.safe_load(path.read_text())["environments"]]
    assert len(set(listed)) == len(listed) >= 8
    for environment in listed:
        for trainer in TRAINERS:
            config = parse_config(trainer, ["--environment", environment, "--preset", "none"], "test")
            assert config.early_stop_negative_streak in (20, 30)
            assert config.action_bounds in ("tanh", "tanh_sigmoid")


def test_every_walker_of_bullet_follows_the_source():
    register("AntBulletEnv-v0", ())
    walkers = [name for name, spec in gymnasium.registry.items() if "gym_locomotion_envs" in str(spec.entry_point)]
    assert len(walkers) == 7
    for environment in walkers:
        config = parse_config("hebbian", ["--environment", environment], "test")
        grace = {"bullet_grace": {"grace_steps": 201 + config.settle_steps}}
        assert config.gymnasium_wrappers[-1] == grace
        assert (config.early_stop_negative_streak, config.early_stop_grace_steps) == (30, 201)
        assert (config.action_bounds, config.normalization, config.output_activity) == ("tanh", "none", "action")
        assert (config.settle_steps, len(config.gymnasium_wrappers)) == ((40, 2) if "Ant" in environment else (0, 1))


def test_presets_override_shared_ones_and_flags_override_both():
    ant = ["--environment", "AntBulletEnv-v0"]
    assert parse(*ant, "--preset", "damage").morphologies == ("none", "right")
    assert parse(*ant, "--preset", "none").settings.population_size == 200
    config = parse(*ant, "--settle_steps", "3", "--gymnasium_wrappers", "bullet_distance")
    assert (config.settle_steps, config.gymnasium_wrappers, config.action_bounds) == (3, ("bullet_distance",), "tanh")
