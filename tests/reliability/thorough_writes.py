"""A run that is killed before any of its file operations, and again when resumed, ends with the same bits."""

import pytest
from killed_runs import kill_at_operations


@pytest.mark.parametrize(("trainer", "every"), [("static", 1), ("replay", 4)])
def test_kills_at_every_operation_on_a_file(trainer, every, tmp_path, tell):
    kill_at_operations(trainer, every, tmp_path, tell)
