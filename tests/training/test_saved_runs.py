"""The runs that a folder holds, and their policy files."""

import pytest

from hebbes.training.saved_runs import find_run_folders, list_policy_files


def make_run(folder, *files):
    (folder / "checkpoint").mkdir(parents=True)
    for name in files:
        (folder / name).touch()
    return folder


def test_runs_are_found_in_any_depth_in_the_order_of_their_seeds(tmp_path):
    (tmp_path / "top").mkdir()
    (tmp_path / "top" / "config.yaml").touch()
    seeds = [make_run(tmp_path / "top" / f"seed{seed}", "config.yaml") for seed in (2, 10)]
    alone = make_run(tmp_path / "alone" / "deep")
    damaged = tmp_path / "without checkpoints"
    damaged.mkdir()
    (damaged / "config.yaml").touch()
    make_run(tmp_path / ".run.123.tmp")
    assert find_run_folders(tmp_path) == [alone, *seeds, damaged]
    assert find_run_folders(seeds[0]) == [seeds[0]]


def test_what_holds_no_run_is_named(tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").touch()
    for name, why in {
        "empty": "holds no run",
        "file": "is a file, not the folder of a run",
        "c": "is not there",
    }.items():
        with pytest.raises(ValueError, match=f"^{tmp_path / name} {why}$"):
            find_run_folders(tmp_path / name)


def test_a_folder_stands_for_the_best_policy_of_each_run(tmp_path):
    make_run(tmp_path / "a" / "seed0", "best.dat")
    make_run(tmp_path / "a" / "seed1", "best.dat")
    paths = ["x.dat", str(tmp_path / "a")]
    assert list_policy_files(paths) == ["x.dat", *(str(tmp_path / "a" / f"seed{seed}" / "best.dat") for seed in (0, 1))]
    make_run(tmp_path / "b")
    with pytest.raises(ValueError, match=r"b has no best\.dat, because the run was not evaluated yet"):
        list_policy_files([str(tmp_path / "b")])
