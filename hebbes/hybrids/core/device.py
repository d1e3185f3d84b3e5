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
        self._array = make_host_array(shape, device)
        self._host = torch.from_numpy(self._array)
        self._copied = torch.cuda.Event() if device == "cuda" else None
        self.tensor: Float32[Tensor, "..."] = self._host.to(device)
        """It stays at the same address."""

    @property
    def array(self) -> Float32[np.ndarray, "..."]:
        """The array, to be written once. Waits until the device has what was sent before."""
        if self._copied is not None:
            self._copied.synchronize()
        return self._array

    def send(self) -> None:
        """Copies the array to the device, after what the device has to do before."""
        if self.tensor is not self._host:
            self.tensor.copy_(self._host, non_blocking=True)
        if self._copied is not None:
            self._copied.record()


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


def make_host_array(shape: tuple[int, ...], device: str) -> Float32[np.ndarray, "..."]:
    """An array with arbitrary contents, of memory from and to which this device copies without waiting: pinned."""
    return torch.empty(shape, pin_memory=True).numpy() if device == "cuda" else np.empty(shape, np.float32)


def check_device(device: str) -> None:
    """Raises ValueError if PyTorch has no such device here."""
    if device == "cuda" and not torch.cuda.is_available():
        raise ValueError(f"device must be cpu here, because PyTorch {torch.__version__} finds no GPU, got cuda")


def copy_to_host(tensor: Tensor) -> np.ndarray:
    """A copy, as an array of NumPy."""
    return tensor.to("cpu", copy=True).numpy()
