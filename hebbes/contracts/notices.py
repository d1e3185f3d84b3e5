"""Notices of problems that last or come back: a user is told of each one twice at most."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

MOST = 2
"""When a problem begins, and once more when it has ended and come back."""


@dataclass(frozen=True)
class Notice:
    """A line for the user."""

    line: str
    problem: str
    """What it tells of, without what differs from one time to the next."""


def describe_faults(faults: Mapping[str, int]) -> str:
    """Reasons of failure with their numbers of episodes, the most frequent first."""
    counts = Counter(faults).most_common()
    return ", ".join(f"{reason} in {count} episode{'s' * (count > 1)}" for reason, count in counts)


def make_failure_notice(who: str, faults: Mapping[str, int]) -> Notice:
    """Says who failed, and for which reasons in how many episodes."""
    kinds = sorted({reason.partition(":")[0] for reason in faults})  # texts of errors may have numbers in them
    return Notice(f"{who} failed: {describe_faults(faults)}", ", ".join(kinds))


def join_notices(notices: Sequence[Notice]) -> Notice | None:
    """One notice for all of them; None if there are none."""
    if not notices:
        return None
    lines, problems = ({getattr(each, name): None for each in notices} for name in ("line", "problem"))
    return Notice(", ".join(lines), ", ".join(problems))


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
