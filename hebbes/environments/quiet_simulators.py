"""Silences what the simulators' packages print without any use for the user. Their real messages stay."""

import importlib
import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from threading import Lock
from typing import Any

warnings.filterwarnings("ignore", ".* not in the possible render_modes")  # GymnasiumEnv raises an error

_LOCK = Lock()
_SDL_DRIVERS = ("SDL_VIDEODRIVER", "SDL_AUDIODRIVER")
_NO_DEVICE = "dummy"
_drivers_of_ours: set[str] = set()
"""Those variables of SDL that are set here, and not by the user."""


def quieten(entry_point: str, render_mode: str | None) -> None:
    """Silences the package of an environment that is about to be made, by its entry point."""
    _quieten_sdl(render_mode)
    with _LOCK:  # file descriptors belong to the whole process
        for package, silence in _PACKAGES.items():
            if entry_point.startswith(package):
                silence()


def has_display() -> bool:
    """Whether there is a screen; True where that is not known."""
    return sys.platform != "linux" or any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY"))


def _quieten_sdl(render_mode: str | None) -> None:
    """Keeps SDL, which Pygame uses, from looking for a screen and a sound card until a window is to open."""
    if render_mode == "rgb_array" or not has_display():
        for name in _SDL_DRIVERS:
            if name not in os.environ:
                os.environ[name] = _NO_DEVICE
                _drivers_of_ours.add(name)
    elif render_mode == "human":
        while _drivers_of_ours:
            name = _drivers_of_ours.pop()
            if os.environ.get(name) == _NO_DEVICE:  # else the user has set it since
                del os.environ[name]


@cache
def _quieten_mujoco() -> None:
    """Turns MuJoCo's warnings into Python's. Otherwise it writes a MUJOCO_LOG.TXT into the working folder."""
    importlib.import_module("mujoco").set_mju_user_warning(warnings.warn)
    warnings.filterwarnings("ignore", "compiler attribute .* is deprecated")  # in Gymnasium's own models


@cache
def _quieten_ale() -> None:
    """Hides the banner that every new game prints. The environment itself already hides all but errors."""
    ale = importlib.import_module("ale_py")
    ale.ALEInterface.setLoggerMode(ale.LoggerMode.Error)


@cache
def _quieten_bullet() -> None:
    """Hides the build time on import, and the `argv[0]=` that it prints for empty options when it connects."""
    with _filter_stderr(b"pybullet build time"):
        pybullet: Any = importlib.import_module("pybullet")
    connect = pybullet.connect

    def connect_without_empty_options(*arguments: Any, options: str = "", **others: Any) -> int:
        return connect(*arguments, **others, **({"options": options} if options else {}))

    pybullet.connect = connect_without_empty_options


@contextmanager
def _filter_stderr(beginning: bytes) -> Iterator[None]:
    """Drops lines with this beginning from what is written to descriptor 2; the rest is kept up to a pipe's size."""
    stderr = os.dup(2)
    read, write = os.pipe()
    os.set_blocking(read, False)
    os.set_blocking(write, False)
    os.dup2(write, 2)
    os.close(write)
    try:
        yield
    finally:
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
"""Beginning of an entry point -> function that silences its package."""
