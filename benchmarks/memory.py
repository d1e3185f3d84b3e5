"""What runs say that they need of memory, against what they take.

    python -m benchmarks.memory [--settings popsize network ...] [--json]

Each setting is a run of two generations in a process of its own, whose episodes are short. Predicted is the sum of the
terms of `hebbes.training.run_memory`; measured is the peak of memory, without pages of files, of the process and its workers,
read every 2 ms, less what the process took before its simulators were made. So both are what a run takes above the bare
program.
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

ROOT = Path(__file__).parent.parent
COMMON = "--generations 2 --test_episodes 0 --threads 2 --eval_episodes 2"
CHEETAH, CARTPOLE = "--environment HalfCheetah-v5", "--environment CartPole-v1"
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
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--settings", nargs="+", choices=SETTINGS, default=list(SETTINGS), help="those to measure")
    parser.add_argument("--json", action="store_true", help="print one JSON object and nothing else")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(measure(*SETTINGS[arguments.one].split(maxsplit=1))), file=sys.stderr)
        return
    found = {name: _in_its_own_process(name) for name in arguments.settings}
    if arguments.json:
        print(json.dumps(found))
        return
    for name, figures in found.items():
        error = figures["predicted_mb"] / figures["measured_mb"] - 1
        print(f"{name:<24}{figures['predicted_mb']:8.0f} MB{figures['measured_mb']:8.0f} MB{error:+7.0%}")


def _in_its_own_process(name: str) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.memory", "--one", name]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)  # noqa: S603
    return json.loads(done.stderr.splitlines()[-1])


def measure(trainer: str, flags: str) -> dict[str, float]:
    """Predicted and measured megabytes of one run, which happens in this process."""
    from hebbes.options.command_line import parse_config
    from hebbes.training.assembly import (  # not in the process that only collects figures
        environment_spec,
        make_agent,
        spaces,
    )
    from hebbes.training.free_memory import own_memory
    from hebbes.training.memory_check import measure_run
    from hebbes.training.prepare import prepare, settle
    from hebbes.training.run import execute
    from hebbes.training.run_memory import run_memory

    with tempfile.TemporaryDirectory() as folder:
        config = parse_config(trainer, [*COMMON.split(), *flags.split(), "--folder", folder], "")
        environment = environment_spec(config)
        both = spaces(environment)
        settled_config = settle(config, environment, both[0])
        size = measure_run(settled_config, make_agent(settled_config, *both), environment)
        predicted, before, peak = sum(run_memory(size).values()), own_memory(), _Peak()
        (run,) = prepare(config)
        execute(run)
        return {"predicted_mb": predicted / 1e6, "measured_mb": (peak.stop() - before) / 1e6}


class _Peak:
    """Watches the memory of this process and its workers."""

    def __init__(self) -> None:
        self._most, self._stopped, self._workers = 0, threading.Event(), list(_workers())
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def stop(self) -> int:
        """The most bytes at a time so far; ends the watching."""
        self._stopped.set()
        self._thread.join()
        return self._most

    def _watch(self) -> None:
        looked = 0.0
        while not self._stopped.wait(0.002):
            if time.monotonic() > looked + 0.1:
                self._workers, looked = list(_workers()), time.monotonic()
            self._most = max(self._most, sum(map(_anonymous, [os.getpid(), *self._workers])))


def _workers() -> Iterator[int]:
    """The processes that multiprocessing has started; others share this one's pages for a moment."""
    for task in Path("/proc/self/task").iterdir():
        with suppress(OSError):  # threads and processes may end meanwhile
            for child in (task / "children").read_text().split():
                if b"multiprocessing" in Path(f"/proc/{child}/cmdline").read_bytes():
                    yield int(child)


def _anonymous(process: int) -> int:
    try:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
    except OSError:  # it has ended
        return 0
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("RssAnon:"))


if __name__ == "__main__":
    main()
