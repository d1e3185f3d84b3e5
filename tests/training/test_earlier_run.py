"""A run of the last version before the package opens: its names of classes, options and columns are mapped to today's.

`earlier_run` was written by commit 5fb0473 with `train_hebbian.py --environment Ant-v5 --preset none --bodies none
right --normalisation max_abs --policy policies.hebbian:Hebbian --strategy strategies.openai_es:OpenaiEs --wrappers
wrappers.clip_action:ClipAction --hidden_sizes 2 --popsize 4 --lr 0.1 --decay 0.9 --lr_min 0.01 --generations 2
--max_episode_steps 10 --test_episodes 0 --eval_episodes 1 --eval_every 1 --threads 1`.
"""

import shutil
import sys
from pathlib import Path

import pytest

from hebbes.files.policy_file import read_policy_file
from hebbes.options.command_line import parse_config
from hebbes.options.evaluation import EvaluateConfig
from hebbes.policies.hebbian import Hebbian
from hebbes.policies.linear import Linear
from hebbes.programs.evaluation_entries import load_entries
from hebbes.recording.metrics import read_metrics
from hebbes.registry.lookup import find_class
from hebbes.training.prepare import prepare
from hebbes.training.run import execute
from hebbes.training.saved_runs import read_saved_run

EARLIER = Path(__file__).parent / "earlier_run"


@pytest.fixture
def earlier(tmp_path):
    """A copy of the run's folder."""
    return Path(shutil.copytree(EARLIER, tmp_path / "Ant-v5" / "run"))


def check_options(config):
    settings = config.settings
    assert config.environment.morphologies == ("none", "right")
    assert config.policy_options["normalization"] == "max_abs"
    assert (settings.population_size, settings.learning_rate) == (4, 0.1)
    assert (settings.learning_rate_decay, settings.learning_rate_min) == (0.9, 0.01)


def test_its_policy_file_loads_and_can_be_played(earlier):
    saved = read_policy_file(earlier / "best.dat")
    assert isinstance(saved.policy, Hebbian) and saved.policy.normalization == "max_abs"
    assert saved.environment.morphologies == ("none", "right")
    assert "clip_action" in [each.name for each in saved.environment.wrappers]
    assert len(load_entries(EvaluateConfig((str(earlier / "best.dat"),)))) == 2


def test_reports_and_plots_know_its_morphologies(earlier):
    run = read_saved_run(earlier)
    assert run.options["morphologies"] == ["none", "right"]
    assert run.spec.morphologies == ("none", "right")


def test_it_resumes_under_todays_names(earlier, capsys):
    config = parse_config("hebbian", ["--resume", str(earlier), "--generations", "3"], "")
    check_options(config)
    assert "is now called" not in capsys.readouterr().err
    (run,) = prepare(config)
    execute(run)
    metrics = read_metrics(earlier / "metrics.csv")
    assert list(metrics["generation"]) == [1, 2, 3]
    assert metrics["mean_policy_return"][:2] == pytest.approx([5.94, 5.84], abs=0.005)
    assert metrics["learning_rate"] == pytest.approx([0.1, 0.09, 0.081])
    assert sorted(path.name for path in earlier.glob("*.csv")) == ["metrics.csv"]


def test_its_config_is_read_with_a_line_for_each_name_that_was_ours_alone(earlier, capsys):
    config = parse_config("hebbian", ["--config", str(earlier / "config.yaml")], "")
    check_options(config)
    lines = capsys.readouterr().err.splitlines()
    renamed = {"bodies": "morphologies", "normalisation": "normalization", "lr_schedule": "learning_rate_schedule"}
    for former, current in {**renamed, "lr_min": "learning_rate_min"}.items():
        assert f"{earlier / 'config.yaml'}: --{former} is now called --{current}" in lines
    assert not any("popsize" in line or "decay" in line for line in lines)


def test_short_names_are_taken_in_silence_and_former_flags_with_a_notice(capsys):
    short = ["--environment", "CartPole-v1", "--popsize", "6", "--lr", "0.5", "--decay", "0.7"]
    config = parse_config("static", short, "")
    settings = config.settings
    assert (settings.population_size, settings.learning_rate, settings.learning_rate_decay) == (6, 0.5, 0.7)
    assert capsys.readouterr().err == ""
    config = parse_config("static", ["--environment", "Ant-v5", "--bodies", "none", "left"], "")
    assert config.environment.morphologies == ("none", "left")
    assert "--bodies is now called --morphologies" in capsys.readouterr().err.splitlines()


def test_an_option_under_two_of_its_names_is_refused(tmp_path):
    (tmp_path / "twice.yaml").write_text("learning_rate: 0.1\nlr: 0.2\n")
    with pytest.raises(ValueError, match=r"twice.yaml: learning_rate is given twice, as lr too$"):
        parse_config("static", ["--environment", "CartPole-v1", "--config", str(tmp_path / "twice.yaml")], "")


def test_a_users_own_package_of_a_former_name_is_not_taken_for_ours(tmp_path, monkeypatch):
    (tmp_path / "policies").mkdir()
    (tmp_path / "policies" / "__init__.py").touch()
    code = "from hebbes.policies.linear import Linear\nclass Mlp(Linear): pass\n"
    (tmp_path / "policies" / "mlp.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    try:
        assert find_class("policy", "policies.mlp:Mlp").__mro__[1] is Linear
    finally:
        for name in ("policies", "policies.mlp"):
            sys.modules.pop(name, None)


def test_a_short_name_gives_way_to_an_option_of_that_name(tmp_path, monkeypatch):
    code = "from dataclasses import dataclass\nfrom hebbes.contracts.option import option\n"
    code += "from hebbes.strategies.ga import GA\n@dataclass(frozen=True)\nclass Settings(GA.Settings):\n"
    for name in ("lr", "decay", "learning_rate"):
        code += f"    {name}: float = option(0.5, 'of its own')\n"
    (tmp_path / "with_lr.py").write_text(code + "class Mine(GA):\n    Settings = Settings\n")
    monkeypatch.syspath_prepend(tmp_path)
    flags = ["--environment", "CartPole-v1", "--strategy", "with_lr:Mine", "--lr", "3", "--learning_rate", "4"]
    config = parse_config("static", [*flags, "--popsize", "6"], "")
    assert (config.settings.lr, config.settings.learning_rate, config.settings.population_size) == (3, 4, 6)


def test_what_a_resumed_run_saves_has_current_names(earlier):
    again = ["--wrappers", "wrappers.clip_action:ClipAction"]
    config = parse_config("hebbian", ["--resume", str(earlier), *again], "")
    assert config.choices.policy == "hebbes.policies.hebbian:Hebbian"
    assert config.choices.method == "hebbes.strategies.openai_es:OpenAIES"
    assert config.environment.wrappers == ("hebbes.wrappers.clip_action:ClipAction",)
    assert read_policy_file(earlier / "best.dat").policy_name == "hebbes.policies.hebbian:Hebbian"


def test_a_misspelt_former_flag_is_answered_with_the_current_one(refusal):
    assert "did you mean --learning_rate_min?" in refusal("train_static.py", "--lr_mi", "4")
