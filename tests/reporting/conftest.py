"""Runs of every kind, made once for all tests of reports."""

import pytest

from tests.reporting.reports import make_runs


@pytest.fixture(scope="session")
def runs(tmp_path_factory):
    """A folder with the runs of `make_runs`."""
    return make_runs(tmp_path_factory.mktemp("weights"))
