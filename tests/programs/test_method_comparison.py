"""Reports of files that several methods have trained."""

import json
from dataclasses import replace

import numpy as np
import pytest

from hebbes.files.policy_file import read_policy_file, save_policy
from hebbes.programs.evaluation_report import format_report
from tests.programs.commands import call_command, run_command
from tests.programs.test_evaluation import make_config, make_result
from tests.training.scripted_runs import make_scripted_config, train


def make_trained(path, returns, seed, **options):
    result = make_result(path, [returns])
    trained = {"strategy": "openai_es", "sigma": 0.1, "max_env_steps": 100 + seed, **options}
    saved = replace(result.entry.saved, provenance={"seed": seed, "options": trained})
    return replace(result, entry=replace(result.entry, saved=saved))


def test_files_of_two_methods_are_runs_of_their_own_methods():
    found = [
        make_trained("a.dat", [1, 3], 0),
        make_trained("b.dat", [5, 7], 0, strategy="cem"),
        make_trained("c.dat", [3, 5], 1),
        make_trained("d.dat", [1, 1], 0, sigma=0.5),
        make_trained("e.dat", [2, np.nan], 0, strategy="ga"),
    ]
    config = make_config(*("a.dat", "b.dat", "c.dat", "d.dat", "e.dat"), episodes=2)
    lines = format_report(config, found).splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith("openai_es sigma=0.1, 2 runs"))
    assert lines[start].split()[4] == "3.00"
    assert lines[start + 1].split() == ["values:", "2.00", "(1),", "4.00", "(3)"]
    assert any(line.startswith("cem, 1 run ") for line in lines)
    pairs = {line.partition("  ")[0]: line.partition("  ")[2].split() for line in lines[-11:]}
    assert pairs["openai_es sigma=0.1 over cem, by run"] == ["0.00", "-3.00"]  # one run of cem
    assert pairs["cem over openai_es sigma=0.5, by episode"][:4] == ["1.00", "[1.00,", "1.00]", "5.00"]
    assert " ".join(pairs["cem over ga, by episode"]) == "left out, because of failed episodes of 5"
    plain = json.loads(format_report(replace(config, json=True), found))
    assert [(each["method"], each["paths"]) for each in plain["methods"]] == [
        ("openai_es sigma=0.1", ["a.dat", "c.dat"]),
        ("cem", ["b.dat"]),
        ("openai_es sigma=0.5", ["d.dat"]),
        ("ga", ["e.dat"]),
    ]
    one, *_, last = plain["comparisons"]
    assert (one["first"], one["second"], one["unit"]) == ("openai_es sigma=0.1", "cem", "run")
    assert (one["probability_of_improvement"], one["mean_difference"]) == (0, -3)
    assert (last["second"], last["unit"], last["mean_difference"]) == ("ga", "episode", None)


def test_files_of_one_run_are_not_taken_for_independent_runs():
    found = [make_trained("best.dat", [1, 3], 4), make_trained("latest.dat", [1, 3], 4)]
    text = format_report(make_config("best.dat", "latest.dat", episodes=2), found)
    assert "openai_es: not all runs are independent, because files 1, 2 share seeds of training" in text


def test_merged_files_have_the_seed_of_their_training():
    def make_merged(path, seed, merge_seed):
        result = make_trained(path, [1, 3], merge_seed)
        saved = result.entry.saved
        merged = {"merged_from": {"path": "p.dat", "seed": seed}, "seed": merge_seed}  # as earlier versions wrote it
        saved = replace(saved, provenance={**saved.provenance, **merged})
        return replace(result, entry=replace(result.entry, saved=saved))

    warning = "share seeds of training"
    config = make_config("a.dat", "b.dat", episodes=2)
    assert warning not in format_report(config, [make_merged("a.dat", 7, 0), make_merged("b.dat", 8, 0)])
    assert warning in format_report(config, [make_merged("a.dat", 7, 0), make_merged("b.dat", 7, 1)])


@pytest.fixture(scope="module")
def weights(tmp_path_factory):
    """A folder with two seeds of openai_es and one run of cem."""
    top = tmp_path_factory.mktemp("weights")
    for seed in (1, 2):
        train(make_scripted_config(top, seed=seed, run_name=f"es{seed}", generations=2))
    train(make_scripted_config(top, strategy="cem", population_size=6, run_name="cem", generations=2))
    return top


FLAGS = "--import", "tests.scripted", "--episodes", 3, "--threads", 1


def test_the_command_compares_the_methods_of_runs_in_folders(weights, capfd):
    runs, cem = weights / "Scripted-v0", weights / "Scripted-v0" / "cem" / "best.dat"
    plain = json.loads(run_command("compare", runs / "es1", runs / "es2", cem, "--json", *FLAGS).stdout)
    paths = [str(runs / name / "best.dat") for name in ("es1", "es2")]
    assert [(each["method"], each["paths"]) for each in plain["methods"]] == [("openai_es", paths), ("cem", [str(cem)])]
    one, other = (np.mean([file["returns"] for file in plain["files"][part]]) for part in (slice(0, 2), slice(2, 3)))
    (pair,) = plain["comparisons"]
    assert (pair["first"], pair["second"], pair["unit"]) == ("openai_es", "cem", "run")
    assert pair["mean_difference"] == pytest.approx(one - other)
    whole = call_command(capfd, "compare", weights, *FLAGS)
    assert "cem over openai_es, by run" in whole and "few runs" in whole


def test_what_cannot_be_compared_is_one_line_and_status_2(tmp_path, refusal):
    (tmp_path / "a\x1b[31m").mkdir()
    for arguments, expected in [
        ([tmp_path], "holds no run"),
        ([tmp_path / "a\x1b[31m"], "holds no run"),
        ([tmp_path / "none.dat"], "no such file"),
        ([], "path_weights"),
        ([""], "path_weights must name policy files"),
    ]:
        line = refusal("compare", *arguments)
        assert expected in line and "\x1b" not in line


def test_a_file_says_where_its_run_started(weights, tmp_path, capfd):
    start = weights / "Scripted-v0" / "es1" / "best.dat"
    folder = train(make_scripted_config(tmp_path, init_from=str(start), generations=1))
    found = json.loads(call_command(capfd, "compare", start, folder / "best.dat", "--json", *FLAGS))
    assert [each["method"] for each in found["methods"]] == ["openai_es", f"openai_es init_from={start}"]


def test_a_file_whose_policy_differs_from_its_training_is_of_another_method(weights, tmp_path, capfd):
    path, other = weights / "Scripted-v0" / "cem" / "best.dat", tmp_path / "other.dat"
    saved = read_policy_file(path, ["tests.scripted"])
    options = {**saved.provenance["options"], "bias": not saved.policy.bias}
    save_policy(other, replace(saved, provenance={**saved.provenance, "options": options}))
    found = json.loads(call_command(capfd, "compare", path, other, "--json", *FLAGS))
    assert [each["method"] for each in found["methods"]] == ["cem"]  # that of the policy counts


def test_of_a_file_without_the_options_of_its_training_the_policy_is_known(weights, tmp_path, capfd):
    path = weights / "Scripted-v0" / "cem" / "best.dat"
    bare = tmp_path / "bare.dat"
    save_policy(bare, replace(read_policy_file(path, ["tests.scripted"]), provenance={}))
    found = json.loads(call_command(capfd, "compare", path, bare, "--json", *FLAGS))
    assert [each["method"] for each in found["methods"]] == ["cem", "linear"]
