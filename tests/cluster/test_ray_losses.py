"""What the loss of a worker means, by the error of Ray, which a stub raises: Ray cannot fail so on command."""

from types import SimpleNamespace

import pytest

from hebbes.contracts.engine import EngineError
from hebbes.execution import ray_cluster
from hebbes.execution.ray_cluster import TOLD_AFTER, Node, RayCluster
from hebbes.execution.ray_engine import RayWorker
from hebbes.execution.transport import Loss

pytestmark = [pytest.mark.ray, pytest.mark.usefixtures("token")]  # Ray reads it when it is imported
NODE = Node("a", "10.0.0.7", cpus=1, store=0, free=1)


class Refusing:
    """Ray, whose every answer is the next of these errors."""

    def __init__(self, *errors):
        from ray import exceptions

        self.exceptions, self._errors = exceptions, list(errors)

    def get(self, reference):
        raise self._errors.pop(0)


def lose_worker(*errors, is_alive=True):
    """The answers of a worker on whose calls, and on the question for the reason, Ray raises these errors."""
    method = SimpleNamespace(remote=lambda *arguments: "reference")
    cluster = SimpleNamespace(
        ray=Refusing(*errors),
        nodes={"a": NODE},
        start_on=lambda *arguments: SimpleNamespace(describe=method, call=method),
        run_on=lambda *arguments: "reference",
        refresh=lambda: None if is_alive else cluster.nodes.clear(),
    )
    worker = RayWorker(cluster, NODE, None)
    answers = [answer for _ in errors for answer in worker.receive("reference")]
    assert not worker.calls or not answers
    return answers


def test_what_no_other_worker_could_do_either_ends_the_run():
    from ray import exceptions

    for error, message in (
        (exceptions.RayTaskError("call", "traceback", KeyError("no such module")), "no such module"),
        (exceptions.RuntimeEnvSetupError("no space left"), r"^node 10\.0\.0\.7: Failed to set up .* no space left$"),
    ):
        ((_, answer),) = lose_worker(error)
        assert isinstance(answer, EngineError)
        with pytest.raises(EngineError, match=message):
            raise answer


def test_a_worker_whose_node_does_not_say_why_it_died_is_lost_for_an_unknown_reason():
    """Which is counted: else workers that die at once would be started for ever."""
    from ray import exceptions

    dead, short = exceptions.ActorDiedError(), exceptions.OutOfMemoryError("memory is short")
    ((ticket, loss),) = lose_worker(dead, short)
    assert (ticket, loss.cause) == (None, "unknown") and "10.0.0.7: OutOfMemoryError: memory is short" in loss.reason


def test_a_worker_whose_node_is_gone_counts_for_nothing():
    from ray import exceptions

    gone = [(None, Loss("node 10.0.0.7 is gone", "machine"))]
    assert lose_worker(exceptions.ActorDiedError(), is_alive=False) == gone
    assert lose_worker(exceptions.ActorUnschedulableError("no node")) == gone
    for second in (exceptions.TaskUnschedulableError("no node"), exceptions.NodeDiedError("no node")):
        assert lose_worker(exceptions.ActorDiedError(), second) == gone


def test_a_node_whose_workers_die_before_it_has_said_what_it_is_like_costs_one_line(capsys, monkeypatch):
    from ray import exceptions

    cluster, count = RayCluster.__new__(RayCluster), 2 * TOLD_AFTER
    cluster.ray, cluster._unanswered = Refusing(*[exceptions.OutOfMemoryError("memory is short")] * count), {"a": 0}
    assert [cluster._take_description(NODE, "reference") for _ in range(count)] == [""] * count
    line = "node 10.0.0.7 does not answer: OutOfMemoryError: memory is short"
    assert capsys.readouterr().err == f"{line}; it is not used until it does\n"
    monkeypatch.setattr(ray_cluster, "FIRST_SECONDS", -1.0)
    cluster.nodes, cluster._asked, cluster._address, cluster._has_joined = {}, {}, "HOST:1", False
    cluster._read_changes = lambda: []
    with pytest.raises(ValueError, match=rf"^ray_address HOST:1: {line}$"):  # and not that it has no CPUs
        cluster._wait_for_first_nodes()
