"""Notices of problems that last or come back: a user is told of each one twice at most."""

from collections import Counter

MOST = 2
"""When a problem begins, and once more when it has ended and come back."""


class Notices:
    """Remembers which problems were told."""

    def __init__(self) -> None:
        self._present = ""
        self._times: Counter[str] = Counter()

    def limit(self, problem: str, line: str) -> str:
        """The line to print now that there is this problem, or an empty one. Without a problem both are empty."""
        begins, self._present = problem not in ("", self._present), problem
        self._times[problem] += begins
        if not begins or self._times[problem] > MOST:
            return ""
        return f"{line}; this is not said again" if self._times[problem] == MOST else line
