"""Commands in processes of their own, or in this one, which is quicker."""

import os
import sys
from importlib import import_module
from unittest import mock

from hebbes.programs.commands import COMMANDS
from tests.forked_programs import run_forked
from tests.python_process import ROOT


def run_command(name, *arguments):
    """The finished process of `python -m hebbes NAME ARGUMENTS`."""
    return run_forked(["-m", "hebbes", name, *arguments], ROOT, os.environ)


def call_command(capfd, name, *arguments):
    """What the command prints on standard output, called in this process."""
    module, _, function = COMMANDS[name][0].partition(":")
    capfd.readouterr()
    with mock.patch.object(sys, "argv", [name, *map(str, arguments)]):
        getattr(import_module(module), function)("")
    return capfd.readouterr().out
