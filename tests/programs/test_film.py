"""The program `film`, and the videos that are made while a run trains."""

import hashlib
import re
import shutil
from pathlib import Path

import av
import numpy as np
import pytest
from gymnasium.envs.classic_control import CartPoleEnv

from hebbes.contracts.engine import EngineError
from hebbes.environments.morphologies import SPECIES
from hebbes.files.policy_file import read_policy_file
from hebbes.options.evaluation import EvaluateConfig
from hebbes.programs.evaluation_entries import load_entries
from hebbes.programs.film import FilmConfig, _list_files, make_scenes
from hebbes.reporting.film import MIN_WIDTH, add_caption, film_scenes
from hebbes.training import background_films
from hebbes.training.advice import RESUME_ADVICE
from hebbes.training.prepare import prepare
from hebbes.training.run import execute
from tests.options.test_users_classes import MINE
from tests.programs.commands import call_command, run_command
from tests.training.scripted_runs import make_config, make_scripted_config, resume, train

OPTIONS = {
    **{"environment": "CartPole-v1", "backend": "gymnasium", "generations": 4, "threads": 1, "population_size": 4},
    **{"max_episode_steps": 20, "eval_every": 2, "eval_episodes": 1, "test_episodes": 0, "checkpoint_every": 100},
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    top = tmp_path_factory.mktemp("weights")
    return train(make_config(**OPTIONS, folder=str(top), run_name="run", keep_every=2, video_every=3))


def list_names(folder):
    return sorted(path.name for path in folder.iterdir())


def read_frames(path):
    with av.open(str(path)) as file:
        return [frame.to_ndarray(format="rgb24") for frame in file.decode(video=0)]


@pytest.mark.slow
def test_policies_are_kept_and_filmed_while_a_run_trains(folder):
    assert list_names(folder / "kept") == ["00000000.dat", "00000002.dat", "00000003.dat", "00000004.dat"]
    kept, latest = read_policy_file(folder / "kept" / "00000004.dat"), read_policy_file(folder / "latest.dat")
    assert (kept.weights == latest.weights).all() and kept.provenance["generation"] == 4
    assert list_names(folder / "videos") == ["00000000.mp4", "00000003.mp4"]
    assert len(read_frames(folder / "videos" / "00000003.mp4")) > 3


@pytest.mark.slow
def test_so_are_those_of_a_users_own_class(tmp_path):
    own = {"policy": f"{MINE}:Scaled", "generations": 1, "video_every": 1}
    folder = train(make_config(**{**OPTIONS, **own}, folder=str(tmp_path)))
    assert list_names(folder / "videos") == ["00000000.mp4", "00000001.mp4"]


@pytest.mark.slow
def test_a_video_that_is_missing_is_made_after_a_resume(folder, tmp_path):
    folder = shutil.copytree(folder, tmp_path / "run")
    lost = folder / "videos" / "00000003.mp4"
    before = read_frames(lost)
    lost.unlink()
    (folder / "kept" / "mine.dat").write_bytes(b"of the user's own")
    (folder / "kept" / ".00000004.dat.1.tmp").write_bytes(b"of a process that was killed")
    resume(folder, generations=5)
    assert np.abs(np.subtract(read_frames(lost), before, dtype=float)).mean() < 1  # the encoder may differ in last bits
    assert list_names(folder / "kept")[-2:] == ["00000004.dat", "mine.dat"]
    assert not (folder / "kept" / ".00000004.dat.1.tmp").exists()


@pytest.mark.slow
def test_a_folder_that_cannot_be_made_costs_one_line_and_all_videos(tmp_path, capfd):
    folder = train(make_scripted_config(tmp_path, generations=2, keep_every=1))
    (folder / "videos").write_text("")
    capfd.readouterr()
    resume(folder, generations=3, video_every=1)
    (line,) = (line for line in capfd.readouterr().out.splitlines() if line.startswith("no more videos: "))
    assert re.search("File exists: .*videos", line), line
    assert list_names(folder / "kept")[-1] == "00000003.dat"


@pytest.mark.slow
def test_a_damaged_policy_costs_one_line_and_its_own_video(tmp_path, capfd):
    folder = train(make_scripted_config(tmp_path, generations=2, keep_every=1))
    (folder / "kept" / "00000001.dat").write_text("")
    capfd.readouterr()
    resume(folder, generations=3, video_every=1)
    (line,) = (line for line in capfd.readouterr().out.splitlines() if line.startswith("no video of "))
    assert line == f"no video of {folder / 'kept' / '00000001.dat'}: the file is empty"
    assert list_names(folder / "videos") == ["00000000.mp4", "00000002.mp4", "00000003.mp4"]


def test_videos_that_could_not_be_made_are_refused_before_training(tmp_path, monkeypatch):
    config = make_scripted_config(tmp_path, generations=1, keep_every=1, video_every=1)
    monkeypatch.setattr("hebbes.reporting.video.find_spec", lambda name: None)
    with pytest.raises(ValueError, match=r"^video_every needs the package av, which is not installed"):
        prepare(config)
    assert list(tmp_path.iterdir()) == []


def test_a_process_that_cannot_be_started_costs_one_line(tmp_path, capsys, monkeypatch):
    class Full(background_films.ProcessTransport):
        def start_worker(self):
            raise EngineError("a worker process cannot be started: Resource temporarily unavailable")

    monkeypatch.setattr(background_films, "ProcessTransport", Full)
    (run,) = prepare(make_scripted_config(tmp_path, generations=2, keep_every=1, video_every=1))
    done, folder = execute(run), run.folder
    said = capsys.readouterr().out
    assert said.count("no more videos: a worker process cannot be started: ") == 1
    assert done.advice == RESUME_ADVICE  # which makes them
    assert list_names(folder / "kept")[-1] == "00000002.dat"


def test_a_lost_process_that_cannot_be_replaced_costs_one_line(tmp_path, capsys, monkeypatch):
    class Fragile(background_films.ProcessTransport):
        started = 0

        def start_worker(self):
            self.started += 1
            if self.started > 1:
                raise EngineError("a worker process cannot be started: Resource temporarily unavailable")
            worker = super().start_worker()
            worker.process.kill()
            return worker

    monkeypatch.setattr(background_films, "ProcessTransport", Fragile)
    folder = train(make_scripted_config(tmp_path, generations=2, keep_every=1, video_every=1))
    said = capsys.readouterr().out
    assert said.count("no more videos: ") == 1 and "Resource temporarily unavailable" in said
    assert list_names(folder / "kept")[-1] == "00000002.dat"


def test_each_kept_policy_is_a_scene_and_the_best_one_the_last(folder):
    files = [*map(str, sorted((folder / "kept").iterdir())), str(folder / "best.dat")]
    captions = [scene.caption for scene in make_scenes(FilmConfig(runs=(str(folder),)), files)]
    assert captions[:4] == ["generation 0", "generation 2", "generation 3", "generation 4"]
    assert re.fullmatch(r"generation [245]  best", captions[4])


@pytest.mark.slow
def test_a_policy_that_is_named_twice_is_one_scene(folder, tmp_path):
    done = run_command("film", folder, folder / "best.dat", "-o", tmp_path / "film.mp4", "--max_episode_steps", 9)
    assert (done.returncode, "5 episodes" in done.stdout) == (0, True), done.stderr


def test_damaged_bodies_and_lesions_are_scenes_of_their_own(tmp_path):
    mine = Path(shutil.copy(SPECIES["Ant-v5"].installed, tmp_path / "mine.xml"))
    options = {**OPTIONS, "environment": "Ant-v5", "policy": "hebbian", "hidden_sizes": (8,), "generations": 1}
    folder = train(make_config("hebbian", **options, folder=str(tmp_path)))
    config = FilmConfig(runs=(str(folder),), damage=("none", "left", str(mine)), lesion=(0.5,))
    scenes = make_scenes(config, [str(folder / "best.dat")])
    checksum = hashlib.sha256(mine.read_bytes()).hexdigest()
    assert [scene.caption for scene in scenes] == [
        "generation 1  best  none",
        "generation 1  best  none  lesion 0.5 (4 of 8 neurons)",
        "generation 1  best  left",
        "generation 1  best  left  lesion 0.5 (4 of 8 neurons)",
        f"generation 1  best  mine.xml@{checksum[:8]}",
        f"generation 1  best  mine.xml@{checksum[:8]}  lesion 0.5 (4 of 8 neurons)",
    ]
    names = [scene.environment.morphologies for scene in scenes]
    assert names == [(name,) for name in ("none", "left", f"{mine}@{checksum}") for _ in range(2)]


def test_every_so_many_frames_and_the_last_one_are_shown(folder, tmp_path):
    scenes = make_scenes(FilmConfig(runs=(str(folder),)), [str(folder / "best.dat")])
    options = {"seed": 0, "max_episode_steps": 9}
    shown = [film_scenes(tmp_path / "a.mp4", scenes, **options, every=every).num_frames for every in (1, 3, 4, 100)]
    assert shown == [10, 4, 4, 2]  # frames 0 to 9: each; 0, 3, 6, 9; 0, 4, 8, 9; 0, 9


@pytest.mark.parametrize(("said", "rate"), [(30, 30), (0, 50), ("30", 50), (None, 50)])
def test_a_film_is_in_real_time(folder, tmp_path, monkeypatch, said, rate):
    monkeypatch.setitem(CartPoleEnv.metadata, "render_fps", said)
    scenes = make_scenes(FilmConfig(runs=(str(folder),)), [str(folder / "best.dat")])
    options = {"seed": 0, "max_episode_steps": 8}
    for every, frames in ((1, 9), (2, 5)):
        film = film_scenes(tmp_path / "a.mp4", scenes, **options, every=every)
        assert (film.num_frames, film.seconds) == (frames, pytest.approx(frames * every / rate))
    assert film_scenes(tmp_path / "a.mp4", scenes, **options, fps=10).seconds == pytest.approx(0.9)


def reset_without_images(env, reset=CartPoleEnv.reset, **options):
    if env.render_mode is not None:
        raise RuntimeError("no images")
    return reset(env, **options)


def test_an_environment_without_images_is_refused_before_anything_is_played(folder, tmp_path, monkeypatch):
    best = str(folder / "best.dat")
    evaluation = EvaluateConfig(path_weights=(best,), video=str(tmp_path / "a.mp4"))
    film = FilmConfig(runs=(best,))
    for name, value, reason in (
        ("metadata", {"render_modes": []}, "environment 'CartPole-v1' has no render mode 'rgb_array' in its metadata"),
        ("render", lambda env: env.no_such_window, "CartPole-v1 cannot be rendered: AttributeError"),
        ("render", lambda env: None, r"CartPole-v1 cannot be rendered: render returned NoneType of shape \(\), not "),
        ("reset", reset_without_images, "environment 'CartPole-v1' cannot be started: RuntimeError: no images"),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(CartPoleEnv, name, value)
            with pytest.raises(ValueError, match=f"^--video: {reason}"):
                load_entries(evaluation)
            with pytest.raises(ValueError, match=f"^runs: {reason}"):
                make_scenes(film, [best])


def test_the_caption_is_below_the_frame_and_fits():
    frame = np.random.default_rng(0).integers(0, 256, (40, 160, 3), np.uint8)
    shown = add_caption(frame, "generation 12  \N{GREEK SMALL LETTER ALPHA}" * 9, 1234.5)
    assert shown.shape == (80 + 32, MIN_WIDTH, 3)
    assert np.array_equal(shown[:80:2, ::2], frame)
    band = shown[80:].max(axis=2)
    assert band[:, :8].max() == band[:, -8:].max() == 24 < band.max()
    assert not np.array_equal(shown, add_caption(frame, "generation 12  \N{GREEK SMALL LETTER ALPHA}" * 9, 1234.6))


@pytest.mark.slow
def test_the_command_films_the_folder_of_a_run(folder, tmp_path, capfd):
    mp4, gif = tmp_path / "a.mp4", tmp_path / "a.gif"
    flags = "--max_episode_steps", "5", "--frames_per_second", "25"
    done = run_command("film", folder, "-o", mp4, *flags)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"film  {mp4}  5 episodes, 30 frames, 1.20 s\n"
    assert call_command(capfd, "film", folder, "-o", gif, *flags) == f"film  {gif}  5 episodes, 30 frames, 1.20 s\n"
    for path in (mp4, gif):
        frames = read_frames(path)
        assert (len(frames), frames[0].shape) == (30, (432, 600, 3))
        np.testing.assert_allclose(frames[0][420:].mean(), 24, atol=30)
        assert frames[0][:100].mean() > 250


def test_what_cannot_be_filmed_is_one_line_and_status_2(folder, tmp_path, refusal):
    other = train(make_scripted_config(tmp_path, generations=1, keep_every=1))
    (tmp_path / "empty").mkdir()
    without_kept = tmp_path / "without_kept"
    shutil.copytree(folder, without_kept, ignore=shutil.ignore_patterns("kept"))
    cases = [
        ([folder, "-o", tmp_path / "a.avi"], r"--output must name a \.mp4 or \.gif file, got '.*a\.avi'"),
        ([without_kept, "-o", tmp_path / "a.avi"], r"--output must name a"),
        ([without_kept, "--lesion", "0.5"], "lesion is for hebbian policies"),
        ([folder, "-o", tmp_path / "no" / "a.mp4"], "--output .*: the folder .*no does not exist"),
        (
            [folder, other, "--max_episode_steps", 9, "--import", "tests.scripted"],
            "a film has policies of one environment, got CartPole-v1 in .*, ",
        ),
        ([tmp_path / "empty"], "empty holds no run"),
        ([folder, "--damage", "left"], "left"),
        ([folder, "--lesion", "0.5"], "lesion is for hebbian policies"),
        ([folder, "--frames_per_second", "0"], r"frames_per_second must be in \[1, 100\], got 0"),
        ([], "runs must name folders of runs or policy files"),
    ]
    for arguments, expected in cases:
        line = refusal("film", *arguments)
        assert re.search(expected, line), line


def test_runs_without_a_policy_and_sweeps_are_left_out(tmp_path, capsys):
    for name, file in {"a": "best.dat", "b": "none", "sweeps/cem/trial0": "best.dat"}.items():
        (tmp_path / name / "checkpoint").mkdir(parents=True)
        (tmp_path / name / file).touch()
    assert _list_files([str(tmp_path)])[0] == [str(tmp_path / "a" / "best.dat")]
    assert [line.partition(tmp_path.name)[2] for line in capsys.readouterr().err.splitlines()] == [
        ": name their folders too",
        "/b: it has no policy yet",
    ]
    (tmp_path / "a" / "best.dat").unlink()
    with pytest.raises(ValueError, match=r"a has no policy yet$"):
        _list_files([str(tmp_path)])
