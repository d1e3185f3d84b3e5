"""What the bits of a run depend on in addition to its options: the code, the packages and the processor."""

import platform
import subprocess
import sys
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from llvmlite.binding import get_host_cpu_name

REPOSITORY = Path(__file__).resolve().parents[2]
PACKAGES = (
    *("numpy", "scipy", "numba", "llvmlite", "gymnasium", "envpool", "mujoco", "box2d", "pybullet", "ale-py"),
    *("opencv-python-headless", "pygame-ce", "pybullet-envs-gymnasium", "cmaes", "crfmnes", "torch"),
)


def find_commit() -> str:
    """The commit that is checked out, with `+` if files differ from it; the version if hebbes is installed instead."""
    if not (REPOSITORY / ".git").exists():  # site-packages may be inside a user's own repository
        return _find_installed_versions(["hebbes"]).get("hebbes", "")
    git = ["git", "-C", str(REPOSITORY), "describe", "--always", "--dirty=+", "--abbrev=12", "--exclude=*"]
    try:
        return subprocess.run(git, capture_output=True, text=True, check=True).stdout.strip()  # noqa: S603
    except (OSError, subprocess.CalledProcessError):
        return ""


def _find_installed_versions(packages: Iterable[str]) -> dict[str, str]:
    versions = {}
    for package in packages:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            continue
    return versions


def find_cpu_model() -> str:
    """The processor's name and LLVM's name for it.

    Kernels are compiled for this processor, and the rounding depends on its vector units.
    """
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return f"{next(names, platform.machine())} ({get_host_cpu_name()})"


@cache
def find_conditions() -> Mapping[str, str]:
    """All that must be equal, in addition to the options, for a run to give the same bits again."""
    libc = " ".join(platform.libc_ver())  # kernels may use its tanh and exp
    versions = {"hebbes": find_commit(), "python": sys.version.split()[0], **_find_installed_versions(PACKAGES)}
    return {**versions, "libc": libc, "cpu": find_cpu_model()}
