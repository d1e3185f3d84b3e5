"""The help has the options of what is chosen, grouped by owner, within the width of the terminal."""

import re

import pytest

from hebbes.options.command_line import parse_config
from hebbes.options.evaluation import EvaluateConfig
from hebbes.options.program_options import parse_options
from hebbes.programs.list_runs import RunsConfig
from hebbes.programs.plot import PlotConfig
from hebbes.registry.lookup import list_names
from hebbes.training.owners import find_owner, list_all_owners

MINE = "tests.options.users_classes"


@pytest.fixture(params=[60, 80, 200])
def columns(request, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(request.param))
    return request.param


@pytest.fixture
def read_help(capsys, monkeypatch):
    """A function: what a command line with --help or --help_all prints."""
    monkeypatch.setattr("sys.argv", ["train_static.py"])

    def call(*arguments, trainer="static"):
        with pytest.raises(SystemExit) as stopped:
            parse_config(trainer, arguments, "Trains a policy.")
        assert stopped.value.code == 0
        said = capsys.readouterr()
        assert said.err == ""
        return said.out

    return call


def list_flags(text):
    return set(re.findall(r"^  --(\w+)", text, re.MULTILINE))


def list_titles(text):
    return re.findall(r"^(\S.*):$", text, re.MULTILINE)


def list_names_of(kind, name):
    return {each.short_name for each in find_owner(kind, name).options}


@pytest.mark.parametrize("flag", ["--help", "-h", "--help_all"])
def test_no_line_is_longer_than_the_terminal(flag, columns, read_help):
    lines = read_help(flag).splitlines()
    assert lines[0].startswith("usage: ")
    assert all(len(line) <= min(columns, 120) for line in lines)


@pytest.mark.parametrize(
    ("owner", "name", "usage"),
    [
        (RunsConfig, "folder", "[FOLDER] [--OPTION VALUE ...]"),
        (PlotConfig, "runs", "RUNS ... [--OPTION VALUE ...]"),
        (EvaluateConfig, "", "[--OPTION VALUE ...]"),
    ],
)
def test_the_usage_says_which_arguments_may_be_left_out(owner, name, usage, capsys, monkeypatch):
    monkeypatch.setattr("sys.argv", ["program.py"])
    with pytest.raises(SystemExit):
        parse_options(owner, ["--help"], "", name)
    assert capsys.readouterr().out.splitlines()[0] == f"usage: python program.py {usage}"


def test_only_the_chosen_strategy_and_policy_are_shown(read_help):
    text = read_help("--help", "--strategy", "cem", "--policy", "linear")
    flags = list_flags(text)
    assert list_names_of("strategy", "cem") | list_names_of("policy", "linear") <= flags
    assert not {"momentum", "hidden_sizes", "recurrent_size", "parents", "virtual_batch"} & flags
    assert {"strategy cem", "policy linear", "run", "environment", "engine", "wrappers", "loggers"} <= set(
        list_titles(text)
    )


def test_auto_shows_the_policies_that_it_can_stand_for(read_help):
    text = read_help("--help")
    assert "policy mlp, cnn" in list_titles(text) and "strategy openai_es" in list_titles(text)
    assert list_names_of("policy", "mlp") | list_names_of("policy", "cnn") <= list_flags(text)
    assert "recurrent_size" not in list_flags(text)
    assert len(re.findall(r"^  --hidden_sizes\b", text, re.MULTILINE)) == 1
    assert "policy hebbian" in list_titles(read_help("--help", trainer="hebbian"))


@pytest.mark.parametrize(
    ("trainer", "kinds"),
    [("static", ("strategy", "policy")), ("hebbian", ("strategy", "policy")), ("hybrid", ("algorithm",))],
)
def test_help_all_has_everything(trainer, kinds, read_help, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    text = read_help("--help_all", trainer=trainer)
    expected = {each.short_name for owner in list_all_owners(trainer) for each in owner.options}
    assert expected == list_flags(text)
    for kind in kinds:
        owners = [find_owner(kind, name) for name in list_names(kind)]
        assert {f"{kind} {owner.name}" for owner in owners if owner.options} <= set(list_titles(text))


def test_help_all_has_the_defaults_of_the_default_method(read_help):
    for flag in ("--help", "--help_all"):
        text = read_help(flag, trainer="hybrid")
        assert re.search(r"--hidden_sizes.*?default: ([\d ]+)", text, re.DOTALL).group(1) == "256 256"


def test_options_of_a_users_classes_are_shown(read_help):
    chosen = ["--strategy", f"{MINE}:Search", "--policy", f"{MINE}:Scaled"]
    text = read_help("--help", *chosen, "--wrappers", f"{MINE}:Louder", "--loggers", f"{MINE}:Diary")
    assert {"greed", "gain", "volume", "word"} <= list_flags(text)
    assert {"strategy Search", "policy Scaled"} <= set(list_titles(text))
    assert "factor on rewards (> 0; default: 1.0)" in text


def test_short_names_choices_and_switches_are_explained(read_help):
    text = " ".join(read_help("--help").split())
    assert "--population_size, --popsize" in text
    assert "--engine" in text and "[auto, in_process, ray, workers]" in text
    assert "(default: on; --no_divide_by_sigma turns it off)" in text


def test_the_help_of_a_class_that_is_not_there_is_one_line():
    with pytest.raises(ValueError, match="unknown strategy 'cen', did you mean 'cem'"):
        parse_config("static", ["--help", "--strategy", "cen"], "")
    with pytest.raises(ValueError, match="wrappers: an entry is NAME"):
        parse_config("static", ["--help", "--wrappers", "a: 3"], "")
