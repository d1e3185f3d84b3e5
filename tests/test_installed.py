"""hebbes as an installed package: the wheel has all that its programs read, and they run from any folder."""

import shutil
import site
import subprocess
import sys
from pathlib import Path

import pytest

from tests.evaluation.files_to_play import save_balancing_policy
from tests.python_process import ROOT, run_python

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """A fresh environment with hebbes from its wheel, whose dependencies are those of the tests' own environment."""
    folder = tmp_path_factory.mktemp("installed")
    source = folder / "source"
    source.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    shutil.copytree(ROOT / "hebbes", source / "hebbes", ignore=shutil.ignore_patterns("__pycache__"))
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    wheels = ["wheel", "--no-deps", "--no-build-isolation", "--no-index", "--wheel-dir", folder, source]
    subprocess.run([*pip, *wheels], check=True, timeout=300)
    (wheel,) = folder.glob("hebbes-*.whl")
    made = folder / "environment"
    run_python("-m", "venv", "--without-pip", made)
    (packages,) = made.glob("lib/python*/site-packages")
    (packages / "dependencies.pth").write_text("\n".join(site.getsitepackages()) + "\n")
    install = ["--python", made / "bin" / "python", "install", "--no-deps", "--no-index", wheel]
    subprocess.run([*pip, *install], check=True, timeout=300)
    return made / "bin"


def call(folder, *command):
    return subprocess.run(list(map(str, command)), cwd=folder, capture_output=True, text=True, timeout=600)


def test_the_wheel_is_what_is_imported_and_it_has_every_preset_and_released_policy(environment, tmp_path):
    done = call(tmp_path, environment / "python", "-c", "import hebbes; print(hebbes.__file__)")
    package = Path(done.stdout.strip()).parent
    assert environment.parent in package.parents, done.stderr
    for pattern in ("presets/*/*.yaml", "zoo/*"):
        packed = {path.relative_to(package) for path in package.glob(pattern)}
        assert packed == {path.relative_to(ROOT / "hebbes") for path in (ROOT / "hebbes").glob(pattern)} != set()
    played = call(tmp_path, environment / "hebbes", "evaluate_static", "--path_weights", "zoo:CartPole-v1")
    assert "1  500 [500, 500]" in played.stdout, played.stderr


def test_the_installed_command_trains_evaluates_and_resumes_from_another_folder(environment, tmp_path):
    flags = (
        "--environment CartPole-v1 --generations 2 --popsize 8 --max_episode_steps 30 --test_episodes 2 --run_name a"
    )
    trained = call(tmp_path, environment / "hebbes", "train_static", *flags.split())
    assert trained.returncode == 0, trained.stderr
    run = Path("weights", "CartPole-v1", "a")
    assert (tmp_path / run / "best.dat").exists()
    assert "policy: linear" in (tmp_path / run / "config.yaml").read_text()  # of the preset
    evaluated = call(tmp_path, environment / "hebbes", "evaluate_static", "--path_weights", run / "best.dat")
    assert evaluated.returncode == 0, evaluated.stderr
    resumed = call(
        tmp_path, environment / "python", "-m", "hebbes", "train_static", "--resume", run, "--generations", 3
    )
    assert resumed.returncode == 0, resumed.stderr
    assert "training ended: generation 3 of 3 is done" in resumed.stdout
    commands = [line for line in (tmp_path / run / "command.txt").read_text().splitlines() if "train_static" in line]
    assert commands == [f"hebbes train_static {flags}", f"python -m hebbes train_static --resume {run} --generations 3"]


def test_the_python_interface_plays_an_episode_of_an_evaluation(environment, tmp_path):
    save_balancing_policy(tmp_path / "a.dat")
    (tmp_path / "play.py").write_text(
        "import hebbes\n"
        "policy = hebbes.load_policy('a.dat')\n"
        "env = policy.make_env(seed=5)\n"
        "(observation, _), session, returned, ended = env.reset(), policy.start(seed=5), 0.0, False\n"
        "while not ended:\n"
        "    observation, reward, terminated, truncated, _ = env.step(session.act(observation))\n"
        "    session.reward(reward)\n"
        "    returned, ended = returned + reward, terminated or truncated\n"
        "if __name__ == '__main__':\n"
        "    found = hebbes.evaluate('a.dat', episodes=6, seed=5, threads=2)\n"
        "    print(hebbes.__file__, returned, *found.returns, found, sep='\\n')\n"
    )
    done = call(tmp_path, environment / "python", "play.py")
    assert done.returncode == 0, done.stderr
    file, returned, *returns, summary = done.stdout.splitlines()
    assert environment.parent in Path(file).parents
    assert [returned, *returns] == ["500.0"] * 7
    assert summary.startswith("mean 500 [500, 500], ")


@pytest.mark.parametrize(
    ("arguments", "status", "text"),
    [
        ((), 2, "usage: hebbes COMMAND"),
        (("--help",), 0, "usage: hebbes COMMAND"),
        (("train_statc",), 2, "hebbes: error: unknown command 'train_statc', did you mean 'train_static'?"),
        (("train",), 2, "hebbes: error: unknown command 'train', did you mean 'train_static'?"),
        (("train_static", "--popsize", "x"), 2, "hebbes train_static: error: "),
    ],
)
def test_commands_are_listed_and_mistakes_are_one_line(environment, tmp_path, arguments, status, text):
    done = call(tmp_path, environment / "hebbes", *arguments)
    assert done.returncode == status
    assert (done.stdout if status == 0 else done.stderr).startswith(text)
