"""The scripts as a user runs them."""

import json
import os
import sys

import numpy as np
import pytest
from safetensors import safe_open

from hebbes.environments.environment_spec import EnvironmentSpec
from hebbes.files.policy_file import SavedPolicy, save_policy
from hebbes.policies.hebbian import Hebbian
from hebbes.policies.linear import Linear
from hebbes.programs.evaluate import evaluate_static
from tests.forked_programs import run_forked
from tests.python_process import ROOT, run_python

TINY = ["--popsize", "4", "--generations", "2", "--test_episodes", "2", "--max_episode_steps", "20", "--threads", "1"]
SCRIPTED = ["--environment", "Scripted-v0", "--import", "tests.scripted"]


def run(script, *arguments):
    return run_forked([script, *arguments], ROOT, os.environ)


def evaluate(*arguments):
    done = run("evaluate_static.py", "--threads", 1, "--path_weights", *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A finished run on CartPole."""
    where = tmp_path_factory.mktemp("runs")
    done = run("train_static.py", "--environment", "CartPole-v1", "--folder", where, "--run_name", "a", *TINY)
    assert done.returncode == 0, done.stderr
    for name in ("best.dat", "metrics.csv", "learning_curve.png"):
        path = where / "CartPole-v1" / "a" / name
        assert str(path) in done.stdout
        assert path.stat().st_size
    assert "best policy     mean " in done.stdout
    return where / "CartPole-v1" / "a"


def test_evaluation_prints_one_json_object_and_nothing_else(folder, monkeypatch, capfd):
    printed = evaluate(folder / "best.dat", "--episodes", 3, "--seed", 5, "--json")
    found = json.loads(printed)
    assert printed.count("\n") == 1
    assert (found["episodes"], found["seeds"], len(found["methods"]), found["comparisons"]) == (3, [5], 1, [])
    (file,) = found["files"]
    assert set(file) == {
        "path", "variant", "environment", "morphology", "morphology_in_training", "backend", "mean", "mean_ci", "iqm",
        "iqm_ci", "median", "median_ci", "std", "min", "max", "failed", "faults", "returns"
    }  # fmt: skip
    assert (file["path"], file["environment"], file["failed"]) == (str(folder / "best.dat"), "CartPole-v1", 0)
    assert file["mean"] == pytest.approx(sum(file["returns"][0]) / 3)
    flags = ["--path-weights", str(folder / "best.dat"), "--episodes=3", "--seed=5", "--json"]
    monkeypatch.setattr(sys, "argv", ["evaluate_static.py", *flags])
    evaluate_static("")
    assert capfd.readouterr().out == printed


@pytest.mark.slow
def test_evaluation_on_both_back_ends_reads_well(folder):
    for backend in ("gymnasium", "envpool"):
        printed = evaluate(folder / "best.dat", "--episodes", 2, "--backend", backend)
        assert printed.startswith(f"CartPole-v1 on {backend}, seed 0, 2 episodes; 95 % intervals in brackets\n")
        assert printed.splitlines()[1] == f"1  {folder / 'best.dat'}"


@pytest.mark.slow
def test_files_are_compared_on_common_start_states(folder):
    best, latest = str(folder / "best.dat"), str(folder / "latest.dat")
    flags = ["--seed", 5, "--seeds", 2, "--episodes", 3, "--backend", "envpool"]
    printed = evaluate(best, latest, *flags)
    assert max(map(len, printed.splitlines()[3:])) <= 100
    assert "openai_es: not all runs are independent, because files 1, 2 share seeds of training" in printed
    swapped = json.loads(evaluate(latest, best, *flags, "--json"))
    alone = json.loads(evaluate(best, *flags, "--json"))
    assert swapped["files"][1] == alone["files"][0]
    (method,) = swapped["methods"]
    assert (method["method"], method["count"], method["paths"]) == ("openai_es", 2, [latest, best])


@pytest.mark.slow
def test_an_evaluation_whose_episodes_fail_says_why_and_ends_with_status_0(tmp_path):
    spec = EnvironmentSpec("Scripted-v0", "gymnasium", {"truncate_at": 3, "raise_at": 2}, ("tests.scripted",))
    saved = SavedPolicy(Linear((2,), 2), "linear", np.zeros(4, np.float32), {}, "identity", spec, {})
    save_policy(tmp_path / "a.dat", saved)
    printed = evaluate(tmp_path / "a.dat", "--import=tests.scripted", "--episodes", 2)
    assert printed.splitlines()[-1] == "1  2 of 2 episodes failed: RuntimeError: scripted failure at env step 2 (2)"


@pytest.mark.slow
def test_a_file_that_cannot_be_played_is_reported_beside_the_others_with_status_1(folder):
    program = (
        "import hebbes.programs.evaluation_run as programs\n"
        "from hebbes.programs.evaluate import evaluate\n"
        "play = programs.play\n"
        "def broken_once(*arguments, **options):\n"
        "    programs.play = play\n"
        "    raise programs.EngineError('no\\nworkers')\n"
        "programs.play = broken_once\n"
        "evaluate(programs.EvaluateConfig, '')\n"
    )
    files = [str(folder / name) for name in ("best.dat", "latest.dat")]
    done = run_python("-c", program, "--path_weights", *files, "--episodes", "2", "--json", status=1)
    assert done.stderr == f"workers\nstopped: {files[0]}: no\n"
    first, second = json.loads(done.stdout)["files"]
    assert (first["failed"], first["faults"], first["returns"]) == (2, {"no": 2}, [[None, None]])
    assert second["failed"] == 0 and len(second["returns"][0]) == 2


@pytest.mark.slow
def test_video_and_plots_are_written_though_something_could_not_be_played(tmp_path):
    policy = Hebbian((4,), 2, hidden_sizes=(3,))
    weights = policy.initial_params(np.random.default_rng(0))
    environment = EnvironmentSpec("CartPole-v1", "gymnasium")
    save_policy(tmp_path / "a.dat", SavedPolicy(policy, "hebbian", weights, {}, "argmax", environment, {}))
    program = (
        "import sys\n"
        "import hebbes.programs.evaluation_run as programs\n"
        "from hebbes.programs.evaluate import evaluate\n"
        "from hebbes.options.hebbian_evaluation import HebbianEvaluateConfig\n"
        "play, calls, broken = programs.play, [], int(sys.argv.pop(1))\n"
        "def broken_once(*arguments, **options):\n"
        "    calls.append(arguments)\n"
        "    if len(calls) == broken:\n"
        "        raise programs.EngineError('no workers')\n"
        "    return play(*arguments, **options)\n"
        "programs.play = broken_once\n"
        "evaluate(HebbianEvaluateConfig, '')\n"
    )
    for broken, said in (("2", ""), ("1", f"no video: {tmp_path / 'a.dat'} could not be played\n")):
        names = [f"{broken}/1_a_weights.png", f"{broken}/1_a_coefficients.png", f"{broken}.mp4"]
        files = {tmp_path / name for name in names}
        flags = ["--path_weights", tmp_path / "a.dat", "--freeze_at", 0, "--episodes", 1, "--max_episode_steps", 5]
        flags += ["--threads", 1, "--plots", tmp_path / broken, "--video", tmp_path / f"{broken}.mp4"]
        done = run_python("-c", program, broken, *flags, status=1)
        assert f"stopped: {tmp_path / 'a.dat'}: no workers\n{said}" in done.stderr
        told = [f"video  {tmp_path / '2.mp4'}  6 frames, 0.12 s", *(f"plot  {tmp_path / name}" for name in names[:2])]
        if not said:
            assert done.stdout.splitlines()[-3:] == told
        assert {path for path in files if path.exists()} == (set() if said else files)


def test_weights_are_plain_safetensors(folder):
    with safe_open(folder / "best.dat", "numpy") as file:
        assert set(file.keys()) == {"weights"}
        assert json.loads(file.metadata()["hebbes"])["environment"]["environment"] == "CartPole-v1"


@pytest.mark.slow
def test_output_to_a_file_has_no_control_characters(tmp_path):
    done = run("train_static.py", "--environment", "CartPole-v1", "--folder", tmp_path, "--print_every", 2, *TINY)
    assert done.stdout.replace("\n", "").isprintable()
    lines = [line for line in done.stdout.splitlines() if not line.startswith("generation ")]  # remarks
    assert [line.split()[0] for line in lines[1:4]] == ["gen", "1", "2"]


@pytest.mark.slow
def test_the_config_of_a_run_makes_the_same_run(folder, tmp_path):
    again = run("train_static.py", "--config", folder / "config.yaml", "--folder", tmp_path)
    assert again.returncode == 0, again.stderr
    (weights,) = tmp_path.rglob("latest.dat")
    with safe_open(folder / "latest.dat", "numpy") as one, safe_open(weights, "numpy") as two:
        assert (one.get_tensor("weights") == two.get_tensor("weights")).all()


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--environment", "HalfCheeta-v5"], "add --import PACKAGE; otherwise, did you mean 'HalfCheetah-v5'"),
        (["--environment", "Blackjack-v1", "--backend", "envpool"], "has other observations than Gymnasium's"),
        (["--environment", "my_envs:Mine-v0"], "--environment my_envs:Mine-v0: cannot import 'my_envs'"),
        (["--environment", "CartPole-v1", "--folder", "/proc/no"], "cannot write to run folder /proc/no"),
        (["--environment", "CartPole-v1", "--init_from", "LICENSE"], "LICENSE: "),
        (["--environment", "CartPole-v1", "--policy", "mpl"], "unknown policy 'mpl', did you mean 'mlp'"),
        (["--environment", "CartPole-v1", "--policy", "cnn"], "convolutions take images"),
        (["--environment", "AntBulletEnv-v0", "--backend", "envpool"], "backend 'envpool' cannot be used"),
        ([*SCRIPTED, "--env_kwargs", "{raise_in: reset}"], "'Scripted-v0' cannot be started: RuntimeError: scripted"),
    ],
)
def test_bad_input_is_one_line_with_status_2_and_leaves_nothing(arguments, expected, tmp_path, refusal):
    folder = [] if "--folder" in arguments else ["--folder", tmp_path]
    assert expected in refusal("train_static.py", *folder, *arguments)
    assert not list(tmp_path.iterdir())


def test_bad_input_ends_the_process_with_status_2():
    done = run("train_static.py", "--environment", "CartPole-v1", "--rank", "2")
    line = "train_static.py: error: --rank is only used with --sampler low_rank\n"
    assert (done.returncode, done.stdout, done.stderr) == (2, "", line)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], "path_weights must name policy files"),
        (["--path_weights", "no.dat"], "no.dat: "),
        (["--path_weights", "README.md"], "README.md: "),
        (["--path_weights", "{best}", "--environment", "Acrobot-v1"], "observations of shape (4,)"),
        (["--path_weights", "{best}", "--environment", "CartPole-v9"], "unknown environment 'CartPole-v9'"),
        (["--path_weights", "{best}", "{best}"], "best.dat twice"),
        (["--path_weights", "{best}", "no.dat"], "no.dat: no such file"),
        (["--path_weights", "{best}", "--policy", "mlp", "--environment", "CartPole-v1"], "describes its policy"),
        (["--path_weights", "{best}", "--video", "film.avi"], ".mp4"),
        (["--path_weights", "{best}", "--video", "/no/such/film.mp4"], "/no/such"),
        (["--path_weights", "{best}", "--backend", "envpool", "--render"], "render needs the gymnasium back end"),
        (["--path_weights", "{best}", "--episode", "3"], "unknown option --episode, did you mean --episodes?"),
    ],
)
def test_bad_input_to_evaluation_is_one_line_with_status_2(folder, arguments, expected, refusal):
    filled = [argument.format(best=folder / "best.dat") for argument in arguments]
    assert expected in refusal("evaluate_static.py", *filled)


def test_a_truncated_file_is_refused(folder, tmp_path, refusal):
    half = tmp_path / "half.dat"
    half.write_bytes((folder / "best.dat").read_bytes()[:-5])
    assert str(half) in refusal("evaluate_static.py", "--path_weights", half)


@pytest.mark.slow
def test_a_users_own_environment_policy_and_wrapper(tmp_path):
    (tmp_path / "mine.py").write_text(
        "import gymnasium\n"
        "from hebbes.policies.linear import Linear\n"
        "from hebbes.wrappers.base import BatchWrapper\n"
        "gymnasium.register('Mine-v0', entry_point='tests.scripted:ScriptedGymnasiumEnv', kwargs={'truncate_at': 5})\n"
        "class MyPolicy(Linear):\n    pass\n"
        "class MyWrapper(BatchWrapper):\n    pass\n"
    )
    flags = ["--environment", "Mine-v0", "--import", "mine", "--policy", "mine:MyPolicy"]
    flags += ["--wrappers", "mine:MyWrapper", "--folder", str(tmp_path), "--run_name", "a", "--threads", "2"]
    path = {"PYTHONPATH": str(tmp_path), "PATH": "/usr/bin:/bin"}
    run_python("train_static.py", *flags, "--popsize", "4", "--generations", "2", env=path)
    best = tmp_path / "Mine-v0" / "a" / "best.dat"
    command = ["evaluate_static.py", "--path_weights", best]
    done = run_python(*command, "--import", "mine", env=path)
    assert done.stdout.splitlines()[-1].startswith("1  5.00 [5.00, 5.00]"), done.stderr
    done = run_python(*command, env=path, status=2)
    assert "give --import mine " in done.stderr


@pytest.mark.slow
def test_learning_rules_are_trained_evaluated_and_refused_by_name(tmp_path, refusal):
    common = ["--environment", "CartPole-v1", "--folder", tmp_path, *TINY]
    done = run("train_hebbian.py", *common, "--hebb_rule", "ABC", "--init_weights", "normal", "--run_name", "a")
    assert done.returncode == 0, done.stderr
    best = tmp_path / "CartPole-v1" / "a" / "best.dat"
    done = run("evaluate_hebbian.py", "--path_weights", best, "--episodes", 3, "--threads=1", "--json")
    assert [len(row) for row in json.loads(done.stdout)["files"][0]["returns"]] == [3], done.stderr
    for flags, expected in [
        (["--hebb_rule", "ABCD_rl"], "hebb_rule must be one of A, AD, "),
        (["--init_weights", "unit"], "got 'unit', did you mean 'uni'?"),
        (["--sharing", "modulo", "--num_rules", "0"], "num_rules"),
    ]:
        assert expected in refusal("train_hebbian.py", *common, *flags)
