"""Evolves the static weights of a policy on any Gymnasium environment."""

from hebbes.programs.commands import run_command

if __name__ == "__main__":  # worker processes import this file
    run_command("train_static")
