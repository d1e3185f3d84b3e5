"""Workers in these tests are forked from a process that has their modules, which a spawned one imports in 1.4 s.

Tests that are marked `spawned`, and those in other folders, start workers as users do.
"""

import multiprocessing

import pytest

PRELOADED = ["hebbes.execution.workers", "hebbes.hybrids.jobs", "tests.scripted", "tests.execution.scripted_tasks"]


@pytest.fixture(autouse=True)
def forked_workers(request, monkeypatch):
    if "spawned" in request.keywords:
        return
    get_context, forking = multiprocessing.get_context, multiprocessing.get_context("forkserver")
    forking.set_forkserver_preload(PRELOADED)

    def find_context(method=None):
        return forking if method == "spawn" else get_context(method)

    monkeypatch.setattr(multiprocessing, "get_context", find_context)
