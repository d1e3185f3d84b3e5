"""The signals that only the parent of worker processes handles."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

PARENTS_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Signals that a terminal or a scheduler sends to the whole process group."""


@contextmanager
def delay_signals() -> Iterator[None]:
    """Delays the first of these signals to the end of the block. The next one is handled at once.

    In other threads, which handle no signals, it does nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handlers = {number: signal.getsignal(number) for number in PARENTS_SIGNALS}
    handlers = {number: each for number, each in handlers.items() if each not in (signal.SIG_IGN, None)}
    delayed: list[int] = []

    def delay(number: int, _: FrameType | None) -> None:
        restore()
        delayed.append(number)

    def restore() -> None:
        for number, handler in handlers.items():
            signal.signal(number, handler)

    try:
        for number in handlers:
            signal.signal(number, delay)
        yield
    finally:
        restore()
        for each in delayed:
            signal.raise_signal(each)
