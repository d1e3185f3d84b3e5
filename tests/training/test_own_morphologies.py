"""Morphologies from a user's own files: what is saved of them, and what happens when a file changes."""

import hashlib
import shutil

import pytest

from hebbes.environments.environment_spec import describe_environment
from hebbes.environments.morphologies import SPECIES, pin_morphology, shorten_morphology_name
from hebbes.evaluation.play import play
from hebbes.files.policy_file import read_policy_file
from hebbes.options.command_line import parse_config
from hebbes.options.evaluation import EvaluateConfig
from hebbes.programs.evaluation_entries import load_entries
from hebbes.training.prepare import prepare
from hebbes.training.run import execute

TINY = ["--popsize", "2", "--max_episode_steps", "3", "--eval_episodes", "1", "--threads", "1", "--test_episodes", "0"]


@pytest.fixture
def mine(tmp_path, monkeypatch):
    """A morphology with a shorter ankle, in the working directory."""
    text = SPECIES["Ant-v5"].installed.read_text()
    (tmp_path / "mine.xml").write_text(text.replace("0.0 0.0 0.0 -0.4 0.4 0.0", "0.0 0.0 0.0 -0.2 0.2 0.0"))
    monkeypatch.chdir(tmp_path)
    return tmp_path / "mine.xml"


def parse(*flags):
    arguments = ["--environment", "Ant-v5", "--backend", "gymnasium", *TINY, "--generations", "1", *flags]
    return parse_config("static", [*arguments, "--folder", "runs", "--run_name", "run"], "")


def name_by_content(path):
    return f"{path}@{hashlib.sha256(path.read_bytes()).hexdigest()}"


def test_a_file_is_kept_by_its_path_and_content_however_it_is_written(mine, tmp_path):
    (tmp_path / "inner").mkdir()
    for written in ("mine.xml", "./mine.xml", "inner/../mine.xml", str(mine), name_by_content(mine)):
        assert parse("--morphologies", f"none,{written}").environment.morphologies == ("none", name_by_content(mine))
    (tmp_path / "left").write_text("")
    assert [pin_morphology(name) for name in ("none", "left", "absent.xml")] == ["none", "left", "absent.xml"]
    assert (
        shorten_morphology_name(name_by_content(mine))
        == f"mine.xml@{hashlib.sha256(mine.read_bytes()).hexdigest()[:8]}"
    )


def test_one_morphology_in_two_files_is_given_twice(mine, tmp_path):
    shutil.copy(mine, tmp_path / "copy.xml")
    for other in ("./mine.xml", "copy.xml"):
        with pytest.raises(ValueError, match="morphologies must be at least one, each of them once"):
            parse("--morphologies", "mine.xml", other)


@pytest.mark.parametrize("name", ["a,b", "a:b"])
def test_a_path_that_no_option_or_file_could_name_again_is_refused(name, mine, tmp_path, monkeypatch):
    (tmp_path / name).mkdir()
    shutil.copy(mine, tmp_path / name / "mine.xml")
    monkeypatch.chdir(tmp_path / name)
    with pytest.raises(
        ValueError, match="morphologies must be files whose absolute path has neither comma nor colon, got"
    ):
        parse("--morphologies", "mine.xml")


def test_a_changed_file_is_another_morphology_to_a_resume_and_to_an_evaluation(mine, tmp_path, monkeypatch):
    (run,) = prepare(parse("--morphologies", "mine.xml"))
    execute(run)
    (tmp_path / "elsewhere").mkdir()
    shutil.copy(mine, tmp_path / "elsewhere" / "copy.xml")
    folder = tmp_path / "runs" / "Ant-v5" / "run"
    best = str(folder / "best.dat")
    monkeypatch.chdir(tmp_path / "elsewhere")

    saved = read_policy_file(folder / "best.dat")
    assert saved.environment.morphologies == (name_by_content(mine),)
    (entry,) = load_entries(EvaluateConfig((best,)))
    assert (
        entry.seen
        and describe_environment(entry.environment)
        == f"Ant-v5 morphology {shorten_morphology_name(name_by_content(mine))}"
    )
    assert play(saved, entry.environment, episodes=1, seed=0, threads=1, max_episode_steps=3).fitness.shape == (1,)
    damages = [("../mine.xml",), ("copy.xml",), ("copy.xml", "../mine.xml", "none")]
    found = [load_entries(EvaluateConfig((best,), damage=damage)) for damage in damages]
    assert [[each.seen for each in entries] for entries in found] == [[True], [True], [True, False]]
    config = parse_config("static", ["--resume", str(folder), "--morphologies", "../mine.xml"], "")
    assert config.environment.morphologies == (name_by_content(mine),)

    before = name_by_content(mine)
    mine.write_text(mine.read_text().replace("-0.2 0.2", "-0.3 0.3"))
    (entry,) = load_entries(EvaluateConfig((best,), damage=("../mine.xml",)))
    assert entry.morphology == name_by_content(mine) != before and not entry.seen
    sha256 = rf"its sha256 was {before[-64:-56]}\.\.\., is "
    changed = rf"^({best}: )?morphologies: {mine} or a file that it names has changed .* {sha256}"
    with pytest.raises(ValueError, match=changed):
        load_entries(EvaluateConfig((best,)))
    config = parse_config("static", ["--resume", str(folder), "--generations", "2"], "")
    with pytest.raises(ValueError, match=changed):
        prepare(config)
    with pytest.raises(ValueError, match=r"^morphologies cannot change when a run is resumed"):
        parse_config("static", ["--resume", str(folder), "--morphologies", "../mine.xml"], "")
    mine.unlink()
    with pytest.raises(ValueError, match=f"no morphology and no file '{mine}'"):
        prepare(config)
