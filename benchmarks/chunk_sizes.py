"""Env steps per second of training with chunks of several sizes, which are measured by turns: medians.

    python -m benchmarks.chunk_sizes --sizes 32 100 --environment CartPole-v1 --population_size 200
    python -m benchmarks.chunk_sizes --sizes 32 100 --trainer hebbian --environment HalfCheetah-v5 --population_size 200

Takes the flags of the trainer's program. The generations of all sizes are the same ones, and the first is not counted.
"""

import argparse
import json
import tempfile
import time
from statistics import median

from hebbes.contracts.trainer import Progress
from hebbes.options.command_line import parse_config
from hebbes.programs.exit_status import report_errors_in_one_line
from hebbes.training.prepare import prepare

GENERATIONS = 6


def main() -> None:
    """Prints the measured values."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", required=True, help="chunk sizes")
    parser.add_argument("--trainer", choices=("static", "hebbian"), default="static", help="what trains")
    parser.add_argument("--json", action="store_true", help="print one JSON object and nothing else")
    arguments, flags = parser.parse_known_args()
    with tempfile.TemporaryDirectory() as folder, report_errors_in_one_line():
        speeds = measure(arguments.trainer, [*flags, "--folder", folder, "--eval_every", "1000000"], arguments.sizes)
    if arguments.json:
        print(json.dumps(speeds))
        return
    for size, speed in speeds.items():
        print(f"{size:>6}{speed:>12,.0f} env steps/s")


def measure(trainer: str, flags: list[str], sizes: list[int]) -> dict[int, float]:
    """Chunk size -> env steps per second."""
    runs = {}
    for size in sizes:
        own = ["--chunk_size", str(size), "--run_name", f"chunks_of_{size}"]
        (runs[size],) = prepare(parse_config(trainer, [*flags, *own], __doc__))
    speeds: dict[int, list[float]] = {size: [] for size in sizes}
    for generation in range(GENERATIONS):
        for size, run in runs.items():
            started = time.perf_counter()
            env_steps = run.trainer.advance(Progress(generation), run.engine).env_steps
            speeds[size].append(env_steps / (time.perf_counter() - started))
    for run in runs.values():
        run.close()
    return {size: median(values[1:]) for size, values in speeds.items()}


if __name__ == "__main__":
    main()
