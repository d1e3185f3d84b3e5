"""A transport of a few lines: workers without threads or processes, whose fate is scripted. A host that counts."""

from signal import SIGKILL

import numpy as np

from hebbes.execution.transport import Loss, call_function

HANGS, STOPPED, UNKNOWN = "hangs", "stopped", "unknown"


class ToyTransport:
    """Workers that do their calls when they are asked for the answer.

    `fate(function, arguments)` is the outcome of a call, or with (None, ()) of a worker's start: 0 for an answer, an
    exit code, HANGS, STOPPED, UNKNOWN if it is gone for no known reason, or "machine" if that is gone. The random
    generator draws whose answers come next. `now` is the time of a clock that moves only where everybody hangs. `calls`
    has the worker's number with each call.
    """

    threads_per_worker = capacity = 1
    starts_at_once = True

    def __init__(self, make_host, threads):
        self.num_workers, self.make_host = threads, make_host
        self.fate, self.rng = lambda function, arguments: 0, np.random.default_rng(0)
        self.now, self.made, self.calls, self.alive = 0.0, 0, [], []

    def share(self, value):
        return value

    def start_worker(self):
        self.made += 1
        assert self.made < 200, "this goes on for ever"
        self.alive.append(ToyWorker(self, self.made - 1))
        return self.alive[-1]

    def wait(self, workers, timeout):
        ready = [worker for worker in workers if worker.outcome not in (HANGS, STOPPED)]
        if not ready:
            self.now += timeout + 0.001
            return []
        chosen = self.rng.permutation(ready)[: self.rng.integers(1, len(ready) + 1)]
        return [(worker, *worker.receive()) for worker in chosen]

    def end_worker(self, worker):
        self.alive.remove(worker)

    def close(self):
        self.alive.clear()


class ToyWorker:
    def __init__(self, transport, number):
        self.transport, self.number, self.host = transport, number, transport.make_host()
        self.call, self.outcome = None, transport.fate(None, ())

    def send(self, ticket, function, arguments):
        self.transport.calls.append((self.number, function, arguments))
        self.call, self.outcome = (ticket, function, arguments), self.transport.fate(function, arguments)

    def end_if_stopped(self):
        if self.outcome == STOPPED:
            self.outcome = -SIGKILL

    def receive(self):
        if self.outcome == "machine":
            return None, Loss("its machine is gone", "machine")
        if self.outcome:
            cause = {-SIGKILL: "kill", UNKNOWN: UNKNOWN}.get(self.outcome, "call")
            ended_itself = isinstance(self.outcome, int) and self.outcome >= 0
            return None, Loss(f"worker died (exit code {self.outcome})", cause, ended_itself)
        ticket, *call = self.call or (None,)
        return ticket, call_function(self.host, *call) if call else None


class Counter:
    """A host that counts its calls."""

    def __init__(self):
        self.count = 0

    def abandon(self):
        pass

    close = abandon


def count_up(host, number):
    host.count += 1
    return number, host.count
