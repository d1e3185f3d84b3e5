"""Every kind of space trains for a generation, is tested, saved, evaluated, resumed and started from."""

from dataclasses import replace

import numpy as np
import pytest

from hebbes.environments.make_batch_env import make_batch_env
from hebbes.evaluation.play import make_evaluation_spec, play
from hebbes.files.policy_file import read_policy_file
from hebbes.options.command_line import parse_config
from hebbes.options.evaluation import EvaluateConfig
from hebbes.programs.evaluation_entries import load_entries
from hebbes.recording.metrics import read_metrics
from hebbes.reporting.video import film_episode
from hebbes.training.prepare import prepare
from hebbes.training.run import execute
from tests.files.saved_policies import act
from tests.many_spaces import ACTIONS, OBSERVATIONS

IMPORT = "tests.many_spaces"
TINY = {
    "generations": 1,
    "population_size": 4,
    "eval_episodes": 1,
    "test_episodes": 1,
    "threads": 1,
    "run_name": "tiny",
    "hidden_sizes": 4,
}

CASES = {
    "dict": ("static", "real", {"policy": "lstm", "frame_stack": 2}, "frame_stack clip_action", (18,), 2),
    "nested": ("static", "multi", {"policy": "mlp"}, "choose_action", (7,), 9),
    "tuple": ("hebbian", "binary", {}, "choose_action", (7,), 3),
    "binary": ("static", "counted", {"policy": "gru"}, "choose_action", (6,), 3),
    "multi": ("static", "whole", {}, "choose_action", (11,), 260),
    "counted": ("hebbian", "multi_matrix", {"frame_stack": 2}, "one_hot frame_stack choose_action", (8,), 11),
    "byte": ("static", "byte", {}, "one_hot", (4,), 3),
    "half": ("static", "real_number", {"action_bounds": "rescale"}, "flatten_action rescale_action", (3,), 1),
    "vector": ("static", "real_matrix", {"settle_steps": 1}, "settle flatten_action clip_action", (3,), 6),
    "channels_first": (
        "static",
        "multi",
        {"crop": (0, 1, 2, 0), "grayscale": True, "resize": (18, 17), "frame_stack": 2, "virtual_batch": 3},
        "channels_last crop grayscale resize frame_stack scale choose_action",
        (18, 17, 2),
        9,
    ),
    "small_image": ("static", "half", {}, "scale clip_action", (8, 6, 3), 2),
}
"""Observations -> trainer, actions, options, expected wrappers, and the policy's observation shape and outputs."""


def make_config(folder, trainer, observations, actions, **options):
    """Options of a tiny run, from the command line."""
    typed = {"environment": "tests.many_spaces:Spaces-v0", "folder": folder, **TINY, **options}
    flags = [f"--env_kwargs={{observations: {observations}, actions: {actions}}}"]
    for name, value in typed.items():
        if isinstance(value, bool):
            flags.append(f"--{name}")
        else:
            flags += [f"--{name}", *map(str, value if isinstance(value, tuple) else (value,))]
    return parse_config(trainer, flags, "")


def train(made):
    (run,) = prepare(made)
    execute(run)
    return run


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The folder of a run that observes a Dict and acts in a MultiDiscrete."""
    return train(make_config(tmp_path_factory.mktemp("runs"), "static", "dict", "multi")).folder


@pytest.mark.slow
@pytest.mark.parametrize("observations", CASES)
def test_trains_is_tested_saved_evaluated_resumed_and_started_from(observations, tmp_path):
    trainer, actions, options, wrappers, shape, outputs = CASES[observations]
    first = make_config(tmp_path, trainer, observations, actions, observation_normalization=True, **options)
    assert (first.environment.id, first.environment.imports) == ("Spaces-v0", (IMPORT,))
    run = train(first)
    saved = read_policy_file(run.folder / "best.dat", [IMPORT])
    assert " ".join(wrapper.name for wrapper in saved.environment.wrappers) == wrappers
    assert (saved.policy.observation_shape, saved.policy.num_outputs) == (shape, outputs)
    assert saved.buffers["observation_mean"].shape == shape
    returns = play(saved, make_evaluation_spec(saved.environment), episodes=2, seed=0, threads=1).fitness
    assert np.isfinite(returns).all()
    train(run.config.change(trainer_options={"generations": 2}, run={"resume": str(run.folder)}))
    metrics = read_metrics(run.folder / "metrics.csv")
    assert metrics["generation"].tolist() == [1, 2] and metrics["failed_members"].tolist() == [0, 0]
    start = {"init_from": str(run.folder / "best.dat"), "run_name": "again"}
    (begun,) = prepare(first.change(run=start))
    best = read_policy_file(run.folder / "best.dat", [IMPORT])  # may be from the resumed run
    np.testing.assert_array_equal(begun.trainer.policy[0], best.weights)


def test_every_space_of_the_table_is_trained():
    assert set(CASES) == set(OBSERVATIONS) - {"text"}
    assert {actions for _, actions, *_ in CASES.values()} == set(ACTIONS) - {"endless", "huge", "dict"}


@pytest.mark.slow
@pytest.mark.parametrize("actions", ["multi", "binary"])
def test_the_best_of_whole_numbers_are_learned(actions, tmp_path):
    """The reward is the sum of the action, whose maximum is known from the space."""
    greatest = {"multi": 1 + 1 + 10, "binary": 3}[actions]
    learning = {
        "population_size": 60,
        "generations": 30,
        "sigma": 0.5,
        "learning_rate": 0.3,
        "eval_every": 30,
        "test_episodes": 0,
    }
    run = train(
        make_config(tmp_path, "static", "vector", actions, policy="mlp", bias=True, optimizer="adam", **learning)
    )
    saved = read_policy_file(run.folder / "best.dat", [IMPORT])
    returns = play(saved, make_evaluation_spec(saved.environment), episodes=4, seed=1, threads=1).fitness
    assert returns.mean() >= 0.9 * 4 * greatest


@pytest.mark.slow
def test_two_workers_find_the_same(tmp_path):
    """They import the package that the name brought in."""
    found = []
    for threads in (1, 2):
        options = {"threads": threads, "engine": "workers", "test_episodes": 0}
        run = train(make_config(tmp_path / str(threads), "static", "nested", "multi", **options))
        found.append((run.folder / "best.dat").read_bytes())
    assert found[0] == found[1]


def test_a_video_of_whole_numbers_is_written(folder, tmp_path):
    saved = read_policy_file(folder / "best.dat", [IMPORT])
    film_episode(tmp_path / "a.mp4", saved, make_evaluation_spec(saved.environment), seed=0, max_episode_steps=None)
    assert (tmp_path / "a.mp4").stat().st_size > 0


def test_a_file_with_our_wrappers_needs_no_import(tmp_path):
    """An EnvPool id with a Dict to observe and a Box of integers to act in."""
    options = {**TINY, "environment": "RubiksCube-partly-scrambled-v0", "folder": tmp_path, "max_episode_steps": 3}
    run = train(parse_config("static", [part for k, v in options.items() for part in (f"--{k}", str(v))], ""))
    saved = read_policy_file(run.folder / "best.dat")
    assert [wrapper.name for wrapper in saved.environment.wrappers] == ["choose_action"]
    assert saved.policy.num_outputs == 6 + 1 + 3
    environment = make_evaluation_spec(saved.environment)
    assert environment.backend == "envpool"
    assert np.isfinite(play(saved, environment, episodes=1, seed=0, threads=1, max_episode_steps=3).fitness).all()


def test_a_loaded_policy_gives_what_the_wrapped_environment_takes(folder):
    saved = read_policy_file(folder / "best.dat", [IMPORT])
    env = make_batch_env(saved.environment, [0, 1], threads=1, training=False)
    outputs = act(saved, env.start(0))
    assert outputs.shape == (2, 2 + 3 + 4)
    step = env.step(outputs, np.arange(2))
    expected = [
        scores[:2].argmax() + (scores[2:5].argmax() - 1) + (scores[5:].argmax() + 7) for scores in outputs
    ]  # the starts of the space are 0, -1 and 7; the reward is the action's sum
    assert step.rewards.tolist() == expected


@pytest.mark.parametrize(
    ("observations", "actions", "options", "complaint"),
    [
        ("text", "real", {}, r"observation space Text.* at \['told'\]; supported are .*--gymnasium_wrappers"),
        ("vector", "dict", {}, "action space Dict.*; supported are .*--gymnasium_wrappers"),
        ("vector", "endless", {}, "bounded integers, got Box.*--gymnasium_wrappers"),
        ("vector", "huge", {}, "at most 32768 values in total.*--gymnasium_wrappers"),
        ("vector", "multi", {"action_bounds": "tanh"}, "action_bounds 'tanh' needs Box actions of real numbers"),
        ("vector", "whole", {"action_bounds": "rescale"}, "action_bounds 'rescale' needs Box actions of real numbers"),
        ("vector", "counted", {"settle_steps": 1}, "settle_steps needs Box or MultiBinary actions .* got Discrete"),
        ("vector", "multi", {"fire_reset": True}, "fire_reset, for Atari, needs Discrete actions"),
        ("small_image", "multi", {"policy": "cnn"}, "at least 16 x 16 pixels; --policy mlp takes any"),
    ],
)
def test_what_is_refused_has_a_way_out(observations, actions, options, complaint, tmp_path):
    with pytest.raises(ValueError, match=complaint) as error:
        prepare(make_config(tmp_path, "static", observations, actions, **options))
    assert "\n" not in str(error.value)
    assert not list(tmp_path.iterdir())


def test_evaluation_takes_a_package_with_the_name(folder):
    paths = {"path_weights": (str(folder / "best.dat"),), "imports": (IMPORT,)}
    (entry,) = load_entries(EvaluateConfig(**paths, environment=f"{IMPORT}:Spaces-v0"))
    assert entry.environment == replace(entry.saved.environment, backend="gymnasium")
    assert (entry.environment.environment, entry.environment.imports) == ("Spaces-v0", (IMPORT,))
    with pytest.raises(ValueError, match="but the environment has"):
        load_entries(EvaluateConfig(**paths, environment="CartPole-v1"))


def test_a_run_resumes_with_the_package_that_its_name_brought(folder):
    with pytest.raises(ValueError, match=f"needs code from the module '{IMPORT}'.*--import {IMPORT}"):
        parse_config("static", ["--resume", str(folder)], "")
    resumed = parse_config("static", ["--resume", str(folder), "--import", IMPORT], "")
    assert (resumed.environment.id, resumed.environment.imports) == ("Spaces-v0", (IMPORT,))
