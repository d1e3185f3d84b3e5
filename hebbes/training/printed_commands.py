"""The command lines that programs print: in the form in which this one was called."""

import re
import shlex
import sys
from collections.abc import Sequence

COMMAND_FORMS = ("hebbes", "python -m hebbes")


def format_command(name: str = "", *arguments: str, imports: Sequence[str] = ()) -> str:
    """The command line that calls a program by its name, or this one if the name is empty.

    `imports` are the modules of the user's that it needs.
    """
    needed = ["--import", *dict.fromkeys(imports)] if imports else []
    return shlex.join([*_list_program_words(name), *arguments, *needed])


def _list_program_words(name: str) -> list[str]:
    """The words that call a program, in the form in which this one was called.

    `hebbes.programs.commands.main` writes the form and the name to `sys.argv[0]`. Scripts have their path there.
    """
    for form in COMMAND_FORMS:
        if sys.argv[0].startswith(f"{form} "):
            return [*form.split(), name or sys.argv[0][len(form) + 1 :]]
    return ["python", f"{name}.py" if name else sys.argv[0]]


def hide_passwords(word: str) -> str:
    """The word of a command line with *** for the password of a URL, such as that of a database."""
    return re.sub(r"(://[^:@/\s]*):\S*@", r"\1:***@", word)
