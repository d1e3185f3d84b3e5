"""The first steps of a program, before its modules are loaded, which takes a second or two.

This file and the scripts run on Python 3.6 and newer, so that an old Python can still say what is wrong.
"""

import gc
import os
import signal
import sys
from importlib.util import find_spec
from pathlib import Path

LEAST_PYTHON = (3, 11)

PACKAGES = {
    "numpy": "numpy",
    "scipy": "scipy",
    "numba": "numba",
    "cmaes": "cmaes",
    "crfmnes": "crfmnes",
    "threadpoolctl": "threadpoolctl",
    "jaxtyping": "jaxtyping",
    "gymnasium": "gymnasium",
    "cv2": "opencv-python-headless",
    "safetensors": "safetensors",
    "yaml": "PyYAML",
    "matplotlib": "matplotlib",
}
"""Modules that every program needs, and the packages of requirements.txt that contain them."""


def prepare_process() -> None:
    """Prepares signals and standard streams, or ends a program that this Python cannot run, with one line and status 2.

    Python looks for garbage less often. Ctrl-C ends the program without a traceback while modules are loaded. A closed
    standard stream is opened: otherwise the next file that is opened would get its number, and simulators would print
    into that file. What simulators print to descriptor 1, in worker processes too, goes to standard error.
    """
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    for number, (name, mode) in enumerate((("stdin", "r"), ("stdout", "w"), ("stderr", "w"))):
        if getattr(sys, name) is None:
            null = os.open(os.devnull, os.O_RDWR)
            if null != number:
                os.dup2(null, number)
                os.close(null)
            os.set_inheritable(number, True)  # programs that simulators start have it too
            setattr(sys, name, os.fdopen(number, mode))
    try:
        Path.cwd()
    except FileNotFoundError:
        sys.stderr.write(f"{Path(sys.argv[0]).name}: error: the folder in which this was called is gone\n")
        sys.exit(2)
    missing = _describe_missing()
    if missing:
        sys.stderr.write(f"{Path(sys.argv[0]).name}: error: {missing}; {_give_advice()}\n")
        sys.exit(2)
    # modules are hundreds of thousands of objects: looking for garbage among them takes a fifth of the start
    gc.set_threshold(10_000, 10, 10)
    errors = "backslashreplace" if sys.stdout.errors == "strict" else sys.stdout.errors  # no result is lost by a letter
    results = os.fdopen(os.dup(1), "w", encoding=sys.stdout.encoding, errors=errors)
    for name in ("stdout", "__stdout__"):
        setattr(sys, name, results)
    os.dup2(2, 1)


def _describe_missing() -> str:
    """What this Python lacks to run the programs; empty if nothing is missing."""
    if sys.version_info < LEAST_PYTHON:
        needed, found = (".".join(map(str, version)) for version in (LEAST_PYTHON, sys.version_info[:3]))
        return f"Python {needed} or newer is needed, and {sys.executable} is {found}"
    missing = [package for module, package in PACKAGES.items() if find_spec(module) is None]
    if not missing:
        return ""
    number = f" and {len(missing) - 1} other packages are" if len(missing) > 1 else " is"
    return f"{missing[0]}{number} not installed for {sys.executable}"


def _give_advice() -> str:
    """The commands that activate the environment of `make setup`."""
    environment = Path(__file__).resolve().parents[2] / ".venv"
    if (environment / "bin" / "python").exists() and environment.resolve() != Path(sys.prefix).resolve():
        return "run `source .venv/bin/activate` first"
    return "run `make setup`, then `source .venv/bin/activate`"
