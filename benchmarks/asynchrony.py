"""Is asynchrony faster? Wall-clock time of AES-RL, P-CEM-RL and CEM-RL for the same number of env steps.

    python -m benchmarks.asynchrony --results asynchrony.json --figure docs/figures/asynchrony.png
    python -m benchmarks.asynchrony --results sixteen_cores.json --workers 1 2 5 9

With one and with two workers, or those of `--workers`, it is measured, by short runs with equal settings (layers of 400
and 300 units, batches of 256) and short episodes. There the critics' jobs of AES-RL have as many steps as an episode,
which is so with whole ones too (1000). The first job would outlast the measurement otherwise. The measurement begins
long after the warm-up: until AES-RL's critics are trained once no individual is trained, and then more than usual are.
The share of trained individuals during the measurement is printed, too.

With one to nine workers it is simulated (`benchmarks/asynchrony_model.py`), from the seconds of an env step, of the
gradient steps and of a tell, which are measured with one and two workers in the same program. The simulation is held
against the measured runs first. Then it goes on with whole episodes.

AES-RL has one worker process for each worker, with one thread. They train its critics too. CEM-RL and P-CEM-RL take
their gradient steps in the program's process, with as many threads as workers, and evaluate on worker processes.
Nothing else should run meanwhile. Each result is written when it is there, and is not measured again.
"""

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import hebbes
from benchmarks.asynchrony_model import (
    POPULATION,
    RL_POPULATION,
    SEED,
    Costs,
    Moment,
    extrapolate_costs,
    measure_seconds,
    simulate_aes_rl,
    simulate_generations,
)
from benchmarks.kept_results import KeptResults
from hebbes.contracts.engine import Engine, Transitions
from hebbes.hybrids import jobs
from hebbes.hybrids.aes_rl import AES
from hebbes.hybrids.core.episodes import find_action_bounds
from hebbes.hybrids.core.learner import Learner
from hebbes.options.command_line import resolve_config
from hebbes.options.texts import format_options
from hebbes.policies.mlp import MLP
from hebbes.reporting.figure import COLORS, add_legend, make_figure, style_axes, write_figure
from hebbes.statistics.table import format_table
from hebbes.training.assemble_run import assemble_run

ENVIRONMENT, WHOLE_EPISODE, TRANSITIONS = "HalfCheetah-v5", 1000, 20_000
FIRST, LAST = 4, 8
"""A measurement begins after so many generations of short episodes, and ends after so many. The first is untrained."""
MEASURED, SIMULATED = (1, 2), (1, 2, 5, 9)
NAMES = {"aes_rl": "AES-RL", "p_cem_rl": "P-CEM-RL", "cem_rl": "CEM-RL"}
COST_ROUNDS = 5
STYLES = {"aes_rl": (COLORS[0], "o", "-"), "p_cem_rl": (COLORS[1], "s", "--"), "cem_rl": (COLORS[2], "^", ":")}
"""Color, marker and line."""


class Benchmark:
    """What the arguments ask for, and the results so far."""

    def __init__(self, arguments: argparse.Namespace):
        settings = {name: vars(arguments)[name] for name in ("episode_length", "hidden_sizes", "gradient_steps")}
        settings["generations"] = [FIRST, LAST]
        self._arguments, self._kept = arguments, KeptResults(arguments.results, settings)
        self.results = self._kept.by_name

    def measure(self) -> None:
        """Measures what the results lack."""
        for workers in sorted({*MEASURED, *self._arguments.workers}):
            calls: dict[str, Callable[[], Any]] = {}
            if workers in MEASURED:
                calls[f"costs {workers}"] = partial(self._measure_costs, workers)
            for algorithm in NAMES:
                calls[f"measured {algorithm} {workers}"] = partial(self._measure_run, algorithm, workers)
            self._kept.measure(calls)

    def _make_options(self, algorithm: str, workers: int) -> dict[str, Any]:
        """Options of a run whose second generation is the first one that is trained."""
        generation = POPULATION * self._arguments.episode_length
        options = {
            **{"environment": ENVIRONMENT, "algorithm": algorithm, "batch_size": 256, "threads": workers},
            **{"hidden_sizes": self._arguments.hidden_sizes, "max_episode_steps": self._arguments.episode_length},
            **{"start_steps": generation - 1, "max_env_steps": LAST * generation, "eval_every": 10**9},
            **{"engine": "workers", "chunk_size": -(-POPULATION // workers), "eval_episodes": 1, "test_episodes": 0},
            "seed": SEED,
        }
        if algorithm == "aes_rl":
            return {**options, "actor_workers": workers}
        return {**options, "gradient_threads": workers}

    def _measure_run(self, algorithm: str, workers: int) -> dict[str, float]:
        """Seconds for an env step between `FIRST` and `LAST` generations, and the share of trained individuals."""
        jobs.CRITIC_STEPS = self._arguments.episode_length
        with tempfile.TemporaryDirectory() as folder:
            options = {**self._make_options(algorithm, workers), "folder": folder}
            metrics = hebbes.train(options, trainer="hybrid", quiet=True).metrics
        rows = zip(metrics["seconds"], metrics["env_steps"], strict=True)
        seconds = self._compute_seconds([Moment(float(seconds), int(steps), 0) for seconds, steps in rows])
        generation = POPULATION * self._arguments.episode_length
        is_measured = metrics["env_steps"] > FIRST * generation
        trained = metrics["is_rl" if algorithm == "aes_rl" else "rl_share"]
        return {"seconds": seconds, "rl_share": float(np.mean(trained[is_measured]))}

    def _compute_seconds(self, moments: list[Moment]) -> float:
        generation = POPULATION * self._arguments.episode_length
        return measure_seconds(moments, FIRST * generation, LAST * generation) / ((LAST - FIRST) * generation)

    def _measure_costs(self, workers: int) -> dict[str, float]:
        """The costs with so many workers."""
        config = resolve_config("hybrid", format_options(self._make_options("aes_rl", workers)))
        with tempfile.TemporaryDirectory() as folder:
            run = assemble_run(config, Path(folder))
        policy, settings, row = run.task.agent.policy, config.settings, run.trainer.policy[0]
        assert isinstance(policy, MLP)
        bounds = find_action_bounds(run.task)
        learner = Learner(replace(settings, gradient_threads=workers), policy, bounds, 0)
        rng = np.random.default_rng(0)
        numbers = [rng.normal(size=(TRANSITIONS, size)) for size in (*policy.observation_shape, policy.num_outputs, 1)]
        ends = np.zeros(TRANSITIONS, np.bool_)
        learner.add(Transitions(numbers[0], numbers[1], numbers[2][:, 0], ends, numbers[0]))
        setup = jobs.Setup(settings, policy, bounds, 0, buffers={}, max_episode_steps=self._arguments.episode_length)
        try:
            of_jobs = self._measure_jobs(run.engine, setup, learner, row, workers)
        finally:
            run.engine.close()
            run.trainer.close()
        return asdict(Costs(**of_jobs, **self._measure_gradients(learner, row), tell=self._measure_tell(settings, row)))

    def _measure_tell(self, settings: Any, row: np.ndarray) -> float:
        """Seconds of an update of AES-RL's search distribution."""
        search, seconds = AES(settings, row, 0), []
        for _ in range(1 + COST_ROUNDS):
            started = time.perf_counter()
            search.tell(row + 1, 1.0, 0.0)
            seconds.append(time.perf_counter() - started)
        return float(np.median(seconds[1:]))

    def _measure_gradients(self, learner: Learner, row: np.ndarray) -> dict[str, float]:
        """Seconds of gradient steps in this process."""
        rng, target = np.random.default_rng(0), learner.actor.copy(row[np.newaxis])
        one, group = (learner.make_actors(np.repeat(row[np.newaxis], count, axis=0)) for count in (1, RL_POPULATION))
        steps = {
            "critic_step": partial(learner.train_critics, target),
            "actor_step": partial(learner.train_actors, one),
            "group_step": partial(learner.train_actors, group),
        }
        seconds = {}
        with learner.use_threads():
            for name, step in steps.items():
                for _ in range(10):
                    step(rng)
                started = time.perf_counter()
                for _ in range(self._arguments.gradient_steps):
                    step(rng)
                    if name == "critic_step":
                        learner.critics.move_targets()
                seconds[name] = (time.perf_counter() - started) / self._arguments.gradient_steps
        return seconds

    def _measure_jobs(
        self, engine: Engine, setup: jobs.Setup, learner: Learner, row: np.ndarray, workers: int
    ) -> dict[str, float]:
        """Seconds of steps within the jobs of AES-RL, while as many are under way as there are workers."""
        steps, count = self._arguments.gradient_steps, learner.replay.count
        view, critics = learner.replay.make_view(count), learner.critics.get_state()
        empty = np.empty((0, 0), np.float32)
        episode = jobs.IndividualJob(0, 0, False, False, 0, None, 0, row, empty)
        trained = replace(episode, is_rl=True, replay_count=count, actor_steps=steps, critics=critics["rows"])

        def compute_median(*call: Any) -> float:
            seconds = []
            for _ in range(1 + COST_ROUNDS):  # in the first one, workers import and compile
                tickets = [engine.submit(*call) for _ in range(workers)]
                seconds.append([engine.collect([ticket])[1].seconds for ticket in tickets])
            return float(np.median(seconds[1:]))

        of_episode = compute_median(jobs.play_individual, setup, episode, None)
        of_critics = compute_median(jobs.train_critics, setup, jobs.CriticsJob(0, 0, count, steps, row), view, critics)
        of_trained = compute_median(jobs.play_individual, setup, trained, view)
        return {
            "env_step": of_episode / self._arguments.episode_length,
            "critic_job_step": of_critics / steps,
            "actor_job_step": max(of_trained - of_episode, 0.0) / steps,
        }

    def simulate(self, algorithm: str, workers: int, episode_length: int) -> list[Moment]:
        """The simulated run up to `LAST` generations of short episodes, or 20 of whole ones."""
        one, two = (Costs(**self.results[f"costs {each}"]) for each in MEASURED)
        costs = {1: one, 2: two}.get(workers) or extrapolate_costs(one, two, workers)
        generations = 20 if episode_length == WHOLE_EPISODE else LAST
        generation = POPULATION * episode_length
        options = {"episode_length": episode_length, "env_steps": generations * generation}
        if algorithm == "aes_rl":
            options["critic_job_steps"] = episode_length
            return simulate_aes_rl(costs, workers, **options, start_steps=generation - 1)
        return simulate_generations(costs, workers, **options, is_parallel=algorithm == "p_cem_rl")

    def compare(self) -> list[dict[str, Any]]:
        """A row for each algorithm and number of workers."""
        rows = []
        for algorithm in NAMES:
            for workers in SIMULATED:
                row: dict[str, Any] = {"algorithm": algorithm, "workers": workers}
                measured = self.results.get(f"measured {algorithm} {workers}")
                if measured is not None:
                    row["measured"], row["rl_share"] = 1000 * measured["seconds"], measured["rl_share"]
                    short = self.simulate(algorithm, workers, self._arguments.episode_length)
                    row["simulated_short"] = 1000 * self._compute_seconds(short)
                moments = self.simulate(algorithm, workers, WHOLE_EPISODE)
                first, last = 2 * POPULATION * WHOLE_EPISODE, 20 * POPULATION * WHOLE_EPISODE
                row["simulated"] = 1000 * measure_seconds(moments, first, last) / (last - first)
                row["critic_steps_per_env_step"] = moments[-1].critic_steps / moments[-1].env_steps
                rows.append(row)
        return rows


def format_rows(rows: list[dict[str, Any]]) -> str:
    """The rows for people: seconds for 1000 env steps."""
    titles = "algorithm", "workers", "measured", "trained", "simulated", "whole episodes", "critic steps an env step"
    names = "measured", "rl_share", "simulated_short", "simulated", "critic_steps_per_env_step"
    cells = [[f"{row[name]:.2f}" if name in row else "" for name in names] for row in rows]
    lines = [(NAMES[row["algorithm"]], str(row["workers"]), *each) for row, each in zip(rows, cells, strict=True)]
    return format_table(titles, lines)


def draw(rows: list[dict[str, Any]], episode_length: int, png: Path) -> None:
    """Draws the simulation against the measured runs, and whole episodes on more workers."""
    figure = make_figure(7, 3.6)
    short, whole = figure.subplots(1, 2)
    counts = sorted({row["workers"] for row in rows if "measured" in row})
    for place, algorithm in enumerate(NAMES):
        color, marker, line = STYLES[algorithm]
        own = [row for row in rows if row["algorithm"] == algorithm]
        both = [row for row in own if "measured" in row]
        positions = np.array([row["workers"] for row in both]) + 0.08 * (place - 1)
        short.plot(positions, [row["simulated_short"] for row in both], line, color=color, marker="_", ms=12)
        short.plot(positions, [row["measured"] for row in both], marker, color=color, label=NAMES[algorithm])
        style = {"color": color, "marker": marker, "label": NAMES[algorithm]}
        whole.plot([row["workers"] for row in own], [row["simulated"] for row in own], line, **style)
    short.set(
        title=f"episodes of {episode_length}: points measured,\nlines simulated",
        xlim=(0.7, counts[-1] + 0.3),
        xticks=counts,
    )
    whole.set(title=f"simulated,\nepisodes of {WHOLE_EPISODE}", xticks=SIMULATED)
    for axes in (short, whole):
        axes.set(xlabel="workers", ylabel="seconds for 1000 env steps", ylim=(0, None))
        style_axes(axes)
    add_legend(figure, short)
    write_figure(figure, png)


def main() -> None:
    """Measures, simulates and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", type=Path, required=True, help="JSON file of the results so far")
    parser.add_argument("--figure", type=Path, help="PNG file of the plot")
    parser.add_argument(
        "--workers",
        type=int,
        nargs="+",
        choices=SIMULATED,
        default=MEASURED,
        help="numbers of workers that are measured, in addition to 1 and 2 (default: 1 2)",
    )
    parser.add_argument("--json", action="store_true", help="print the rows as JSON")
    parser.add_argument("--episode_length", type=int, default=75, help="of the measured runs (default: 75)")
    parser.add_argument("--hidden_sizes", type=int, nargs="+", default=[400, 300], help="layers (default: 400 300)")
    parser.add_argument("--gradient_steps", type=int, default=300, help="timed for each cost (default: 300)")
    arguments = parser.parse_args()
    benchmark = Benchmark(arguments)
    benchmark.measure()
    rows = benchmark.compare()
    if arguments.figure:
        draw(rows, arguments.episode_length, arguments.figure)
    print(json.dumps(rows) if arguments.json else format_rows(rows))


if __name__ == "__main__":
    main()
