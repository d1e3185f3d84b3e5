"""The zoo: its names are found wherever a policy file is asked for, its table is true, and its check notices."""

import hashlib
import json
import re
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
import yaml
from scipy.stats import binom

import hebbes
from benchmarks import zoo
from hebbes.files.option_file import read_yaml
from hebbes.files.policy_file import read_policy_file
from hebbes.files.weight_file import WeightFileError
from hebbes.files.zoo import ZOO
from hebbes.options.command_line import parse_config
from hebbes.training.prepare import prepare
from hebbes.training.saved_runs import list_policy_files
from tests.evaluation.files_to_play import save_balancing_policy
from tests.python_process import ROOT

ENTRIES = read_yaml(ZOO / zoo.TABLE)


def test_a_name_is_the_file_in_the_package():
    named, file = hebbes.load_policy("zoo:CartPole-v1"), hebbes.load_policy(ZOO / "CartPole-v1.dat")
    assert np.array_equal(named.weights, file.weights) and named.provenance == file.provenance
    assert np.array_equal(hebbes.load_policy(Path("zoo:CartPole-v1")).weights, file.weights)
    assert (ROOT / "weights" / "zoo").resolve() == ZOO


def test_a_name_that_no_policy_has_is_refused_with_the_nearest_one_and_all(refusal):
    known = ", ".join(sorted(ENTRIES))
    line = f"zoo:Cartpole-v0: no policy 'Cartpole-v0' in the zoo, did you mean 'CartPole-v1'? known: {known}"
    with pytest.raises(WeightFileError, match=f"^{re.escape(line)}$"):
        read_policy_file("zoo:Cartpole-v0")
    assert refusal("evaluate_static.py", "--path_weights", "zoo:Cartpole-v0").endswith(f" error: {line}")
    with pytest.raises(WeightFileError, match=r"^zoo:\.\./zoo/CartPole-v1: no policy "):
        read_policy_file("zoo:../zoo/CartPole-v1")


def test_a_file_of_the_users_own_comes_first(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("zoo:mine", "zoo:CartPole-v1", "zoo:runs/best.dat"):
        Path(name).parent.mkdir(exist_ok=True)
        save_balancing_policy(Path(name), weights=np.full(8, 3, np.float32))
        assert (read_policy_file(name).weights == 3).all()


def test_runs_of_several_seeds_start_from_a_copy_of_a_policy_of_the_zoo(tmp_path):
    flags = ["--environment", "CartPole-v1", "--init_from", "zoo:CartPole-v1", "--seeds", "2"]
    runs = prepare(parse_config("static", [*flags, "--folder", str(tmp_path)], ""))
    runs.close()
    assert (runs.top / "init_from.dat").read_bytes() == (ZOO / "CartPole-v1.dat").read_bytes()


def test_programs_take_a_name_for_a_policy_file():
    (name,) = list_policy_files(["zoo:CartPole-v1"])
    assert hebbes.evaluate(name, episodes=2, threads=1).mean == 500


def test_the_table_describes_the_files_and_every_policy_has_a_film():
    assert {f"{name}.dat" for name in ENTRIES} | {zoo.TABLE} == {path.name for path in ZOO.iterdir()}
    assert len(ENTRIES) >= 12 and {entry["kind"] for entry in ENTRIES.values()} == {"static", "plastic", "hybrid"}
    for name, entry in ENTRIES.items():
        file, saved = ZOO / f"{name}.dat", read_policy_file(f"zoo:{name}")
        assert entry["sha256"] == hashlib.sha256(file.read_bytes()).hexdigest()
        assert entry["versions"].items() <= saved.provenance.items()
        for flag in (f"--environment {saved.environment.environment} ", f"--seed {entry['seed']} "):
            assert flag in entry["command"]
        assert saved.provenance["seed"] == entry["seed"] >= 300 and "--folder" not in entry["command"]
        test = entry["test"]
        assert test["episodes"] == 100 and test["lowest_mean"] <= test["mean"]
        assert test["interval"][0] <= test["mean"] <= test["interval"][1]
    assert {f"{name}.gif" for name in ENTRIES} == {path.name for path in (zoo.DOCS / "zoo").iterdir()}
    prose, _, made = (zoo.DOCS / "zoo.md").read_text().partition(f"{zoo.MARK}\n\n")
    assert made == zoo.format_page() and prose


def test_the_zoo_is_small():
    assert sum(path.stat().st_size for path in ZOO.iterdir()) < 10e6
    assert sum(path.stat().st_size for path in (zoo.DOCS / "zoo").iterdir()) < 5e6


def test_the_lowest_mean_is_a_quantile_of_means_of_ten_returns():
    returns = np.array([0.0] + [1.0] * 99)
    failures = binom.isf(zoo.FALSE_ALARM, zoo.CHECK_EPISODES, 0.01)  # more of them are less likely than that
    assert zoo.describe_test(returns)["lowest_mean"] == 1 - failures / zoo.CHECK_EPISODES
    assert zoo.describe_test(np.full(100, 93.3))["lowest_mean"] <= 93.3


def make_zoo(folder):
    """A zoo with the policy of CartPole-v1."""
    shutil.copy(ZOO / "CartPole-v1.dat", folder)
    (folder / zoo.TABLE).write_text(yaml.safe_dump({"CartPole-v1": ENTRIES["CartPole-v1"]}))
    return folder / "CartPole-v1.dat"


def test_the_check_fails_for_a_spoiled_and_for_a_damaged_policy(tmp_path, capsys):
    file = make_zoo(tmp_path)
    assert zoo.check(tmp_path)
    intact = file.read_bytes()
    save_balancing_policy(file, weights=np.zeros(8, np.float32))
    assert not zoo.check(tmp_path)
    file.write_bytes(intact[:-1])
    assert not zoo.check(tmp_path)
    passed, spoiled, damaged = re.findall(r"^CartPole-v1 .*$", capsys.readouterr().out, re.MULTILINE)
    assert "FAILED" not in passed and "FAILED: mean" in spoiled and f"FAILED: {file}: " in damaged


@pytest.mark.slow
def test_every_policy_is_as_good_as_its_test():
    assert zoo.check()


@pytest.mark.parametrize("arguments", [["check", "some/run"], ["page", "some/run"], ["release"]])
def test_only_a_release_takes_runs(arguments, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["zoo.py", *arguments])
    with pytest.raises(SystemExit, match="2"):
        zoo.main()
    assert f"release needs folders of runs, and nothing else takes them, got {arguments[0]}" in capsys.readouterr().err


def test_a_run_starts_from_a_released_policy_and_is_released_with_its_test(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["train_static.py", "--folder", "my runs", "--seed", "7"])
    options = {
        "environment": "CartPole-v1",
        "seed": 7,
        "generations": 1,
        "population_size": 2,
        "threads": 1,
        "backend": "gymnasium",
    }
    options |= {"init_from": "zoo:CartPole-v1", "learning_rate": 1e-9, "test_episodes": 100}
    options |= {"env_kwargs": {"max_episode_steps": 9}, "eval_episodes": 1}
    run = hebbes.train({**options, "folder": str(tmp_path)}, quiet=True)
    assert np.allclose(read_policy_file(run.best).weights, read_policy_file("zoo:CartPole-v1").weights, atol=1e-6)
    (made := tmp_path / "zoo").mkdir()
    assert zoo.release(run.folder, made) == "CartPole-v1"
    entry = read_yaml(made / zoo.TABLE)["CartPole-v1"]
    assert (made / "CartPole-v1.dat").read_bytes() == run.best.read_bytes()
    assert (entry["command"], entry["seed"], entry["kind"]) == ("python train_static.py --seed 7", 7, "static")
    assert entry["test"]["mean"] == pytest.approx(run.returns.mean(), abs=0.005)
    assert zoo.check(made)
    test = json.loads((run.folder / "test.json").read_text())
    (run.folder / "test.json").write_text(json.dumps({**test, "returns": test["returns"][:99]}))
    with pytest.raises(ValueError, match="must hold 100 returns"):
        zoo.release(run.folder, made)
