import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.engine import Moments
from rollouts import moments as module
from rollouts.moments import MomentTally, merged, standardisation


@given(st.lists(st.integers(1, 40), min_size=1, max_size=6), st.integers(0, 2**32 - 1))
def test_merged_blocks_equal_numpys_own_figures(sizes, seed):
    rng = np.random.default_rng(seed)
    blocks = [1e4 + rng.normal(size=(size, 3)) for size in sizes]
    parts = []
    for block in blocks:
        tally = MomentTally()
        for rows in np.array_split(block, 3):
            if len(rows):
                tally.add(rows)
        parts.append(tally.result())
    whole, all_rows = merged(parts), np.concatenate(blocks)
    assert whole.count == len(all_rows)
    assert whole.mean == pytest.approx(all_rows.mean(axis=0))
    assert whole.squares / whole.count == pytest.approx(all_rows.var(axis=0), rel=1e-6, abs=1e-9)


def test_a_block_that_fills_is_counted_like_the_rest(monkeypatch):
    monkeypatch.setattr(module, "BLOCK_BYTES", 100)
    rows = np.random.default_rng(0).normal(size=(50, 4)).astype(np.float32)
    tally = MomentTally()
    for row in rows:
        tally.add(row[np.newaxis])
    assert tally.result().count == 50
    assert tally.result().mean == pytest.approx(rows.astype(np.float64).mean(axis=0))


def test_nothing_seen_standardises_to_the_same():
    assert merged([]) is None
    buffers = standardisation(None, (2,))
    assert buffers["observation_mean"].tolist() == [0, 0]
    assert buffers["observation_std"].tolist() == [1, 1]


def test_an_observation_that_never_changes_does_not_divide_by_zero():
    buffers = standardisation(Moments(4, np.array([5.0, 1.0]), np.array([0.0, 16.0])), (2,))
    assert buffers["observation_mean"].tolist() == [5, 1]
    assert buffers["observation_std"] == pytest.approx([1e-3, 2.0])
    assert buffers["observation_std"].dtype == np.float32
