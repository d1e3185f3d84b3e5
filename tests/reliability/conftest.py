"""Prints, after pytest's own lines, what the tests of reliability found and counted."""

from collections import Counter

import pytest


@pytest.fixture
def tell(request):
    """A function that adds a line to the summary, and counts to its sums: tell("CartPole-v1: ...", kills=3)."""

    def add(line, **counts):
        request.node.user_properties.append(("told", (line, {name: int(count) for name, count in counts.items()})))

    return add


def pytest_terminal_summary(terminalreporter):
    reports = [report for kind in terminalreporter.stats.values() for report in kind]
    told = [
        what
        for report in reports
        if getattr(report, "when", None) == "call"
        for name, what in report.user_properties
        if name == "told"
    ]
    if told:
        terminalreporter.section("reliability")
        sums = Counter()
        for line, counts in told:
            terminalreporter.write_line(line)
            sums.update(counts)
        terminalreporter.write_line(", ".join(f"{count} {name}" for name, count in sorted(sums.items())))
