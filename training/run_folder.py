"""The folder of a run: made before anything starts, refused if it is there already."""

import itertools
import shlex
import subprocess
import sys
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from training.config import TrainConfig

REPOSITORY = Path(__file__).resolve().parent.parent
PACKAGES = ("numpy", "numba", "gymnasium", "envpool", "mujoco", "box2d", "pybullet", "ale-py", "opencv-python-headless")


def commit() -> str:
    """The commit that is checked out, with `+` if files differ from it; empty outside a checkout."""
    git = ["git", "-C", str(REPOSITORY), "describe", "--always", "--dirty=+", "--abbrev=12", "--exclude=*"]
    try:
        return subprocess.run(git, capture_output=True, text=True, check=True).stdout.strip()  # noqa: S603
    except (OSError, subprocess.CalledProcessError):
        return ""


def package_versions() -> dict[str, str]:
    """Versions of Python and of the packages that results depend on, those that are installed."""
    versions = {"python": sys.version.split()[0]}
    for package in PACKAGES:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            continue
    return versions


def _chosen(config: TrainConfig) -> Path:
    """The folder named, or one named after strategy, seed and time that is not there yet."""
    parent = Path(config.folder).expanduser() / config.environment.replace("/", "_")
    if config.run_name is not None:
        return parent / config.run_name
    stem = f"{config.strategy}-seed{config.seed}-{datetime.now(UTC):%Y%m%d-%H%M%S}"
    names = itertools.chain([stem], (f"{stem}-{number}" for number in itertools.count(2)))
    return next(parent / name for name in names if not (parent / name).exists())


def make_run_folder(config: TrainConfig) -> Path:
    """FOLDER/ENVIRONMENT/RUN_NAME with config.yaml and command.txt in it; ValueError if it cannot be made."""
    folder = _chosen(config)
    try:
        folder.mkdir(parents=True)
        (folder / "config.yaml").write_text(config.as_yaml())
        versions = "".join(f"{package} {number}\n" for package, number in package_versions().items())
        (folder / "command.txt").write_text(f"{shlex.join(sys.argv)}\ncommit {commit()}\n{versions}")
    except FileExistsError as error:
        raise ValueError(f"run folder {folder} exists already; choose another --run_name or --folder") from error
    except OSError as error:
        raise ValueError(f"cannot write to run folder {folder}: {error.strerror}") from error
    return folder
