"""What a sweep refuses before anything is made."""

import sqlite3
from contextlib import closing
from dataclasses import dataclass

import pytest

from hebbes.contracts.option import option
from hebbes.policies.mlp import MLP
from hebbes.programs.sweep import read_options
from hebbes.programs.sweeps.sweep_options import find_searched_options
from hebbes.strategies.openai_es import OpenAIES, OpenAIESSettings
from hebbes.training.printed_commands import hide_passwords
from tests.programs.sweeps import make_arguments, open_sweep


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"storage": "sqlite:////no/such/folder.db"}, "unable to open database file"),
        ({"storage": "mysql://me:secret@host/db", "run_name": "mine"}, r"mysql://me:\*\*\*@host/db: "),
        ({"storage": ""}, "storage : Could not parse"),
        ({"output": ""}, "output .: no file can be written there"),
        ({"storage": "nonsense"}, "storage nonsense: Could not parse"),
        ({"trials": 0}, r"trials must be in \[1, 100000\], got 0"),
        ({"trails": 1}, "unknown option --trails, did you mean 'trials'?"),
        ({"max_env_steps": None}, "needs max_env_steps"),
        ({"seeds": 2}, "seeds must be 1 in a sweep"),
        ({"resume": "/no/such/run"}, "resume has no meaning for a sweep"),
        ({"seed": 2**63 - 2}, r"seed must leave room for 2 final_seeds below 2\^63, got 9223372036854775806"),
        ({"test_episodes": 0}, "test_episodes must be >= 1 in a sweep with finalists"),
        ({"output": "/no/such/folder.yaml"}, "output /no/such/folder.yaml: the folder /no/such does not exist"),
        ({"finalists": 0, "output": "best.yaml"}, "output needs finalists"),
        ({"search": "no_antithetic=choice:1:2"}, "search no_antithetic=choice:1:2: "),
        ({"folder": "/proc/no"}, "cannot write to sweep folder /proc/no"),
        ({"search": "sgma=log:1:2"}, r"search sgma=log:1:2: unknown option --sgma, did you mean --sigma\?"),
        ({"search": "sigma=log:0:2"}, "search sigma=log:0:2: sigma must be a finite number > 0, got 0.0"),
        ({"search": "sigma=log:2:1"}, "the lower bound must be below the upper one"),
        ({"search": "sigma=1:2"}, "a search space is uniform:LOW:HIGH, log:LOW:HIGH or choice:A:B"),
        ({"search": "sigma=choice:1"}, "a choice needs two values or more"),
        ({"search": "sigma=choice:0.1:0.1"}, r"two values or more, all different, got \[0.1, 0.1\]"),
        ({"search": "policy=choice:mlp:linear"}, "search policy=choice:mlp:linear: policy cannot be varied"),
        (
            {"search": "max_episode_steps=choice:5:9", "env_kwargs": "{max_episode_steps: -1}"},
            "search cannot vary max_episode_steps: the episodes of evaluations would differ between trials",
        ),
        ({"search": "settle_steps=choice:0:9"}, "search cannot vary settle_steps: "),
        ({"search": "generations=choice:1:2"}, "search generations=choice:1:2: generations cannot be varied"),
        ({"search": "rank=choice:1:2"}, "search rank has no effect: it is only used with --sampler low_rank"),
    ],
)
def test_bad_input_is_refused(tmp_path, changes, message):
    with pytest.raises(ValueError, match=message):
        open_sweep(**{"folder": tmp_path, **changes})
    assert not (tmp_path / "CartPole-v1" / "sweeps" / "mine").exists()


@pytest.mark.parametrize("text", ["my thesis\n", "sigma: 0.1\n", ": [", "[measured]"])
def test_a_file_that_is_no_preset_is_not_replaced(tmp_path, text):
    path = tmp_path / "mine.yaml"
    path.write_text(text)
    with pytest.raises(ValueError, match=r"output .*mine.yaml exists already and is not a preset; choose another"):
        read_options([*make_arguments(tmp_path), "--output", str(path)], "")
    assert path.read_text() == text
    path.write_text("measured: 5\nsigma: 0.1\n")
    assert read_options([*make_arguments(tmp_path), "--output", str(path)], "")[0].output == str(path)


def test_a_log_of_completions_is_refused(tmp_path):
    words = ["--trainer", "hybrid", "--environment", "Pendulum-v1", "--algorithm", "aes_rl", "--mean_scale", "100"]
    with pytest.raises(ValueError, match=r"completion_log tells runs apart by .*, got order\.log"):
        read_options([*words, "--max_env_steps", "20000", "--completion_log", "order.log"], "")


def test_an_option_that_is_searched_twice_is_refused(tmp_path):
    _, config = read_options(make_arguments(tmp_path), "")
    with pytest.raises(ValueError, match=r"search sigma=log:0.3:0.4: sigma is given twice"):
        find_searched_options(config, ["sigma=log:0.1:0.2", "sigma=log:0.3:0.4"])


def test_a_method_without_search_space_is_refused(tmp_path):
    typed = {"strategy": "one_plus_one", "sigma": 0.1}
    with pytest.raises(
        ValueError, match="nothing to vary: every option of one_plus_one that has a search space was given a value"
    ):
        open_sweep(tmp_path, **typed)


def test_a_storage_that_is_no_sweeps_is_refused(tmp_path):
    import optuna

    url = f"sqlite:///{tmp_path}/own.db"
    optuna.create_study(study_name="mine", storage=url)
    with pytest.raises(ValueError, match="it holds the study 'mine', not a sweep"):
        open_sweep(tmp_path, storage=url)


def test_a_storage_of_another_optuna_is_refused(tmp_path):
    import optuna

    optuna.create_study(study_name="hebbes", storage=f"sqlite:///{tmp_path}/own.db")
    with closing(sqlite3.connect(tmp_path / "own.db")) as database, database:
        database.execute("UPDATE alembic_version SET version_num = 'v2.6.0.a'")
    with pytest.raises(ValueError, match=r"^storage sqlite:.*no longer compatible with the table schema"):
        open_sweep(tmp_path, storage=f"sqlite:///{tmp_path}/own.db")


def test_without_optuna_a_line_says_how_to_install_it(tmp_path, monkeypatch):
    monkeypatch.setattr("hebbes.programs.sweep.find_spec", lambda name: None)
    with pytest.raises(ValueError, match=r"sweep needs the package optuna; pip install 'optuna~=5.0.0'"):
        open_sweep(tmp_path)
    assert list(tmp_path.iterdir()) == []


@dataclass(frozen=True)
class SearchSettings(OpenAIESSettings):
    search_radius: float = option(0.5, "resembles the option `search` of a sweep")


class Search(OpenAIES):
    Settings = SearchSettings


def test_an_option_of_a_users_class_may_resemble_one_of_the_sweeps(tmp_path):
    _, study = open_sweep(tmp_path, strategy=f"{__name__}:Search", search_radius=0.25)
    assert study.config.settings.search_radius == 0.25


@dataclass(frozen=True)
class OwnMLP(MLP):
    sigma: float = option(0.5, "has the name of an option of the strategy")


def test_a_name_that_two_parts_have_is_refused_as_in_training(tmp_path):
    with pytest.raises(ValueError, match=r"sigma=log:0.1:1: sigma is an option of .*: give --openai_es.sigma or "):
        open_sweep(tmp_path, policy=f"{__name__}:OwnMLP", search="sigma=log:0.1:1")


def test_the_help_is_shown_whatever_else_is_wrong(capsys):
    with pytest.raises(SystemExit) as ended:
        read_options(["--trials", "0", "--help"], "")
    assert ended.value.code == 0 and "--finalists" in capsys.readouterr().out


@pytest.mark.parametrize("password", ["secret", "se/cr:et", "s@cret"])
def test_no_password_of_a_database_is_shown(password):
    assert hide_passwords(f"postgresql://me:{password}@host:5432/db") == "postgresql://me:***@host:5432/db"
    for word in ("sqlite:////tmp/a.db", "weights/a:b@c", "http://host:80/page"):
        assert hide_passwords(word) == word


def test_a_sweep_from_before_an_option_goes_on_if_the_option_has_its_default(tmp_path):
    *_, study = open_sweep(tmp_path)
    known = study._study.user_attrs["sweep"]
    study._study.set_user_attr("sweep", {name: each for name, each in known.items() if name != "max_episode_steps"})
    open_sweep(tmp_path)
    study._study.set_user_attr("sweep", {name: each for name, each in known.items() if name != "eval_episodes"})
    with pytest.raises(ValueError, match="eval_episodes is none there, and 2 here"):
        open_sweep(tmp_path)
