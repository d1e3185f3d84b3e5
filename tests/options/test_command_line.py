import re

import pytest
import yaml

from hebbes.options.command_line import parse_config

REFERENCE = {"population_size": 200, "learning_rate": 0.2, "learning_rate_decay": 0.995, "sigma": 0.1}


def parse(*arguments):
    return parse_config("static", arguments, "test")


def read_refusal(*arguments):
    """The message about a mistake, which programs print before they end with status 2."""
    with pytest.raises(ValueError) as refused:
        parse(*arguments)
    assert "\n" not in str(refused.value)
    return str(refused.value)


def test_defaults_are_the_references(presets):
    config = parse()
    assert {name: getattr(config.settings, name) for name in REFERENCE} == REFERENCE
    assert (config.environment.id, config.trainer_options.generations) == ("CarRacing-v3", 300)
    assert (config.run.print_every, config.run.folder, config.engine.threads) == (1, "weights", -1)


def test_flags_win_over_the_config_over_the_preset_over_defaults(presets, tmp_path):
    presets("CartPole-v1.yaml", "population_size: 10\nsigma: 0.3\nlr: 0.4\nmeasured: 500 once")
    mine = tmp_path / "mine.yaml"
    mine.write_text("sigma: 0.5\nlr: 0.6\n")
    config = parse("--environment", "CartPole-v1", "--config", str(mine), "--lr", "0.7")
    settings = config.settings
    assert (settings.population_size, settings.sigma, settings.learning_rate, settings.learning_rate_decay) == (
        10,
        0.5,
        0.7,
        0.995,
    )


def test_zero_off_and_none_are_values(presets):
    presets("CartPole-v1.yaml", "bias: true\nmax_env_steps: 100\nweight_penalty: 0.5\nhidden_sizes: [8]\n")
    unset = ["--no_bias", "--max_env_steps", "none", "--weight_penalty", "0", "--hidden_sizes"]
    config = parse("--environment", "CartPole-v1", *unset)
    assert (config.training.max_env_steps, config.settings.weight_penalty) == (None, 0.0)
    assert config.policy_options == {"bias": False, "hidden_sizes": ()}


def test_a_config_may_name_the_environment_whose_preset_it_overrides(presets, tmp_path):
    presets("CartPole-v1.yaml", "population_size: 10\n")
    (tmp_path / "mine.yaml").write_text("environment: CartPole-v1\n")
    config = parse("--config", str(tmp_path / "mine.yaml"))
    assert (config.environment.id, config.settings.population_size) == ("CartPole-v1", 10)


def test_a_config_may_name_the_variant_and_one_import_without_a_list(presets, tmp_path):
    presets("CartPole-v1.wide.yaml", "sigma: 0.7\n")
    (tmp_path / "mine.yaml").write_text("environment: CartPole-v1\npreset: wide\nimport: math\n")
    config = parse("--config", str(tmp_path / "mine.yaml"))
    assert (config.settings.sigma, config.environment.imports) == (0.7, ("math",))


def test_an_environment_name_may_include_its_package_on_the_command_line_and_in_a_config(presets, tmp_path):
    presets("Spaces-v0.yaml", "population_size: 12\nimport: [math]\n")
    (tmp_path / "mine.yaml").write_text("environment: tests.many_spaces:Spaces-v0\n")
    for arguments in (["--environment", "tests.many_spaces:Spaces-v0"], ["--config", str(tmp_path / "mine.yaml")]):
        config = parse(*arguments)
        assert (config.environment.id, config.environment.imports) == ("Spaces-v0", ("math", "tests.many_spaces"))
        assert config.settings.population_size == 12
    again = parse(*arguments, "--import", "tests.many_spaces")
    assert again.environment.imports == ("tests.many_spaces",)


def test_an_option_that_an_environments_name_stands_for_has_no_other_value():
    name = ["--environment", "LunarLanderContinuous-v3"]
    assert parse_config("static", [*name, "--env_kwargs", "{continuous: true}"], "").environment.env_kwargs == {
        "continuous": True
    }
    with pytest.raises(ValueError, match=r"^env_kwargs continuous is True in LunarLanderContinuous-v3, got False; "):
        parse_config("static", [*name, "--env_kwargs", "{continuous: false}"], "")


def test_a_variant_replaces_the_preset(presets):
    presets("CartPole-v1.yaml", "population_size: 10\n")
    presets("CartPole-v1.wide.yaml", "sigma: 0.7\n")
    settings = parse("--environment", "CartPole-v1", "--preset", "wide").settings
    assert (settings.population_size, settings.sigma) == (200, 0.7)


def test_of_an_option_under_the_same_name_the_last_value_counts(presets):
    config = parse("--environment", "CartPole-v1", "--sigma", "0.1", "--quiet", "--sigma", "0.2", "--no_quiet")
    assert (config.settings.sigma, config.run.quiet) == (0.2, False)


@pytest.mark.parametrize("flag", ["--max_env_steps=7", "--max-env-steps=7"])
def test_underscores_and_dashes_are_the_same(presets, flag):
    assert parse("--environment", "CartPole-v1", flag).training.max_env_steps == 7


@pytest.mark.parametrize(("text", "number"), [("2e6", 2_000_000), ("1.5e3", 1500), ("9007199254740993", 2**53 + 1)])
def test_whole_numbers_may_have_an_exponent(presets, text, number):
    assert parse("--environment", "CartPole-v1", "--max_env_steps", text).training.max_env_steps == number


def test_yaml_texts_are_read_as_flags_are(presets):
    presets("CartPole-v1.yaml", "learning_rate: 1e-3\nenv_kwargs: {sutton_barto_reward: true}\nimport: []\n")
    config = parse("--environment", "CartPole-v1")
    assert config.settings.learning_rate == 0.001  # YAML reads 1e-3 as text
    assert config.environment.env_kwargs == {"sutton_barto_reward": True}


def test_the_printed_config_can_be_read_back(presets, tmp_path, capsys, monkeypatch):
    (tmp_path / "prints_a_banner.py").write_text('print("welcome: to: this")')
    monkeypatch.syspath_prepend(tmp_path)
    flags = ["--environment", "CartPole-v1", "--lr", "0.3", "--hidden_sizes", "8", "4", "--import", "prints_a_banner"]
    with pytest.raises(SystemExit) as stopped:
        parse(*flags, "--print_config")
    assert stopped.value.code == 0
    (tmp_path / "again.yaml").write_text(capsys.readouterr().out)
    again = parse("--config", str(tmp_path / "again.yaml"))
    assert again.format_as_yaml() == parse(*flags).format_as_yaml()
    with pytest.raises(ValueError, match="print_config takes no value, got junk"):
        parse(*flags, "--print_config", "junk")


def test_retired_ids_are_mapped_with_a_notice_of_one_line(presets, capsys):
    assert parse("--environment", "HalfCheetah-v2").environment.id == "HalfCheetah-v5"
    assert capsys.readouterr().err.splitlines() == ["HalfCheetah-v2 means HalfCheetah-v5"]


def test_help_explains_the_references_flags_with_their_defaults(presets, capsys):
    with pytest.raises(SystemExit) as stopped:
        parse("--help")
    assert stopped.value.code == 0
    text = " ".join(capsys.readouterr().out.split())
    for flag in ["environment", "popsize", "print_every", "lr", "decay", "sigma", "generations", "folder", "threads"]:
        assert re.search(rf"--{flag}\b.*?\(default", text)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--popsiz", "4"], "unknown option --popsiz, did you mean --popsize?"),
        (["--popsize", "many"], "population_size must be a whole number, got 'many'"),
        (["--popsize", "4.5"], "population_size must be a whole number, got '4.5'"),
        (["--popsize", "inf"], "population_size must be a whole number, got 'inf'"),
        (["--backend", "mine"], "backend must be one of auto, envpool, gymnasium, got 'mine'"),
        (["--lr", ""], "learning_rate must be a number, got ''"),
        (["--env_kwargs", "[1"], "env_kwargs must be a YAML mapping such as '{g: 5.0}', got '[1'"),
        (["--sigma"], "sigma needs a value"),
        (["--folder", "none"], "folder cannot be none"),
        (["--lr", "1", "--learning_rate", "2"], "learning_rate is given twice, as lr too"),
        (["--sigma", "1", "--openai_es.sigma", "2"], "sigma is given twice, as openai_es.sigma too"),
        (["--run.seed", "1", "--seed", "2"], "seed is given twice, as run.seed too"),
        (
            ["--strategy", "snes", "--momentum", "0.9"],
            "momentum is not an option of strategy snes; it belongs to openai_es, pgpe",
        ),
        (
            ["--strategy", "ars", "--no_divide_by_sigma"],
            "divide_by_sigma is not an option of strategy ars; it belongs to openai_es",
        ),
        (["--rl_share", "0.5"], "unknown option --rl_share; it belongs to train_hybrid"),
        (["--strategy", "cem", "--elite_shar", "0.1"], "unknown option --elite_shar, did you mean --elite_share?"),
    ],
)
def test_a_mistake_in_a_flag_is_one_line(presets, arguments, expected):
    assert read_refusal("--environment", "CartPole-v1", *arguments) == expected


def test_settings_of_a_preset_are_left_out_for_another_strategy(presets, capsys):
    presets("CartPole-v1.yaml", "learning_rate: 0.7\npopulation_size: 10\ngenerations: 7\nmeasured: 500 once")
    config = parse("--environment", "CartPole-v1", "--strategy", "cem")
    assert (config.choices.method, config.settings.population_size) == ("cem", 100)
    assert config.trainer_options.generations == 7
    assert (
        "CartPole-v1.yaml: left out learning_rate, population_size, tuned for strategy openai_es"
        in capsys.readouterr().err
    )
    presets("CartPole-v1.yaml", "strategy: cem\npopulation_size: 10\nelite_share: 0.3")
    assert parse("--environment", "CartPole-v1").settings.elite_share == 0.3
    assert "left out" not in capsys.readouterr().err
    assert parse("--environment", "CartPole-v1", "--strategy", "openai_es").settings.population_size == 200
    presets("CartPole-v1.yaml", "strategy: pgpe\nnum_interactions: 75000\npopulation_size_max: 800")
    assert parse("--environment", "CartPole-v1").trainer_options.population_size_max == 800
    assert parse("--environment", "CartPole-v1", "--strategy", "cma_es").trainer_options.num_interactions is None
    assert "left out num_interactions, population_size_max, tuned for strategy pgpe" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--threads", "0"], "threads must be from 1 to 1024, or -1 for all cores, got 0"),
        (["--popsize", "7"], "population_size must be an even number"),
        (["--seed", "8" * 400], r"^seed must be below 2\^63, got 8{400}$"),
        (["--popsize", "8" * 400], r"^population_size must be below 2\^63, got 8{400}$"),
        (["--hidden_sizes", "8", str(2**63)], r"^hidden_sizes must be below 2\^63, got \[8, 9"),
        (["--hidden_sizes", "8", "0"], r"hidden_sizes must be >= 1, got \[8, 0\]"),
        (["--resize", "84"], r"resize must be a list of 2 whole numbers or none, got \[84\]"),
        (["--run_name", "../up"], "run_name must be a plain folder name"),
        (["--run_name", "ü" * 101], "run_name must be a plain folder name of at most 200 bytes"),
        (["--run_name", "checkpoint"], "not one of checkpoint, kept, videos, sweeps, got 'checkpoint'"),
        (["--folder", "a\0b"], r"folder must be a text without NUL characters, got 'a\\x00b'"),
        (["--strategy", "openai_e"], "unknown strategy 'openai_e', did you mean 'openai_es'"),
        (["--preset", "no"], "preset must be none, because CartPole-v1 has none with a name, got 'no'"),
        (
            ["--environment", "CartPol-v1"],
            "unknown environment 'CartPol-v1'; if a package of yours registers it, add --import PACKAGE; "
            "otherwise, did you mean 'CartPole-v1'",
        ),
        (["--import", "no_such_package"], "cannot import 'no_such_package'"),
        (["--config", ""], "config must be a path, got ''"),
        (["--resume", ""], "resume must be a path, got ''"),
        (["--init_from", ""], "init_from must be a path, got ''"),
        (["--morphologies", "e" * 300], "a morphology must be a name or a file, got 'e*': File name too long"),
        (["--config", "/no/such/file.yaml"], "cannot read /no/such/file.yaml: No such file"),
    ],
)
def test_values_that_make_no_sense_are_refused_with_what_is_allowed(presets, arguments, expected):
    with pytest.raises(ValueError, match=expected):
        parse("--environment", "CartPole-v1", *arguments)


@pytest.mark.parametrize(
    ("environment", "variant", "start"),
    [
        ("CarRacing-v3", None, "pytorch"),
        ("AntBulletEnv-v0", None, "pytorch"),
        ("AntBulletEnv-v0", "damage", "pytorch"),
        ("HalfCheetah-v5", "es_torch", "xavier"),
    ],
)
def test_presets_of_the_sources_initialize_weights_as_the_sources_do(environment, variant, start):
    flags = ["--environment", environment, *(["--preset", variant] if variant else [])]
    assert parse(*flags).as_options()["initialization"] == start


def test_an_unknown_variant_of_a_preset_suggests_the_nearest():
    known = "preset must be damage or none, got 'damaeg', did you mean 'damage'?"
    with pytest.raises(ValueError, match=re.escape(known)):
        parse("--environment", "Ant-v5", "--preset", "damaeg")


def test_the_preset_of_es_torch_has_its_settings(capsys):
    """es-torch's settings for HalfCheetah-v5 on one machine. The sum is not divided by sigma; no rate decays."""
    with pytest.raises(SystemExit) as stopped:
        parse("--environment", "HalfCheetah-v5", "--preset", "es_torch", "--print_config")
    assert stopped.value.code == 0
    printed = yaml.safe_load(capsys.readouterr().out)
    expected = {
        **{
            "strategy": "openai_es",
            "learning_rate": 0.04,
            "sigma": 0.025,
            "weight_decay": 0.0025,
            "population_size": 30,
        },
        **{
            "divide_by_sigma": False,
            "optimizer": "sgd",
            "momentum": 0.0,
            "learning_rate_decay": 1.0,
            "sigma_decay": 1.0,
        },
        **{"weight_penalty": 0.0, "fitness_shaping": "centered_rank", "generations": 1000},
        **{"policy": "mlp", "hidden_sizes": [64, 64], "activation": "tanh", "bias": True},
        **{"observation_normalization": False, "episodes_per_member": 1, "max_episode_steps": None},
    }
    assert {name: printed[name] for name in expected} == expected
