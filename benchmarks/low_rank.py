"""Env steps per second of training with low-rank noise and with full-rank noise, measured alternately: medians.

    python -m benchmarks.low_rank [--json] [flags of train_static.py]

By default: CartPole-v1, an MLP of 256-256, 256 members, rank 1; chunks of 32 members with full-rank noise, of 128 with
low-rank noise, unless `--chunk_size` is given. Both are measured twice: with the initial mean policy, whose episodes
are short, and with the mean policy after `GENERATIONS` generations of low-rank training. During the measurement the
learning rate is almost zero, so that both keep the same mean policy. If other programs use the processor too, compare
the rates per second of processor time.
"""

import json
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import replace
from statistics import median

import numpy as np

from hebbes.contracts.trainer import UnitResult
from hebbes.options.command_line import parse_config
from hebbes.programs.exit_status import report_errors_in_one_line
from hebbes.training.evolution import Evolution
from hebbes.training.prepare import prepare
from hebbes.training.run_state import Run

DEFAULTS = ["--environment", "CartPole-v1", "--policy", "mlp", "--hidden_sizes", "256", "256", "--popsize", "256"]
STEADY = ("--lr", "0.05", "--learning_rate_min", "0")  # below its floor a rate would be raised to it
QUIET = [*STEADY, "--test_episodes", "0", "--eval_every", "1000000", "--generations", "1000000"]
NOISE = {
    "full_rank": ["--sampler", "antithetic", "--chunk_size", "32"],
    "low_rank": ["--sampler", "low_rank", "--chunk_size", "128"],
}
"""The flags of each kind of noise, with its best chunk size."""
GENERATIONS = 15
TURNS = 9
STANDSTILL = {"lr.value": np.array(1e-12)}


def make_run(folder: str, name: str, flags: list[str]) -> Run:
    """A run that is ready for generations with this kind of noise."""
    own = [*QUIET, *NOISE[name], "--folder", folder, "--run_name", name]
    (run,) = prepare(parse_config("static", [*DEFAULTS, *own, *flags], __doc__))
    return run


class Generations:
    """Runs one generation after the other, as a run does, but saves nothing."""

    def __init__(self, run: Run):
        assert isinstance(run.trainer, Evolution)
        self.run, self.strategy, self._progress = run, run.trainer.strategy, run.progress

    def advance(self) -> UnitResult:
        """Runs one generation."""
        result = self.run.trainer.advance(self._progress, self.run.engine)
        self._progress = replace(self._progress, units=self._progress.units + 1)
        return result


def measure_rates(generations: Generations) -> dict[str, float]:
    """Env steps of one generation per second of wall time and per second of processor time of all threads."""
    started, started_cpu = time.perf_counter(), time.process_time()
    result = generations.advance()
    return {
        "env_steps_per_second": result.env_steps / (time.perf_counter() - started),
        "env_steps_per_cpu_second": result.env_steps / (time.process_time() - started_cpu),
        "episode_length": result.metrics["episode_length_mean"],
    }


def measure_medians(trainers: Mapping[str, Generations], start: Mapping[str, np.ndarray]) -> dict[str, float]:
    """Medians over the turns. The first turn compiles kernels and fills caches, so it is not counted."""
    for each in trainers.values():
        each.strategy.load_state_dict({**start, **STANDSTILL})
    turns = [{name: measure_rates(each) for name, each in trainers.items()} for _ in range(TURNS + 1)][1:]
    results = {"episode_length": median(turn["low_rank"]["episode_length"] for turn in turns)}
    for rate in ("env_steps_per_second", "env_steps_per_cpu_second"):
        for name in trainers:
            results[f"{name}_{rate}"] = median(turn[name][rate] for turn in turns)
        results[f"{rate}_ratio"] = median(turn["low_rank"][rate] / turn["full_rank"][rate] for turn in turns)
    return results


def main() -> None:
    """Prints the measured values."""
    flags = [argument for argument in sys.argv[1:] if argument != "--json"]
    with tempfile.TemporaryDirectory() as folder:
        with report_errors_in_one_line():
            trainers = {name: Generations(make_run(folder, name, flags)) for name in NOISE}
        strategy = trainers["low_rank"].strategy
        start = strategy.state_dict()
        untrained = measure_medians(trainers, start)
        strategy.load_state_dict(start)
        for _ in range(GENERATIONS):
            trainers["low_rank"].advance()
        trained = measure_medians(trainers, strategy.state_dict())
        for each in trainers.values():
            each.run.engine.close()
    results = {
        f"{policy}_{name}": value
        for policy, values in (("untrained", untrained), ("trained", trained))
        for name, value in values.items()
    }
    if "--json" in sys.argv:
        print(json.dumps(results))
    else:
        print(*(f"{name:42} {value:.4g}" for name, value in results.items()), sep="\n")


if __name__ == "__main__":
    main()
