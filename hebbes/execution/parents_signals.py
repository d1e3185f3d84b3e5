"""The signals that only the parent of worker processes handles."""

import signal

PARENTS_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Signals that a terminal or a scheduler sends to the whole process group."""
