"""Waits for what happens in other processes."""

import time


def wait_until(condition, seconds=300.0, interval=0.01):
    """Whether the condition became true in time."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(interval)
    return True
