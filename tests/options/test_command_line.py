import re

import pytest
import yaml

from hebbes.options import presets as preset_files
from hebbes.options.command_line import parse_config
from hebbes.training.unused_options import as_yaml

REFERENCE = {"popsize": 200, "lr": 0.2, "decay": 0.995, "sigma": 0.1}


@pytest.fixture
def presets(tmp_path, monkeypatch):
    """A folder of presets in place of ours; returns a function that writes one."""
    monkeypatch.setattr(preset_files, "PRESETS", tmp_path / "configs")
    (tmp_path / "configs" / "static").mkdir(parents=True)
    return lambda name, text: (tmp_path / "configs" / "static" / name).write_text(text)


def parse(*arguments):
    return parse_config("static", arguments, "test")


def refused(capsys, *arguments):
    """The line that a command ends with, once it has exited with status 2."""
    with pytest.raises(SystemExit) as stopped:
        parse(*arguments)
    assert stopped.value.code == 2
    (line,) = capsys.readouterr().err.splitlines()
    return line


def test_defaults_are_the_references(presets):
    config = parse()
    assert {name: getattr(config.settings, name) for name in REFERENCE} == REFERENCE
    assert (config.environment, config.print_every, config.generations) == ("CarRacing-v3", 1, 300)
    assert (config.folder, config.threads) == ("weights", -1)


def test_flags_win_over_the_config_over_the_preset_over_defaults(presets, tmp_path):
    presets("CartPole-v1.yaml", "popsize: 10\nsigma: 0.3\nlr: 0.4\nmeasured: 500 once")
    mine = tmp_path / "mine.yaml"
    mine.write_text("sigma: 0.5\nlr: 0.6\n")
    config = parse("--environment", "CartPole-v1", "--config", str(mine), "--lr", "0.7")
    settings = config.settings
    assert (settings.popsize, settings.sigma, settings.lr, settings.decay) == (10, 0.5, 0.7, 0.995)


def test_zero_off_and_none_are_values(presets):
    presets("CartPole-v1.yaml", "bias: true\nmax_env_steps: 100\nweight_penalty: 0.5\nhidden_sizes: [8]\n")
    unset = ["--no_bias", "--max_env_steps", "none", "--weight_penalty", "0", "--hidden_sizes"]
    config = parse("--environment", "CartPole-v1", *unset)
    assert (config.bias, config.max_env_steps, config.settings.weight_penalty) == (False, None, 0.0)
    assert config.hidden_sizes == ()


def test_a_config_may_name_the_environment_whose_preset_lies_below_it(presets, tmp_path):
    presets("CartPole-v1.yaml", "popsize: 10\n")
    (tmp_path / "mine.yaml").write_text("environment: CartPole-v1\n")
    config = parse("--config", str(tmp_path / "mine.yaml"))
    assert (config.environment, config.settings.popsize) == ("CartPole-v1", 10)


def test_a_config_may_name_the_variant_and_one_import_without_a_list(presets, tmp_path):
    presets("CartPole-v1.wide.yaml", "sigma: 0.7\n")
    (tmp_path / "mine.yaml").write_text("environment: CartPole-v1\npreset: wide\nimport: math\n")
    config = parse("--config", str(tmp_path / "mine.yaml"))
    assert (config.settings.sigma, config.imports) == (0.7, ("math",))


def test_a_name_may_bring_its_package_on_the_command_line_and_in_a_config(presets, tmp_path):
    presets("Spaces-v0.yaml", "popsize: 12\nimport: [math]\n")
    (tmp_path / "mine.yaml").write_text("environment: tests.many_spaces:Spaces-v0\n")
    for arguments in (["--environment", "tests.many_spaces:Spaces-v0"], ["--config", str(tmp_path / "mine.yaml")]):
        config = parse(*arguments)
        assert (config.environment, config.imports) == ("Spaces-v0", ("math", "tests.many_spaces"))
        assert config.settings.popsize == 12
    again = parse(*arguments, "--import", "tests.many_spaces")
    assert again.imports == ("tests.many_spaces",)


def test_a_variant_replaces_the_preset(presets):
    presets("CartPole-v1.yaml", "popsize: 10\n")
    presets("CartPole-v1.wide.yaml", "sigma: 0.7\n")
    settings = parse("--environment", "CartPole-v1", "--preset", "wide").settings
    assert (settings.popsize, settings.sigma) == (200, 0.7)


@pytest.mark.parametrize("flag", ["--max_env_steps=7", "--max-env-steps=7"])
def test_underscores_and_dashes_are_the_same(presets, flag):
    assert parse("--environment", "CartPole-v1", flag).max_env_steps == 7


def test_yaml_texts_are_read_as_flags_are(presets):
    presets("CartPole-v1.yaml", "lr: 1e-3\nenv_kwargs: {sutton_barto_reward: true}\nimport: []\n")
    config = parse("--environment", "CartPole-v1")
    assert config.settings.lr == 0.001  # to YAML, 1e-3 is a text
    assert config.env_kwargs == {"sutton_barto_reward": True}


def test_the_printed_config_reads_back_as_the_same(presets, tmp_path, capsys):
    flags = ["--environment", "CartPole-v1", "--lr", "0.3", "--hidden_sizes", "8", "4", "--import", "math"]
    with pytest.raises(SystemExit) as stopped:
        parse(*flags, "--print_config")
    assert stopped.value.code == 0
    (tmp_path / "again.yaml").write_text(capsys.readouterr().out)
    again = parse("--config", str(tmp_path / "again.yaml"))
    assert as_yaml(again) == as_yaml(parse(*flags))


def test_retired_names_are_mapped_with_one_line_of_notice(presets, capsys):
    assert parse("--environment", "HalfCheetah-v2").environment == "HalfCheetah-v5"
    assert capsys.readouterr().err.splitlines() == ["HalfCheetah-v2 means HalfCheetah-v5"]


def test_help_explains_every_flag_with_its_default(presets, capsys):
    with pytest.raises(SystemExit) as stopped:
        parse("--help")
    assert stopped.value.code == 0
    text = " ".join(capsys.readouterr().out.split())
    for flag in ("environment", "popsize", "print_every", "lr", "decay", "sigma", "generations", "folder", "threads"):
        assert re.search(rf"--{flag} .*?\(default", text)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--popsiz", "4"], "unknown option --popsiz, did you mean --popsize?"),
        (["--popsize", "many"], "argument --popsize: must be a whole number, got 'many'"),
        (["--backend", "mine"], "argument --backend: got 'mine', allowed: auto, envpool, gymnasium"),
        (["--lr", ""], "argument --lr: must be a number, got ''"),
        (["--env_kwargs", "[1"], "argument --env_kwargs: must be a YAML mapping such as '{g: 5.0}', got '[1'"),
        (["--sigma"], "argument --sigma: expected one argument"),
        (
            ["--strategy", "snes", "--momentum", "0.9"],
            "momentum is no option of strategy snes; it belongs to openai_es",
        ),
        (
            ["--strategy", "ars", "--no_divide_by_sigma"],
            "divide_by_sigma is no option of strategy ars; it belongs to open",
        ),
        (["--strategy", "cem", "--elite_shar", "0.1"], "unknown option --elite_shar, did you mean --elite_share?"),
    ],
)
def test_a_mistake_in_a_flag_is_one_line_with_status_2(presets, capsys, arguments, expected):
    assert expected in refused(capsys, "--environment", "CartPole-v1", *arguments)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("popsiz: 4\n", "CartPole-v1.yaml: unknown option --popsiz=4, did you mean --popsize?"),
        ("popsize: 1.5\n", "CartPole-v1.yaml: argument --popsize: must be a whole number, got '1.5'"),
        ("observation_normalization: 3\n", "CartPole-v1.yaml: argument --observation_normalization"),
    ],
)
def test_a_mistake_in_a_preset_names_the_file(presets, capsys, text, expected):
    presets("CartPole-v1.yaml", text)
    assert expected in refused(capsys, "--environment", "CartPole-v1")


def test_a_presets_settings_are_for_its_own_strategy(presets, capsys):
    presets("CartPole-v1.yaml", "lr: 0.7\npopsize: 10\ngenerations: 7\nmeasured: 500 once")
    config = parse("--environment", "CartPole-v1", "--strategy", "cem")
    assert (config.strategy, config.generations, config.settings.popsize) == ("cem", 7, 100)
    assert "CartPole-v1.yaml: left out lr, popsize, made for strategy openai_es" in capsys.readouterr().err
    presets("CartPole-v1.yaml", "strategy: cem\npopsize: 10\nelite_share: 0.3")
    assert parse("--environment", "CartPole-v1").settings.elite_share == 0.3
    assert "left out" not in capsys.readouterr().err
    assert parse("--environment", "CartPole-v1", "--strategy", "openai_es").settings.popsize == 200
    presets("CartPole-v1.yaml", "strategy: pgpe\nnum_interactions: 75000\npopsize_max: 800")
    assert parse("--environment", "CartPole-v1").popsize_max == 800
    assert parse("--environment", "CartPole-v1", "--strategy", "cma_es").num_interactions is None
    assert "left out num_interactions, popsize_max, made for strategy pgpe" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["[1, 2]", "a: [", "!!python/object/apply:os.system ['true']", "3: 4"])
def test_a_file_that_is_no_mapping_of_options_is_refused(presets, tmp_path, text):
    (tmp_path / "mine.yaml").write_text(text)
    with pytest.raises(ValueError, match=r"mine\.yaml"):
        parse("--config", str(tmp_path / "mine.yaml"))


def test_an_option_given_twice_in_a_file_is_refused(presets):
    presets("CartPole-v1.yaml", "lr: 0.3\npopsize: 4\nlr: 0.4\n")
    with pytest.raises(ValueError, match=r"CartPole-v1\.yaml: lr given more than once"):
        parse("--environment", "CartPole-v1")


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--threads", "0"], "threads must be from 1 to 1024, or -1 for all cores, got 0"),
        (["--popsize", "7"], "popsize must be an even number"),
        (["--generations", "0"], "generations must be >= 1, got 0"),
        (["--max_episode_steps", "0"], "max_episode_steps must be >= 1, got 0"),
        (["--seed", "-1"], "seed must be >= 0, got -1"),
        (["--hidden_sizes", "8", "0"], r"hidden_sizes must be >= 1, got \[8, 0\]"),
        (["--resize", "84"], r"resize must be a height and a width >= 1, got \[84\]"),
        (["--run_name", "../up"], "run_name must be a plain folder name"),
        (["--strategy", "openai_e"], "unknown strategy 'openai_e', did you mean 'openai_es'"),
        (["--preset", "no"], "preset must be one of none for CartPole-v1, got 'no'"),
        (["--environment", "CartPol-v1"], "unknown environment 'CartPol-v1', did you mean 'CartPole-v1'"),
        (["--import", "no_such_package"], "cannot import 'no_such_package'"),
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
        ("HalfCheetah-v5", None, "xavier"),
    ],
)
def test_presets_of_the_sources_start_their_search_as_the_sources_do(environment, variant, start):
    flags = ["--environment", environment, *(["--preset", variant] if variant else [])]
    assert parse(*flags).initialization == start


def test_an_unknown_variant_of_a_preset_suggests_the_nearest():
    known = "preset must be one of damage, none for Ant-v5, got 'damaeg', did you mean 'damage'?"
    with pytest.raises(ValueError, match=re.escape(known)):
        parse("--environment", "Ant-v5", "--preset", "damaeg")


def test_the_preset_of_es_torch_has_its_settings(capsys):
    """Those of its HalfCheetah-v5 on one machine; its step is not divided by sigma, and its rates stay as they are."""
    with pytest.raises(SystemExit) as stopped:
        parse("--environment", "HalfCheetah-v5", "--preset", "es_torch", "--print_config")
    assert stopped.value.code == 0
    printed = yaml.safe_load(capsys.readouterr().out)
    expected = {
        **{"strategy": "openai_es", "lr": 0.04, "sigma": 0.025, "weight_decay": 0.0025, "popsize": 30},
        **{"divide_by_sigma": False, "optimizer": "sgd", "momentum": 0.0, "decay": 1.0, "sigma_decay": 1.0},
        **{"weight_penalty": 0.0, "fitness_shaping": "centered_rank", "generations": 1000},
        **{"policy": "mlp", "hidden_sizes": [64, 64], "activation": "tanh", "bias": True},
        **{"observation_normalization": False, "episodes_per_member": 1, "max_episode_steps": None},
    }
    assert {name: printed[name] for name in expected} == expected
