"""Whole runs on environments that are over in a moment."""

from dataclasses import replace

import numpy as np
import pytest

from contracts.randomness import Purpose
from reporting.metrics import METRICS, read_metrics
from reporting.video import VideoWriter
from rollouts.workers import WorkerError
from strategies.openai_es import OpenaiEsSettings
from training import loop, policy_file
from training.config import TrainConfig
from training.evaluation import environment_for, play, watch
from training.run import execute, prepare

SCRIPTED = "Scripted-v0"


@pytest.fixture
def config(tmp_path):
    """A run of five generations in which the return is the sum of the actions, at most 2 a step for 8 steps."""
    return TrainConfig(
        environment=SCRIPTED,
        imports=("tests.scripted",),
        env_kwargs={"rewards": [0.0], "truncate_at": 8, "action_weight": 1.0},
        policy="linear",
        bias=True,
        generations=5,
        threads=1,
        folder=str(tmp_path),
        run_name="run",
        eval_every=2,
        test_episodes=0,
        settings=OpenaiEsSettings(popsize=20, lr=0.05),
    )


def load(path):
    """A saved policy, whose environment's package may be imported."""
    return policy_file.load_policy(path, ["tests.scripted"])


def run(config):
    """Trains; returns the folder."""
    prepared = prepare(config)
    execute(prepared)
    return prepared.folder


def contexts_of(config):
    """Trains; returns every context that the engine was given, and the folder."""
    prepared = prepare(config)
    contexts, evaluate = [], prepared.engine.evaluate

    def spied(population, context):
        contexts.append(context)
        return evaluate(population, context)

    prepared.engine.evaluate = spied
    execute(prepared)
    return contexts, prepared.folder


def test_learns_and_leaves_every_file(config):
    folder = run(config)
    assert {path.name for path in folder.iterdir()} == {
        "best.dat", "latest.dat", "config.yaml", "command.txt", "metrics.csv", "learning_curve.png"
    }  # fmt: skip
    metrics = read_metrics(folder / "metrics.csv")
    assert list(metrics) == list(METRICS)
    assert metrics["generation"].tolist() == [1, 2, 3, 4, 5]
    assert metrics["env_steps"].tolist() == [168, 336, 504, 672, 840]  # 20 members and the unperturbed, 8 steps each
    assert metrics["return_mean"][-1] > metrics["return_mean"][0] + 2
    assert np.isnan(metrics["eval_return"]).tolist() == [True, False, True, False, False]


def test_best_is_what_scored_best_on_fresh_episodes(config):
    folder = run(replace(config, settings=OpenaiEsSettings(popsize=20, lr=3.0), generations=8))
    metrics, best = read_metrics(folder / "metrics.csv"), load(folder / "best.dat")
    assert best.provenance["score"] == np.nanmax(metrics["eval_return"]) == metrics["best_score"][-1]
    assert best.provenance["generation"] == metrics["generation"][np.nanargmax(metrics["eval_return"])]
    assert load(folder / "latest.dat").provenance["generation"] == 8


def test_no_two_evaluations_meet_the_same_episodes(config):
    contexts, _ = contexts_of(replace(config, eval_every=2))
    evaluations = [context.episodes for context in contexts if context.purpose is Purpose.EVALUATION]
    assert len(evaluations) == len(set(evaluations)) == 3  # after generations 2, 4 and 5
    training = [episode for context in contexts if context.purpose is Purpose.TRAINING for episode in context.episodes]
    assert training == [0, 1, 2, 3, 4]


def test_a_members_fitness_is_its_mean_over_episodes_that_never_come_again(config):
    contexts, folder = contexts_of(replace(config, episodes_per_member=3, generations=2))
    training = [context.episodes for context in contexts if context.purpose is Purpose.TRAINING]
    assert training == [(0, 1, 2), (3, 4, 5)]
    assert read_metrics(folder / "metrics.csv")["env_steps"].tolist() == [504, 1008]


def test_a_score_below_zero_is_kept_too(config):
    folder = run(replace(config, env_kwargs={"rewards": [-5.0], "truncate_at": 3}, generations=1))
    assert load(folder / "best.dat").provenance["score"] == -15


def test_the_same_seed_gives_the_same_files_on_any_engine(config, tmp_path):
    folders = [
        run(replace(config, run_name="a", threads=1)),
        run(replace(config, run_name="b", threads=3, engine="in_process")),
        run(replace(config, run_name="c", threads=2, engine="workers")),
    ]
    weights = [load(folder / "latest.dat").weights for folder in folders]
    assert np.array_equal(weights[0], weights[1])
    assert np.array_equal(weights[0], weights[2])
    timeless = [name for name in METRICS if "second" not in name]
    for name in timeless:
        columns = [read_metrics(folder / "metrics.csv")[name] for folder in folders]
        assert np.array_equal(columns[0], columns[1], equal_nan=True)
        assert np.array_equal(columns[0], columns[2], equal_nan=True)
    other = run(replace(config, run_name="d", seed=1))
    assert not np.array_equal(load(other / "latest.dat").weights, weights[0])


def test_the_rank_of_the_unperturbed_policy_counts_who_beat_it(config):
    folder = run(replace(config, env_kwargs={"truncate_at": 3}, generations=1))
    metrics = read_metrics(folder / "metrics.csv")
    assert (metrics["unperturbed_return"][0], metrics["unperturbed_rank"][0]) == (3, 1)  # all tie: nobody beats it


def test_the_env_step_budget_ends_the_run(config):
    folder = run(replace(config, max_env_steps=400))
    assert read_metrics(folder / "metrics.csv")["env_steps"].tolist() == [168, 336, 504]


def test_observation_statistics_grow_are_saved_and_are_carried_on(config):
    folder = run(replace(config, observation_normalization=True))
    saved = load(folder / "latest.dat")
    assert saved.buffers["observation_count"].tolist() == [840]
    # the second observation is the env step acted on, 0 to 7
    assert saved.buffers["observation_mean"][1] == pytest.approx(3.5)
    assert saved.buffers["observation_std"][1] == pytest.approx(np.arange(8).std(), rel=1e-5)
    again = replace(config, observation_normalization=True, run_name="again", generations=1)
    on = run(replace(again, init_from=str(folder / "latest.dat")))
    assert load(on / "latest.dat").buffers["observation_count"].tolist() == [1008]


def test_starts_from_a_saved_policy(config):
    folder = run(config)
    settings = OpenaiEsSettings(popsize=2, lr=1e-9)
    start = str(folder / "latest.dat")
    on = run(replace(config, run_name="on", generations=1, init_from=start, settings=settings))
    assert load(on / "latest.dat").weights == pytest.approx(load(folder / "latest.dat").weights)


def test_a_policy_of_another_network_or_other_statistics_is_refused_before_anything_is_written(config, tmp_path):
    start = str(run(config) / "latest.dat")
    for changes, expected in [
        ({"bias": False}, "init_from .*latest.dat holds .*Linear"),
        ({"policy": "mlp"}, "these options make .*Mlp"),
        ({"observation_normalization": True}, "was trained without observation_normalization, which is on here"),
    ]:
        with pytest.raises(ValueError, match=expected):
            prepare(replace(config, init_from=start, run_name="refused", **changes))
    assert {path.name for path in tmp_path.rglob("*") if path.is_dir()} == {SCRIPTED, "run"}


def test_an_existing_folder_is_refused_and_left_alone(config):
    folder = run(config)
    before = {path: path.read_bytes() for path in folder.iterdir()}
    with pytest.raises(ValueError, match=r"run folder .*run exists already; choose another --run_name or --folder"):
        prepare(config)
    assert {path: path.read_bytes() for path in folder.iterdir()} == before


def test_a_folder_that_cannot_be_made_is_refused(config, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match=r"cannot write to run folder .*: Not a directory"):
        prepare(replace(config, folder=str(tmp_path / "file")))


def test_failed_members_are_counted_and_the_run_goes_on(config):
    folder = run(replace(config, env_kwargs={"nan_at": 3, "truncate_at": 8}, generations=2))
    metrics = read_metrics(folder / "metrics.csv")
    assert metrics["failed_members"].tolist() == [20, 20]
    assert np.isnan(metrics["return_mean"]).all() and np.isnan(metrics["unperturbed_rank"]).all()
    assert load(folder / "best.dat").provenance["score"] is None


def test_workers_that_keep_dying_leave_the_last_complete_generation(config, monkeypatch):
    monkeypatch.setattr(loop, "has_time_limit", lambda environment: True)
    script = {"rewards": [0.0], "action_weight": 1.0, "truncate_at": 40, "exit_at": 30}
    dying = prepare(replace(config, env_kwargs=script, max_episode_steps=20, eval_every=3, engine="workers"))
    with pytest.raises(WorkerError, match="workers died"):  # the third generation's evaluation has no cap of 20 steps
        execute(dying)
    saved = load(dying.folder / "latest.dat")
    assert saved.provenance["generation"] == 3
    assert len(read_metrics(dying.folder / "metrics.csv")["generation"]) == 2


def test_an_environment_without_end_is_evaluated_with_the_cap_of_its_training(config):
    endless = replace(config, env_kwargs={"rewards": [1.0]}, max_episode_steps=6, generations=1, test_episodes=1)
    assert read_metrics(run(endless) / "metrics.csv")["eval_return"].tolist() == [6]


def test_evaluation_depends_on_the_seed_alone(config):
    saved = load(run(config) / "best.dat")
    environment = environment_for(saved.environment)
    options = {"episodes": 7, "seed": 3}
    alone = play(saved, environment, threads=1, **options)
    assert np.array_equal(play(saved, environment, threads=3, **options), alone)
    assert np.array_equal(play(saved, environment, threads=1, episodes=3, seed=3), alone[:3])
    assert not np.array_equal(play(saved, environment, threads=1, episodes=7, seed=4), alone)


def test_training_wrappers_join_an_evaluation_only_when_asked_for(config):
    stopping = replace(config, env_kwargs={"rewards": [-1.0], "truncate_at": 8}, early_stop_negative_streak=3)
    saved = load(run(stopping) / "best.dat")
    for training_wrappers, expected in ((False, -8), (True, -4)):
        environment = environment_for(saved.environment, training_wrappers=training_wrappers)
        assert play(saved, environment, episodes=1, seed=0, threads=1).tolist() == [expected]


def test_an_episode_that_is_filmed_is_the_one_that_is_played(config, tmp_path):
    script = {"rewards": [0.0], "truncate_at": 8, "action_weight": 1.0}
    saved = load(run(replace(config, env_kwargs=script)) / "best.dat")
    environment = environment_for(saved.environment)
    returns = play(saved, environment, episodes=3, seed=0, threads=1)
    with VideoWriter(tmp_path / "film.mp4", 30) as video:
        filmed = [watch(saved, environment, episode=k, seed=0, video=video) for k in range(3)]
    assert filmed == pytest.approx(returns, rel=1e-12)
