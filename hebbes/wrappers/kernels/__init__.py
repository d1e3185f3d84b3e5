"""Compiled loops of wrappers. Each module is imported when a wrapper that needs it is made."""
