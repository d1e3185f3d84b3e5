"""Training on several bodies, from the command line to the files and the test after it."""

from dataclasses import replace
from importlib.util import find_spec

import numpy as np
import pytest

from hebbes.contracts.randomness import Purpose
from hebbes.environments.morphologies import SPECIES
from hebbes.evaluation.play import environment_for, play
from hebbes.files.policy_file import load_policy
from hebbes.options.command_line import parse_config, parse_configs
from hebbes.training.assembly import environment_spec, spaces
from hebbes.training.generation_loop import Trainer
from hebbes.training.prepare import prepare
from hebbes.training.run import execute
from tests.files.saved_policies import file_with, saved_policy
from tests.training.scripted_runs import outcome

TINY = ["--popsize", "4", "--generations", "3", "--max_episode_steps", "6", "--eval_episodes", "2", "--threads", "1"]
OFTEN = ["--eval_every", "1", "--checkpoint_every", "1", "--no_observation_normalization"]


def parse(folder, *flags, environment="Ant-v5"):
    files = ["--run_name", "run", "--folder", str(folder), "--test_episodes", "0"]
    return parse_config("static", ["--environment", environment, *TINY, *OFTEN, *files, *flags], "test")


def trained(config):
    (run,) = prepare(config)
    execute(run)
    return run.folder


def test_bodies_are_separated_by_spaces_or_commas(tmp_path):
    for given in (["none", "right"], ["none,right"]):
        assert parse(tmp_path, "--bodies", *given).bodies == ("none", "right")
    assert parse(tmp_path, "--bodies", "none").bodies == parse(tmp_path).bodies == ("none",)
    (tmp_path / "mine.yaml").write_text("bodies: left,mine.xml\n")
    assert parse(tmp_path, "--config", str(tmp_path / "mine.yaml")).bodies == ("left", "mine.xml")


@pytest.mark.parametrize("given", [["none", "none"], ["left,none,left"], []])
def test_bodies_must_differ(given, tmp_path):
    with pytest.raises(ValueError, match=r"^bodies must be at least one, each of them once, got"):
        parse(tmp_path, "--bodies", *given)


@pytest.mark.parametrize(
    ("environment", "flags", "reason"),
    [
        ("CartPole-v1", ["--bodies", "none", "right"], "bodies are for AntBulletEnv-v0 and Ant-v5; CartPole-v1 has"),
        ("Ant-v5", ["--bodies", "none,,right"], "no body and no file ''"),
        ("Ant-v5", ["--bodies", "none", "absent.xml"], "no body and no file 'absent.xml', known: none, left"),
        ("Ant-v5", ["--bodies", "left", "--env_kwargs", "{xml_file: ant.xml}"], "env_kwargs an xml_file"),
    ],
)
def test_every_body_is_tried_before_anything_is_written(environment, flags, reason, tmp_path):
    with pytest.raises(ValueError, match=reason):
        prepare(parse(tmp_path, *flags, environment=environment))
    assert list(tmp_path.iterdir()) == []


def test_bodies_whose_spaces_differ_are_refused(tmp_path):
    text = SPECIES["Ant-v5"].installed.read_text()
    (tmp_path / "weak.xml").write_text(text.replace('ctrlrange="-1.0 1.0"', 'ctrlrange="-0.5 0.5"', 1))
    config = parse(tmp_path, "--bodies", "none", str(tmp_path / "weak.xml"), "--backend", "gymnasium")
    with pytest.raises(ValueError, match=r"'weak.xml@[0-9a-f]{8}' has the spaces .*, but 'none' has"):
        spaces(environment_spec(config))


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The folder of a run in two bodies."""
    return trained(parse(tmp_path_factory.mktemp("whole"), "--bodies", "none,right"))


def test_the_policy_file_says_in_which_bodies_and_play_is_the_mean_over_them(whole):
    saved = load_policy(whole / "best.dat")
    assert saved.environment.bodies == ("none", "right")
    environment = environment_for(saved.environment)
    assert environment.backend == "gymnasium" and environment.bodies == ("none", "right")
    both = play(saved, environment, episodes=3, seed=1, threads=1, max_episode_steps=9)
    none, right = (
        play(saved, replace(environment, bodies=(body,)), episodes=3, seed=1, threads=1, max_episode_steps=9)
        for body in ("none", "right")
    )
    assert (none != right).all()
    np.testing.assert_allclose(both, (none + right) / 2)


def test_members_and_the_unperturbed_policy_are_evaluated_in_every_body(tmp_path, monkeypatch):
    (run,) = prepare(parse(tmp_path, "--bodies", "none,right", "--generations", "1"))
    seen, evaluate = {}, run.engine.evaluate

    def noted(population, context):
        seen[context.purpose] = evaluate(population, context)
        return seen[context.purpose]

    monkeypatch.setattr(run.engine, "evaluate", noted)
    row = Trainer(run, console=None).generation()
    training, evaluation = seen[Purpose.TRAINING], seen[Purpose.EVALUATION]
    assert training.returns.shape[1] == evaluation.returns.shape[1] == 2
    assert (training.returns[:, 0] != training.returns[:, 1]).all()
    assert row["return_max"] == pytest.approx(training.returns[:-1].sum(axis=1).max() / 2)
    assert row["eval_return"] == pytest.approx(evaluation.returns.sum() / evaluation.returns.size)
    assert row["env_steps"] == training.env_steps.sum() == 5 * 2 * 6
    run.engine.close()


def test_a_run_that_goes_on_is_the_run_never_stopped_in_the_same_bodies(whole, tmp_path, capsys):
    flags = ["--bodies", "none,right", "--observation_normalization"]
    expected = outcome(trained(parse(tmp_path / "whole", *flags)))
    folder = trained(parse(tmp_path, *flags, "--generations", "1"))
    again = ["--resume", str(folder), "--generations", "3"]
    with pytest.raises(ValueError, match=r"^bodies cannot change when a run goes on"):
        parse_configs("static", [*again, "--bodies", "none,left"], "test")
    (config,) = parse_configs("static", [*again, "--bodies", "none,right"], "test")
    assert outcome(trained(config)) == expected


@pytest.mark.parametrize("value", ["none", [], ["none", "none"], [3], None, {"none": 1}])
def test_bodies_of_a_file_that_make_no_sense_are_refused(value, tmp_path):
    def edit(header):
        header["environment"]["bodies"] = value

    with pytest.raises(ValueError, match="bodies must be"):
        load_policy(file_with(tmp_path / "a.dat", saved_policy(), edit))


def test_a_file_from_before_there_were_bodies_has_the_intact_one(tmp_path):
    path = file_with(tmp_path / "a.dat", saved_policy(), lambda header: header["environment"].pop("bodies"))
    assert load_policy(path).environment.bodies == ("none",)


@pytest.mark.parametrize("trainer", ["static", "hebbian"])
@pytest.mark.parametrize("environment", ["Ant-v5", "AntBulletEnv-v0"])
def test_the_presets_train_on_the_intact_and_one_damaged_ant(trainer, environment, tmp_path):
    if "Bullet" in environment and find_spec("pybullet") is None:
        pytest.skip("PyBullet is not installed")
    preset, usual = (
        parse_config(trainer, ["--environment", environment, *variant], "test")
        for variant in (["--preset", "damage"], [])
    )
    assert preset == replace(usual, bodies=("none", "right"), preset="damage")
    files = ["--folder", str(tmp_path), "--run_name", "run", "--test_episodes", "1", "--generations", "1"]
    tiny = ["--popsize", "2", "--max_episode_steps", "3", "--eval_episodes", "1", "--threads", "1"]
    folder = trained(parse_config(trainer, ["--environment", environment, "--preset", "damage", *tiny, *files], "test"))
    assert load_policy(folder / "best.dat").environment.bodies == ("none", "right")
