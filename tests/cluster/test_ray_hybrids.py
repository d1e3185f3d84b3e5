"""Hybrids on a Ray cluster: their jobs draw from a replay that is sent in blocks, and give the bits of threads."""

import pytest

from hebbes.execution.in_process import InProcess
from hebbes.hybrids import jobs
from hebbes.hybrids.aes_rl import AESRL
from hebbes.hybrids.core import replay
from hebbes.hybrids.p_cem_rl import PCEMRL
from tests.cluster.ray_engines import make_ray_engine
from tests.hybrids import cem_rl_trainers as cem_rl
from tests.hybrids import test_asynchronous as asynchronous

pytestmark = pytest.mark.ray


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(replay, "BLOCK", 32)
    monkeypatch.setattr(jobs, "CRITIC_STEPS", 40)


def test_an_asynchronous_hybrid_is_repeated_by_threads(joined, tmp_path):
    """A replay of 70 turns over, while jobs still draw from its older transitions."""
    joined.keep((1, 1))
    changes = {"completion_log": str(tmp_path / "log"), "replay_size": 70}
    first = asynchronous.make_trainer(AESRL, **changes)
    engine = make_ray_engine(joined, asynchronous.make_task())
    on_ray, _ = asynchronous.advance(first, engine, 14)
    engine.close()
    assert {0, 1} == {row["is_rl"] for row in on_ray}
    again = asynchronous.make_trainer(AESRL, **changes)
    engine = InProcess(asynchronous.make_task(), chunk_size=3, threads=1)
    alone, _ = asynchronous.advance(again, engine, 14)
    engine.close()
    asynchronous.assert_same_rows(alone, on_ray)
    states = [trainer.get_state().arrays for trainer in (first, again)]
    for name in ("critics.rows", "critics.targets", "distribution.mean", "distribution.variance"):
        assert (states[0][name] == states[1][name]).all(), name


def test_parallel_critics_have_the_bits_of_threads(joined):
    joined.keep((1, 1))
    trainers = [cem_rl.make_trainer(PCEMRL, parallel_critic=True) for _ in range(2)]
    engines = [make_ray_engine(joined, cem_rl.make_task()), InProcess(cem_rl.make_task(), chunk_size=4, threads=1)]
    for trainer, engine in zip(trainers, engines, strict=True):
        cem_rl.advance(trainer, engine, 4)
        engine.close()
    cem_rl.assert_same(*trainers)
