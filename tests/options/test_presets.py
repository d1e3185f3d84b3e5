"""Our presets: each parses and says what was measured with it; they override the shared ones."""

import gymnasium
import pytest
import yaml

from hebbes.environments.ids import register
from hebbes.options.command_line import parse_config
from hebbes.options.presets import ANY, PRESETS, describe_untuned, find_preset, read_preset
from hebbes.programs import train
from hebbes.programs.train import prepare_runs
from hebbes.recording.console import Console
from hebbes.registry.tables import TRAINERS
from hebbes.training.owners import find_trainer


def parse(*arguments):
    return parse_config("static", arguments, "test")


SHARED = sorted((PRESETS / "shared").glob("*.yaml"))


@pytest.mark.parametrize("path", sorted({*PRESETS.glob("*/*.yaml")} - {*SHARED}), ids=lambda path: path.stem)
def test_our_presets_parse_and_say_what_was_measured(path):
    assert isinstance(yaml.safe_load(path.read_text())["measured"], str)
    environment, _, variant = path.stem.partition(".")
    environment = "Hopper-v5" if environment == ANY else environment
    flags = ["--environment", environment, *(["--preset", variant] if variant else [])]
    config = parse_config(path.parent.name, flags, "test")
    assert (config.trainer, type(config.trainer_options)) == (path.parent.name, find_trainer(path.parent.name).Options)


def test_shared_presets_are_for_both_trainers_and_list_an_environment_once():
    listed = [name for path in SHARED for name in yaml.safe_load(path.read_text())["environments"]]
    assert len(set(listed)) == len(listed) >= 8
    for environment in listed:
        for trainer in TRAINERS:
            config = parse_config(trainer, ["--environment", environment, "--preset", "none"], "test")
            is_race = environment == "CarRacing-v3"
            assert config.as_options()["early_stop_negative_streak"] == (20 if is_race else 30)
            assert config.environment.action_bounds == ("tanh_sigmoid" if is_race else "tanh")
            assert config.as_options()["resize"] == ([84, 84] if is_race else None)


@pytest.mark.parametrize(
    ("environment", "preset", "population_size", "generations"),
    [("CarRacing-v3", None, 200, 300), ("AntBulletEnv-v0", None, 500, 500), ("AntBulletEnv-v0", "damage", 500, 500)],
)
def test_plastic_networks_have_the_settings_of_the_paper(environment, preset, population_size, generations):
    """Najarro & Risi 2020, and their code."""
    flags = ["--environment", environment, *(["--preset", preset] if preset else [])]
    options = parse_config("hebbian", flags, "test").as_options()
    paper = {"learning_rate": 0.2, "learning_rate_decay": 0.995, "sigma": 0.1, "sigma_decay": 0.999}
    paper |= {"hebb_rule": "ABCD_lr", "init_weights": "uni", "distribution": "normal", "hidden_sizes": [128, 64]}
    paper |= {"population_size": population_size, "generations": generations}
    assert {name: options[name] for name in paper} == paper


def test_every_walker_of_bullet_follows_the_source():
    register("AntBulletEnv-v0", ())
    walkers = [name for name, spec in gymnasium.registry.items() if "gym_locomotion_envs" in str(spec.entry_point)]
    assert len(walkers) == 7
    for environment in walkers:
        config = parse_config("hebbian", ["--environment", environment], "test")
        options = config.as_options()
        *others, last = options["gymnasium_wrappers"]
        assert last == {"bullet_grace": {"grace_steps": 201 + options["settle_steps"]}}
        assert (options["early_stop_negative_streak"], options["early_stop_grace_steps"]) == (30, 201)
        learning = [options[name] for name in ("action_bounds", "normalization", "output_activity")]
        assert learning == ["tanh", "none", "action"]
        assert (options["settle_steps"], len(others)) == ((40, 1) if "Ant" in environment else (0, 0))


def test_an_untuned_preset_names_the_variants_that_are_tuned(tmp_path):
    said = "the preset of CarRacing-v3 is untuned; --preset linear or pgpe has settings whose return was measured"
    assert describe_untuned(find_preset("static", "CarRacing-v3", None)) == said
    assert describe_untuned(find_preset("static", "HalfCheetah-v5", None)) == ""
    measured = {"Own-v0": "untuned", "Own-v0.a": "untuned; a guess", "Own-v0.b": "100 of seeds 1-3", "Own-v0.c": "7"}
    for name, score in measured.items():
        (tmp_path / f"{name}.yaml").write_text(f"measured: {score}\n")
    assert "Own-v0 is untuned; --preset b or c has" in describe_untuned(tmp_path / "Own-v0.yaml")
    (tmp_path / "Own-v0.yaml").write_text("measured: 3\n")
    assert describe_untuned(tmp_path / "Own-v0.yaml") == describe_untuned(None) == ""


def test_presets_override_shared_ones_and_flags_override_both():
    ant = ["--environment", "AntBulletEnv-v0"]
    assert parse(*ant, "--preset", "damage").environment.morphologies == ("none", "right")
    assert parse(*ant, "--preset", "none").settings.population_size == 200
    config = parse(*ant, "--settle_steps", "3", "--gymnasium_wrappers", "bullet_distance")
    options = config.environment
    assert (options.gymnasium_wrappers, options.action_bounds) == (("bullet_distance",), "tanh")
    assert config.as_options()["settle_steps"] == 3


def test_a_wrong_value_of_the_presets_own_strategy_is_refused_for_its_value():
    with pytest.raises(ValueError, match=r"^top_directions must be >= 1, got 0$"):
        parse("--environment", "Hopper-v5", "--top_directions", "0")
    with pytest.raises(ValueError, match=r"^top_directions is not an option of strategy openai_es"):
        parse("--environment", "Hopper-v5", "--strategy", "openai_es", "--top_directions", "2")


def test_a_section_is_for_runs_with_its_method_also_if_that_is_the_default(tmp_path):
    preset = tmp_path / "CartPole-v1.yaml"
    preset.write_text("generations: 3\nopenai_es: {sigma: 0.3}\ncem: {sigma: 0.4}\n")
    for named, sigma in [({}, 0.3), ({"strategy": "openai_es"}, 0.3), ({"strategy": "cem"}, 0.4)]:
        assert read_preset("static", preset, named) == {"generations": 3, "sigma": sigma}
    assert read_preset("static", preset, {"strategy": "ga"}) == {"generations": 3}


def test_a_run_with_the_options_of_a_file_is_not_told_that_the_preset_is_untuned(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(train, "describe_untuned", lambda preset: "it is untuned")
    (tmp_path / "own.yaml").write_text("sigma: 0.2\n")
    flags = ["--environment", "CartPole-v1", "--threads", "1", "--folder", str(tmp_path / "runs")]
    for own, is_told in (([], True), (["--config", str(tmp_path / "own.yaml")], False)):
        (run,) = prepare_runs("static", [*flags, *own], "", Console())
        run.close()
        assert ("it is untuned" in capsys.readouterr().out) == is_told
