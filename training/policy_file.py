"""Policy files (`.dat`): weights and everything needed to use them. `training.policy_format` has the bytes.

Loading runs no code that the file brings or chooses: names are looked up among ours, and a module of the user's own is
imported only if the caller names it. A file that is not exactly what `save_policy` wrote is refused.
"""

import dataclasses
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium import Space
from gymnasium.spaces import Discrete
from jaxtyping import Float32, Shaped

from contracts.policy import Buffers, Policy
from policies.heads import HEADS
from reporting.atomic_file import write_atomically
from rollouts.environments import EnvironmentSpec, spec_from_json, spec_to_json
from rollouts.registry import lookup
from training.policy_format import Arrays, Header, decode, encode

MAX_FILE_BYTES = 4 * 2**30
_OWN_MODULES = re.compile(r"(policies|wrappers)(\.\w+)+")


class WeightFileError(ValueError):
    """A policy file that cannot be used; one line that names the file and what is wrong with it."""


@dataclass(frozen=True)
class SavedPolicy:
    """A policy with its weights and all that is needed to let it act."""

    policy: Policy
    policy_name: str
    """As `--policy` takes it."""
    weights: Float32[np.ndarray, " params"]
    buffers: Buffers
    action_head: str
    environment: EnvironmentSpec
    provenance: Mapping[str, Any]
    """Where the weights come from: JSON values by name. A figure that is not finite is kept as None."""

    def act(self, observations: Shaped[np.ndarray, "batch ..."]) -> Shaped[np.ndarray, "batch ..."]:
        """Actions of a static policy for the wrapped environment, from observations of that environment."""
        weights = np.repeat(self.weights[np.newaxis], len(observations), axis=0)
        previous_rewards = np.zeros(len(observations), np.float32)
        return HEADS[self.action_head](self.policy.act(weights, observations, previous_rewards, None, self.buffers))


def save_policy(path: Path, saved: SavedPolicy) -> None:
    """Writes a policy file, atomically: the same policy gives the same bytes, and a write cut short changes nothing.

    ValueError for what could not be loaded again, such as weights that are not finite.
    """
    _check_arrays(saved.policy, saved.weights, saved.buffers)
    header = {
        "policy": {"name": saved.policy_name, **_fields(saved.policy)},
        "action_head": saved.action_head,
        "environment": spec_to_json(saved.environment),
        "provenance": {name: _finite_or_none(value) for name, value in saved.provenance.items()},
    }
    arrays = {"weights": saved.weights} | {f"buffers.{name}": array for name, array in saved.buffers.items()}
    write_atomically(path, encode(header, arrays))


def load_policy(path: Path, allow_imports: Sequence[str] = ()) -> SavedPolicy:
    """Rebuilds what `save_policy` wrote; `allow_imports` names the packages of the user's own that it may import from.

    Raises:
        WeightFileError: the file is missing, damaged, foreign, newer, or names code that is unknown or not allowed.
    """
    try:
        return _rebuild(*decode(_bytes_of(path)), allow_imports)
    except OSError as error:
        raise WeightFileError(f"{path}: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise WeightFileError(f"{path}: {' '.join(str(error).split())}") from error


def num_outputs(action_space: Space) -> int:
    """Outputs that a policy needs for this action space: one a Discrete action, one a number of a Box."""
    return int(action_space.n) if isinstance(action_space, Discrete) else prod(action_space.shape or ())


def check_fits(path: Path, saved: SavedPolicy, observation_space: Space, action_space: Space) -> None:
    """Refuses, with both shapes in the line, the policy of `path` where one copy of an environment has other spaces."""
    fields = _fields(saved.policy)
    discrete, outputs = isinstance(action_space, Discrete), num_outputs(action_space)
    kind = "discrete" if discrete else "continuous"
    if (
        fields["observation_shape"] != observation_space.shape
        or fields["num_outputs"] != outputs
        or discrete != (saved.action_head == "argmax")
    ):
        raise WeightFileError(
            f"{path}: the policy takes observations of shape {fields['observation_shape']} and gives "
            f"{fields['num_outputs']} outputs to {saved.action_head}, but the environment has observations of shape "
            f"{observation_space.shape} and {kind} actions for {outputs} outputs"
        )


def _fields(policy: Policy) -> dict[str, Any]:
    return dataclasses.asdict(policy)  # type: ignore[call-overload]  # policies are dataclasses, see contracts/policy.py


def _finite_or_none(value: Any) -> Any:
    return None if isinstance(value, float) and not np.isfinite(value) else value


def _check_arrays(policy: Policy, weights: np.ndarray, buffers: Buffers) -> None:
    if weights.dtype != np.float32:
        raise ValueError(f"weights must be float32, not {weights.dtype}")
    if weights.shape != (policy.layout.num_params,):
        raise ValueError(f"weights of shape {weights.shape}, but the policy has {policy.layout.num_params} parameters")
    for name, array in {"weights": weights, **buffers}.items():
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise ValueError(f"{name} holds numbers that are not finite")


def _bytes_of(path: Path) -> bytes:
    if not path.exists():
        raise ValueError("no such file")
    if not path.is_file():
        raise ValueError("not a file")
    size = path.stat().st_size
    if size == 0:
        raise ValueError("the file is empty")
    if size > MAX_FILE_BYTES:
        raise ValueError(f"the file has {size} bytes, more than the {MAX_FILE_BYTES} of the largest policy file")
    return path.read_bytes()


def _rebuild(header: Header, arrays: Arrays, allow_imports: Sequence[str]) -> SavedPolicy:
    environment = spec_from_json(header["environment"])
    _check_imports(header, environment.imports, allow_imports)
    name, policy = _policy(header["policy"])
    if header["action_head"] not in HEADS:
        raise ValueError(f"unknown action head {header['action_head']!r}; known are {', '.join(HEADS)}")
    for wrapper in (*environment.gymnasium_wrappers, *environment.wrappers, *environment.training_wrappers):
        lookup("wrappers", wrapper.name)  # refuses an unknown one now, not when the environment is made
    unknown = [array for array in arrays if array != "weights" and not array.startswith("buffers.")]
    if unknown or "weights" not in arrays:
        raise ValueError(f"the arrays must be 'weights' and 'buffers.<name>', not {sorted(arrays)}")
    weights = arrays.pop("weights")
    buffers = {array.removeprefix("buffers."): values for array, values in arrays.items()}
    _check_arrays(policy, weights, buffers)
    return SavedPolicy(policy, name, weights, buffers, header["action_head"], environment, header["provenance"])


def _policy(description: Mapping[str, Any]) -> tuple[str, Policy]:
    fields = {key: _tuples(value) for key, value in description.items()}
    name = fields.pop("name", None)
    if not isinstance(name, str):
        raise ValueError(f"the policy's name must be text, not {name!r}")
    found = lookup("policies", name)
    try:
        policy = found(**fields)
        policy.layout  # noqa: B018  # computed from the fields, which may make no sense
    except (TypeError, AttributeError) as error:
        raise ValueError(f"the header does not describe a policy {name!r} ({error})") from error
    return name, policy


def _check_imports(header: Header, imports: Sequence[str], allow_imports: Sequence[str]) -> None:
    """Refuses a header that names code which is neither ours nor in a package that the caller allows.

    Any text with a colon may be such a name, wherever it stands: Gymnasium too takes ids like `module:Name-v0`.
    """
    texts = _texts([header["policy"], header["environment"]])
    foreign = [text for text in texts if ":" in text and not _is_ours(text)]
    for module in (*imports, *(name.partition(":")[0] for name in foreign)):
        if not any(module == allowed or module.startswith(f"{allowed}.") for allowed in allow_imports):
            raise ValueError(f"needs code from the module {module!r}; if you trust it, give --import {module}")


def _is_ours(name: str) -> bool:
    """Whether "module:Class" is a class of our own, and not merely one that a module of ours imports."""
    module = name.partition(":")[0]
    return _OWN_MODULES.fullmatch(module) is not None and lookup("wrappers", name).__module__ == module


def _texts(value: Any) -> Iterator[str]:
    """Every text in a tree of JSON values."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from _texts([*value, *value.values()])
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)


def _tuples(value: Any) -> Any:
    """JSON has only lists; frozen dataclasses have only tuples."""
    return tuple(_tuples(item) for item in value) if isinstance(value, list) else value
