"""Whole runs on environments with very short episodes."""

from dataclasses import asdict, replace

import numpy as np
import pytest
import torch
from matplotlib.image import imread

from hebbes.contracts.randomness import Purpose
from hebbes.files import policy_file
from hebbes.options.evaluation import EvaluateConfig
from hebbes.programs.evaluation_entries import load_entries
from hebbes.recording.metrics import METRICS, read_metrics
from hebbes.training.prepare import prepare
from hebbes.training.run import execute
from tests.training.scripted_runs import change, make_config, make_scripted_config, meddle, train

SCRIPTED = "Scripted-v0"
OF_RAY = {"nodes", "workers", "chunks_outstanding", "chunks_sent_again"}
OF_HYBRIDS = {"episode", "return", "episode_length", "rl_return_mean", "es_return_mean"}
OF_HYBRIDS |= {"critic_loss", "q_mean", "critic_steps", "actor_steps", "replay_size"}
OF_HYBRIDS |= {"individual", "is_rl", "rl_share", "mean_share", "success_rate", "mean_policy_lag"}
OF_HYBRIDS |= {"mean_policy_env_steps", "rl_parent_share", "work_seconds", "job_wait_seconds"}


@pytest.fixture
def config(tmp_path):
    """Options of five generations, whose return is the sum of the actions, at most 2 per env step for 8 env steps."""
    return make_config(
        **{"environment": SCRIPTED, "import": ("tests.scripted",), "folder": str(tmp_path), "run_name": "run"},
        **{"env_kwargs": {"rewards": [0.0], "truncate_at": 8, "action_weight": 1.0}, "threads": 1},
        **{"policy": "linear", "bias": True, "population_size": 20, "learning_rate": 0.05},
        **{"generations": 5, "eval_every": 2, "test_episodes": 0},
    )


def load(path):
    """A saved policy. The package of its environment may be imported."""
    return policy_file.read_policy_file(path, ["tests.scripted"])


def record_contexts(config):
    """Trains; returns every context that the engine was given, and the folder."""
    (prepared,) = prepare(config)
    contexts = []
    meddle(prepared, lambda context, rollouts: contexts.append(context))
    execute(prepared)
    return contexts, prepared.folder


@pytest.mark.usefixtures("drawn_curves")
def test_learns_and_leaves_every_file(config):
    folder = train(config)
    assert {path.name for path in folder.iterdir()} == {
        "best.dat", "latest.dat", "config.yaml", "command.txt", "metrics.csv", "learning_curve.png", "checkpoint"
    }  # fmt: skip
    assert imread(folder / "learning_curve.png").shape == (660, 960, 4)
    metrics = read_metrics(folder / "metrics.csv")
    assert list(metrics) == [name for name in METRICS if name not in OF_HYBRIDS | OF_RAY]
    assert metrics["generation"].tolist() == [1, 2, 3, 4, 5]
    assert metrics["env_steps"].tolist() == [
        168,
        336,
        504,
        672,
        840,
    ]  # 20 members and the mean policy, 8 env steps each
    assert metrics["return_mean"][-1] > metrics["return_mean"][0] + 2
    assert np.isnan(metrics["eval_return"]).tolist() == [True, False, True, False, False]


def test_best_is_what_scored_best_on_fresh_episodes(config):
    folder = train(change(config, learning_rate=3.0, generations=8))
    metrics, best = read_metrics(folder / "metrics.csv"), load(folder / "best.dat")
    assert best.provenance["score"] == np.nanmax(metrics["eval_return"]) == metrics["best_score"][-1]
    assert best.provenance["generation"] == metrics["generation"][np.nanargmax(metrics["eval_return"])]
    assert load(folder / "latest.dat").provenance["generation"] == 8


def test_no_two_evaluations_meet_the_same_episodes(config):
    contexts, _ = record_contexts(change(config, eval_every=2))
    evaluations = [context.episodes for context in contexts if context.purpose is Purpose.EVALUATION]
    assert len(evaluations) == len(set(evaluations)) == 3  # after generations 2, 4 and 5
    training = [episode for context in contexts if context.purpose is Purpose.TRAINING for episode in context.episodes]
    assert training == [0, 1, 2, 3, 4]


def test_a_members_fitness_is_its_mean_over_episodes_that_never_come_again(config):
    contexts, folder = record_contexts(change(config, episodes_per_member=3, generations=2))
    training = [context.episodes for context in contexts if context.purpose is Purpose.TRAINING]
    assert training == [(0, 1, 2), (3, 4, 5)]
    assert read_metrics(folder / "metrics.csv")["env_steps"].tolist() == [504, 1008]


@pytest.mark.parametrize(
    ("episode_seeds", "pair_differs", "mean_policy_differs"),
    [("common", False, False), ("paired", False, True), ("independent", True, True)],
)
def test_start_states_are_shared_as_episode_seeds_says(tmp_path, episode_seeds, pair_differs, mean_policy_differs):
    # almost without noise, so that returns differ by the start states that members observe
    options = {"policy": "mlp", "hidden_sizes": (4,), "sigma": 1e-6, "population_size": 2, "generations": 1}
    row = read_metrics(train(make_scripted_config(tmp_path, episode_seeds=episode_seeds, **options)) / "metrics.csv")
    assert (row["return_std"][0] > 1e-3) == pair_differs
    assert (abs(row["return_mean"][0] - row["mean_policy_return"][0]) > 1e-3) == mean_policy_differs


def test_members_see_observations_normalized_by_the_statistics_of_the_generations_before(config):
    contexts, _ = record_contexts(change(config, observation_normalization=True, generations=3))
    training = [context.buffers for context in contexts if context.purpose is Purpose.TRAINING]
    assert [int(buffers["observation_count"][0]) for buffers in training] == [0, 168, 336]
    assert (training[0]["observation_mean"] == 0).all() and (training[0]["observation_std"] == 1).all()
    evaluated = [context.buffers for context in contexts if context.purpose is Purpose.EVALUATION]
    for name in ("observation_mean", "observation_std"):
        assert not np.array_equal(training[1][name], training[0][name])
        assert not np.array_equal(evaluated[-1][name], training[-1][name])  # it has those of the last generation too


def test_another_seed_starts_with_other_weights(config):
    weights = []
    for seed in (1, 2):
        (run,) = prepare(change(config, policy="mlp", hidden_sizes=(4,), seed=seed, run_name=f"seed{seed}"))
        weights.append(run.trainer.policy[0])
        run.close()
    assert not np.array_equal(*weights)


def test_a_score_below_zero_is_kept_too(config):
    folder = train(change(config, env_kwargs={"rewards": [-5.0], "truncate_at": 3}, generations=1))
    assert load(folder / "best.dat").provenance["score"] == -15


def test_the_same_seed_gives_the_same_files_on_any_engine(config, tmp_path):
    folders = [
        train(change(config, run_name="a", threads=1)),
        train(change(config, run_name="b", threads=3, engine="in_process")),
        train(change(config, run_name="c", threads=2, engine="workers")),
    ]
    weights = [load(folder / "latest.dat").weights for folder in folders]
    assert np.array_equal(weights[0], weights[1])
    assert np.array_equal(weights[0], weights[2])
    timeless = [name for name in read_metrics(folders[0] / "metrics.csv") if "second" not in name]
    for name in timeless:
        columns = [read_metrics(folder / "metrics.csv")[name] for folder in folders]
        assert np.array_equal(columns[0], columns[1], equal_nan=True)
        assert np.array_equal(columns[0], columns[2], equal_nan=True)
    other = train(change(config, run_name="d", seed=1))
    assert not np.array_equal(load(other / "latest.dat").weights, weights[0])


def test_observation_statistics_grow_are_saved_and_are_carried_on(config):
    folder = train(change(config, observation_normalization=True))
    saved = load(folder / "latest.dat")
    assert saved.buffers["observation_count"].tolist() == [840]
    # the second observation is the env step acted on, 0 to 7
    assert saved.buffers["observation_mean"][1] == pytest.approx(3.5)
    assert saved.buffers["observation_std"][1] == pytest.approx(np.arange(8).std(), rel=1e-5)
    settings = {"observation_normalization": True, "observation_std_min": 50.0, "generations": 1}
    on = train(change(config, run_name="again", init_from=str(folder / "latest.dat"), **settings))
    assert load(on / "latest.dat").buffers["observation_count"].tolist() == [1008]
    assert load(on / "latest.dat").buffers["observation_std"].tolist() == [50.0, 50.0]


def test_a_policy_that_has_seen_no_observation_yet_is_normalized_too(config):
    settings = {"observation_normalization": True, "keep_every": 1, "generations": 1}
    start = train(change(config, **settings)) / "kept" / "00000000.dat"
    assert load(start).buffers["observation_count"].tolist() == [0]
    with pytest.raises(ValueError, match="was trained with observation_normalization, which is off here"):
        prepare(change(config, init_from=str(start), run_name="off"))
    on = train(change(config, **settings, init_from=str(start), run_name="on"))
    assert load(on / "latest.dat").buffers["observation_count"].tolist() == [168]


def test_starts_from_a_saved_policy(config):
    folder = train(config)
    settings = {"population_size": 2, "learning_rate": 1e-9}
    start = str(folder / "latest.dat")
    on = train(change(config, run_name="on", generations=1, init_from=start, **settings))
    assert load(on / "latest.dat").weights == pytest.approx(load(folder / "latest.dat").weights)


@pytest.mark.parametrize(
    ("trainer", "policy", "there", "here"),
    [
        ("static", "mlp", {"initialization": "pytorch"}, {"initialization": "xavier"}),
        ("hebbian", "hebbian", {"distribution": "uniform"}, {"distribution": "normal"}),
    ],
)
def test_a_run_that_starts_from_a_file_ignores_options_of_the_initial_weights(config, trainer, policy, there, here):
    options = {name: value for name, value in config.as_options().items() if name != "bias"}
    config = make_config(trainer, **{**options, "policy": policy, "hidden_sizes": (3,), "generations": 1})
    start = train(change(config, **there)) / "latest.dat"
    saved = load(start)
    assert there.items() <= asdict(saved.policy).items()
    (prepared,) = prepare(change(config, **here, run_name="on", init_from=str(start)))
    assert np.array_equal(prepared.trainer.policy[0], saved.weights)


def test_another_environment_than_that_of_the_file_is_said_once(config, capsys):
    start = str(train(config) / "latest.dat")
    capsys.readouterr()
    here = {"env_kwargs": {"truncate_at": 3}, "settle_steps": 1, "seeds": 2}
    for name, changes in {"same": {}, "other": here}.items():
        for prepared in prepare(change(config, init_from=start, run_name=name, **changes)):
            prepared.close()
        differs = "env_kwargs was {action_weight: 1.0, rewards: [0.0], truncate_at: 8}, is {truncate_at: 3}; "
        differs += "wrappers was [clip_action], is [{settle: {num_steps: 1}}, clip_action]"
        said = f"init_from {start} is of another environment: {differs}\n" if changes else ""
        assert capsys.readouterr().err == said


def test_the_name_of_the_files_environment_cannot_move_the_cursor(config, capsys):
    folder = train(config)
    saved = load(folder / "latest.dat")
    odd = replace(saved, environment=replace(saved.environment, environment="X\x1b[2J"))
    policy_file.save_policy(folder / "odd.dat", odd)
    (prepared,) = prepare(change(config, init_from=str(folder / "odd.dat"), run_name="other"))
    prepared.close()
    assert rf"environment was X\x1b[2J, is {SCRIPTED}" in capsys.readouterr().err


def test_starts_from_a_file_of_the_reference(config, tmp_path):
    legacy = tmp_path / "legacy.dat"
    config = change(config, policy="mlp", bias=False, hidden_sizes=(3,), generations=1)
    row = np.arange(12) / 10
    torch.save(row, legacy)
    (prepared,) = prepare(change(config, init_from=str(legacy)))
    assert prepared.trainer.policy[0] == pytest.approx(row)
    torch.save(row[:-1], legacy)
    with pytest.raises(ValueError, match=r"^init_from .*legacy.dat: .*11.*12"):
        prepare(change(config, init_from=str(legacy), run_name="other"))
    torch.save(row, legacy)
    with pytest.raises(ValueError, match=r"legacy\.dat was trained without observation_normalization, which is on"):
        prepare(change(config, init_from=str(legacy), run_name="other", observation_normalization=True))


def test_a_policy_of_another_network_or_other_statistics_is_refused_before_anything_is_written(config, tmp_path):
    start = str(train(config) / "latest.dat")
    for changes, expected in [
        ({"bias": False}, "init_from .*latest.dat holds bias True, but these options make bias False$"),
        (
            {"policy": "mlp"},
            "latest.dat holds policy 'hebbes.policies.linear:Linear', but these options make policy "
            "'hebbes.policies.mlp:MLP'",
        ),
        ({"observation_normalization": True}, "was trained without observation_normalization, which is on here"),
        ({"init_from": str(tmp_path)}, "^init_from .*: a folder; give a file in it$"),
    ]:
        with pytest.raises(ValueError, match=expected):
            prepare(change(config, **{"init_from": start, "run_name": "refused", **changes}))
    assert {path.name for path in tmp_path.rglob("*") if path.is_dir()} == {SCRIPTED, "run", "checkpoint"}


def test_a_policy_file_keeps_the_options_of_its_training_and_none_of_the_machines(config, tmp_path):
    found = load(train(config) / "latest.dat").provenance["options"]
    expected = {"population_size": 20, "learning_rate": 0.05, "generations": 5, "bias": True, "environment": SCRIPTED}
    assert expected.items() <= found.items()
    assert not {"folder", "run_name", "seed", "threads", "engine", "tensorboard", "preset"} & found.keys()
    assert str(tmp_path) not in str(found)


def test_an_environment_without_end_is_evaluated_with_the_cap_of_its_training(config):
    endless = change(config, env_kwargs={"rewards": [1.0]}, max_episode_steps=6, generations=1, test_episodes=1)
    assert read_metrics(train(endless) / "metrics.csv")["eval_return"].tolist() == [6]
    limited = change(endless, gymnasium_wrappers=("TimeLimit: {max_episode_steps: 9}",), run_name="limited")
    assert read_metrics(train(limited) / "metrics.csv")["eval_return"].tolist() == [9]


def test_an_environment_without_end_is_named(config, capsys):
    notice = f"{config.environment.id} has no limit on the env steps of an episode: set --max_episode_steps"
    best = str(train(change(config, generations=1)) / "best.dat")
    assert notice in capsys.readouterr().out
    evaluation = EvaluateConfig((best,), imports=config.environment.imports)
    load_entries(evaluation)
    assert capsys.readouterr().err.count(notice) == 1
    load_entries(replace(evaluation, max_episode_steps=6))
    assert notice not in capsys.readouterr().err
    train(change(config, generations=1, max_episode_steps=6, run_name="capped"))
    assert notice not in capsys.readouterr().out
