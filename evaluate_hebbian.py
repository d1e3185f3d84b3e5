"""Plays episodes with the learning rules of policy files, and reports and compares their returns."""

from hebbes.programs.commands import run_command

if __name__ == "__main__":  # worker processes import this file
    run_command("evaluate_hebbian")
