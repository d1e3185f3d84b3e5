"""How the programs are called, for the command lines that they print."""

import re
import shlex
import sys
from collections.abc import Sequence

COMMAND_FORMS = ("hebbes", "python -m hebbes")


def list_program_words(name: str = "") -> list[str]:
    """The words that call a program by its name, in the form in which this one was called; itself if there is no name.

    `hebbes.programs.commands.main` writes the form and the name to `sys.argv[0]`. Scripts have their path there.
    """
    for form in COMMAND_FORMS:
        if sys.argv[0].startswith(f"{form} "):
            return [*form.split(), name or sys.argv[0][len(form) + 1 :]]
    return ["python", f"{name}.py" if name else sys.argv[0]]


def hide_passwords(word: str) -> str:
    """The word of a command line with *** for the password of a URL, such as that of a database."""
    return re.sub(r"(://[^:@/\s]*):\S*@", r"\1:***@", word)


def format_continue_command(trainer: str, path: str, imports: Sequence[str]) -> str:
    """The command line that goes on from a policy file, with the options of its training."""
    needed = ["--import", *imports] if imports else []
    return shlex.join([*list_program_words(f"train_{trainer}"), "--config", path, "--init_from", path, *needed])
