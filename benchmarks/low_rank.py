"""Env steps per second of training with low-rank noise and with full-rank noise, in one run and in turns: medians.

    python benchmarks/low_rank.py [--json] [flags of train_static.py]

By default: CartPole-v1, an MLP of 256-256, 256 members, rank 1; chunks of 32 members with full-rank noise, of 128 with
low-rank noise, unless `--chunk_size` says otherwise. Both are measured twice: around the policy that the search starts
from, whose episodes are short, and around the one that `GENERATIONS` of low-rank training make of it. While they are
measured the learning rate is next to nothing, so that both go on with the same policy. Rates per second of processor
time are the ones to compare where other programs use the processor too.
"""

import json
import sys
import tempfile
import time
from collections.abc import Mapping
from io import StringIO
from pathlib import Path
from statistics import median

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from hebbes.options.command_line import parse_config
from hebbes.programs.exit_status import one_line_errors
from hebbes.recording.console import Console
from hebbes.training.generation_loop import Trainer
from hebbes.training.prepare import prepare

DEFAULTS = ["--environment", "CartPole-v1", "--policy", "mlp", "--hidden_sizes", "256", "256", "--popsize", "256"]
QUIET = ["--lr", "0.05", "--test_episodes", "0", "--eval_every", "1000000", "--generations", "1000000"]
NOISE = {
    "full_rank": ["--sampler", "antithetic", "--chunk_size", "32"],
    "low_rank": ["--sampler", "low_rank", "--chunk_size", "128"],
}
"""Flags of each, with the chunk size that is best for it."""
GENERATIONS = 15
TURNS = 9
STANDSTILL = {"lr.value": np.array(1e-12)}


def trainer(folder: str, name: str, flags: list[str]) -> Trainer:
    """A run, ready for its generations, with the noise named."""
    own = [*QUIET, *NOISE[name], "--folder", folder, "--run_name", name]
    (run,) = prepare(parse_config("static", [*DEFAULTS, *own, *flags], __doc__))
    return Trainer(run, Console(1, max_env_steps=None, print_every=1, stream=StringIO()))


def rates(trainer: Trainer) -> dict[str, float]:
    """Env steps of one generation over its wall time and over the processor time that all threads took."""
    before, started = trainer._progress.env_steps, time.process_time()
    row = trainer.generation()
    per_cpu_second = (trainer._progress.env_steps - before) / (time.process_time() - started)
    return {
        "env_steps_per_second": row["env_steps_per_second"],
        "env_steps_per_cpu_second": per_cpu_second,
        "episode_length": row["episode_length_mean"],
    }


def measure(trainers: Mapping[str, Trainer], start: Mapping[str, np.ndarray]) -> dict[str, float]:
    """Medians over the turns; a first turn, which compiles kernels and fills caches, is not counted."""
    for each in trainers.values():
        each._run.strategy.load_state_dict({**start, **STANDSTILL})
    turns = [{name: rates(each) for name, each in trainers.items()} for _ in range(TURNS + 1)][1:]
    figures = {"episode_length": median(turn["low_rank"]["episode_length"] for turn in turns)}
    for rate in ("env_steps_per_second", "env_steps_per_cpu_second"):
        for name in trainers:
            figures[f"{name}_{rate}"] = median(turn[name][rate] for turn in turns)
        figures[f"{rate}_ratio"] = median(turn["low_rank"][rate] / turn["full_rank"][rate] for turn in turns)
    return figures


def main() -> None:
    """Measures and prints."""
    flags = [argument for argument in sys.argv[1:] if argument != "--json"]
    with tempfile.TemporaryDirectory() as folder:
        with one_line_errors():
            trainers = {name: trainer(folder, name, flags) for name in NOISE}
        strategy = trainers["low_rank"]._run.strategy
        start = strategy.state_dict()
        untrained = measure(trainers, start)
        strategy.load_state_dict(start)
        for _ in range(GENERATIONS):
            trainers["low_rank"].generation()
        trained = measure(trainers, strategy.state_dict())
        for each in trainers.values():
            each._run.engine.close()
    figures = {
        f"{policy}_{name}": value
        for policy, values in (("untrained", untrained), ("trained", trained))
        for name, value in values.items()
    }
    if "--json" in sys.argv:
        print(json.dumps(figures))
    else:
        print(*(f"{name:42} {value:.4g}" for name, value in figures.items()), sep="\n")


if __name__ == "__main__":
    main()
