"""Prints what the tests of reliability found and counted, after pytest's own lines."""

from collections import Counter

import pytest


class Account:
    """Lines for the end of the session, and sums over all of them."""

    def __init__(self):
        self.lines, self.sums = [], Counter()

    def __call__(self, line, **counts):
        self.lines.append(line)
        self.sums.update(counts)


_ACCOUNT = pytest.StashKey[Account]()


@pytest.fixture
def tell(request):
    """Takes a line, and counts of what it tells of: tell("CartPole-v1: ...", kills=3)."""
    return request.config.stash.setdefault(_ACCOUNT, Account())


def pytest_terminal_summary(terminalreporter, config):
    account = config.stash.get(_ACCOUNT, Account())
    if account.lines:
        terminalreporter.section("reliability")
        for line in account.lines:
            terminalreporter.write_line(line)
        terminalreporter.write_line(", ".join(f"{count} {name}" for name, count in sorted(account.sums.items())))
