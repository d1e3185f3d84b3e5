"""Plots and videos of runs and policies."""
