"""The programs `merge` and `import`, which make a policy file from other files."""

import sys
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from hebbes.options.program_options import parse_options
from hebbes.programs.exit_status import end_cleanly_on_signals, report_errors_in_one_line
from hebbes.programs.import_reference import ImportConfig, import_reference
from hebbes.programs.merge import MergeConfig, merge
from hebbes.recording.standard_output import print_or_exit

Options = TypeVar("Options")


def convert(owner: type[Options], work: Callable[[Options], str], description: str) -> None:
    """Parses the options of `owner`, calls `work` with them, and prints the text that it returns."""
    with end_cleanly_on_signals():
        with report_errors_in_one_line():
            text = work(owner(**parse_options(owner, sys.argv[1:], description)))
        print_or_exit(text)


merge_rules = partial(convert, MergeConfig, merge)
import_coefficients = partial(convert, ImportConfig, import_reference)
