"""Finds the class that a name stands for, with one table of strings for each kind."""
