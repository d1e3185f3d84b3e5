"""Rollouts of chunks are joined alike, however the members were cut."""

from hebbes.execution.chunks import make_failed_rollouts
from hebbes.execution.join_rollouts import join_rollouts


def test_reasons_of_failures_are_in_an_order_that_chunks_do_not_change():
    """Within a chunk they come as the episodes meet them, and chunk by chunk as the members do."""
    parts = [make_failed_rollouts(range(1), 1, reason) for reason in ("non-finite reward", "non-finite observation")]
    for chunks in (parts, parts[::-1]):
        faults = join_rollouts(chunks).faults
        assert list(faults.items()) == [("non-finite observation", 1), ("non-finite reward", 1)]
