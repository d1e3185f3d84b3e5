"""RunOptions: what a run is called, where its files are, and what it writes and when."""

import os
import re
from dataclasses import dataclass
from typing import Any

from hebbes.contracts.option import check_options, check_seeds, option
from hebbes.environments.part_spec import read_part
from hebbes.evaluation.arguments import MAX_EPISODES

NO_PRESET = "none"
"""The value of `--preset` for which only the shared preset is read."""

MAX_NAME_BYTES = 200
"""Of the name of a run's folder. File systems take 255, and temporary names are longer."""

RESERVED_NAMES = ("checkpoint", "kept", "videos", "sweeps")
"""Folders in that of a run, by which programs tell what a folder holds, and that of sweeps next to runs.

Their modules import too much for this one.
"""

UNITS = "generations (episodes of td3, individuals of the asynchronous hybrids)"
"""What a run counts, as help texts name it."""


@dataclass(frozen=True)
class RunOptions:
    """Options of a run, whatever it trains."""

    preset: str | None = option(
        None,
        "variant of the preset, hebbes/presets/TRAINER/ENVIRONMENT.VARIANT.yaml or any.VARIANT.yaml; none reads the "
        "shared one alone",
        saved=False,
    )
    config: str | None = option(
        None,
        "YAML file of options, or policy file, whose training's are taken; they override the preset, and flags "
        "override them",
        saved=False,
    )
    resume: str | None = option(
        None, "resume the run, or the runs of several seeds, in this folder", saved=False, changeable=True
    )
    init_from: str | None = option(
        None,
        "start from the weights of this policy file, or zoo:NAME, or a file that Najarro & Risi's code saved",
    )
    seed: int = option(0, "seed of every random stream", range=">= 0")
    seeds: int = option(
        1,
        "number of runs, one after the other, with --seed and the seeds that follow it",
        range="in [1, 10000]",
        advice="; did you mean --seed?",
    )
    folder: str = option("weights", "folder of all runs; each is written to FOLDER/ENVIRONMENT/RUN_NAME")
    run_name: str | None = option(None, "name of the run's folder (default: method, seed and time)")
    print_every: int = option(
        1, "generations, or env steps of hybrids, between lines of progress", range=">= 1", changeable=True
    )
    quiet: bool = option(
        False, "print no progress, only notices and errors, on standard error", saved=False, changeable=True
    )
    checkpoint_every: int = option(
        10,
        f"{UNITS} between checkpoints with latest.dat; one is written after 5 minutes too, and with a new best.dat",
        range=">= 1",
        changeable=True,
    )
    keep_every: int | None = option(
        None,
        f"{UNITS} between policies that are kept in the folder kept, and can be filmed (default: none is kept)",
        range=">= 1",
        changeable=True,
    )
    video_every: int | None = option(
        None,
        f"{UNITS} between policies that are kept, and of which another process films an episode meanwhile, in the "
        "folder videos (default: none is filmed)",
        range=">= 1",
        changeable=True,
    )
    test_episodes: int = option(
        20,
        "episodes of best.dat after training, on Gymnasium's own environment, or on EnvPool where Gymnasium lacks it; "
        "0: no test",
        range=f"in [0, {MAX_EPISODES}]",
        changeable=True,
    )
    loggers: tuple[Any, ...] = option(
        (),
        "what else the metrics are given to, row by row: a logger by name, or package.module:Class, with arguments "
        "as those of wrappers",
        read=read_part,
        changeable=True,
    )

    @property
    def keep_intervals(self) -> tuple[int, ...]:
        """Numbers of units. The policy is kept after each multiple of one of them."""
        return tuple(filter(None, (self.keep_every, self.video_every)))

    def __post_init__(self) -> None:
        check_options(self)
        if self.run_name is not None and not _is_folder_name(self.run_name):
            raise ValueError(
                f"run_name must be a plain folder name of at most {MAX_NAME_BYTES} bytes, and not one of "
                f"{', '.join(RESERVED_NAMES)}, got {self.run_name!r}"
            )
        if not self.folder:
            raise ValueError("folder must name a folder, got ''")
        if self.init_from == "":
            raise ValueError("init_from must be a path, got ''")
        check_seeds(self.seed, self.seeds)


def _is_folder_name(name: str) -> bool:
    is_plain = re.fullmatch(r"(?!\.)[^/\x00-\x1f]+", name) and len(os.fsencode(name)) <= MAX_NAME_BYTES
    return bool(is_plain) and name not in RESERVED_NAMES
