"""Notices of problems that last or come back: a user is told of each one twice at most."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

MOST = 2
"""When a problem begins, and once more when it has ended and come back."""


@dataclass(frozen=True)
class Notice:
    """A line for the user."""

    line: str
    problems: Collection[str]
    """What it tells of, without what differs from one time to the next."""


def describe_faults(faults: Mapping[str, int]) -> str:
    """Reasons of failure with their numbers of episodes, the most frequent first."""
    counts = Counter(faults).most_common()
    return ", ".join(f"{reason} in {count} episode{'s' * (count > 1)}" for reason, count in counts)


def make_failure_notices(who: str, faults: Mapping[str, int], parties: Sequence[str] = ()) -> list[Notice]:
    """One that says who failed, and for which reasons in how many episodes; none without faults.

    A party's failure for one kind of reason is one problem. Without `parties` there is one, `who`.
    """
    kinds = {reason.partition(":")[0] for reason in faults}  # texts of errors may have numbers in them
    problems = {f"{party}: {kind}" for party in parties or (who,) for kind in kinds}
    return [Notice(f"{who} failed: {describe_faults(faults)}", problems)] if faults else []


class Notices:
    """Remembers which problems were told."""

    def __init__(self) -> None:
        self._present: set[str] = set()
        self._times: Counter[str] = Counter()

    def select(self, notices: Sequence[Notice]) -> list[str]:
        """Which lines to print, if these are all the notices that there are now."""
        present = {problem for notice in notices for problem in notice.problems}
        begun = present - self._present
        self._present = present
        self._times.update(begun)
        lines = []
        for notice in notices:
            if new := [problem for problem in notice.problems if problem in begun and self._times[problem] <= MOST]:
                is_last = all(self._times[problem] == MOST for problem in new)
                lines.append(f"{notice.line}; this is not said again" if is_last else notice.line)
        return lines
