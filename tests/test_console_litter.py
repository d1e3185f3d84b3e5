"""What programs without a display print is theirs: libraries' banners stay away, a user's own come through."""

import json
import os
from importlib.util import find_spec

import pytest

from tests.python_process import ROOT, run_python
from tests.test_headless import frames_in

TINY = ["--popsize", "4", "--generations", "1", "--max_episode_steps", "5", "--eval_episodes", "1", "--threads", "2"]
WITHOUT_BULLET = pytest.mark.skipif(find_spec("pybullet") is None, reason="PyBullet is not installed")
HIDDEN = {
    *("DISPLAY", "WAYLAND_DISPLAY", "XDG_RUNTIME_DIR", "SDL_VIDEODRIVER", "SDL_AUDIODRIVER", "PYTHONWARNINGS"),
    *("MUJOCO_GL", "PYOPENGL_PLATFORM"),
}

LOUD = """
import os, warnings
import gymnasium

class Loud(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(-1, 1, (2,))
    action_space = gymnasium.spaces.Box(-1, 1, (1,))

    def reset(self, *, seed=None, options=None):
        warnings.warn("mine is real")
        return self.observation_space.low, {}

    def step(self, action):
        os.write(1, b"from C\\n")
        print("from Python", flush=True)
        return self.observation_space.low, 3.0, True, False, {}

gymnasium.register("Loud-v0", entry_point=Loud)
"""


def run(*command, folder=ROOT):
    """The output and the errors of a program without a screen, which must succeed."""
    kept = {name: value for name, value in os.environ.items() if name not in HIDDEN}
    environment = {**kept, "PYTHONPATH": str(folder)}
    done = run_python(ROOT / command[0], *command[1:], cwd=folder, env=environment)
    return done.stdout, done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    "environment",
    [
        *("CartPole-v1", "LunarLander-v3", "CarRacing-v3", "HalfCheetah-v5", "Pong-v5", "FrozenLake-v1"),
        pytest.param("AntBulletEnv-v0", marks=WITHOUT_BULLET),
    ],
)
def test_nothing_but_the_results_is_printed(environment, tmp_path):
    flags = ["--environment", environment, "--backend", "gymnasium", "--folder", tmp_path, "--run_name", "走る 🤖"]
    if environment in ("CarRacing-v3", "Pong-v5"):  # whose evaluations would play whole episodes
        flags += ["--env_kwargs", "{max_episode_steps: 5}"]
    tests = int(environment == "CartPole-v1")  # those of others are long
    trained, errors = run("train_static.py", *flags, *TINY, "--test_episodes", tests)
    assert errors == ""
    assert [line.split()[0] for line in trained.splitlines() if not line.startswith("generation 1: ")] == [
        *("the",) * (environment in ("CarRacing-v3", "Pong-v5")),  # preset is untuned
        *(environment, "gen", "1", "training", "weights", "weights", "log", "learning"),
        *("best",) * tests,
    ]
    (weights,) = tmp_path.rglob("best.dat")
    flags = ["--episodes", 1, "--max_episode_steps", 5, "--threads", 1, "--video", tmp_path / "film.mp4"]
    found, errors = run("evaluate_static.py", "--path_weights", weights, *flags)
    assert errors == ""
    frames = frames_in(tmp_path / "film.mp4")
    assert frames == 6 or environment == "FrozenLake-v1"  # whose episodes may end earlier, in a hole
    assert len(found.splitlines()) == 5
    assert found.splitlines()[-1].startswith(f"video  {tmp_path / 'film.mp4'}  {frames} frames, ")


@pytest.mark.slow
@pytest.mark.parametrize(("engine", "threads"), [("in_process", 1), ("workers", 2)])
def test_what_a_simulator_prints_is_no_result_and_its_warnings_show(engine, threads, tmp_path):
    (tmp_path / "loud.py").write_text(LOUD)
    flags = ["--environment", "Loud-v0", "--import", "loud", "--engine", engine, "--folder", tmp_path]
    printed, errors = run("train_static.py", *flags, *TINY, "--test_episodes", 0, folder=tmp_path)
    assert "from C" not in printed
    assert "from C\n" in errors and "mine is real" in errors
    (weights,) = tmp_path.rglob("best.dat")
    flags = ["--import", "loud", "--episodes", 2, "--threads", threads, "--json"]
    printed, errors = run("evaluate_static.py", "--path_weights", weights, *flags, folder=tmp_path)
    assert json.loads(printed)["files"][0]["returns"] == [[3, 3]]
    assert "from C\n" in errors and "from Python\n" in errors
