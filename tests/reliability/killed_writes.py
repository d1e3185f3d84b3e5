"""Kills a run at each of its file operations, one after the other, and resumes it; prints counts as JSON.

    python -m tests.reliability.killed_writes TRAINER FOLDER EVERY

With EVERY larger than 1, at each EVERY-th operation.

Python announces every file operation to audit hooks before it happens, so nothing has to be patched. Each kill hits a
new process, forked from this one, which has imported everything and done nothing else.
"""

import itertools
import json
import os
import signal
import sys
import traceback
from pathlib import Path

import matplotlib.pyplot  # noqa: F401

from hebbes.registry.tables import TRAINERS
from tests.training.scripted_runs import make_scripted_config, read_outcome, resume, train
from tests.training.toy_trainers import TOYS

GENERATIONS = {"static": 2, "replay": 9}
"""Trainer -> units of its run. With a replay, old segments are deleted in the last ones."""
LATER = 40
"""The resuming process is killed too, at one of its first 40 operations."""
EVENTS = {"open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.chmod", "os.truncate"}


def die_at(number, top):
    """Makes this process kill itself just before its `number`-th operation on a file below a folder; 0 for never."""
    counted = itertools.count(1)

    def watch(event, arguments):
        if event in EVENTS and str(arguments[0]).startswith(str(top)) and next(counted) == number:
            os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(watch)


def run_forked(trainer, top, number, name):
    """Exit status of a process that starts or resumes a run and is killed at its `number`-th operation."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    status = 1
    try:
        die_at(number, top)
        with Path(os.devnull).open("w") as nowhere:
            os.dup2(nowhere.fileno(), 1)
        go_on(trainer, top, name)
        status = 0
    except Exception:
        traceback.print_exc()
    finally:
        os._exit(status)


def go_on(trainer, top, name):
    """Starts the run, or resumes it if its folder exists; returns the folder."""
    folder, options = top / "Scripted-v0" / name, {"generations": GENERATIONS[trainer], "checkpoint_every": 1}
    if folder.exists():
        return resume(folder, trainer, **options)
    return train(make_scripted_config(top, trainer, run_name=name, **options))


def main():
    TRAINERS.update(TOYS)
    trainer, top, every = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
    assert run_forked(trainer, top, 0, "whole") == 0
    whole = read_outcome(top / "Scripted-v0" / "whole")
    kills, wrong = 0, []
    for number in itertools.count(1, every):
        name = f"killed{number}"
        statuses = [run_forked(trainer, top, at, name) for at in (number, 1 + number % LATER, 0)]
        folder = top / "Scripted-v0" / name
        kills += statuses.count(-signal.SIGKILL)
        if statuses[-1] or read_outcome(folder) != whole or [*folder.rglob(".*.tmp")]:
            wrong.append([number, *statuses])
        if statuses[0] == 0:
            break
    print(json.dumps({"operations": number - 1, "kills": kills, "wrong": wrong}))


if __name__ == "__main__":
    main()
