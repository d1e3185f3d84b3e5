"""The commands of hebbes, which the scripts at the root and `python -m hebbes` run.

This file, `startup.py` and the scripts run on Python 3.6 and newer, so that an old Python can still say what is wrong.
"""

import difflib
import importlib
import sys

from hebbes.programs.startup import prepare_process

COMMANDS = {
    "train_static": (
        "hebbes.programs.train:train_static",
        "Evolves the static weights of a policy on any Gymnasium environment.",
    ),
    "evaluate_static": (
        "hebbes.programs.evaluate:evaluate_static",
        "Plays episodes with the weights of policy files, and reports and compares their returns.",
    ),
    "train_hebbian": (
        "hebbes.programs.train:train_hebbian",
        "Evolves the learning rules by which a network's synapses learn within each episode.",
    ),
    "evaluate_hebbian": (
        "hebbes.programs.evaluate:evaluate_hebbian",
        "Plays episodes with the learning rules of policy files, and reports and compares their returns.",
    ),
    "train_hybrid": (
        "hebbes.programs.train:train_hybrid",
        "Trains an actor by gradients, or by a mix of gradients and evolution.",
    ),
    "compare": (
        "hebbes.programs.evaluate:compare",
        "Plays policy files, or the best policies in folders of runs, and compares the methods that trained them.",
    ),
    "plot": (
        "hebbes.programs.plot:plot",
        "Draws learning curves of runs, with the seeds of a method together, or performance profiles.",
    ),
    "film": (
        "hebbes.programs.film:film",
        "Films an episode of each policy that a run has kept, in one video with captions.",
    ),
    "report": (
        "hebbes.programs.report:report",
        "Writes a web page about runs: options, curves, comparisons of methods, diagnostics, plasticity, videos.",
    ),
    "runs": (
        "hebbes.programs.list_runs:list_runs",
        "Lists the runs in a folder: what they train, whether they are running, and how far they are.",
    ),
    "sweep": (
        "hebbes.programs.sweep:sweep",
        "Searches for settings of a method by trials of it, trains the best with other seeds, and writes a preset.",
    ),
    "merge": (
        "hebbes.programs.convert:merge_rules",
        "Merges the learning rules of a policy file by k-means, so that its synapses share fewer of them.",
    ),
    "import": (
        "hebbes.programs.convert:import_coefficients",
        "Makes a policy file of the coefficients that Najarro & Risi's code saved.",
    ),
}
"""By name of the command: its function, which takes the description, and the description."""


def run_command(name):  # type: ignore[no-untyped-def]  # read by old Pythons
    """Runs a command with the arguments of the command line."""
    prepare_process()
    path, description = COMMANDS[name]
    module, _, function = path.partition(":")
    getattr(importlib.import_module(module), function)(description)


def main():  # type: ignore[no-untyped-def]  # read by old Pythons
    """Runs the command that the first argument names: `hebbes COMMAND`, or `python -m hebbes COMMAND`."""
    program = "python -m hebbes" if sys.argv[0].endswith("__main__.py") else "hebbes"
    name = sys.argv[1] if len(sys.argv) > 1 else ""
    if name in ("", "-h", "--help"):
        width = max(map(len, COMMANDS))
        lines = [f"{each.ljust(width)}  {COMMANDS[each][1]}" for each in COMMANDS]
        text = "usage: {} COMMAND [options]\n\n{}\n\n{} COMMAND --help lists the options."
        text = text.format(program, "\n".join(lines), program)
        if not name:
            sys.stderr.write(f"{text}\n")
            sys.exit(2)
        prepare_process()
        importlib.import_module("hebbes.recording.standard_output").print_or_exit(text)
        sys.exit(0)
    if name not in COMMANDS:
        near = difflib.get_close_matches(name, COMMANDS, n=1) or [
            each for each in COMMANDS if name.startswith(each) or each.startswith(name)
        ]
        hint = f", did you mean {near[0]!r}?" if near else ";"
        sys.stderr.write(
            "{}: error: unknown command {!r}{} known: {}\n".format(program, name, hint, ", ".join(COMMANDS))
        )
        sys.exit(2)
    sys.argv[:2] = [f"{program} {name}"]
    run_command(name)
