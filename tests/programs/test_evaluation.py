"""Evaluation on scripted environments: what is played, what is refused, and what is reported."""

import json
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import torch

from hebbes.environments.environment_spec import EnvironmentSpec
from hebbes.environments.part_spec import PartSpec
from hebbes.evaluation.entries import Entry, EvaluationResult
from hebbes.evaluation.play import make_evaluation_spec, play, play_episode
from hebbes.files.policy_file import SavedPolicy, read_policy_file, save_policy
from hebbes.options.evaluation import EvaluateConfig
from hebbes.policies.linear import Linear
from hebbes.programs.evaluation_entries import load_entries
from hebbes.programs.evaluation_report import format_report
from hebbes.programs.evaluation_run import play_entry
from hebbes.reporting.video import VideoWriter
from hebbes.statistics.summary_table import format_runs_table
from tests.training.unfit_classes import ActRaises

SPEC = EnvironmentSpec("Scripted-v0", "gymnasium", imports=("tests.scripted",))
"""Its observation is (a draw at the start, env step); with `action_weight` returns depend on the start state."""


def make_policy(kwargs=None, buffers=None, **changes):
    """A policy that acts on the start state alone: both outputs are the first observation."""
    environment = replace(SPEC, env_kwargs=kwargs or {"rewards": [0.0], "truncate_at": 3, "action_weight": 1.0})
    linear, weights = Linear((2,), 2), np.array([1, 0, 1, 0], np.float32)
    return SavedPolicy(linear, "linear", weights, buffers or {}, "identity", replace(environment, **changes), {})


def play_policy(saved, **options):
    options = {"episodes": 4, "seed": 3, "threads": 1, **options}
    return play(saved, make_evaluation_spec(saved.environment), **options).fitness


@pytest.fixture
def statistics():
    return {"observation_mean": np.array([0.5, 1], np.float32), "observation_std": np.array([1, 2], np.float32)}


def test_an_episode_depends_on_the_seed_and_its_number_alone():
    alone = play_policy(make_policy())
    assert len(set(alone)) == 4
    assert np.array_equal(play_policy(make_policy(), threads=3), alone)
    assert np.array_equal(play_policy(make_policy(), episodes=9)[:4], alone)
    assert not np.array_equal(play_policy(make_policy(), seed=4), alone)


def play_seeds(saved, **options):
    config = EvaluateConfig(path_weights=("a.dat",), threads=1, **options)
    return play_entry(config, Entry("a.dat", saved, make_evaluation_spec(saved.environment)))


def test_seeds_are_played_as_if_each_were_alone():
    found = play_seeds(make_policy(), episodes=4, seed=3, seeds=2)
    assert np.array_equal(found.returns, [play_policy(make_policy()), play_policy(make_policy(), seed=4)])
    assert found.faults == {}


def test_all_policies_meet_the_same_start_states():
    twice = replace(make_policy(), weights=make_policy().weights / 2)
    assert play_policy(make_policy()) == pytest.approx(2 * play_policy(twice))


def test_evaluation_never_updates_observation_statistics(statistics, tmp_path):
    path = tmp_path / "a.dat"
    save_policy(path, make_policy(buffers=statistics))
    content, saved = path.read_bytes(), read_policy_file(path, ["tests.scripted"])
    first, again, more = play_policy(saved), play_policy(saved), play_policy(saved, episodes=8)
    assert np.array_equal(first, again)
    assert np.array_equal(first, more[:4])  # earlier episodes would have changed the statistics
    assert not np.array_equal(first, play_policy(make_policy()))  # the statistics matter
    assert saved.buffers.keys() == statistics.keys()
    for name, array in statistics.items():
        assert np.array_equal(saved.buffers[name], array)
    assert path.read_bytes() == content


def test_training_wrappers_are_applied_only_on_request():
    stop = PartSpec("early_stop", {"negative_streak": 3})
    saved = make_policy({"rewards": [-1.0], "truncate_at": 8}, training_wrappers=(stop,))
    for training_wrappers, expected in ((False, -8), (True, -4)):
        environment = make_evaluation_spec(saved.environment, training_wrappers=training_wrappers)
        assert play(saved, environment, episodes=1, seed=0, threads=1).fitness.tolist() == [expected]


def test_a_filmed_episode_is_the_one_that_is_played(tmp_path):
    saved = make_policy()
    with VideoWriter(tmp_path / "film.mp4", 30) as video:
        environment = make_evaluation_spec(saved.environment)
        shown = {"seed": 3, "render_mode": "rgb_array", "show_frame": lambda frame, _: video.write(frame)}
        filmed = [play_episode(saved, environment, episode=k, **shown).returns[0] for k in range(4)]
    assert filmed == pytest.approx(play_policy(saved), rel=1e-12)


def test_a_users_wrapper_that_raises_while_it_is_filmed_or_shown_is_named():
    wrapper = PartSpec("tests.training.unfit_classes:StepRaises", {"fail_at": 2})
    saved = make_policy()
    environment = replace(make_evaluation_spec(saved.environment), wrappers=(wrapper,))
    with pytest.raises(ValueError, match=rf"^wrappers '{wrapper.name}' cannot be used: scripted in two lines"):
        play_episode(saved, environment, episode=0, seed=0)


def test_so_is_a_users_policy():
    saved = replace(make_policy(), policy=ActRaises((2,), 2))
    with pytest.raises(ValueError, match=r"^policy 'tests.training.*:ActRaises' cannot be used: .*scripted"):
        play_episode(saved, make_evaluation_spec(saved.environment), episode=0, seed=0)


def test_why_episodes_failed_is_counted_over_the_seeds():
    saved = make_policy({"raise_at": 2})
    found = play_seeds(saved, episodes=2, seeds=2)
    assert np.isnan(found.returns).all()
    ((reason, count),) = found.faults.items()
    assert "scripted failure at env step 2" in reason
    assert count == 4


@pytest.fixture
def files(tmp_path):
    """Two policy files of one environment."""
    for name, scale in (("a.dat", 1), ("b.dat", 2)):
        save_policy(tmp_path / name, replace(make_policy(), weights=np.float32(scale) * make_policy().weights))
    return [str(tmp_path / name) for name in ("a.dat", "b.dat")]


def make_config(*paths, **options):
    return EvaluateConfig(path_weights=paths, imports=("tests.scripted",), **options)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"policy": "mlp"}, "policy needs environment"),
        ({"hidden_sizes": (3,)}, "hidden_sizes needs policy"),
        ({"seeds": 2, "video": "a.mp4"}, "video takes one file and one seed, got 1 and 2"),
        ({"render": True, "episode_timeout": 1.0}, "episode_timeout cannot be used with render"),
    ],
)
def test_options_that_make_no_sense_are_refused(options, expected):
    with pytest.raises(ValueError, match=expected):
        make_config("a.dat", **options)


def test_files_are_checked_before_anything_is_played(files, tmp_path):
    first, second = files
    (tmp_path / "link.dat").symlink_to(first)
    cases = [
        ([first, second, str(tmp_path / "link.dat")], {}, "link.dat twice"),
        ([first, second], {"video": "a.mp4"}, "video takes one file and one seed, got 2 and 1"),
        ([first, str(tmp_path / "c.dat")], {}, "c.dat: no such file"),
        ([first, second], {"environment": "Acrobot-v1"}, r"a.dat: .* observations of shape \(6,\)"),
        ([first, second], {"environment": "CartPole-v1", "policy": "mlp"}, "a.dat describes its policy itself"),
        ([str(tmp_path / "c.dat")], {"environment": "CartPole-v1", "policy": "mlp"}, "c.dat: no such file"),
    ]
    for paths, options, expected in cases:
        with pytest.raises(ValueError, match=expected):
            load_entries(make_config(*paths, **options))


def test_a_file_of_torch_save_plays_in_the_environment_named(tmp_path):
    path, row = tmp_path / "old.dat", np.random.default_rng(0).normal(size=4 * 3 + 3 * 2)
    torch.save(row, path)
    with pytest.raises(ValueError, match="with --environment and --policy"):
        load_entries(make_config(str(path), environment="CartPole"))
    described = {"environment": "CartPole", "policy": "mlp", "hidden_sizes": (3,)}
    (entry,) = load_entries(make_config(str(path), **described))
    assert np.array_equal(entry.saved.weights, row.astype(np.float32))
    assert (entry.saved.policy.hidden_sizes, entry.saved.action_head) == ((3,), "argmax")
    assert (entry.environment.environment, entry.environment.backend) == ("CartPole-v1", "gymnasium")
    with pytest.raises(ValueError, match=r"holds numbers of shape \(18,\)"):
        load_entries(make_config(str(path), **{**described, "hidden_sizes": (4,)}))


def write_torch_file(tmp_path, sizes):
    path = tmp_path / "reference.dat"
    torch.save(np.random.default_rng(0).normal(size=sum(a * b for a, b in pairwise(sizes))), path)
    return str(path)


def test_the_memory_of_each_network_is_checked_once(tmp_path, monkeypatch):
    checked = []
    name = "hebbes.programs.evaluation_entries.check_evaluation_memory"
    monkeypatch.setattr(name, lambda agent, *rest: checked.append(agent.policy.bias) or "")
    paths = [tmp_path / name for name in ("a.dat", "b.dat", "c.dat")]
    for path, bias in zip(paths, (False, True, True), strict=True):
        policy = Linear((2,), 2, bias=bias)
        weights = np.zeros(policy.layout.num_params, np.float32)
        save_policy(path, SavedPolicy(policy, "linear", weights, {}, "tanh", SPEC, {}))
    load_entries(EvaluateConfig(path_weights=tuple(map(str, paths)), imports=("tests.scripted",)))
    assert checked == [False, True]


def test_a_file_of_torch_save_follows_the_reference_and_no_tuned_preset(tmp_path):
    path = write_torch_file(tmp_path, (3, 128, 64, 1))
    (entry,) = load_entries(make_config(path, environment="Pendulum-v1", policy="mlp"))
    assert (entry.saved.policy.hidden_sizes, entry.saved.policy.bias) == ((128, 64), False)
    assert (entry.saved.action_head, entry.environment.wrappers) == ("identity", (PartSpec("clip_action"),))


def test_an_id_without_conventions_is_refused_with_the_flags_to_give(tmp_path):
    path = write_torch_file(tmp_path, (9, 128, 64, 2))
    described = {"environment": "ReacherBulletEnv-v0", "policy": "mlp"}
    with pytest.raises(ValueError, match=r"no conventions for ReacherBulletEnv-v0: .*--action_bounds.*--settle_steps"):
        load_entries(make_config(path, **described))
    said = {"action_bounds": "tanh", "settle_steps": 2, "early_stop_negative_streak": 3}
    said["gymnasium_wrappers"] = ({"gymnasium.wrappers:TimeLimit": {"max_episode_steps": 9}},)
    (entry,) = load_entries(make_config(path, **described, **said, training_wrappers=True))
    chain = ("settle", "clip_action", "early_stop")
    assert tuple(wrapper.name for wrapper in entry.environment.wrappers) == chain
    assert entry.environment.gymnasium_wrappers == (PartSpec("gymnasium.wrappers:TimeLimit", {"max_episode_steps": 9}),)
    assert entry.saved.action_head == "tanh"


def test_options_for_what_a_file_describes_itself_are_refused(files):
    with pytest.raises(ValueError, match="action_bounds needs policy and a file that torch"):
        make_config(files[0], environment="CartPole-v1", action_bounds="tanh")


@pytest.mark.slow
def test_a_game_of_the_reference_that_waits_for_fire_begins_with_it(tmp_path):
    path = tmp_path / "reference.dat"
    torch.save(np.zeros(1362 + 648 * 128 + 128 * 64 + 64 * 4), path)
    (entry,) = load_entries(make_config(str(path), environment="Breakout-v5", policy="cnn"))
    assert [wrapper.name for wrapper in entry.environment.wrappers] == ["fire_reset", "resize", "scale"]
    torch.save(np.zeros(1362 + 648 * 128 + 128 * 64 + 64 * 3), path)
    (entry,) = load_entries(make_config(str(path), environment="Freeway-v5", policy="cnn"))
    assert [wrapper.name for wrapper in entry.environment.wrappers] == ["resize", "scale"]


def test_fire_reset_can_be_turned_off(tmp_path):
    path = tmp_path / "reference.dat"
    torch.save(np.zeros(1362 + 648 * 128 + 128 * 64 + 64 * 4), path)
    (entry,) = load_entries(make_config(str(path), environment="Breakout-v5", policy="cnn", fire_reset=False))
    assert [wrapper.name for wrapper in entry.environment.wrappers] == ["resize", "scale"]


def make_result(path, returns, environment=SPEC, faults=None):
    return EvaluationResult(Entry(path, make_policy(), environment), np.array(returns, np.float64), faults or {})


def test_report_of_two_files_two_seeds_and_a_failure():
    found = [
        make_result("a.dat", [[1, 1], [3, 3]]),
        make_result("b.dat", [[0, 0], [0, 0]]),
        make_result("c.dat", [[1, np.nan], [1, 1]], faults={"RuntimeError: broken": 1}),
        make_result("d.dat", [[7, 7], [7, 7]], replace(SPEC, env_kwargs={"truncate_at": 3})),
    ]
    options = make_config("a.dat", "b.dat", "c.dat", "d.dat", seed=5, seeds=2, episodes=2)
    assert format_report(options, found).splitlines() == [
        "Scripted-v0 on gymnasium, seeds 5 to 6, 2 episodes each; 95 % intervals in brackets",
        "1  a.dat",
        "2  b.dat",
        "3  c.dat",
        "                             mean                IQM             median   std   min   max",
        "1               2.00 [1.00, 3.00]  2.00 [1.00, 3.00]  2.00 [1.00, 3.00]  1.15  1.00  3.00",
        "2               0.00 [0.00, 0.00]  0.00 [0.00, 0.00]  0.00 [0.00, 0.00]  0.00  0.00  0.00",
        "3               1 of 4 episodes failed: RuntimeError: broken (1)",
        "linear, 3 runs  1 of 3 runs failed",
        "                each run counts as one value, the mean of its episodes",
        "                few runs: with fewer than 5 of a method, an interval over them is not reliable",
        "",
        "Scripted-v0 truncate_at=3 on gymnasium, seeds 5 to 6, 2 episodes each; 95 % intervals in brackets",
        "4  d.dat",
        "                mean                IQM             median   std   min   max",
        "4  7.00 [7.00, 7.00]  7.00 [7.00, 7.00]  7.00 [7.00, 7.00]  0.00  7.00  7.00",
    ]
    plain = json.loads(format_report(replace(options, json=True), found))
    assert (plain["seeds"], plain["episodes"]) == ([5, 6], 2)
    assert [each["path"] for each in plain["files"]] == ["a.dat", "b.dat", "c.dat", "d.dat"]
    assert plain["files"][0]["iqm"] == 2
    failed = plain["files"][2]
    assert (failed["mean"], failed["mean_ci"], failed["failed"]) == (None, [None, None], 1)
    assert (failed["faults"], failed["returns"]) == ({"RuntimeError: broken": 1}, [[1, None], [1, 1]])
    assert [(each["environment"], each["method"]) for each in plain["methods"]] == [
        ("Scripted-v0", "linear"),
        ("Scripted-v0 truncate_at=3", "linear"),
    ]
    method, _ = plain["methods"]
    assert (method["count"], method["failed"], method["mean"]) == (3, 1, None)
    assert (method["paths"], method["values"]) == (["a.dat", "b.dat", "c.dat"], [2, 0, None])
    assert plain["comparisons"] == []


def test_a_table_over_runs_takes_the_mean_of_each_run_as_one_value():
    few = format_runs_table(["x", "y"], [np.array([0.0, 2]), np.array([3.0, 5])]).splitlines()
    assert few[:2] == ["1  x", "2  y"]
    assert few[-3] == "2 runs  2.50 [1.00, 4.00]  2.50 [1.00, 4.00]  2.50 [1.00, 4.00]  2.12  1.00  4.00"
    assert "few runs" in few[-1]
    assert "few runs" not in format_runs_table(list("abcde"), [np.array([1.0])] * 5)
    assert "few runs" not in format_runs_table(["one"], [np.array([1.0])])  # it has no interval over runs
