"""Device: where gradient steps are computed, the CPU or a GPU, and what a GPU needs to be fast at small networks.

A step of small networks is some hundred kernels of a few microseconds each, and a launch takes as long. So a GPU
records them once, as a CUDA graph, and launches them together.
"""

import threading
from collections.abc import Callable
from operator import is_not

import numpy as np
import torch
from jaxtyping import Float32
from torch import Tensor

_RECORDING = threading.Lock()


class MirroredArray:
    """An array of the host, and a tensor on a device that gets its numbers. On a CPU they are one."""

    def __init__(self, shape: tuple[int, ...], device: str):
        """The contents are arbitrary."""
        self.array: Float32[np.ndarray, "..."] = np.empty(shape, np.float32)
        self._host = torch.from_numpy(self.array)
        self.tensor: Float32[Tensor, "..."] = self._host.to(device)
        """It stays at the same address."""

    def send(self) -> None:
        """Copies the array to the device. It may be overwritten at once."""
        if self.tensor is not self._host:
            self.tensor.copy_(self._host, non_blocking=True)  # CUDA takes memory that is not pinned before it returns


class RecordedCall:
    """Calls a function of objects, and returns nothing.

    On a GPU, the second call in succession with the same objects records the kernels, and later ones only launch them.
    All tensors must stay at their addresses. Nothing else of the function happens then.
    """

    def __init__(self, function: Callable[..., None], device: str):
        self._function, self._device = function, device
        self._objects: tuple[object, ...] = ()
        self._graph: torch.cuda.CUDAGraph | None = None

    def __call__(self, *objects: object) -> None:
        """The function of these objects."""
        if self._device != "cuda":
            self._function(*objects)
        elif len(objects) != len(self._objects) or any(map(is_not, objects, self._objects)):
            self._objects, self._graph = objects, None
            self._function(*objects)
        else:
            if self._graph is None:
                self._graph = self._record()
            self._graph.replay()

    def _record(self) -> torch.cuda.CUDAGraph:
        graph = torch.cuda.CUDAGraph()
        with _RECORDING, torch.cuda.graph(graph, capture_error_mode="thread_local"):
            self._function(*self._objects)
        return graph


def check_device(device: str) -> None:
    """Raises ValueError if PyTorch has no such device here."""
    if device == "cuda" and not torch.cuda.is_available():
        raise ValueError(f"device must be cpu here, because PyTorch {torch.__version__} finds no GPU, got cuda")


def copy_to_host(tensor: Tensor) -> np.ndarray:
    """A copy, as an array of NumPy."""
    return tensor.to("cpu", copy=True).numpy()
