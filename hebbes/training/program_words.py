"""How the programs are called, for the command lines that they print."""

import sys

COMMAND_FORMS = ("hebbes", "python -m hebbes")


def list_program_words(name: str = "") -> list[str]:
    """The words that call a program by its name, in the form in which this one was called; itself if there is no name.

    `hebbes.programs.commands.main` writes the form and the name to `sys.argv[0]`. Scripts have their path there.
    """
    for form in COMMAND_FORMS:
        if sys.argv[0].startswith(f"{form} "):
            return [*form.split(), name or sys.argv[0][len(form) + 1 :]]
    return ["python", f"{name}.py" if name else sys.argv[0]]
