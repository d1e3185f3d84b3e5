import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hebbes.contracts.engine import Moments
from hebbes.execution.observation_moments import MomentTally, make_normalization_buffers, merge_moments, read_moments


@given(st.lists(st.integers(1, 40), min_size=1, max_size=6), st.integers(0, 2**32 - 1))
def test_merged_members_equal_numpys_mean_and_variance(lengths, seed):
    rng = np.random.default_rng(seed)
    rows = [1e4 + rng.normal(size=(length, 3)) for length in lengths]
    tally = MomentTally(len(rows))
    for env_step in range(max(lengths)):
        members = np.flatnonzero(np.array(lengths) > env_step)
        tally.add(members, np.stack([rows[member][env_step] for member in members]))
    whole, all_rows = merge_moments(tally.compute_moments()), np.concatenate(rows)
    assert whole.count == len(all_rows)
    assert whole.mean == pytest.approx(all_rows.mean(axis=0))
    assert whole.squares / whole.count == pytest.approx(all_rows.var(axis=0), rel=1e-6, abs=1e-9)


@pytest.mark.parametrize(("shape", "dtype"), [((1,), np.float32), ((5,), np.float64), ((3, 4, 4), np.uint8)])
def test_a_members_moments_are_the_same_bits_in_any_batch(shape, dtype):
    observations = np.random.default_rng(0).uniform(0, 255, size=(20, 7, *shape)).astype(dtype)
    together, alone = MomentTally(7), [MomentTally(1) for _ in range(7)]
    for batch in observations:
        together.add(np.arange(7), batch)
        for tally, row in zip(alone, batch, strict=True):
            tally.add(np.arange(1), row[np.newaxis])
    for one, (other,) in zip(together.compute_moments(), [tally.compute_moments() for tally in alone], strict=True):
        assert one.mean.tobytes() == other.mean.tobytes()
        assert one.squares.tobytes() == other.squares.tobytes()


def test_without_observations_normalization_changes_nothing():
    assert MomentTally(2).compute_moments() == (None, None)
    assert merge_moments([]) is merge_moments([None, None]) is None
    buffers = make_normalization_buffers(None, (2,), 0.001)
    assert buffers["observation_mean"].tolist() == [0, 0]
    assert buffers["observation_std"].tolist() == [1, 1]


def test_an_observation_that_never_changes_does_not_divide_by_zero():
    moments = Moments(4, np.array([5.0, 1.0]), np.array([0.0, 16.0]))
    for std_min, expected in ((0.001, [0.001, 2.0]), (0.05, [0.05, 2.0]), (3.0, [3.0, 3.0])):
        buffers = make_normalization_buffers(moments, (2,), std_min)
        assert buffers["observation_mean"].tolist() == [5, 1]
        assert buffers["observation_std"] == pytest.approx(expected)
        assert buffers["observation_std"].dtype == np.float32


def test_moments_are_read_back_from_the_buffers_that_were_made_of_them():
    moments = Moments(7, np.array([1.0, -20.0]), np.array([7 * 4.0, 7 * 0.25]))
    buffers = make_normalization_buffers(moments, (2,), 0.001)
    assert buffers["observation_std"].tolist() == [2.0, 0.5]
    found = read_moments(buffers)
    assert (found.count, found.mean.tolist(), found.squares.tolist()) == (7, [1.0, -20.0], [28.0, 1.75])
    assert read_moments(make_normalization_buffers(None, (2,), 0.001)) is None
