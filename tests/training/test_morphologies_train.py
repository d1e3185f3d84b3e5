"""Training in several morphologies: the command line, the files and the evaluation."""

from dataclasses import replace
from importlib.util import find_spec

import numpy as np
import pytest

from hebbes.contracts.randomness import Purpose
from hebbes.environments.morphologies import SPECIES
from hebbes.environments.trial import find_spaces
from hebbes.evaluation.play import make_evaluation_spec, play
from hebbes.files.policy_file import read_policy_file
from hebbes.options.command_line import parse_config
from hebbes.recording.metrics import read_metrics
from hebbes.training.agent_and_environment import make_environment_spec
from hebbes.training.prepare import prepare
from hebbes.training.run import execute
from tests.files.saved_policies import make_saved_policy, write_forged_file
from tests.training.scripted_runs import meddle, read_outcome, train

TINY = ["--popsize", "4", "--generations", "3", "--max_episode_steps", "6", "--eval_episodes", "2", "--threads", "1"]
OFTEN = ["--eval_every", "1", "--checkpoint_every", "1", "--no_observation_normalization"]


def parse(folder, *flags, environment="Ant-v5"):
    files = ["--run_name", "run", "--folder", str(folder), "--test_episodes", "0"]
    return parse_config("static", ["--environment", environment, *TINY, *OFTEN, *files, *flags], "test")


def test_morphologies_are_separated_by_spaces_or_commas(tmp_path):
    for given in (["none", "right"], ["none,right"]):
        assert parse(tmp_path, "--morphologies", *given).environment.morphologies == ("none", "right")
    for given in (["--morphologies", "none"], []):
        assert parse(tmp_path, *given).environment.morphologies == ("none",)
    (tmp_path / "mine.yaml").write_text("morphologies: left,mine.xml\n")
    assert parse(tmp_path, "--config", str(tmp_path / "mine.yaml")).environment.morphologies == ("left", "mine.xml")


@pytest.mark.parametrize("given", [["none", "none"], ["left,none,left"], []])
def test_morphologies_must_differ(given, tmp_path):
    with pytest.raises(ValueError, match=r"^morphologies must be at least one, each of them once, got"):
        parse(tmp_path, "--morphologies", *given)


@pytest.mark.parametrize(
    ("environment", "flags", "reason"),
    [
        (
            "CartPole-v1",
            ["--morphologies", "none", "right"],
            "CartPole-v1 has only the morphology 'none', got",
        ),
        ("Ant-v5", ["--morphologies", "none,,right"], "no morphology and no file ''"),
        (
            "Ant-v5",
            ["--morphologies", "none", "absent.xml"],
            "no morphology and no file 'absent.xml', known: none, left",
        ),
        ("Ant-v5", ["--morphologies", "left", "--env_kwargs", "{xml_file: ant.xml}"], "env_kwargs has an xml_file"),
    ],
)
def test_every_morphology_is_tried_before_anything_is_written(environment, flags, reason, tmp_path):
    with pytest.raises(ValueError, match=reason):
        prepare(parse(tmp_path, *flags, environment=environment))
    assert list(tmp_path.iterdir()) == []


def test_morphologies_whose_spaces_differ_are_refused(tmp_path):
    text = SPECIES["Ant-v5"].installed.read_text()
    (tmp_path / "weak.xml").write_text(text.replace('ctrlrange="-1.0 1.0"', 'ctrlrange="-0.5 0.5"', 1))
    config = parse(tmp_path, "--morphologies", "none", str(tmp_path / "weak.xml"), "--backend", "gymnasium")
    with pytest.raises(ValueError, match=r"'weak.xml@[0-9a-f]{8}' has the spaces .*, but 'none' has"):
        find_spaces(make_environment_spec(config))


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The folder of a run in two morphologies."""
    return train(parse(tmp_path_factory.mktemp("whole"), "--morphologies", "none,right"))


@pytest.mark.slow
def test_the_policy_file_names_the_morphologies_and_play_is_the_mean_over_them(whole):
    saved = read_policy_file(whole / "best.dat")
    assert saved.environment.morphologies == ("none", "right")
    environment = make_evaluation_spec(saved.environment)
    assert environment.backend == "gymnasium" and environment.morphologies == ("none", "right")
    both = play(saved, environment, episodes=3, seed=1, threads=1, max_episode_steps=9).fitness
    none, right = (
        play(
            saved, replace(environment, morphologies=(morphology,)), episodes=3, seed=1, threads=1, max_episode_steps=9
        ).fitness
        for morphology in ("none", "right")
    )
    assert (none != right).all()
    np.testing.assert_allclose(both, (none + right) / 2)


def test_members_and_the_mean_policy_are_evaluated_in_every_morphology(tmp_path):
    (run,) = prepare(parse(tmp_path, "--morphologies", "none,right", "--generations", "1"))
    seen = {}
    meddle(run, lambda context, rollouts: seen.update({context.purpose: rollouts}))
    execute(run)
    row = {name: column[0] for name, column in read_metrics(run.folder / "metrics.csv").items()}
    training, evaluation = seen[Purpose.TRAINING], seen[Purpose.EVALUATION]
    assert training.returns.shape[1] == evaluation.returns.shape[1] == 2
    assert (training.returns[:, 0] != training.returns[:, 1]).all()
    assert row["return_max"] == pytest.approx(training.returns[:-1].sum(axis=1).max() / 2)
    assert row["eval_return"] == pytest.approx(evaluation.returns.sum() / evaluation.returns.size)
    assert row["env_steps"] == training.env_steps.sum() == 5 * 2 * 6


@pytest.mark.slow
def test_a_resumed_run_is_the_run_never_stopped_in_the_same_morphologies(whole, tmp_path, capsys):
    flags = ["--morphologies", "none,right", "--observation_normalization"]
    expected = read_outcome(train(parse(tmp_path / "whole", *flags)))
    folder = train(parse(tmp_path, *flags, "--generations", "1"))
    again = ["--resume", str(folder), "--generations", "3"]
    with pytest.raises(ValueError, match=r"^morphologies cannot change when a run is resumed"):
        parse_config("static", [*again, "--morphologies", "none,left"], "test")
    config = parse_config("static", [*again, "--morphologies", "none,right"], "test")
    assert read_outcome(train(config)) == expected


@pytest.mark.parametrize("value", ["none", [], ["none", "none"], [3], None, {"none": 1}])
def test_invalid_morphologies_in_a_file_are_refused(value, tmp_path):
    def edit(header):
        header["environment"]["morphologies"] = value

    with pytest.raises(ValueError, match="morphologies must be"):
        read_policy_file(write_forged_file(tmp_path / "a.dat", make_saved_policy(), edit))


def test_a_file_without_morphologies_has_the_intact_one(tmp_path):
    path = write_forged_file(
        tmp_path / "a.dat", make_saved_policy(), lambda header: header["environment"].pop("morphologies")
    )
    assert read_policy_file(path).environment.morphologies == ("none",)


@pytest.mark.slow
@pytest.mark.parametrize("trainer", ["static", "hebbian"])
@pytest.mark.parametrize("environment", ["Ant-v5", "AntBulletEnv-v0"])
def test_the_presets_train_on_the_intact_and_one_damaged_ant(trainer, environment, tmp_path):
    if "Bullet" in environment and find_spec("pybullet") is None:
        pytest.skip("PyBullet is not installed")
    preset, usual = (
        parse_config(trainer, ["--environment", environment, *variant], "test").as_options()
        for variant in (["--preset", "damage"], [])
    )
    distance = {"healthy_reward": 0, "ctrl_cost_weight": 0, "contact_cost_weight": 0}  # of Bullet's ant it is anyway
    rewards = {"env_kwargs": distance, "reward_shift": 0.0} if environment == "Ant-v5" else {}
    assert preset == {**usual, "morphologies": ["none", "right"], **rewards}
    files = ["--folder", str(tmp_path), "--run_name", "run", "--test_episodes", "1", "--generations", "1"]
    tiny = ["--popsize", "2", "--max_episode_steps", "3", "--eval_episodes", "1", "--threads", "1"]
    folder = train(parse_config(trainer, ["--environment", environment, "--preset", "damage", *tiny, *files], "test"))
    assert read_policy_file(folder / "best.dat").environment.morphologies == ("none", "right")
