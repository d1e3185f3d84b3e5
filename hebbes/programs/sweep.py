"""The program `sweep`, which searches for settings of a method by trials of it."""

import sys
from collections.abc import Sequence
from contextlib import closing, suppress
from importlib.util import find_spec
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING

from hebbes.contracts.engine import EngineError
from hebbes.contracts.suggestion import suggest_name
from hebbes.environments.environment_spec import START_WRAPPERS
from hebbes.files.atomic_file import write_atomically
from hebbes.options.command_line import print_help_if_asked, resolve_config
from hebbes.options.option_reader import OptionReader
from hebbes.options.texts import split_arguments
from hebbes.programs.exit_status import end_cleanly_on_signals, report_errors_in_one_line
from hebbes.programs.sweeps.sweep_options import (
    SearchedOption,
    SweepOptions,
    check_finals,
    find_searched_options,
    limit_by_env_steps,
)
from hebbes.recording.console import Console
from hebbes.recording.standard_output import format_stop_message
from hebbes.training.advice import TrainingError, find_advice
from hebbes.training.config import TrainConfig
from hebbes.training.owners import Owner, list_all_owners
from hebbes.training.printed_commands import hide_passwords
from hebbes.training.saved_runs import SWEEPS

if TYPE_CHECKING:
    from hebbes.programs.sweeps.study import Study
    from hebbes.training.run_state import Run

STUDY_DB = "study.db"
_OWNER = Owner("sweep", "sweep", (SweepOptions,))


def sweep(description: str) -> None:
    """Parses and checks the options, runs trials and finals, and writes the best settings."""
    with end_cleanly_on_signals(), Console() as console:
        with report_errors_in_one_line(), console.phase("starting"):
            options, config = read_options(sys.argv[1:], description)
            console.is_quiet = config.run.quiet
            study = open_study(options, config)
            print_search(study, console)
        from hebbes.programs.sweeps.study import StorageError, convert_storage_errors

        try:
            with convert_storage_errors():
                run_sweep(options, study, console)
        except BaseException as error:  # whatever stops the sweep
            console.print_notice(find_advice(error).format(resume="the same command"))
            if isinstance(error, EngineError | TrainingError | StorageError | OSError):
                sys.exit(format_stop_message(error))
            raise


def read_options(arguments: Sequence[str], description: str) -> tuple[SweepOptions, TrainConfig]:
    """The options of the sweep and those that all trials share; ValueError if one is wrong.

    Ends the program with status 0 after `--help`.
    """
    given = split_arguments(arguments)
    reader = OptionReader([_OWNER], may_be_empty=False)
    own, others = [[each for each in given if reader.knows(each[0]) == known] for known in (True, False)]
    named = reader.read([each for each in own if each[0].removeprefix("sweep.") == "trainer"])
    print_help_if_asked(named.get("sweep.trainer", SweepOptions.trainer), others, description, own=[_OWNER])
    options = SweepOptions(**{key.removeprefix("sweep."): value for key, value in reader.read(own).items()})
    try:
        config = limit_by_env_steps(resolve_config(options.trainer, others))
    except ValueError:
        _suggest_own([name for name, _ in others], options.trainer)
        raise
    check_finals(options, config)
    return options, config


def _suggest_own(names: Sequence[str], trainer: str) -> None:
    """ValueError for the first name that no part of a run knows and that resembles an option of the sweep."""
    known = OptionReader(list_all_owners(trainer))
    for name in names:
        if not known.knows(name) and (meant := suggest_name(name, [each.short_name for each in _OWNER.options])):
            raise ValueError(f"unknown option --{name}{meant}")


def _check_evaluations(run: "Run", searched: Sequence[SearchedOption]) -> None:
    """ValueError if trials would differ in where the episodes of their evaluations start or end."""
    from hebbes.environments.episode_limits import has_time_limit

    ends_with_training = not has_time_limit(run.task.environment)  # see `choose_evaluation_cap`
    for each in searched:
        if each.option.owner.name in START_WRAPPERS or (each.name == "max_episode_steps" and ends_with_training):
            raise ValueError(f"search cannot vary {each.name}: the episodes of evaluations would differ between trials")


def open_study(options: SweepOptions, config: TrainConfig) -> "Study":
    """The study of the sweep, in its folder; ValueError if its trials cannot be run, or if it cannot be kept there."""
    searched = find_searched_options(config, options.search)
    if find_spec("optuna") is None:
        raise ValueError("sweep needs the package optuna; pip install 'optuna~=5.0.0'")
    from sqlalchemy import URL  # Optuna's

    from hebbes.files.folder_lock import wait_for_lock
    from hebbes.programs.sweeps.study import StorageError, Study, convert_storage_errors
    from hebbes.training.assemble_run import assemble_run
    from hebbes.training.run_folder import find_parent

    top = find_parent(config) / SWEEPS
    folder = top / (config.run.run_name or config.choices.method or config.trainer)
    ours = URL.create("sqlite", database=str(folder.absolute() / STUDY_DB)).render_as_string()
    storage = ours if options.storage is None else options.storage
    shown = STUDY_DB if options.storage is None else hide_passwords(storage)
    with closing(assemble_run(config, folder)) as run:  # checks everything that trials need
        _check_evaluations(run, searched)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with wait_for_lock(folder), convert_storage_errors():
            return Study(storage, folder, config, searched)
    except OSError as error:
        raise ValueError(f"cannot write to sweep folder {folder}: {error.strerror}") from error
    except (ValueError, StorageError) as error:
        with suppress(OSError):
            folder.rmdir()  # if it is empty
        raise ValueError(f"storage {shown}: {error}") from error


def print_search(study: "Study", console: Console) -> None:
    """Prints what is varied, and where."""
    console.print_message(f"sweep           {study.folder}, {len(study.trials)} trials so far")
    width = max(len(each.name) for each in study.searched)
    for each in study.searched:
        console.print_message(f"search          {each.name.ljust(width)}  {each.space}")


def run_sweep(options: SweepOptions, study: "Study", console: Console) -> None:
    """Runs what is left of the trials and the finals, and writes the best settings; TrainingError if there are none."""
    from hebbes.programs.sweeps.best_settings import BEST_YAML, format_preset, format_training_command
    from hebbes.programs.sweeps.finals import Finals
    from hebbes.programs.sweeps.jobs import do_all
    from hebbes.programs.sweeps.trials import Trials

    do_all(Trials(study, console, most=options.trials), study.folder, console)
    if not options.finalists:
        return
    finals = Finals(study, console, num_trials=options.finalists, num_seeds=options.final_seeds)
    if not study.best_trials:
        raise TrainingError("no trial was completed", "what helps      other values with --search, or more trials")
    do_all(finals, study.folder, console)
    found, seeds = finals.finalists, f"{options.final_seeds} seed{'s' * (options.final_seeds > 1)}"
    if not any(isfinite(each.score) for each in found):
        raise TrainingError("no finalist was completed", "what helps      other values with --search, or more trials")
    for each in found:
        console.print_message(f"{each.name.ljust(16)}IQM {each.summary.iqm} over {seeds}")
    path = Path(options.output) if options.output is not None else study.folder / BEST_YAML
    write_atomically(path, format_preset(found, study).encode())
    console.print_message(f"best settings   {path}")
    console.print_message(f"to train        {format_training_command(study.config, path)}")
