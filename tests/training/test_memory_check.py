"""Settings that need more memory than is free are refused in one line, before they allocate it."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hebbes.contracts.strategy import SearchMemory
from hebbes.contracts.trainer import SearchSize
from hebbes.environments.environment_spec import EnvironmentSpec
from hebbes.execution.chunk_rule import ChunkRule, choose_chunk_rule
from hebbes.execution.chunks import Task
from hebbes.execution.engine_options import EngineOptions
from hebbes.execution.episode import Agent
from hebbes.execution.in_process import InProcess
from hebbes.execution.workers import Workers
from hebbes.options.evaluation import EvaluateConfig
from hebbes.policies.linear import Linear
from hebbes.training import memory_check
from hebbes.training.evolution import Evolution
from hebbes.training.evolution_size import measure_evolution
from hebbes.training.memory_check import Knob, check_evaluation_memory, check_memory, format_bytes
from hebbes.training.prepare import prepare
from hebbes.training.run import execute
from hebbes.training.run_memory import WORKER_BYTES, NetworkSize, RunSize, Stage, count_simulators, estimate_memory
from tests.training.scripted_runs import make_scripted_config

HUGE = "1000000000"
MOUNTAIN_CAR = ["--environment", "MountainCar-v0", "--test_episodes", "0"]
SIMULATORS = Stage(uses_processes=False, keeps_all=True, chunk_rule=ChunkRule(10), simulator_bytes=1_000_000)


class ToySize(SearchSize):
    def estimate_memory(self):
        return SearchMemory(state=8000, update=0, population=4000)


RUN = RunSize(
    NetworkSize(num_params=1000, row_bytes=4000),
    ToySize(population_size=99),
    training=SIMULATORS,
    test=replace(SIMULATORS, keeps_all=False),
    threads=2,
    eval_episodes=5,
)


def resize(size, population_size, **changes):
    """The size of a run with another population, and other changes."""
    return replace(size, search=replace(size.search, population_size=population_size), **changes)


def read_memory(name):
    (line,) = (line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(name))
    return int(line.split()[1]) * 1024


@pytest.fixture
def limited_memory():
    """Fails if a test needs more than 300 MB at a time. 100 MB of these are the modules that the first test loads."""
    Path("/proc/self/clear_refs").write_text("5")  # resets the peak
    before = read_memory("VmRSS")
    yield
    assert read_memory("VmHWM") - before < 300e6


@pytest.fixture
def simulators_of_300_kb(monkeypatch):
    """One that is made in this process may take memory that earlier tests free meanwhile, and seem to need none."""
    monkeypatch.setattr(memory_check, "measure_simulator_bytes", lambda *_, **__: 300_000)


@pytest.mark.usefixtures("limited_memory", "simulators_of_300_kb")
@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (
            ["--popsize", HUGE],
            rf"population_size {HUGE} would take about [\d.]+ TB of memory \((simulators|the search) .* at most about ",
        ),
        (["--strategy", "cma_es", "--popsize", HUGE], rf"population_size {HUGE} would take about"),
        (["--strategy", "snes", "--popsize", HUGE], rf"population_size {HUGE} would take about"),
        (["--strategy", "sep_cma_es", "--popsize", HUGE], rf"population_size {HUGE} would take about"),
        (["--strategy", "cr_fm_nes", "--popsize", HUGE], rf"population_size {HUGE} would take about"),
        (["--strategy", "ga", "--popsize", HUGE], rf"population_size {HUGE} would take about"),
        (
            ["--num_interactions", f"{HUGE}000", "--population_size_max", HUGE],
            rf"population_size_max {HUGE} would take about",
        ),
        (["--frame_stack", "10000000"], r"frame_stack must be in \[1, 256\], got 10000000"),
        (["--threads", "100000"], "threads must be from 1 to 1024"),
        (["--seeds", "20261122"], r"seeds must be in \[1, 10000\], got 20261122; did you mean --seed[?]"),
        (
            ["--policy", "mlp", "--hidden_sizes", "90000", "90000"],
            r"by hidden_sizes \[90000, 90000\]; a policy file holds",
        ),
    ],
)
def test_a_setting_that_does_not_fit_is_named(flags, message, refusal, tmp_path):
    line = refusal("train_static.py", *MOUNTAIN_CAR, *flags, "--folder", tmp_path)
    assert re.search(message, line), line
    assert not list(tmp_path.iterdir())


@pytest.mark.usefixtures("limited_memory")
def test_a_covariance_that_does_not_fit_names_the_policy(refusal, tmp_path):
    network = ["--policy", "mlp", "--hidden_sizes", "3000", "3000", "--strategy"]
    for strategy in ("cma_es", "xnes"):
        line = refusal("train_static.py", *MOUNTAIN_CAR, *network, strategy, "--folder", tmp_path)
        assert "a run with a policy of 9,015,000 parameters would take about" in line
        assert "; sep_cma_es keeps only a diagonal, or a smaller policy (policy, hidden_sizes)" in line


def test_parents_that_no_checkpoint_would_hold_are_refused(tmp_path):
    """Until its eighth generation `ga` keeps one row of weights, then one for each parent."""
    config = make_scripted_config(tmp_path, strategy="ga", parents=150, population_size=200)
    policy = Linear((2000,), 1000, bias=False)
    with pytest.raises(ValueError, match=r"strategy ga may keep 1,208,000,000 bytes, and a checkpoint holds 937,"):
        Evolution(
            config,
            Task(Agent(policy, "clip"), EnvironmentSpec("Scripted-v0", "gymnasium"), 0),
            np.zeros(2_000_000, np.float32),
            {},
        )
    measure_evolution(make_scripted_config(tmp_path, strategy="ga", parents=20), policy).check_state()


@pytest.mark.usefixtures("limited_memory")
def test_frames_of_a_virtual_batch_are_counted_before_they_are_played(refusal, tmp_path):
    flags = ["--environment", "CarRacing-v3", "--virtual_batch", HUGE, "--popsize", "4", "--test_episodes", "0"]
    assert "virtual_batch must be <= 775, got" in refusal("train_static.py", *flags, "--folder", tmp_path)
    frames = replace(RUN, virtual_batch=700, observation_size=1000, threads=2)  # of two chunks at once
    assert estimate_memory(frames)["virtual batch"] == 4 * 700 * 1000 * (3 + 2 * 2)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"seeds": 10**9}, r"seeds must be <= 50000 with 20 episodes each, got 1000000000; did you mean --seed[?]"),
        ({"seeds": 20261122}, r"did you mean --seed[?]"),
        ({"seeds": 2, "episodes": 600_000}, "seeds must be <= 1 with 600000 episodes each, got 2"),
        ({"episodes": 10**9}, r"episodes must be in \[1, 1000000\], got 1000000000"),
    ],
)
def test_an_evaluation_without_end_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        EvaluateConfig(path_weights=("a.dat",), **options)


@pytest.mark.usefixtures("simulators_of_300_kb")
def test_an_evaluation_that_does_not_fit_names_its_episodes():
    agent, spec = Agent(Linear((17,), 6), "identity"), EnvironmentSpec("HalfCheetah-v5", "envpool", {})
    with pytest.raises(ValueError, match=r"^episodes 100000000 would take about .* TB of memory \(simulators "):
        check_evaluation_memory(agent, spec, EngineOptions(threads=2), 10**8)
    assert check_evaluation_memory(agent, spec, EngineOptions(threads=2), 20) == ""


def test_the_most_seeds_that_are_taken_are_no_list():
    config = EvaluateConfig(path_weights=("a.dat",), seed=3, seeds=1_000_000, episodes=1)
    assert config.all_seeds == range(3, 1_000_003)


def test_terms_of_a_run_of_known_parts():
    terms = estimate_memory(RUN)
    assert terms["simulators"] == (100 + 5) * 1_000_000  # of members, the mean policy and the evaluation
    assert terms["members' weights"] == 2 * 10 * 4000  # two threads, chunks of ten
    grown = estimate_memory(resize(RUN, 199, morphologies=2))
    assert grown["simulators"] == 2 * (200 + 5) * 1_000_000
    plastic = replace(RUN, network=replace(RUN.network, state_bytes=3000))
    assert estimate_memory(plastic)["members' weights"] == 2 * 10 * (4000 + 2 * 3000)


@pytest.mark.parametrize("chunk_size", [None, 32])
@pytest.mark.parametrize("workers", [True, False])
@pytest.mark.parametrize(("threads", "members", "evaluated"), [(4, 201, 5), (3, 24, 70), (16, 40, 0)])
def test_the_pools_that_workers_may_keep_are_counted(workers, threads, members, evaluated, chunk_size):
    engine = (Workers if workers else InProcess)(make_reacher(), chunk_size=chunk_size, threads=threads)
    rule = choose_chunk_rule(make_reacher(), chunk_size, uses_processes=workers)
    stage = Stage(uses_processes=workers, keeps_all=True, chunk_rule=rule)
    size = resize(RUN, members - 1, training=stage, threads=threads, eval_episodes=evaluated)
    kept = sum(engine._count_idle_envs(range(count)) for count in (members, evaluated))
    started = min(
        engine._transport.num_workers, max(rule.count_chunks(count, threads) for count in (members, evaluated))
    )
    assert count_simulators(size, training=True) == started * kept
    grown = replace(size, search=replace(size.search, grows=True))
    kept = engine._count_idle_envs(range(members - 1, members)) + engine._count_idle_envs(range(evaluated))
    assert count_simulators(grown, training=True) == started * kept


def make_reacher():
    return Task(Agent(Linear((10,), 2), "tanh"), EnvironmentSpec("Reacher-v5", "envpool", {}), 11)


def test_terms_of_worker_processes_are_those_of_the_chunks_at_work():
    workers = Stage(uses_processes=True, keeps_all=False, chunk_rule=ChunkRule(4), simulator_bytes=30_000_000)
    terms = estimate_memory(resize(RUN, 59, training=workers, eval_episodes=0, threads=8))
    assert terms["simulators"] == 8 * 4 * 30_000_000
    assert 8 * 70e6 < terms["worker processes"] < 8 * 80e6
    few = estimate_memory(resize(RUN, 7, training=workers, eval_episodes=0, threads=8))
    assert few["worker processes"] < 2 * 80e6


def test_workers_need_memory_for_other_jobs_too():
    workers = Stage(uses_processes=True, keeps_all=False, chunk_rule=ChunkRule(60))
    plain = resize(RUN, 59, training=workers, test_episodes=0, threads=8)
    grown = replace(plain, search=replace(plain.search, worker_jobs=5, worker_bytes=100_000_000))
    needs, alone = (estimate_memory(size)["worker processes"] for size in (grown, plain))
    population = plain.search.estimate_memory().population
    assert alone == 2 * (WORKER_BYTES + 2 * population) + population  # one chunk, but two parts of a noise sum
    assert needs == 5 * (WORKER_BYTES + 100_000_000 + 2 * population) + population
    two = estimate_memory(replace(grown, threads=2))["worker processes"]
    assert two == 2 * (WORKER_BYTES + 100_000_000 + 2 * population) + population
    assert "worker processes" not in estimate_memory(replace(grown, training=SIMULATORS))


def make_population_knob(run):
    return Knob("population_size", run.search.population_size, 2, lambda population_size: resize(run, population_size))


def test_what_fits_is_the_largest_of_two_digits():
    large = resize(RUN, 100_000)
    with pytest.raises(
        ValueError, match=r"population_size 100000 would take about 100 GB .* 10\.0 GB are free"
    ) as refused:
        check_memory(large, [make_population_knob(large)], 10_000_000_000)
    most = int(str(refused.value).split("at most about ")[1].split()[0].replace(",", ""))
    assert sum(estimate_memory(resize(RUN, most)).values()) <= 10e9
    assert sum(estimate_memory(resize(RUN, most + 100)).values()) > 10e9
    assert most % 100 == 0


def test_the_option_that_takes_most_is_blamed():
    run = resize(RUN, 1000, eval_episodes=100_000)
    evaluated = Knob("eval_episodes", 100_000, 1, lambda episodes: replace(run, eval_episodes=episodes))
    with pytest.raises(ValueError, match=r"^eval_episodes 100000 would take"):
        check_memory(run, [make_population_knob(run), evaluated], 10_000_000_000)


def test_a_policy_that_fits_with_no_option_is_blamed_itself():
    run = replace(RUN, network=NetworkSize(10**9, 4 * 10**9))
    with pytest.raises(
        ValueError,
        match=r"^a run with a policy of 1,000,000,000 parameters .* no option alone saves enough .*; a smaller policy ",
    ):
        check_memory(run, [make_population_knob(run)], 1_000_000_000)


def test_only_a_large_need_is_reported():
    assert check_memory(RUN, [], 10**12) == ""
    told = check_memory(resize(RUN, 3000), [], 10**12)
    assert told.startswith("needs about 3.0 GB of memory, of 1.0 TB")
    assert check_memory(resize(RUN, 3000), [], None) == "needs about 3.0 GB of memory"


def test_workers_of_a_cluster_take_no_memory_of_this_machine(tmp_path):
    config = make_scripted_config(tmp_path, engine="workers", population_size=1000, chunk_size=4)
    (run,) = prepare(config)
    sizes = [
        memory_check._make_run_size(config.change(engine=engine), run.task.agent, run.task.environment)
        for engine in ({"engine": "ray", "threads": 1000}, {"threads": -1})
    ]
    assert sizes[0] == sizes[1]


def test_a_run_says_what_it_needs_in_its_first_lines(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("hebbes.training.memory_check.CONSIDERABLE", 1)
    (run,) = prepare(make_scripted_config(tmp_path, engine="in_process", generations=1))
    assert run.needs.startswith("needs about ")
    execute(run)
    assert run.needs in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0, "0 bytes"),
        (999, "999 bytes"),
        (1000, "1.0 kB"),
        (3.2e9, "3.2 GB"),
        (123_456_789, "123.5 MB"),
        (3e30, "3e+15 PB"),
    ],
)
def test_sizes_read_as_people_write_them(number, text):
    assert format_bytes(number) == text


@pytest.mark.parametrize(
    ("members", "growth", "params", "directions"),
    [(10, {}, 100, 5), (400, {}, 100, 32), (400, {}, 8, 8), (10, {"num_interactions": 1000}, 100, 32)],
)
def test_a_thread_keeps_the_orthogonal_directions_of_a_block(members, growth, params, directions, tmp_path):
    config = make_scripted_config(tmp_path, sampler="orthogonal", population_size=members, **growth)
    policy = Linear((params,), 1, bias=False)
    assert measure_evolution(config, policy).noise_bytes == 8 * params * directions
