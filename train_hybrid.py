"""Trains an actor by gradients, or by a mix of gradients and evolution."""

from hebbes.programs.commands import run_command

if __name__ == "__main__":  # worker processes import this file
    run_command("train_hybrid")
