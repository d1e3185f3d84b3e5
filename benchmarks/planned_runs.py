"""The runs of a study: their commands, their folders, and what is left of each."""

import json
import shlex
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, product
from math import nan
from pathlib import Path
from statistics import fmean

from benchmarks.studies import NUM_RULES, Study
from hebbes.training.run_folder import COMMAND_TXT
from hebbes.training.run_status import read_status

MORPHOLOGIES_JSON = "morphologies.json"
MORPHOLOGY_EPISODES = 100
MERGED = ".merged.dat"
HYBRID_PROGRAM = "train_hybrid.py"
NOT_COMPARED = ("--folder", "--run_name", "--print_every", "--init_from", "--device")
"""Options that say where files are and where gradient steps are computed, and not what is trained."""


@dataclass(frozen=True)
class PlannedRun:
    """A run of a study."""

    environment: str
    method: str
    folder: Path
    command: Sequence[str]
    """Begins it, but for the device."""
    morphologies: Sequence[str]
    """In which the policy is played after training."""
    source: "PlannedRun | None"
    """The run whose rules are merged for this one."""
    device: str | None = None
    """What computes the gradient steps; None if there are none."""

    @property
    def tests(self) -> Path:
        """The file of the returns: the test at the end of training, or the episodes in all morphologies."""
        return self.folder / (MORPHOLOGIES_JSON if self.morphologies else "test.json")

    @property
    def is_trained(self) -> bool:
        """Whether its training has ended normally."""
        return self.folder.is_dir() and read_status(self.folder).state == "ended"

    @property
    def is_done(self) -> bool:
        """Whether it is trained and tested."""
        return self.is_trained and self.tests.exists()

    def check(self) -> None:
        """ValueError if the folder has a run with other options, or returns that cannot be read."""
        if (self.folder / COMMAND_TXT).exists():
            try:
                found = read_options((self.folder / COMMAND_TXT).read_text().splitlines()[0])
            except (ValueError, IndexError):
                raise ValueError(f"{self.folder / COMMAND_TXT} is damaged: move the folder away") from None
            if found != self.options:
                raise ValueError(
                    f"{self.folder} is of {found}, and the study has {self.options}: take another --folder"
                )
        try:
            self.read_scores()
        except (ValueError, KeyError, TypeError):
            raise ValueError(f"{self.tests} is damaged: remove it, and it is made again") from None

    def read_scores(self) -> dict[str, float]:
        """Environment, with the morphology if there are several -> mean return. Empty if the run is not done."""
        if not self.is_done:
            return {}
        tests = json.loads(self.tests.read_text())
        if not self.morphologies:
            return {self.environment: compute_mean(tests["returns"])}
        return {
            f"{self.environment} {each['morphology']}": compute_mean(chain(*each["returns"])) for each in tests["files"]
        }

    @property
    def options(self) -> dict[str, str]:
        """What is trained."""
        return read_options(shlex.join(self.command))

    def find_training(self) -> Sequence[str]:
        """The command that begins the training, or goes on with it."""
        begin = [*self.command[:2], "--resume", str(self.folder)] if self.folder.is_dir() else self.command
        return [*begin, "--device", self.device] if self.device else begin

    @property
    def merged(self) -> Path:
        """The policy file with merged rules from which it begins, if it has a source."""
        return self.folder.with_suffix(MERGED)

    def make_merge(self) -> Sequence[str]:
        """The command that merges the rules of its source."""
        assert self.source
        options = ["--path_weights", str(self.source.folder / "best.dat"), "--num_rules", str(NUM_RULES)]
        return [sys.executable, "-m", "hebbes", "merge", *options, "--output", str(self.merged)]

    def make_test(self) -> Sequence[str]:
        """The command that plays the policy in all morphologies, with start states that no training has."""
        program = self.command[1].replace("train", "evaluate")
        options = ["--episodes", str(MORPHOLOGY_EPISODES), "--seed", "1000", "--json", "--threads", "1"]
        return [
            sys.executable,
            program,
            "--path_weights",
            str(self.folder / "best.dat"),
            *options,
            "--damage",
            *self.morphologies,
        ]


def compute_mean(returns: Iterable[float | None]) -> float:
    """The mean return; NaN if an episode has failed, which the files write as null."""
    return fmean(nan if each is None else each for each in returns)


def read_options(line: str) -> dict[str, str]:
    """The options of a command that trains, without those of `NOT_COMPARED`."""
    words = shlex.split(line)[2:]
    return {name: value for name, value in zip(words[::2], words[1::2], strict=True) if name not in NOT_COMPARED}


def plan(study: Study, folder: Path, device: str = "cpu") -> list[PlannedRun]:
    """The runs of a study, seed by seed, so that a part of them shows all methods. A source comes before its user."""
    runs: dict[Path, PlannedRun] = {}
    for seed, environment, (name, method) in product(study.seeds, study.minutes, study.methods.items()):
        options = {"environment": environment, **study.options, **method.options, "seed": str(seed)}
        own = folder / environment / f"{name}-seed{seed}"
        source = None
        if method.merged_from:
            source = runs[folder / environment / f"{method.merged_from}-seed{seed}"]
            options |= {"sharing": "clusters", "num_rules": str(NUM_RULES), "init_from": str(own.with_suffix(MERGED))}
        options |= {"folder": str(folder), "run_name": own.name, "print_every": "10"}
        words = [word for option, value in options.items() for word in (f"--{option}", value)]
        command = [sys.executable, method.program, *words]
        own_device = device if method.program == HYBRID_PROGRAM else None
        runs[own] = PlannedRun(environment, name, own, command, study.morphologies, source, own_device)
    return list(runs.values())
