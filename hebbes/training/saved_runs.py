"""Saved runs: which folders hold them, and what their files say about them. No weights and no simulator are loaded."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import UnionType
from typing import Any

from hebbes.contracts.errors import say
from hebbes.environments.environment_spec import EnvironmentSpec
from hebbes.environments.morphologies import INTACT
from hebbes.environments.part_spec import PartSpec, make_part_spec
from hebbes.files.checkpoint import FOLDER, CheckpointHeader, read_newest_header
from hebbes.files.option_file import CONFIG_YAML
from hebbes.recording.standard_output import make_printable
from hebbes.registry.former_names import rename_options, rename_saved_options

BEST, LATEST = "best.dat", "latest.dat"
"""The policy files of the best evaluation and of the last generation, in the folder of a run."""

KEPT = "kept"
"""The folder of the policies that are kept along the way, in the folder of a run. Each is named after its unit."""

SWEEPS = "sweeps"
"""The folder of the sweeps of an environment, next to its runs."""

_TYPES: Mapping[str, type | UnionType] = {
    "environment": str,
    "seed": int,
    "env_kwargs": dict,
    "max_episode_steps": int | None,
    "morphologies": list | tuple | None,
    "max_env_steps": int | None,
    "generations": int | None,
    "stop_at_return": int | float | None,
}
"""The options of a run that are read without the classes that own them. Not every trainer has all."""


@dataclass(frozen=True)
class SavedRun:
    """A run as its newest checkpoint describes it."""

    folder: Path
    header: CheckpointHeader
    options: Mapping[str, Any]
    """Those of the checkpoint, with the names of today."""
    spec: EnvironmentSpec
    """The environment in its wrappers. Its back end is not what the run had."""

    @property
    def environment(self) -> str:
        """The environment's id."""
        return str(self.options["environment"])

    @property
    def seed(self) -> int:
        """The seed of the training."""
        return int(self.options["seed"])


def read_saved_run(folder: Path, *, check: bool = False) -> SavedRun:
    """The run in a folder; ValueError, which names the folder, if it is damaged. See `read_newest_header`."""
    try:
        header = read_newest_header(folder / FOLDER, check=check)
        options = rename_options(rename_saved_options(header.config), _TYPES)
        wrappers, gymnasium_wrappers = (
            tuple(map(make_part_spec, options.get(name) or ())) for name in ("wrappers", "gymnasium_wrappers")
        )
        starts = [PartSpec("settle", {"num_steps": steps})] if (steps := options.get("settle_steps")) else []
        starts += [PartSpec("fire_reset")] if options.get("fire_reset") else []
    except (ValueError, TypeError, AttributeError) as error:
        raise ValueError(f"{folder}: {error}") from error
    for name, kind in _TYPES.items():
        if not isinstance(options.get(name), kind):
            raise ValueError(f"{folder}: its checkpoint has a bad or missing option {name}")
    spec = EnvironmentSpec(
        options["environment"],
        "gymnasium",
        options["env_kwargs"],
        gymnasium_wrappers=gymnasium_wrappers,
        wrappers=(*starts, *wrappers),
        morphologies=tuple(options.get("morphologies") or (INTACT,)),
    )
    return SavedRun(folder, header, options, spec)


def find_run_folders(top: Path) -> list[Path]:
    """The folders of all runs in a folder, or the folder itself; ValueError if it holds no run.

    A folder is that of a run if it has checkpoints, or the options of a run without runs in it. One that cannot be
    read may be one.
    """
    found = list(_walk(top)) if top.is_dir() else []
    if not found:
        holds = (
            "is a file, not the folder of a run"
            if top.is_file()
            else "holds no run"
            if top.exists()
            else "is not there"
        )
        raise ValueError(f"{top} {holds}")
    return found


def find_usable_runs(top: Path, is_usable: Callable[[Path], object], lack: str) -> list[Path]:
    """The folders that `find_run_folders` returns, without those of sweeps and those that lack something.

    Standard error says which are left out. Runs of sweeps are returned if there are no others. If all runs lack
    something, all are returned: what needs it says so.
    """
    folders = find_run_folders(top)
    own = [folder for folder in folders if SWEEPS not in folder.relative_to(top).parts] or folders
    if len(own) < len(folders):
        say(f"left out  {len(folders) - len(own)} runs of sweeps in {make_printable(str(top))}: name their folders too")
    lacks = {folder: _find_lack(folder, is_usable, lack) for folder in own}
    usable = [folder for folder, found in lacks.items() if not found]
    if usable:
        for folder, found in lacks.items():
            if found:
                say(f"left out  {make_printable(str(folder))}: {found}")
    return usable or list(lacks)


def _find_lack(folder: Path, is_usable: Callable[[Path], object], lack: str) -> str:
    """Why the run in a folder cannot be used; empty if it can."""
    try:
        return "" if is_usable(folder) else lack
    except OSError as error:
        return str(error.strerror)


def _walk(folder: Path) -> Iterator[Path]:
    try:
        with os.scandir(folder) as entries:
            names = {entry.name: entry.is_dir(follow_symlinks=False) for entry in entries}  # a link may lead back here
    except (FileNotFoundError, NotADirectoryError):  # deleted just now
        return
    except OSError:  # not to be read
        yield folder
        return
    if names.get(FOLDER):
        yield folder
        return
    below = [name for name, is_folder in names.items() if is_folder and not name.startswith(".")]
    found = [each for name in sorted(below, key=_order_seeds) for each in _walk(folder / name)]
    yield from found or ([folder] if CONFIG_YAML in names else [])


def _order_seeds(name: str) -> tuple[str, int]:
    """Sorts seed2 before seed10."""
    stem = name.rstrip("0123456789")
    return stem, int(name[len(stem) :] or -1)


def list_kept_files(folder: Path) -> list[Path]:
    """The policy files that a run has kept along the way, in their order."""
    return sorted(path for path in (folder / KEPT).glob("*.dat") if path.stem.isdecimal())


def list_policy_files(paths: Sequence[str]) -> list[str]:
    """The paths, with the best policy of each run in a folder instead of the folder; ValueError if a run has none."""
    found = []
    for path in paths:
        if not (path and Path(path).is_dir()):  # the path of an empty text is the current folder
            found.append(path)
            continue
        for folder in find_usable_runs(Path(path), lambda run: (run / BEST).exists(), f"it has no {BEST} yet"):
            if not (folder / BEST).exists():
                raise ValueError(
                    f"{folder} has no {BEST}: the run was not evaluated yet, or the file was removed, and --resume "
                    "makes it again; name a policy file"
                )
            found.append(str(folder / BEST))
    return found
