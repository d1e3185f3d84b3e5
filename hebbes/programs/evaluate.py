"""The programs `evaluate_static`, `evaluate_hebbian` and `compare`, which play saved policies and report returns.

The options are parsed before the modules that play are imported, because those take a second or two.
"""

import shlex
import sys
from collections.abc import Sequence

from hebbes.options.evaluation import EvaluateConfig
from hebbes.options.hebbian_evaluation import HebbianEvaluateConfig
from hebbes.options.program_options import parse_options
from hebbes.programs.exit_status import end_cleanly_on_signals, report_errors_in_one_line
from hebbes.recording.console import Console
from hebbes.training.printed_commands import format_command


def evaluate_static(description: str) -> None:
    """Evaluates policies of any kind."""
    evaluate(EvaluateConfig, description)


def evaluate_hebbian(description: str) -> None:
    """Evaluates policies of any kind; for plastic ones also with interventions and plots."""
    with report_errors_in_one_line():
        refuse_reference_flags(sys.argv[1:])
    evaluate(HebbianEvaluateConfig, description)


def compare(description: str) -> None:
    """Evaluates as `evaluate_static` does the files and folders that the first arguments name."""
    evaluate(EvaluateConfig, description, positional="path_weights")


def evaluate(owner: type[EvaluateConfig], description: str, positional: str = "") -> None:
    """Parses and checks the options of `owner`, then evaluates. The status is 1 if not everything could be done.

    Args:
        owner: declares the options.
        description: of the program, for its help.
        positional: the option whose flag may be left out if it is the first one.
    """
    with end_cleanly_on_signals():
        with report_errors_in_one_line():
            options = parse_options(owner, sys.argv[1:], description, positional)
            from hebbes.training.saved_runs import list_policy_files  # imports safetensors

            options["path_weights"] = tuple(list_policy_files(options.get("path_weights", ())))
            config = owner(**options)
        with Console(sys.stderr) as console, console.phase("starting"):
            from hebbes.programs.evaluation_run import run_evaluation

        if not run_evaluation(config):
            sys.exit(1)


def refuse_reference_flags(arguments: Sequence[str]) -> None:
    """Raises ValueError with the right commands if the arguments are those of the reference's own evaluation."""
    if any(argument.replace("-", "_").startswith("__path_hebb") for argument in arguments):
        raise ValueError(
            "path_hebb: files of Najarro & Risi's code become a policy file first: "
            f"python -m hebbes import {shlex.join(arguments)} --output imported.dat, "
            f"then {format_command('evaluate_hebbian')} --path_weights imported.dat"
        )
