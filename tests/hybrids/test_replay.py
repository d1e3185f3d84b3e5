"""The replay: a ring of transitions, and its segments, which never change."""

import gc
import multiprocessing
import pickle
from pathlib import Path

import numpy as np
import pytest

from hebbes.contracts.engine import Transitions
from hebbes.hybrids.core import replay as module
from hebbes.hybrids.core.replay import Replay
from hebbes.hybrids.core.settings import count_row_bytes


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(module, "BLOCK", 4)


def make_transitions(first, count):
    """Transitions whose numbers tell which they are."""
    numbers = np.arange(first, first + count, dtype=np.float64)
    return Transitions(
        observations=np.stack([numbers, -numbers], axis=1),
        actions=numbers[:, np.newaxis].astype(np.float32) / 2,
        rewards=numbers * 10,
        terminated=numbers % 3 == 0,
        next_observations=np.stack([numbers + 1, -numbers - 1], axis=1),
    )


def list_kept(replay):
    """The numbers of the transitions in the replay, in ascending order."""
    rng = np.random.default_rng(0)
    drawn = np.concatenate([replay.draw(rng, 64).observations[:, 0].numpy() for _ in range(20)])
    return np.unique(drawn).astype(int).tolist()


@pytest.mark.parametrize("capacity", [3, 4, 10, 16])
@pytest.mark.parametrize("count", [1, 3, 5, 23])
def test_the_latest_transitions_are_kept(capacity, count):
    replay, added = Replay(capacity, 2, 1), 0
    while added < 40:
        replay.add(make_transitions(added, count))
        added += count
        assert (replay.count, len(replay)) == (added, min(added, capacity))
        assert list_kept(replay) == list(range(max(0, added - capacity), added))


def test_memory_that_the_system_refuses_names_the_option(monkeypatch):
    def refuse(shape):
        raise OSError(27, "File too large")

    monkeypatch.setattr(module, "SharedArray", refuse)
    with pytest.raises(ValueError, match=r"^replay_size 1000000 takes 28 MB, refused: File too large$"):
        Replay(1_000_000, 2, 1)


def test_a_block_of_long_rows_is_as_large_as_a_segment_may_be(monkeypatch):
    monkeypatch.setattr(module, "MAX_SEGMENT_BYTES", 2 * count_row_bytes(2, 1) + 1)
    replay = Replay(10, 2, 1)
    replay.add(make_transitions(0, 7))
    segments = replay.get_segments()
    assert [len(segment.arrays["rows"]) for segment in segments.values()] == [2, 2, 2, 1]
    restored = Replay(10, 2, 1)
    restored.set_segments(segments, 7)
    assert list_kept(restored) == list(range(7))


def test_a_batch_is_whole_transitions_drawn_uniformly():
    replay = Replay(100, 2, 1)
    replay.add(make_transitions(0, 50))
    batch = replay.draw(np.random.default_rng(0), 20_000)
    numbers = batch.observations[:, 0]
    assert (batch.observations[:, 1] == -numbers).all() and (batch.actions[:, 0] == numbers / 2).all()
    assert (batch.rewards == 10 * numbers).all() and (batch.next_observations[:, 0] == numbers + 1).all()
    assert (batch.continues == (numbers % 3 != 0)).all()
    counts = np.bincount(numbers.int().numpy(), minlength=50)
    assert ((counts - 400) ** 2 / 400).sum() < 85  # chi-squared with 49 degrees of freedom: p = 0.001


@pytest.mark.parametrize("slack", [0, 3, 9])
def test_a_view_stays_whole_until_its_rows_are_overwritten(slack):
    replay, added = Replay(10, 2, 1, slack), 0
    views = []
    for _ in range(30):
        replay.add(make_transitions(added, 3))
        added += 3
        assert list_kept(replay) == list(range(max(0, added - 10), added))
        views = [view for view in views if replay.keeps(view.count, 0)]
        for view in views:
            assert list_kept(view) == list(range(max(0, view.count - 10), view.count))
        if added >= 27:
            assert [view.count for view in views] == [added - 3 * k for k in range(slack // 3, 0, -1)]
        views.append(replay.make_view(added))
        assert replay.keeps(added, slack) and (added < 10 or not replay.keeps(added, slack + 1))


def draw_first(view):
    """What another process draws."""
    return view.draw(np.random.default_rng(3), 5).observations.numpy()


def test_another_process_draws_from_the_same_memory():
    replay = Replay(10, 2, 1, slack=4)
    replay.add(make_transitions(0, 12))
    view = replay.make_view(12)
    assert len(pickle.dumps(Replay(10**6, 2, 1).make_view(12))) < 1000
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert np.array_equal(pool.apply(draw_first, (view,)), draw_first(view))
        replay.add(make_transitions(12, 2))  # where nothing was when the process was made
        view = replay.make_view(14)
        assert np.array_equal(pool.apply(draw_first, (view,)), draw_first(view))


def test_where_memory_has_no_files_the_rows_are_sent(monkeypatch):
    monkeypatch.delattr("os.memfd_create")
    replay = Replay(10, 2, 1)
    replay.add(make_transitions(0, 12))
    view = replay.make_view(12)
    sent = pickle.loads(pickle.dumps(view))
    assert np.array_equal(draw_first(sent), draw_first(view)) and sent._rows is not view._rows


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="no list of open files")
def test_a_replay_that_is_gone_leaves_nothing_open():
    gc.collect()  # what earlier tests have left
    before = len(list(Path("/proc/self/fd").iterdir()))
    replay = Replay(10, 2, 1)
    view = replay.make_view(0)
    del replay, view
    gc.collect()
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_the_memory_that_help_states():
    assert count_row_bytes(17, 6) == 4 * (2 * 17 + 6 + 2) == Replay(1, 17, 6)._rows.nbytes


@pytest.mark.parametrize("slack", [0, 5])
@pytest.mark.parametrize("capacity", [10, 16])
def test_segments_never_change_and_restore_the_replay(capacity, slack):
    replay, rng = Replay(capacity, 2, 1, slack), np.random.default_rng(1)
    saved, added = [], 0
    for _ in range(30):
        count = int(rng.integers(1, 7))
        replay.add(make_transitions(added, count))
        added += count
        segments = replay.get_segments()
        copies = {name: segment.arrays["rows"].copy() for name, segment in segments.items()}
        saved.append((added, segments, copies, list_kept(replay)))
    for added, segments, copies, kept in saved:  # earlier states are whole, whatever was added later
        for name, segment in segments.items():
            np.testing.assert_array_equal(segment.arrays["rows"], copies[name])
        resumed = Replay(capacity, 2, 1, slack)
        resumed.set_segments(segments, added)
        assert list_kept(resumed) == kept
        resumed.add(make_transitions(added, 3))
        assert list_kept(resumed) == sorted([*kept, added, added + 1, added + 2])[-capacity:]


def test_unchanged_blocks_are_the_same_segments():
    replay = Replay(16, 2, 1)
    replay.add(make_transitions(0, 10))
    first = replay.get_segments()
    replay.add(make_transitions(10, 3))
    second = replay.get_segments()
    same = [first[name] is second[name] for name in ("block0", "block1")]
    assert same == [True, True] and first["block2"] is not second["block2"]
    replay.add(make_transitions(13, 4))  # overwrites row 0
    third = replay.get_segments()
    assert third["block0"] is not first["block0"] and third["block1"] is first["block1"]


def test_segments_of_another_replay_are_refused():
    replay = Replay(16, 2, 1)
    replay.add(make_transitions(0, 10))
    with pytest.raises(ValueError, match="block 0"):
        Replay(16, 3, 1).set_segments(replay.get_segments(), 10)
    with pytest.raises(KeyError):
        Replay(16, 2, 1).set_segments({}, 10)


@pytest.mark.parametrize("count", [3, 11, 40])
def test_segments_in_another_place_give_the_same_batches(count):
    """Also after the ring has turned over, and for the view of a moment before the latest transitions."""
    replay = Replay(10, 2, 1, slack=5)
    for added in range(count):
        replay.get_segments()
        replay.add(make_transitions(added, 1))
    for earlier in (0, 2):
        view = replay.make_view(count - earlier)
        joined = module.join_segments(pickle.loads(pickle.dumps([*replay.get_segments().values()])), view.extent)
        drawn, again = (each.draw(np.random.default_rng(1), 64) for each in (view, joined))
        assert all(
            bool((mine == its).all()) for mine, its in zip(vars(drawn).values(), vars(again).values(), strict=True)
        )
