"""Hostile weight files are refused with one line, in at most three seconds and 200 MB, and nothing is executed."""

import pickle

import pytest

from tests.files.hostile_files import load_all_in_fresh_process, write_corpus
from tests.files.hostile_pickles import make_exploits
from tests.python_process import run_python


@pytest.mark.slow
def test_every_hostile_file_is_refused_at_little_cost_and_runs_nothing(tmp_path):
    folder, marker = tmp_path / "files", tmp_path / "exploited"
    folder.mkdir()
    count = write_corpus(folder, marker)
    found = load_all_in_fresh_process(folder)
    assert count > 1000
    assert len(found) == 2 * count == 2 * len([*folder.iterdir()])
    assert [refusal for refusal in found if refusal.error != "WeightFileError" or "\n" in refusal.message] == []
    assert [refusal for refusal in found if refusal.seconds > 3 or refusal.megabytes > 200] == []
    assert not marker.exists()


def test_the_exploits_work_with_the_plain_unpickler(tmp_path):
    marker = tmp_path / "exploited"
    for exploit in make_exploits(str(marker)).values():
        (tmp_path / "exploit").write_bytes(pickle.dumps(exploit))
        run_python("-m", "pickle", tmp_path / "exploit")
        marker.rmdir()  # fails if the exploit did not make it
