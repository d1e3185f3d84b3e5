"""What the packages of simulators print that tells a user nothing, silenced at its source. Their real messages stay."""

import importlib
import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from threading import Lock
from typing import Any

_LOCK = Lock()


def quieten(entry_point: str, render_mode: str | None) -> None:
    """Silences the package of an environment with this entry point, which is about to be made."""
    _quieten_sdl(render_mode)
    with _LOCK:  # descriptors belong to the whole process
        for package, silence in _PACKAGES.items():
            if entry_point.startswith(package):
                silence()


def has_display() -> bool:
    """Whether there is a screen, where one can tell."""
    return sys.platform != "linux" or any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY"))


def _quieten_sdl(render_mode: str | None) -> None:
    """Where no window is to open, SDL, which Pygame stands on, need not look for a screen and a sound card in vain."""
    if render_mode == "rgb_array" or not has_display():
        os.environ.setdefault("SDL_VIDEODRIVER", "dummy")
        os.environ.setdefault("SDL_AUDIODRIVER", "dummy")


@cache
def _quieten_mujoco() -> None:
    """MuJoCo's warnings become Python's; its own way is a MUJOCO_LOG.TXT in the working folder."""
    importlib.import_module("mujoco").set_mju_user_warning(warnings.warn)
    warnings.filterwarnings("ignore", "compiler attribute .* is deprecated")  # in Gymnasium's own models


@cache
def _quieten_ale() -> None:
    """No banner for every game that is made; the environment itself goes on to hide all but errors."""
    ale = importlib.import_module("ale_py")
    ale.ALEInterface.setLoggerMode(ale.LoggerMode.Error)


@cache
def _quieten_bullet() -> None:
    """No time of build on import, and no `argv[0]=`, which it prints of options that are empty when it connects."""
    with _stderr_without(b"pybullet build time"):
        pybullet: Any = importlib.import_module("pybullet")
    connect = pybullet.connect

    def connect_without_empty_options(*arguments: Any, options: str = "", **others: Any) -> int:
        return connect(*arguments, **others, **({"options": options} if options else {}))

    pybullet.connect = connect_without_empty_options


@contextmanager
def _stderr_without(beginning: bytes) -> Iterator[None]:
    """Drops lines with this beginning from what is written to descriptor 2, of which a pipe's fill is kept."""
    sys.stderr.flush()
    stderr = os.dup(2)
    read, write = os.pipe()
    os.set_blocking(read, False)
    os.set_blocking(write, False)
    os.dup2(write, 2)
    os.close(write)
    try:
        yield
    finally:
        sys.stderr.flush()
        os.dup2(stderr, 2)
        os.close(stderr)
        with os.fdopen(read, "rb") as caught, suppress(OSError):
            kept = [line for line in caught.read().splitlines(keepends=True) if not line.startswith(beginning)]
            os.write(2, b"".join(kept))


_PACKAGES = {
    "gymnasium.envs.mujoco": _quieten_mujoco,
    "ale_py": _quieten_ale,
    "pybullet_envs_gymnasium": _quieten_bullet,
}
"""By the beginning of the entry points."""
