"""The engine's options: what is refused, and what they stand for."""

import pytest

from hebbes.contracts.option import list_options
from hebbes.execution.engine_options import EngineOptions, resolve_num_threads, uses_processes
from hebbes.registry.tables import ENGINES
from tests.shape_checks import unchecked


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"engine": "worker"},
            "engine must be one of auto, in_process, ray, workers, got 'worker', did you mean 'workers'?",
        ),
        ({"threads": 0}, "threads must be from 1 to 1024, or -1 for all cores, got 0"),
        ({"threads": -2}, "threads must be from 1 to 1024, or -1 for all cores, got -2"),
        ({"threads": 1025}, "threads must be from 1 to 1024, or -1 for all cores, got 1025"),
        (
            {"episode_timeout": 9.0, "engine": "in_process"},
            "episode_timeout needs engine=workers or ray, whose simulators can be killed, got 'in_process'",
        ),
    ],
)
def test_an_option_that_makes_no_sense_is_refused(options, message):
    with unchecked(), pytest.raises(ValueError) as refused:
        EngineOptions(**options)
    assert str(refused.value) == message


def test_a_resumed_run_may_change_every_option():
    assert [each.name for each in list_options(EngineOptions)] == [
        *("engine", "threads", "chunk_size", "episode_timeout", "ray_address", "allow_mixed_nodes"),
    ]
    assert all(each.metadata["changeable"] for each in list_options(EngineOptions))


def test_threads_of_a_cluster_are_not_those_of_this_machine():
    cores = resolve_num_threads(-1)
    assert EngineOptions(threads=1000).local_threads == 1000
    assert EngineOptions(threads=1000, engine="ray").local_threads == EngineOptions().local_threads == cores
    assert EngineOptions(threads=1, engine="ray").local_threads == 1


def test_the_defaults_are_all_cores_and_no_limit():
    options = EngineOptions()
    assert (options.engine, options.threads, options.chunk_size, options.episode_timeout) == ("auto", -1, None, None)
    assert EngineOptions(threads=1, engine="workers", episode_timeout=9).episode_timeout == 9.0
    assert resolve_num_threads(-1) >= 1 == resolve_num_threads(1)


@pytest.mark.parametrize(
    ("engine", "backend", "count", "timeout", "chosen"),
    [
        ("auto", "envpool", 4, None, "in_process"),
        ("auto", "envpool", 4, 9.0, "workers"),
        ("auto", "gymnasium", 4, None, "workers"),
        ("auto", "gymnasium", 1, None, "in_process"),
        ("auto", "gymnasium", 1, 9.0, "workers"),
        ("workers", "envpool", 1, None, "workers"),
        ("in_process", "gymnasium", 4, None, "in_process"),
    ],
)
def test_workers_play_what_holds_pythons_lock_or_has_a_time_limit(engine, backend, count, timeout, chosen):
    options = EngineOptions(engine, count, episode_timeout=timeout).resolve(backend)
    assert (options.engine, options.threads, options.episode_timeout) == (chosen, count, timeout)


def test_another_engine_is_a_line_in_the_table(monkeypatch):
    monkeypatch.setitem(ENGINES, "toy", "tests.execution.test_dispatch:Toy")
    assert [uses_processes(engine) for engine in ENGINES] == [False, True, True, True]
