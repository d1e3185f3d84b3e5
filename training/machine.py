"""What the bits of a run depend on beside its options: the code, the packages and the processor."""

import platform
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from llvmlite.binding import get_host_cpu_name

REPOSITORY = Path(__file__).resolve().parent.parent
PACKAGES = (
    *("numpy", "scipy", "numba", "llvmlite", "gymnasium", "envpool", "mujoco", "box2d", "pybullet", "ale-py"),
    *("opencv-python-headless", "cmaes", "crfmnes"),
)


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
