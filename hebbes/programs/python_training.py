"""Training from Python, with the options of the programs as a dictionary."""

import multiprocessing
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from hebbes.contracts.engine import EngineError, StartError
from hebbes.contracts.errors import describe_system_error
from hebbes.contracts.option import check_argument
from hebbes.evaluation.arguments import GUARD, advise_guard
from hebbes.files.option_file import drop_unnamed_files
from hebbes.options.command_line import resolve_or_resume_config
from hebbes.options.texts import format_options
from hebbes.recording.console import Console
from hebbes.registry.lookup import list_names
from hebbes.training.config import TrainConfig
from hebbes.training.prepare import prepare
from hebbes.training.run import TrainedRun, execute


def train(
    options: Mapping[str, Any],
    *,
    trainer: str = "static",
    on_generation: Callable[[Mapping[str, float]], object] | None = None,
    quiet: bool = False,
) -> TrainedRun:
    """Trains one run as `train_static.py` does, and returns its outcome. The numbers are the same.

    A script that calls this needs the guard `if __name__ == "__main__":`, because worker processes import it. The test
    at the end starts worker processes even if the training itself uses threads. None is started if `threads` is 1, and
    `engine`, `episode_timeout` and videos are not asked for.

    Args:
        options: the program's options by name, with the same names and meanings, such as `{"environment":
            "CartPole-v1", "sigma": 0.05}`. `{"resume": folder}` goes on with a run.
        trainer: "static", "hebbian" or "hybrid". Each has its own presets and defaults.
        on_generation: called with each generation's row of metrics. If it returns something true, training ends after
            that generation, and the run can be resumed. The last policy is then not evaluated, unless `eval_every` says
            so or the run has no evaluation yet. What it raises ends training too, after a checkpoint.
        quiet: the option of this name: prints only notices, on standard error.

    Raises:
        ValueError: an option is wrong, or they do not fit together; nothing has been written.
        RuntimeError: training cannot go on. The finished generations are saved.

    Examples:
        >>> import hebbes
        >>> seen = []
        >>> options = {"environment": "CartPole-v1", "policy": "linear", "population_size": 8, "seed": 1}
        >>> run = hebbes.train(
        ...     {**options, "generations": 100, "threads": 1},
        ...     on_generation=lambda row: seen.append(row["mean_policy_return"]) or len(seen) == 3,
        ...     quiet=True,
        ... )
        >>> len(seen), len(run.returns)
        (3, 20)
    """
    _check_no_worker()
    if on_generation is not None and not callable(on_generation):
        raise ValueError(f"on_generation must be a function, got {on_generation!r}")
    with _convert_errors():
        config = _resolve_options(options, trainer, quiet)
        console = Console(quiet=config.run.quiet)
        with console, console.phase("starting"):
            run = prepare(config).prepare(config.run.seed)
    with _advise_on_guard(), console:
        return execute(run, on_generation, console)


def _check_no_worker() -> None:
    """RuntimeError in a worker process that imports the script of its parent: it would train once more."""
    if getattr(multiprocessing.current_process(), "_inheriting", False):
        raise RuntimeError(f"a worker process imports this script: hebbes.train needs {GUARD}")


@contextmanager
def _convert_errors() -> Iterator[None]:
    """Turns a path that cannot be used, and an exit in a module of the caller's, into a ValueError."""
    try:
        yield
    except OSError as error:
        raise ValueError(describe_system_error(error)) from error
    except SystemExit as error:  # it would end the process without a word
        raise ValueError(f"code that the options name called sys.exit({error.code!r})") from error


@contextmanager
def _advise_on_guard() -> Iterator[None]:
    """Adds to an error of the engine's start that the script needs the guard, which may be why."""
    try:
        yield
    except StartError as error:
        line = str(error).partition("\n")[0]
        raise EngineError(f"{line}{advise_guard(error)}") from error


def _resolve_options(options: Mapping[str, Any], trainer: str, quiet: bool) -> TrainConfig:
    """The config of a single run, new or resumed."""
    check_argument("trainer", trainer, str, choices=list_names("trainer"))
    if not isinstance(options, Mapping):
        raise ValueError(f"options must be a mapping of names to values, got {options!r}")
    own = {**options, "quiet": True} if quiet else options
    config = resolve_or_resume_config(trainer, format_options(drop_unnamed_files(own)))
    if config.run.seeds > 1:
        raise ValueError(f"seeds must be 1 in Python, got {config.run.seeds}: call train once for each seed")
    return config
