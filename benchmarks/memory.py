"""Estimated and measured memory of runs.

    python -m benchmarks.memory [--settings network adam ...] [--json]

Each setting is a run of two generations with short episodes, in a process of its own. The predicted value is the sum of
the terms of `hebbes.training.run_memory`. The measured value is the peak memory of the process and its workers, without
pages of files, read every 2 ms, minus the memory of the process before its simulators were made. So both are what a run
needs in addition to the bare program.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from hebbes.training.free_memory import measure_private_memory

ROOT = Path(__file__).parent.parent
COMMON = "--generations 2 --test_episodes 0 --threads 2 --eval_episodes 2"
CHEETAH, CARTPOLE = "--environment HalfCheetah-v5 --preset openai_es", "--environment CartPole-v1"
NETWORK = "--policy mlp --hidden_sizes 1000 1000"
SHORT = "--max_episode_steps 5"
SETTINGS = {
    "cartpole_50000": f"static {CARTPOLE} --popsize 50000 {SHORT}",
    "cheetah_1000": f"static {CHEETAH} --popsize 1000 {SHORT}",
    "walker_3000": f"static --environment BipedalWalker-v3 --popsize 3000 {SHORT}",
    "car_racing_150": f"static --environment CarRacing-v3 --popsize 150 {SHORT}",
    "car_racing_plastic": f"hebbian --environment CarRacing-v3 --popsize 64 {SHORT}",
    "car_racing_stack": f"static --environment CarRacing-v3 --popsize 32 --grayscale --frame_stack 128 {SHORT}",
    "pong_64": f"static --environment Pong-v5 --popsize 64 {SHORT}",
    "bullet_workers": f"static --environment AntBulletEnv-v0 --popsize 60 {SHORT} --threads 4 --eval_episodes 8",
    "network": f"static {CHEETAH} --policy mlp --hidden_sizes 2000 2000 --popsize 64 {SHORT}",
    "network_of_early_ends": f"static {CARTPOLE} {NETWORK} --popsize 128 --max_episode_steps 40",
    "small_chunks": f"static {CHEETAH} {NETWORK} --popsize 320 --chunk_size 8 {SHORT}",
    "orthogonal": f"static {CHEETAH} {NETWORK} --popsize 16 --chunk_size 8 --sampler orthogonal {SHORT}",
    "adam": f"static {CHEETAH} {NETWORK} --popsize 32 --optimizer adam --chunk_size 8 {SHORT}",
    "pgpe": f"static {CHEETAH} {NETWORK} --popsize 32 --strategy pgpe --chunk_size 8 {SHORT}",
    "ga": f"static {CHEETAH} {NETWORK} --popsize 32 --strategy ga --parents 10 --chunk_size 8 {SHORT} --generations 12",
    "cma_es": f"static {CHEETAH} --policy mlp --hidden_sizes 30 20 --strategy cma_es --popsize 100 {SHORT}",
    "xnes": f"static {CHEETAH} --policy mlp --hidden_sizes 60 40 --strategy xnes --popsize 60 {SHORT}",
    "sep_cma_es": f"static {CHEETAH} {NETWORK} --strategy sep_cma_es --popsize 32 {SHORT}",
    "cr_fm_nes": f"static {CHEETAH} {NETWORK} --strategy cr_fm_nes --popsize 16 {SHORT}",
}


def main() -> None:
    """Prints the measured values."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--settings", nargs="+", choices=SETTINGS, default=list(SETTINGS), help="settings to measure (default: all)"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object and nothing else")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(measure(*SETTINGS[arguments.one].split(maxsplit=1))), file=sys.stderr)
        return
    found = {name: _measure_in_own_process(name) for name in arguments.settings}
    if arguments.json:
        print(json.dumps(found))
        return
    for name, result in found.items():
        error = result["predicted_mb"] / result["measured_mb"] - 1
        print(f"{name:<24}{result['predicted_mb']:8.0f} MB{result['measured_mb']:8.0f} MB{error:+7.0%}")


def _measure_in_own_process(name: str) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.memory", "--one", name]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)  # noqa: S603
    return json.loads(done.stderr.splitlines()[-1])


def measure(trainer: str, flags: str) -> dict[str, float]:
    """Predicted and measured megabytes of one run, which is done in this process."""
    from hebbes.environments.trial import find_spaces
    from hebbes.options.command_line import parse_config
    from hebbes.training.agent_and_environment import make_agent, make_environment_spec
    from hebbes.training.assemble_run import resolve_policy
    from hebbes.training.memory_check import measure_run_size
    from hebbes.training.prepare import prepare
    from hebbes.training.run import execute
    from hebbes.training.run_memory import estimate_memory

    with tempfile.TemporaryDirectory() as folder:
        config = parse_config(trainer, [*COMMON.split(), *flags.split(), "--folder", folder], "")
        environment = make_environment_spec(config)
        both = find_spaces(environment)
        settled_config = resolve_policy(config, both[0])
        size = measure_run_size(settled_config, make_agent(settled_config, *both), environment)
        predicted, before, peak = sum(estimate_memory(size).values()), measure_private_memory(), _PeakMemory()
        (run,) = prepare(config)
        execute(run)
        return {"predicted_mb": predicted / 1e6, "measured_mb": (peak.stop() - before) / 1e6}


class _PeakMemory:
    """Measures the peak memory of this process and its workers in a thread."""

    def __init__(self) -> None:
        self._most, self._stopped, self._workers = 0, threading.Event(), list(_find_workers())
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def stop(self) -> int:
        """Ends the measurement and returns the peak in bytes."""
        self._stopped.set()
        self._thread.join()
        return self._most

    def _watch(self) -> None:
        looked = 0.0
        while not self._stopped.wait(0.002):
            if time.monotonic() > looked + 0.1:
                self._workers, looked = list(_find_workers()), time.monotonic()
            self._most = max(self._most, sum(map(measure_private_memory, [os.getpid(), *self._workers])))


def _find_workers() -> Iterator[int]:
    """Ids of the processes that multiprocessing started. Others briefly share the pages of this process."""
    for task in Path("/proc/self/task").iterdir():
        with suppress(OSError):  # threads and processes may end meanwhile
            for child in (task / "children").read_text().split():
                if b"multiprocessing" in Path(f"/proc/{child}/cmdline").read_bytes():
                    yield int(child)


if __name__ == "__main__":
    main()
