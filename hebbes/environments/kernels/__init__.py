"""Compiled loops of the environments. The compiler is imported when an environment is made."""
