"""A suggestion for a name that does not exist."""

import difflib
from collections.abc import Sequence


def suggest_name(name: str, known: Sequence[str]) -> str:
    """ ", did you mean 'y'?" with the nearest known name, ignoring case; empty if none is near."""
    by_lower_case = {candidate.lower(): candidate for candidate in known}
    nearest = difflib.get_close_matches(name.lower(), by_lower_case, n=1)
    return f", did you mean {by_lower_case[nearest[0]]!r}?" if nearest else ""
