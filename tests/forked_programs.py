"""Programs in processes that are forked from one in which their modules are loaded, which saves a second or two each.

A program begins with a folder, variables, arguments and streams of its own. What starting a new Python means for it is
tested elsewhere: `test_startup.py`, `test_signals.py`, `test_installed.py`. Its learning curve has one pixel.
"""

import atexit
import gc
import json
import os
import runpy
import signal
import subprocess
import sys
import tempfile
import traceback
from functools import cache
from importlib import import_module
from pathlib import Path

from hebbes.reporting import learning_curve
from hebbes.training.run_state import Run
from tests.python_process import ROOT
from tests.short_runs import EVALUATION_CAP, write_one_pixel

TIMEOUT = 600
LOADED = (
    *("hebbes.programs.train", "hebbes.programs.evaluate", "hebbes.programs.evaluation_run", "hebbes.programs.plot"),
    *("hebbes.training.prepare", "hebbes.training.run", "matplotlib.figure", "matplotlib.backends.backend_agg"),
    "torch",
)
"""They start no thread, and read no variable that a test sets."""


def run_forked(words, folder, variables):
    """The finished process of `python WORDS`, as `subprocess.run` returns it with its output as texts."""
    server = _start_server()
    with tempfile.TemporaryDirectory() as place:
        paths = [Path(place, name) for name in ("stdout", "stderr")]
        order = {"words": list(map(str, words)), "folder": str(folder), "variables": dict(variables)}
        print(json.dumps({**order, "outputs": list(map(str, paths))}), file=server.stdin, flush=True)
        status = int(server.stdout.readline())
        return subprocess.CompletedProcess(words, status, *(path.read_text() for path in paths))


@cache
def _start_server():
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    server = subprocess.Popen([sys.executable, "-m", "tests.forked_programs"], cwd=ROOT, **pipes)
    atexit.register(server.stdin.close)  # at which it ends
    return server


def serve():
    """Runs one program after the other, and answers with their exit statuses."""
    for name in LOADED:
        import_module(name)
    learning_curve.write_figure = write_one_pixel
    gc.collect()
    gc.freeze()  # a collection in a forked process would copy all objects
    orders, answers = os.fdopen(os.dup(0)), os.fdopen(os.dup(1), "w")
    for line in orders:
        if (child := os.fork()) == 0:
            orders.close()
            answers.close()
            signal.alarm(TIMEOUT)
            _run(**json.loads(line))
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), file=answers, flush=True)


def _run(words, folder, variables, outputs):
    """Runs a program, and ends the process as Python does, except that modules are not taken apart, which is slow."""
    for descriptor, path in enumerate((os.devnull, *outputs)):
        os.dup2(os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600), descriptor)
    sys.stdin, sys.stdout, sys.stderr = (os.fdopen(number, mode, closefd=False) for number, mode in enumerate("rww"))
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(variables)
    if cap := variables.get(EVALUATION_CAP):
        Run.evaluation_cap = int(cap)
    is_module = words[0] == "-m"
    sys.argv = words[is_module:]
    first = folder if is_module else str(Path(words[0]).absolute().parent)
    sys.path[:1] = [first, *filter(None, variables.get("PYTHONPATH", "").split(os.pathsep))]
    status = 0
    try:
        run = runpy.run_module if is_module else runpy.run_path
        run(sys.argv[0], run_name="__main__", **({"alter_sys": True} if is_module else {}))
    except SystemExit as ended:
        status = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
        if isinstance(ended.code, str):
            print(ended.code, file=sys.stderr)
    except BaseException:  # as the interpreter does
        traceback.print_exc()
        status = 1
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


if __name__ == "__main__":
    serve()
