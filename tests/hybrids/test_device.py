"""Gradient steps on a GPU: refused without one, and otherwise nothing of a step stays behind on the CPU."""

import numpy as np
import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

import hebbes
from hebbes.contracts.engine import Transitions
from hebbes.hybrids.core.device import RecordedCall
from hebbes.hybrids.core.learner import Learner
from hebbes.hybrids.core.settings import GradientSettings
from hebbes.policies.mlp import MLP

TINY = {
    **{"environment": "Pendulum-v1", "hidden_sizes": [16], "batch_size": 32, "replay_size": 700, "start_steps": 50},
    **{"threads": 1, "eval_every": 200, "eval_episodes": 1, "test_episodes": 0},
}
BOUNDS = -np.ones(2, np.float32), np.ones(2, np.float32)


def train(folder, **changes):
    return hebbes.train({**TINY, "folder": str(folder), **changes}, trainer="hybrid", quiet=True)


def test_cuda_without_a_gpu_is_refused_in_one_line_before_anything_starts(monkeypatch, tmp_path):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(ValueError, match=r"^device must be cpu here, because PyTorch .* finds no GPU, got cuda$"):
        train(tmp_path, device="cuda")
    assert not list(tmp_path.iterdir())


def test_all_tensors_of_a_step_are_on_the_device(monkeypatch):
    """PyTorch's fake tensors have a device but no numbers. An operation on tensors of two devices raises.

    "lazy" is a device that a PyTorch without CUDA can pretend to have.
    """
    settings = GradientSettings(batch_size=32, replay_size=100)
    object.__setattr__(settings, "device", "lazy")
    policy, rng = MLP((3,), 2, hidden_sizes=(8, 4), bias=True), np.random.default_rng(0)
    shapes = ((100, 3), (100, 2), (100,))
    observations, actions, rewards = (rng.normal(size=shape).astype(np.float32) for shape in shapes)
    transitions = Transitions(observations, actions, rewards, np.zeros(100, np.bool_), observations)
    rows = np.zeros((2, policy.layout.num_params), np.float32)
    from_numpy = torch.from_numpy
    with FakeTensorMode() as mode, torch.no_grad():
        monkeypatch.setattr(torch, "from_numpy", lambda array: mode.from_tensor(from_numpy(array)))
        made = Learner(settings, policy, BOUNDS, 0)
        made.add(transitions)
        target, actors = made.actor.copy(rows[:1]), made.make_actors(rows)
        made.train_critics(target, rng)
        made.critics.move_targets()
        made.train_actors(actors, rng)
        actors.fetch_rows()
        found = [made.critics.targets, target.rows, made._squared_errors, made._values, made._noise.tensor]
        found += [drawn.tensor for drawn, _ in made.replay._batches.values()]
        for trained in (made.critics.trained, actors.trained):
            found += [trained.rows, trained._gradient, trained._mean, trained._square, trained._steps]
    assert {each.device.type for each in found} == {"lazy"}


def test_kernels_are_recorded_in_the_second_call_with_the_same_objects(monkeypatch):
    events = []

    class Graph:
        def replay(self):
            events.append("replay")

    def record(call):
        events.append("record")
        return Graph()

    monkeypatch.setattr(RecordedCall, "_record", record)
    call, first, second = RecordedCall(lambda *objects: events.append(objects), "cuda"), object(), object()
    for given in ((first,), (first,), (first,), (second,), (second,), (first,)):
        call(*given)
    assert events == [(first,), "record", "replay", "replay", (second,), "record", "replay", (first,)]
    on_cpu = RecordedCall(lambda *objects: events.append(objects), "cpu")
    for _ in range(3):
        on_cpu(first)
    assert events[-3:] == [(first,)] * 3


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="PyTorch finds no GPU")
@pytest.mark.parametrize("algorithm", ["td3", "p_cem_rl", "aes_rl"])
def test_a_run_on_a_gpu_is_resumed_on_a_cpu(algorithm, tmp_path):
    own = {"p_cem_rl": {"population_size": 4, "rl_population": 2}, "aes_rl": {"mean_scale": 100.0}}.get(algorithm, {})
    run = train(tmp_path, algorithm=algorithm, device="cuda", max_env_steps=800, **own)
    num_rows = len(run.metrics["critic_loss"])
    resumed = hebbes.train(
        {"resume": str(run.folder), "device": "cpu", "max_env_steps": 1600}, trainer="hybrid", quiet=True
    )
    losses = resumed.metrics["critic_loss"]
    assert np.isfinite(losses[~np.isnan(losses)]).all() and len(losses) > num_rows


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="PyTorch finds no GPU")
def test_a_step_on_a_gpu_is_that_on_a_cpu(monkeypatch):
    """All networks at once, or one by one."""
    states = []
    for device in ("cpu", "cuda"):
        settings = GradientSettings(batch_size=32, replay_size=100, device=device)
        policy, rng = MLP((3,), 2, hidden_sizes=(8, 4), bias=True), np.random.default_rng(0)
        made = Learner(settings, policy, BOUNDS, 0)
        observations = rng.normal(size=(100, 3)).astype(np.float32)
        actions = rng.normal(size=(100, 2)).astype(np.float32)
        made.add(Transitions(observations, actions, rng.normal(size=100), np.zeros(100, np.bool_), observations))
        rows = rng.normal(size=(2, policy.layout.num_params)).astype(np.float32)
        actors, target = made.make_actors(rows), made.actor.copy(rows[:1])
        with made.use_threads():
            for _ in range(5):
                made.train_critics(target, rng)
                made.train_actors(actors, rng)
            actors.fetch_rows()
        states.append((rows, *made.critics.get_state().values()))
    for on_cpu, on_gpu in zip(*states, strict=True):
        np.testing.assert_allclose(on_gpu, on_cpu, rtol=1e-4, atol=1e-5)
