"""The programs `merge` and `import`: they make a policy file from other files."""

import sys
from collections.abc import Callable
from typing import TypeVar

from hebbes.options.flags import parse_options
from hebbes.programs.exit_status import one_line_errors, signals_end_cleanly
from hebbes.programs.import_reference import ImportConfig, import_reference
from hebbes.programs.merge import MergeConfig, merge
from hebbes.recording.standard_output import print_all

Options = TypeVar("Options")


def merge_rules(description: str) -> None:
    """Merges the learning rules of a policy file."""
    convert(MergeConfig, merge, description)


def import_coefficients(description: str) -> None:
    """Imports the coefficients of Najarro & Risi's code."""
    convert(ImportConfig, import_reference, description)


def convert(owner: type[Options], work: Callable[[Options], str], description: str) -> None:
    """Parses the options of `owner`, lets `work` make a policy file from others, and prints what it says."""
    with signals_end_cleanly():
        with one_line_errors():
            text = work(owner(**parse_options(owner, sys.argv[1:], description)))
        print_all(text)
