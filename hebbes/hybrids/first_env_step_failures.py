"""FirstEnvStepFailures: ends a run in whose environment one episode after the other fails in its first env step."""

from collections.abc import Mapping

from hebbes.contracts.trainer import AllFailedError

MAX_IN_A_ROW = 10
"""Episodes in a row. One that fails may be an accident, which does not end a long run."""


class FirstEnvStepFailures:
    """Counts episodes, one after the other. A resumed run counts anew."""

    def __init__(self) -> None:
        self._in_a_row = 0

    def count(self, faults: Mapping[str, int], env_steps: int) -> None:
        """Counts an episode. AllFailedError if it and those before it, `MAX_IN_A_ROW` in all, failed so early."""
        self._in_a_row = self._in_a_row + 1 if faults and env_steps <= 1 else 0
        if self._in_a_row == MAX_IN_A_ROW:
            raise AllFailedError(f"{MAX_IN_A_ROW} episodes in a row, in their first env step,", faults)
