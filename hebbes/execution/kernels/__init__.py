"""Compiled loops of the episode loop."""
