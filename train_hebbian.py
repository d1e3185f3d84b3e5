"""Evolves learning rules of a network, whose synapses learn by them within each episode."""

from hebbes.programs.commands import run_command

if __name__ == "__main__":  # worker processes import this file
    run_command("train_hebbian")
