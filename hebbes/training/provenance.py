"""What the bits of a run depend on beside its options: the code, the packages and the processor."""

import platform
import subprocess
import sys
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from llvmlite.binding import get_host_cpu_name

REPOSITORY = Path(__file__).resolve().parents[2]
PACKAGES = (
    *("numpy", "scipy", "numba", "llvmlite", "gymnasium", "envpool", "mujoco", "box2d", "pybullet", "ale-py"),
    *("opencv-python-headless", "cmaes", "crfmnes"),
)


def commit() -> str:
    """The commit that is checked out, with `+` if files differ from it; the version where hebbes is installed instead."""
    if not (REPOSITORY / ".git").exists():  # site-packages may lie in a repository of the user's own
        return _installed_versions(["hebbes"]).get("hebbes", "")
    git = ["git", "-C", str(REPOSITORY), "describe", "--always", "--dirty=+", "--abbrev=12", "--exclude=*"]
    try:
        return subprocess.run(git, capture_output=True, text=True, check=True).stdout.strip()  # noqa: S603
    except (OSError, subprocess.CalledProcessError):
        return ""


def package_versions() -> dict[str, str]:
    """Versions of Python and of the packages that results depend on, those that are installed."""
    return {"python": sys.version.split()[0], **_installed_versions(PACKAGES)}


def _installed_versions(packages: Iterable[str]) -> dict[str, str]:
    versions = {}
    for package in packages:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            continue
    return versions


def cpu_model() -> str:
    """The processor's name, and LLVM's: kernels are compiled for it, and its vector units round in their own way."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return f"{next(names, platform.machine())} ({get_host_cpu_name()})"


def conditions() -> dict[str, str]:
    """Everything that must be the same for a run to give the same bits again."""
    libc = " ".join(platform.libc_ver())  # its tanh and exp may be in use
    return {"hebbes": commit(), **package_versions(), "libc": libc, "cpu": cpu_model()}
