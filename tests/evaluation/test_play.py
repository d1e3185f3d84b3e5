"""One episode in this process, which is shown or filmed."""

import json
from dataclasses import replace

import gymnasium
import numpy as np
import pytest
from gymnasium.envs.classic_control import CartPoleEnv

import hebbes
from hebbes.environments.environment_spec import EnvironmentSpec
from hebbes.environments.part_spec import PartSpec
from hebbes.evaluation.episode_cap import choose_episode_cap
from hebbes.evaluation.play import play_episode
from hebbes.files.policy_file import read_policy_file, save_policy
from hebbes.options.evaluation import EvaluateConfig
from hebbes.options.hebbian_evaluation import HebbianEvaluateConfig
from hebbes.programs.evaluation_entries import load_entries
from hebbes.programs.evaluation_report import format_report, group_by_environment
from hebbes.programs.evaluation_run import play_all, play_entry
from hebbes.recording.console import Console
from tests.evaluation.files_to_play import CARTPOLE, EVERY_KIND, save_balancing_policy


class Unlucky(CartPoleEnv):
    """Has no start state."""

    def reset(self, **kwargs):
        raise RuntimeError("no world\nfor this seed")


class WithoutPictures(CartPoleEnv):
    """Lacks a file that it needs on a screen."""

    def reset(self, **kwargs):
        if self.render_mode == "human":
            raise FileNotFoundError(2, "No such file or directory", "ship.png")
        return super().reset(**kwargs)


def test_what_an_environment_raises_in_a_reset_is_an_error_of_one_line(monkeypatch):
    monkeypatch.setattr(gymnasium.spec("CartPole-v1"), "entry_point", f"{__name__}:Unlucky")
    with pytest.raises(ValueError, match=r"^environment 'CartPole-v1' cannot be started: RuntimeError: no world$"):
        play_episode(EVERY_KIND["hebbian"], EnvironmentSpec("CartPole-v1", "gymnasium"), episode=0, seed=0)


ENDLESS = replace(CARTPOLE, env_kwargs={"max_episode_steps": -1})


def test_without_a_limit_episodes_end_as_in_training(tmp_path, capsys):
    provenance = {"options": {"max_episode_steps": 7}}
    path = save_balancing_policy(tmp_path / "a.dat", environment=ENDLESS, provenance=provenance)
    config = EvaluateConfig(path_weights=(str(path),), episodes=2, threads=1)
    (entry,) = load_entries(config)
    assert capsys.readouterr().err == "episodes end after 7 env steps, as in training: CartPole-v1 has no limit\n"
    assert play_entry(config, entry).returns.tolist() == [[7, 7]]
    for given, found in ((None, 7), (9, 9)):
        played = play_episode(entry.saved, entry.environment, episode=0, seed=0, max_episode_steps=given)
        assert played.returns.tolist() == [found]
    env, num_env_steps = hebbes.load_policy(path).make_env(), 0
    for episode in range(2):
        (observation, _), session, truncated = env.reset(), hebbes.load_policy(path).start(), False
        while not truncated:
            observation, _, terminated, truncated, _ = env.step(session.act(observation))
            num_env_steps += 1
            assert not terminated
        assert num_env_steps == 7 * (episode + 1)
        with pytest.raises(ValueError, match=r"^the episode has ended after 7 env steps: call reset first$"):
            env.step(0)
    env.close()
    with pytest.warns(UserWarning, match="^episodes end after 7 env steps"):
        assert hebbes.evaluate(path, episodes=2, threads=1).returns.tolist() == [7, 7]


def test_files_whose_episodes_end_differently_are_not_compared(tmp_path):
    paths = []
    for cap in (7, 9):
        provenance = {"options": {"max_episode_steps": cap}}
        path = tmp_path / f"{cap}.dat"
        paths.append(str(save_balancing_policy(path, environment=ENDLESS, provenance=provenance)))
    config = EvaluateConfig(path_weights=tuple(paths), episodes=2, threads=1)
    results = [play_entry(config, entry) for entry in load_entries(config)]
    found = [f"CartPole-v1 max_episode_steps=-1 up to {cap} env steps" for cap in (7, 9)]
    assert list(group_by_environment(config, results)) == found
    assert [
        each["environment"] for each in json.loads(format_report(replace(config, json=True), results))["files"]
    ] == found
    assert len(group_by_environment(replace(config, max_episode_steps=5), results)) == 1


@pytest.mark.parametrize("options", [None, {}, {"max_episode_steps": None}, {"max_episode_steps": True}])
def test_a_file_that_names_no_cap_has_none(tmp_path, options):
    path = save_balancing_policy(tmp_path / "a.dat", environment=ENDLESS, provenance={"options": options})
    assert choose_episode_cap(read_policy_file(path), ENDLESS, None) is None


def test_an_intervention_past_the_environments_limit_is_refused(tmp_path):
    save_policy(tmp_path / "a.dat", EVERY_KIND["hebbian"])
    config = HebbianEvaluateConfig(path_weights=(str(tmp_path / "a.dat"),), freeze_at=(499,), threads=1)
    assert [each.variant for each in load_entries(config)] == ["", "freeze_at 499"]
    with pytest.raises(ValueError, match=r"a.dat: freeze_at must be < max_episode_steps 500, got 500$"):
        load_entries(replace(config, freeze_at=(500,)))


def test_a_file_that_another_environment_does_not_suit_is_named(tmp_path):
    chain = (PartSpec("rescale_action"),)
    path = save_balancing_policy(tmp_path / "a.dat", environment=replace(CARTPOLE, wrappers=chain))
    with pytest.raises(ValueError, match=rf"^{path}: rescale_action needs a Box action space"):
        load_entries(EvaluateConfig(path_weights=(str(path),)))


def test_what_a_short_id_means_is_said_once_for_all_files(tmp_path, capsys):
    paths = [str(save_balancing_policy(tmp_path / name)) for name in ("a.dat", "b.dat")]
    entries = load_entries(EvaluateConfig(path_weights=tuple(paths), environment="CartPole"))
    assert [entry.environment.environment for entry in entries] == ["CartPole-v1"] * 2
    assert capsys.readouterr().err.count("CartPole means CartPole-v1") == 1


def test_the_episodes_that_are_shown_are_those_that_would_be_played(monkeypatch, tmp_path):
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    monkeypatch.setenv("DISPLAY", ":0")  # nothing is drawn
    path = str(save_balancing_policy(tmp_path / "a.dat", weights=np.float32([0, 0, 0, 0, 0, 0, 1, 0])))
    config = EvaluateConfig(path_weights=(path,), episodes=3, seed=3, max_episode_steps=38, backend="gymnasium")
    entries = load_entries(config)
    (shown,) = play_all(replace(config, render=True), entries, Console())
    assert shown.returns.tolist() == play_entry(config, entries[0]).returns.tolist()
    assert len(set(shown.returns[0])) == 3 and 38 in shown.returns[0]


def test_an_environment_that_cannot_be_shown_is_reported(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("DISPLAY", ":0")  # nothing is drawn
    monkeypatch.setattr(gymnasium.spec("CartPole-v1"), "entry_point", f"{__name__}:WithoutPictures")
    path = str(save_balancing_policy(tmp_path / "a.dat"))
    config = EvaluateConfig(path_weights=(path,), render=True, episodes=2)
    (shown,) = play_all(config, load_entries(config), Console())
    assert shown.lost and shown.returns.shape == (1, 2)
    said = capsys.readouterr().err
    assert f"stopped: {path}: environment 'CartPole-v1' cannot be started: FileNotFoundError: [Errno 2]" in said
