"""How far a saved run is, and whether it is running. No weights and no simulator are loaded."""

import time
from dataclasses import dataclass
from math import nan
from pathlib import Path
from typing import Literal, TypeAlias, get_args

from hebbes.contracts.errors import join_lines
from hebbes.files.folder_lock import is_locked
from hebbes.files.option_file import CONFIG_YAML
from hebbes.recording.metrics import METRICS_CSV, read_last_row
from hebbes.training.saved_runs import SavedRun, read_saved_run

State: TypeAlias = Literal["running", "ended", "stopped", "damaged"]
STATES: tuple[str, ...] = get_args(State)
"""A process has locked its folder; its budget is done; neither; it has no checkpoint from which it could go on."""


@dataclass(frozen=True)
class RunStatus:
    """The state of a run now."""

    folder: Path
    state: State
    age: float
    """Seconds since it began, or since a resume changed its options."""
    run: SavedRun | None = None
    """None if it is damaged."""
    reason: str = ""
    """Why it is damaged."""
    env_steps: int = 0
    best_score: float = nan
    share_done: float = nan
    """Share of the budget that is done, of the one that comes first; NaN without a budget."""
    method: str = ""
    """The label of its method among those of a list of runs."""


def read_status(folder: Path, *, check: bool = False) -> RunStatus:
    """The state of the run in a folder, from its newest checkpoint, or from its metrics while it is running.

    With `check` the arrays of the checkpoint are read too, and a damaged one is passed over.
    """
    age = _measure_age(folder)
    try:
        run, is_running = read_saved_run(folder, check=check), is_locked(folder)
        units, env_steps, best_score = run.header.units, run.header.env_steps, run.header.best_score
        if is_running and (row := read_last_row(folder / METRICS_CSV)):
            units, env_steps = int(next(iter(row.values()))), int(row.get("env_steps", env_steps))
            best_score = row.get("best_score", best_score)
    except (OSError, ValueError, ArithmeticError) as error:
        return RunStatus(folder, "damaged", age, reason=join_lines(error).removeprefix(f"{folder}: "))
    budgets = [(env_steps, run.options.get("max_env_steps")), (units, run.options.get("generations"))]
    done = max((count / most for count, most in budgets if most), default=nan)
    goal = run.options.get("stop_at_return")
    is_over = done >= 1 or (goal is not None and best_score >= goal)
    state: State = "running" if is_running else "ended" if is_over else "stopped"
    return RunStatus(folder, state, age, run, env_steps=env_steps, best_score=best_score, share_done=done)


def _measure_age(folder: Path) -> float:
    """Seconds since its options were written: at its start, and when a resume changes them."""
    path = folder / CONFIG_YAML
    try:
        return max(0.0, time.time() - (path if path.exists() else folder).stat().st_mtime)
    except OSError:
        return nan
