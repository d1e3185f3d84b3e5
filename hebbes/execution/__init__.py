"""Runs episodes and evaluates populations."""
