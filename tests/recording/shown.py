"""A program that shows a progress table: so many generations of so many seconds. Run by `test_terminal.py`."""

import os
import sys
import time
import warnings

from hebbes.contracts.errors import say
from hebbes.recording import terminal
from hebbes.recording.console import Console
from hebbes.recording.progress_table import ProgressTable

terminal.REFRESH_SECONDS = 0.02


def main(generations, seconds, *events):
    with Console() as console, console.phase("Pong-v5"):
        show(console, generations, seconds, events)
        console.print_message("the end")


def show(console, generations, seconds, events):
    with ProgressTable(console, {"generation": generations}) as table:
        for generation in range(1, generations + 1):
            with console.phase(f"generation {generation} of {generations}", lambda: (3, 8), "members"):
                time.sleep(seconds)
            for event in events if generation == 3 else ():
                EVENTS[event](console)
            table.show(
                {
                    **{"generation": generation, "env_steps": 1e6 * generation, "return_mean": 1.5, "return_std": 0.5},
                    **{"return_max": 3.0, "mean_policy_return": float(generation % 5), "mean_policy_rank": 2},
                    **{"best_score": 2.5, "env_steps_per_second": 41234.0, "seconds": 10.0 * generation},
                    **{"nodes": 2, "workers": 64, "chunks_outstanding": 12, "chunks_sent_again": 1},
                },
                is_due=True,
            )


EVENTS = {
    "say": lambda console: say("said on standard error"),
    "warn": lambda console: warnings.warn("a warning", stacklevel=1),
    "print": lambda console: print("printed"),
    "raw": lambda console: os.write(2, b"from another process\nand again\n"),
    "long": lambda console: console.print_message("0123456789" * 20),
    "fail": lambda console: sys.exit("failed"),
}

if __name__ == "__main__":
    main(int(sys.argv[1]), float(sys.argv[2]), *sys.argv[3:])
