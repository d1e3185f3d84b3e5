"""The asynchronous hybrids on Pendulum-v1, with episodes of 20 env steps, in threads and in worker processes."""

import json
import threading
from dataclasses import replace

import numpy as np
import pytest

from hebbes.contracts.engine import EngineError
from hebbes.contracts.trainer import MAX_VALUES_LENGTH
from hebbes.execution.in_process import InProcess
from hebbes.execution.workers import Workers
from hebbes.hybrids import jobs
from hebbes.hybrids.acem_rl import ACEMRL
from hebbes.hybrids.aes_rl import AESRL
from hebbes.hybrids.one_plus_one_rl import OnePlusOneRL
from hebbes.recording.metrics import METRICS
from hebbes.training.advice import find_advice
from tests.hybrids.asynchronous_trainers import LENGTH, advance_until, find_told, make_task, make_trainer
from tests.hybrids.cem_rl_trainers import advance

KINDS = [AESRL, ACEMRL, OnePlusOneRL]
TIMED = {"work_seconds", "job_wait_seconds"}


@pytest.fixture(scope="module")
def engines():
    made = {
        "one thread": InProcess(make_task(), chunk_size=3, threads=1),
        "two threads": InProcess(make_task(), chunk_size=3, threads=2),
        "one worker": Workers(make_task(), chunk_size=3, threads=1),
        "two workers": Workers(make_task(), chunk_size=3, threads=2),
    }
    yield made
    for engine in made.values():
        engine.close()


@pytest.fixture(autouse=True)
def few_critic_steps(monkeypatch):
    assert jobs.CRITIC_STEPS == 1000  # of a job, as in the paper's code
    monkeypatch.setattr(jobs, "CRITIC_STEPS", 40)


def copy_state(trainer):
    state = trainer.get_state()
    arrays = {name: np.array(array) for name, array in state.arrays.items()}
    return replace(state, arrays=arrays, values=json.loads(json.dumps(state.values)))


def assert_same_rows(found, expected):
    assert len(found) == len(expected)
    for row, other in zip(found, expected, strict=True):
        np.testing.assert_equal(*({k: v for k, v in each.items() if k not in TIMED} for each in (row, other)))


@pytest.mark.parametrize("name", ["one thread", "one worker"])
def test_the_mean_policy_plays_before_the_next_individual(name, engines):
    trainer = make_trainer()
    rows, _ = advance_until(lambda rows: len(find_told(rows)) > 5, trainer, engines[name])
    assert {row["mean_policy_lag"] for row in find_told(rows)} == {0}


@pytest.mark.parametrize(("kind", "name"), [(AESRL, "one thread"), *((kind, "two threads") for kind in KINDS)])
def test_trains_in_threads(kind, name, engines):
    trainer = make_trainer(kind)
    rows, progress = advance_until(lambda rows: len(find_told(rows)) > 10 and rows[-1]["is_rl"], trainer, engines[name])
    assert all(row.keys() == rows[0].keys() <= METRICS.keys() for row in rows)
    assert {row["is_rl"] for row in rows} == {0, 1}
    for row in rows:
        assert row["actor_steps"] in (range(LENGTH, 10 * LENGTH + 1, LENGTH) if row["is_rl"] else [0])
        assert np.isfinite(row["q_mean"]) == row["is_rl"]
        is_told = np.isfinite(row["mean_policy_return"])
        assert row["mean_policy_env_steps"] == is_told * 5 * LENGTH
        assert np.isfinite(row["mean_policy_lag"]) == is_told
        assert np.isfinite(row["critic_loss"]) == (row["critic_steps"] > 0)
    assert sum(row["critic_steps"] for row in rows) < progress.env_steps + 40
    assert trainer._counters.env_steps == progress.env_steps == trainer.learner.replay.count
    assert any(row["update_norm"] > 0 for row in rows)
    assert 0 < rows[-1]["rl_share"] < 0.6
    assert all(row["work_seconds"] >= 0 for row in rows) and sum(row["work_seconds"] for row in rows) > 0


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_trains_in_worker_processes(kind, engines):
    trainer, engine = make_trainer(kind, rl_share=1.0), engines["two workers"]
    rows, progress = advance_until(lambda rows: rows[-1]["is_rl"], trainer, engine)
    assert progress.env_steps % LENGTH == 0
    assert all(np.isfinite(row["return"]) for row in rows) and np.isfinite(rows[-1]["mean_policy_return"])


def test_individuals_of_the_warm_up_act_at_random_and_are_not_told(engines):
    trainer = make_trainer(start_steps=4 * LENGTH, actor_workers=2)
    start = trainer.actor
    told, tell = [], trainer.distribution.tell
    trainer.distribution.tell = lambda *arguments: told.append(arguments) or tell(*arguments)
    rows, progress = advance(trainer, engines["two threads"], 4)
    assert not told and progress.env_steps == 4 * LENGTH
    assert [row["update_norm"] for row in rows] == [0] * 4
    later, progress = advance_until(lambda rows: told, trainer, engines["two threads"], progress)
    assert len(told) == 1
    assert progress.env_steps >= 5 * LENGTH  # perhaps a fifth that acts at random, and the first that is told
    assert later[-1].keys() == rows[0].keys()
    actions = trainer.learner.replay._rows[: 4 * LENGTH, 3]
    assert actions.std() == pytest.approx(2 / 3**0.5, rel=0.2)  # Pendulum's torque is in [-2, 2]
    individual = told[0][0]
    assert not np.array_equal(individual, start)


def test_without_rl_it_is_an_evolution_strategy(engines):
    trainer = make_trainer(rl_share=0.0)
    critics = trainer.learner.critics.get_state()
    rows, progress = advance(trainer, engines["one thread"], 6)
    assert [row["is_rl"] for row in rows] == [row["critic_steps"] for row in rows] == [0] * 6
    assert (rows[-1]["replay_size"], trainer.learner.replay.count) == (0, 0)
    assert progress.env_steps >= 6 * LENGTH
    assert all(np.array_equal(array, critics[name]) for name, array in trainer.learner.critics.get_state().items())
    by_hand = make_trainer(rl_share=0.0).distribution
    row = by_hand.sample(0)
    assert by_hand.tell(row, rows[0]["return"], rows[0]["mean_policy_return"]).items() <= rows[0].items()


def test_no_individual_is_trained_before_the_critics_are(engines):
    trainer = make_trainer(rl_share=1.0, actor_workers=1)
    rows, _ = advance_until(lambda rows: rows[-1]["is_rl"], trainer, engines["one thread"])
    assert sum(row["critic_steps"] for row in rows) > 0
    assert not find_told(rows)[0]["is_rl"]  # it was drawn when the critics' first job was


@pytest.mark.parametrize(
    ("name", "replay_size"),
    [
        ("one thread", 1000),
        pytest.param("one worker", 40, marks=pytest.mark.slow),
        pytest.param("two workers", 40, marks=pytest.mark.slow),
    ],
)
def test_the_order_of_completions_gives_the_same_bits(name, replay_size, engines, tmp_path):
    changes = {"completion_log": str(tmp_path / "log"), "replay_size": replay_size}
    first, again = make_trainer(**changes), None
    rows, progress = advance(first, engines["two threads"], 12)
    text = (tmp_path / "log").read_text()
    again = make_trainer(**changes)
    assert_same_rows(advance(again, engines[name], 12)[0], rows)
    assert (tmp_path / "log").read_text() == text
    states = first.get_state(), again.get_state()
    for array in ("critics.rows", "critics.targets", "critics.adam_mean", "distribution.mean", "distribution.variance"):
        assert np.array_equal(*(state.arrays[array] for state in states)), array
    assert states[0].values["counters"] == states[1].values["counters"]
    advance(again, engines[name], 1, progress)
    assert (tmp_path / "log").read_text().startswith(text)
    entries = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]
    assert [entry["completion"] for entry in entries] == list(range(len(entries)))


@pytest.mark.parametrize("replay_size", [1000, 40])
def test_goes_on_with_the_jobs_that_were_under_way(replay_size, engines, tmp_path, capsys):
    """The log of a run that was killed is longer than its checkpoint. A replay of 40 turns over."""
    changes = {"completion_log": str(tmp_path / "log"), "replay_size": replay_size}
    whole = make_trainer(**changes)
    _, progress = advance(whole, engines["two threads"], 9)
    state = copy_state(whole)
    assert {values["kind"] for values in state.values["flights"]} >= {"individual"}
    later, _ = advance(whole, engines["two threads"], 6, progress)  # segments of the state stay
    with (tmp_path / "log").open("a") as file:
        file.write('{"completion": 10')  # the kill cut a line off
    resumed = make_trainer(**changes)
    resumed.set_state(state)
    assert "cannot repeat the run" not in capsys.readouterr().err
    assert_same_rows(advance(resumed, engines["one thread"], 6, progress)[0], later)
    assert np.array_equal(resumed.actor, whole.actor)


def test_a_state_with_answers_that_have_come_is_restored(engines):
    trainer, engine = make_trainer(), engines["two threads"]
    _, progress = advance(trainer, engine, 6)
    for flight in trainer._flights:
        trainer._collect([flight], engine)
    state = copy_state(trainer)
    resumed = make_trainer()
    resumed.set_state(state)
    for name, array in state.arrays.items():
        np.testing.assert_array_equal(resumed.get_state().arrays[name], array, name)
    found, expected = (json.dumps(each.get_state().values) for each in (resumed, trainer))
    assert found == expected
    assert advance(resumed, engine, 1, progress)[0]
    state.values["counters"]["problem"] = state.values["counters"].pop("individuals")
    with pytest.raises(ValueError, match=r"^its counters are of another version of hebbes: .*'problem'"):
        resumed.set_state(state)


def test_the_log_of_another_run_is_refused(engines, tmp_path):
    log = tmp_path / "log"
    advance_until(find_told, make_trainer(completion_log=str(log)), engines["one thread"])
    with pytest.raises(EngineError, match=r"completion \d+ of completion_log is of another run") as stopped:
        advance(make_trainer(completion_log=str(log), start_steps=0), engines["one thread"], 5)
    assert find_advice(stopped.value).endswith("{resume} --completion_log ANOTHER_FILE")
    log.write_text("generation,env_steps\n1,2\n")
    with pytest.raises(ValueError, match=r"completion_log .* is not the log of a run"):
        make_trainer(completion_log=str(log))


def test_seeds_share_a_log(engines, tmp_path):
    """The entries of each are those that it would have in a file of its own."""
    shared, own = tmp_path / "shared", tmp_path / "own"
    for seed, log in ((5, shared), (6, shared), (6, own)):
        advance(make_trainer(task=make_task(seed), completion_log=str(log)), engines["one thread"], 3)
    of_both, of_one = ([json.loads(line) for line in log.read_text().splitlines()] for log in (shared, own))
    assert [entry for entry in of_both if entry["seed"] == 6] == of_one
    assert {entry["seed"] for entry in of_both} == {5, 6}


@pytest.mark.parametrize("kind", ["critics", "individual"])
def test_a_job_that_trains_ends_with_the_engine(kind, engines):
    """A thread that still computed at the end of the process would abort it."""
    trainer, engine = make_trainer(), InProcess(make_task(), chunk_size=3, threads=1)
    advance(trainer, engines["one thread"], 3)
    view, critics = trainer.learner.replay, trainer.learner.critics.get_state()
    before, job = set(threading.enumerate()), trainer._make_individual()
    if kind == "critics":
        endless = jobs.CriticsJob(0, 0, view.count, 10**9, job.row)
        ticket = engine.submit(jobs.train_critics, trainer._setup, endless, view, critics)
    else:
        endless = replace(job, actor_steps=10**9, critics=critics["rows"])
        ticket = engine.submit(jobs.play_individual, trainer._setup, endless, view)
    assert engine._dispatch.collect([ticket], timeout=0.5) is None
    assert set(threading.enumerate()) > before
    engine.close()
    assert set(threading.enumerate()) == before


def test_estimates_that_are_not_finite_end_the_run(engines):
    trainer = make_trainer()
    trainer.learner.critics.trained.rows[0, 0] = np.nan
    with pytest.raises(FloatingPointError, match="no longer finite"):
        advance(trainer, engines["one thread"], 1000)


@pytest.mark.slow
def test_a_checkpoint_holds_the_flights_of_the_most_workers(engines):
    trainer = make_trainer(actor_workers=256)
    advance(trainer, engines["one thread"], 1)
    for flight in trainer._flights:
        if flight.answer is None:
            trainer._collect([flight], engines["one thread"])
    assert len(json.dumps(trainer.get_state().values)) < MAX_VALUES_LENGTH
