"""Merging the rules of a policy file, and training that continues with the merged file."""

import shlex

import numpy as np
import pytest

from hebbes.evaluation.play import play
from hebbes.files.policy_file import read_policy_file, save_policy
from hebbes.options.command_line import parse_config
from hebbes.policies.hebbian import Hebbian
from hebbes.programs.merge import MergeConfig, merge
from hebbes.training.prepare import prepare
from tests.files.saved_policies import expect_refusal, make_saved_policy, write_forged_file
from tests.training.scripted_runs import OPTIONS, SETTINGS, make_config, read_outcome, train

IMPORT = ("tests.scripted",)
RUN = {
    "population_size": 8,
    "threads": 1,
    "checkpoint_every": 2,
    "eval_every": 1,
    "eval_episodes": 2,
    "test_episodes": 0,
}


def make_hebbian_config(folder, **changes):
    own = {"folder": str(folder), "policy": "hebbian", "hidden_sizes": (3,)}
    return make_config("hebbian", **{**OPTIONS, **SETTINGS, **own, **changes})


def read_command(said):
    """The arguments of the printed command that continues training."""
    (line,) = (line for line in said.splitlines() if line.startswith("to go on"))
    words = shlex.split(line.removeprefix("to go on"))
    assert words[:2] == ["python", "train_hebbian.py"]
    return words[2:]


@pytest.fixture(scope="module")
def merged_file(tmp_path_factory):
    """A file of four rules, and the text that the program printed."""
    folder = tmp_path_factory.mktemp("merged")
    source = train(make_hebbian_config(folder, generations=2, update_every=2, init_weights="normal")) / "latest.dat"
    options = MergeConfig(path_weights=str(source), num_rules=4, output=str(folder / "merged.dat"), imports=IMPORT)
    return folder / "merged.dat", merge(options)


def test_the_printed_command_trains_resumes_bit_for_bit_and_keeps_the_tables(merged_file, tmp_path):
    path, said = merged_file
    assert "parameters      60 before, 20 after\nrules           4\n" in said
    flags = [f"--{name}={value}" for name, value in {**RUN, "folder": tmp_path, "generations": 6}.items()]
    config = parse_config("hebbian", [*read_command(said), *flags], "")
    whole = train(config.change(run={"run_name": "whole"}))
    stopped = train(config.change(run={"run_name": "run"}, trainer_options={"generations": 3}))
    path.rename(path.with_suffix(".gone"))  # a resume needs only the checkpoint
    try:
        again = parse_config("hebbian", ["--resume", str(stopped), "--import", *IMPORT, "--generations", "6"], "")
        assert read_outcome(train(again)) == read_outcome(whole)
    finally:
        path.with_suffix(".gone").rename(path)
    start, best = (read_policy_file(each, IMPORT) for each in (path, whole / "best.dat"))
    tables = {name for name in start.buffers if name.startswith("rule_table")}
    assert tables == {"rule_table.dense1", "rule_table.dense2"}
    assert all(np.array_equal(best.buffers[name], start.buffers[name]) for name in tables)
    assert not np.array_equal(read_policy_file(whole / "latest.dat", IMPORT).weights, start.weights)
    assert best.buffers["observation_count"] > start.buffers["observation_count"]
    returns = play(best, best.environment, episodes=2, seed=0, threads=1).fitness
    assert np.isfinite(returns).all()


def test_the_start_is_the_merged_policy(merged_file, tmp_path):
    path, said = merged_file
    flags = [f"--{name}={value}" for name, value in {**RUN, "folder": tmp_path}.items()]
    (run,) = prepare(parse_config("hebbian", [*read_command(said), *flags], ""))
    start = read_policy_file(path, IMPORT)
    assert np.array_equal(run.trainer.policy[0], start.weights)
    assert {name for name in run.trainer.policy[1] if name.startswith("rule")} == {
        "rule_table.dense1",
        "rule_table.dense2",
    }
    assert start.provenance["merged_from"]["generation"] == 2


def test_it_keeps_the_seed_of_the_training_apart_from_its_own(merged_file, tmp_path):
    path, _ = merged_file
    first = read_policy_file(path, IMPORT).provenance
    options = {"path_weights": first["merged_from"]["path"], "output": str(tmp_path / "again.dat"), "seed": 9}
    merge(MergeConfig(num_rules=4, imports=IMPORT, **options))
    again = read_policy_file(tmp_path / "again.dat", IMPORT).provenance
    assert (first["merge_seed"], again["merge_seed"]) == (0, 9) and "seed" not in again
    assert first["merged_from"]["seed"] == again["merged_from"]["seed"]


def test_clusters_without_a_table_are_refused_before_anything_is_written(tmp_path):
    with pytest.raises(ValueError, match=r"sharing clusters needs the buffer rule_table.dense1.* init_from"):
        prepare(make_hebbian_config(tmp_path, sharing="clusters", num_rules=4))
    assert list(tmp_path.iterdir()) == []


def test_options_of_another_merge_are_named_and_no_others(merged_file, tmp_path):
    path, _ = merged_file
    config = make_hebbian_config(tmp_path, sharing="clusters", num_rules=5, update_every=2)
    message = r"holds init_weights 'normal', num_rules 4, but these options make init_weights 'uni', num_rules 5$"
    with pytest.raises(ValueError, match=message):
        prepare(config.change(run={"init_from": str(path)}))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"num_rules": 0}, "num_rules must be >= 1, got 0"),
        ({"num_rules": 13}, r"merged.dat: num_rules must be 1 to the number of synapses, 12, got 13"),
        ({"seed": -1}, "seed must be >= 0, got -1"),
        ({"path_weights": ""}, "path_weights must name a policy file"),
        ({"output": ""}, "output must name a policy file"),
        ({"output": "merged.bin"}, "output must name a .dat file, got 'merged.bin'"),
        ({"output": "no/such/folder.dat"}, "the folder no/such does not exist"),
        ({"imports": ()}, "needs code from the module 'tests.scripted'"),
        ({"path_weights": "LICENSE"}, "LICENSE: not a hebbes file"),
    ],
)
def test_bad_input_is_refused_and_nothing_is_written(merged_file, tmp_path, changes, message):
    options = {
        "path_weights": str(merged_file[0]),
        "num_rules": 2,
        "output": str(tmp_path / "a.dat"),
        "imports": IMPORT,
    }
    with pytest.raises(ValueError, match=message):
        merge(MergeConfig(**{**options, **changes}))
    assert list(tmp_path.iterdir()) == []


def test_a_policy_without_rules_and_an_output_that_exists_are_refused(tmp_path):
    save_policy(tmp_path / "static.dat", make_saved_policy())
    options = {"path_weights": str(tmp_path / "static.dat"), "num_rules": 2}
    with pytest.raises(ValueError, match=r"static.dat: the policy 'mlp' has no learning rules to merge"):
        merge(MergeConfig(**options, output=str(tmp_path / "out.dat")))
    with pytest.raises(ValueError, match=r"output .*static.dat exists already"):
        merge(MergeConfig(**options, output=str(tmp_path / "static.dat")))


CLUSTERED = make_saved_policy(
    Hebbian((3,), 2, hidden_sizes=(4,), sharing="clusters", num_rules=2),
    buffers={"rule_table.dense1": np.ones((4, 3), np.uint32), "rule_table.dense2": np.zeros((2, 4), np.uint32)},
)


def test_a_file_whose_table_points_elsewhere_is_refused(tmp_path):
    tables = {f"buffers.{name}": table for name, table in CLUSTERED.buffers.items()}
    tables["buffers.rule_table.dense1"] = np.full((4, 3), 2**32 - 1, np.uint32)
    forged = write_forged_file(tmp_path / "forged.dat", CLUSTERED, arrays={"weights": CLUSTERED.weights, **tables})
    assert "rule_table.dense1: got rule 4294967295, the rules are 0 to 1" in expect_refusal(forged)
