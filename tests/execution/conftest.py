"""Workers in these tests are forked from a process that has their modules, which a spawned one imports in 1.4 s.

Tests that are marked `spawned`, and those in other folders, start workers as users do.
"""

import multiprocessing
from multiprocessing import forkserver

import pytest

PRELOADED = ["hebbes.execution.workers", "hebbes.hybrids.jobs", "hebbes.environments.gymnasium_env"]
"""Nothing that a worker has to import by itself, as a module of a user's."""


@pytest.fixture(autouse=True)
def forked_workers(request, monkeypatch):
    if "spawned" in request.keywords:
        return
    get_context, forking = multiprocessing.get_context, multiprocessing.get_context("forkserver")
    forking.set_forkserver_preload(PRELOADED)
    forkserver.ensure_running()  # an engine would start it while signals are blocked, and it would pass that on

    def find_context(method=None):
        return forking if method == "spawn" else get_context(method)

    monkeypatch.setattr(multiprocessing, "get_context", find_context)
