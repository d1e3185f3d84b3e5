"""Reports of files that several methods have trained."""

import json
from dataclasses import replace

import numpy as np

from hebbes.programs.evaluation_report import format_report
from tests.programs.test_evaluation import make_config, make_result


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
    assert pairs["openai_es sigma=0.1 over cem, by run"] == ["0.00", "[0.00,", "0.00]", "-3.00", "[-4.00,", "-2.00]"]
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
