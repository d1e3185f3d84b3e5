"""Policy files (`.dat`): weights and everything needed to use them. `hebbes.files.checksummed_file` has the bytes.

Loading runs no code that the file brings or chooses: names are looked up among ours, and a module of the user's own is
imported only if the caller names it. A file that is not exactly what `save_policy` wrote is refused.
"""

import dataclasses
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium import Space
from gymnasium.spaces import Discrete
from jaxtyping import Float32, Shaped

from hebbes.contracts.policy import Buffers, Policy
from hebbes.contracts.randomness import Purpose, stream
from hebbes.environments.spec import EnvironmentSpec, spec_from_json, spec_to_json
from hebbes.files.atomic_file import write_atomically
from hebbes.files.checksummed_file import MAX_HEADER_BYTES, Entries, Header, Listing, decode, encode, peek
from hebbes.files.torch_file import is_legacy
from hebbes.files.weight_file import WeightFileError as WeightFileError
from hebbes.files.weight_file import as_path, opened, refusals
from hebbes.policies.action_heads import HEADS
from hebbes.registry.lookup import check_allowed, is_ours, lookup
from hebbes.registry.users_classes import make_policy

MAX_FILE_BYTES = 64 * 2**20  # 16 million weights; a file that is refused costs no more than twice this in memory
MAX_DESCRIPTION_BYTES = 2**16  # of policy, head and environment: a layout of many thousand layers costs time and memory
_ENTRIES: Entries = {"policy": dict, "action_head": str, "environment": dict, "provenance": dict}
_LARGER = "for larger policies raise MAX_FILE_BYTES in hebbes/files/policy_file.py"
_NO_WEIGHTS = np.empty(0, np.float32)


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
        """Actions of a policy without state for the wrapped environment, from observations of that environment.

        They are what the outermost of `environment.wrappers` takes: real numbers that `clip_action` brings within the
        bounds, or among which `choose_action` chooses whole numbers. `hebbes.environments.spec.make_batch_env` makes the
        wrapped environment.

        ValueError for a policy that has a state; `hebbes.evaluation.play.play` plays whole episodes of it.
        """
        start = self.policy.initial_state(self.weights[np.newaxis], [stream(0, Purpose.TEST)], self.buffers)
        if start is not None:
            raise ValueError(f"policy {self.policy_name!r} has a state in each episode; play whole episodes instead")
        weights = np.repeat(self.weights[np.newaxis], len(observations), axis=0)
        previous_rewards = np.zeros(len(observations), np.float32)
        return HEADS[self.action_head](self.policy.act(weights, observations, previous_rewards, None, self.buffers))


def save_policy(path: str | Path, saved: SavedPolicy) -> None:
    """Writes a policy file, atomically: the same policy gives the same bytes, and a write cut short changes nothing.

    ValueError for what could not be loaded again, such as weights that are not finite.
    """
    path = as_path(path)
    header = {
        "policy": {"name": saved.policy_name, **fields_of(saved.policy)},
        "action_head": saved.action_head,
        "environment": spec_to_json(saved.environment),
        "provenance": {name: _finite_or_none(value) for name, value in saved.provenance.items()},
    }
    _check_description(header)
    _check_arrays(saved.policy, saved.weights, saved.buffers)
    arrays = {"weights": saved.weights} | {f"buffers.{name}": array for name, array in saved.buffers.items()}
    data = encode("policy", header, arrays)
    if len(data) > MAX_FILE_BYTES:
        raise ValueError(f"the policy file would have {len(data)} bytes, more than {MAX_FILE_BYTES}; {_LARGER}")
    write_atomically(path, data)


def load_policy(path: str | Path, allow_imports: Sequence[str] = ()) -> SavedPolicy:
    """Rebuilds what `save_policy` wrote; `allow_imports` names the packages of the user's own that it may import from.

    What the header says is checked before any array is read.

    Raises:
        WeightFileError: the file is missing, damaged, foreign, newer, or names code that is unknown or not allowed.
    """
    path = as_path(path)
    with refusals(path):
        if is_legacy(path):
            raise ValueError(
                "written by torch.save, which keeps bare numbers: give --environment and --policy with it; "
                "`hebbes import` makes a policy file of learning rules"
            )
        with opened(path, MAX_FILE_BYTES, _LARGER) as file:
            header, listing = peek(file.read(8 + MAX_HEADER_BYTES), "policy", _ENTRIES)
            saved = _described(header, allow_imports)
            _check_listing(saved.policy, listing)
            file.seek(0)
            _, arrays = decode(file.read(MAX_FILE_BYTES), "policy", _ENTRIES)
        weights = arrays.pop("weights")
        buffers = {name.removeprefix("buffers."): array for name, array in arrays.items()}
        _check_arrays(saved.policy, weights, buffers)
        return dataclasses.replace(saved, weights=weights, buffers=buffers)


def num_outputs(action_space: Space) -> int:
    """Outputs that a policy needs for this action space: one a Discrete action, one a number of a Box."""
    return int(action_space.n) if isinstance(action_space, Discrete) else prod(action_space.shape or ())


def check_fits(path: Path, saved: SavedPolicy, observation_space: Space, action_space: Space) -> None:
    """Refuses, with both shapes in the line, the policy of `path` where one copy of an environment has other spaces."""
    fields = fields_of(saved.policy)
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


def fields_of(policy: Policy) -> dict[str, Any]:
    """The fields of a policy by name."""
    return dataclasses.asdict(policy)  # type: ignore[call-overload]  # policies are dataclasses, see hebbes/contracts/policy.py


def _finite_or_none(value: Any) -> Any:
    return None if isinstance(value, float) and not np.isfinite(value) else value


def _check_arrays(policy: Policy, weights: np.ndarray, buffers: Buffers) -> None:
    if weights.dtype != np.float32:
        raise ValueError(f"weights must be float32, not {weights.dtype}")
    _check_shape(policy, weights.shape)
    for name, array in {"weights": weights, **buffers}.items():
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise ValueError(f"{name} holds numbers that are not finite")
    policy.check_buffers(buffers)


def _check_shape(policy: Policy, shape: tuple[int, ...]) -> None:
    if shape != (policy.layout.num_params,):
        raise ValueError(f"weights of shape {shape}, but the policy has {policy.layout.num_params} parameters")


def _check_description(header: Mapping[str, Any]) -> None:
    size = len(json.dumps({name: header[name] for name in ("policy", "action_head", "environment")}))
    if size > MAX_DESCRIPTION_BYTES:
        raise ValueError(
            f"the description of policy and environment has {size} bytes, at most {MAX_DESCRIPTION_BYTES} are allowed"
        )


def _check_listing(policy: Policy, listing: Listing) -> None:
    """Refuses arrays other than the policy's before they are read."""
    unknown = [name for name in listing if name != "weights" and not name.startswith("buffers.")]
    if unknown or "weights" not in listing:
        raise ValueError(f"the arrays must be 'weights' and 'buffers.<name>', not {sorted(listing)}")
    if policy.layout.num_params > MAX_FILE_BYTES // _NO_WEIGHTS.itemsize:
        raise ValueError(f"the policy has more parameters than a file of {MAX_FILE_BYTES} bytes can hold; {_LARGER}")
    dtype, shape = listing["weights"]
    if dtype != "F32":
        raise ValueError(f"weights must be float32, not {dtype}")
    _check_shape(policy, shape)


def _described(header: Header, allow_imports: Sequence[str]) -> SavedPolicy:
    """All that the header says, without weights and buffers."""
    _check_description(header)
    environment = spec_from_json(header["environment"])
    _check_imports(header, environment.imports, allow_imports)
    name, policy = _policy(header["policy"])
    if header["action_head"] not in HEADS:
        raise ValueError(f"unknown action head {header['action_head']!r}; known are {', '.join(HEADS)}")
    wrappers = (*environment.gymnasium_wrappers, *environment.wrappers, *environment.training_wrappers)
    for wrapper in {wrapper.name for wrapper in wrappers}:
        lookup("wrapper", wrapper)  # refuses an unknown one now, not when the environment is made
    return SavedPolicy(policy, name, _NO_WEIGHTS, {}, header["action_head"], environment, header["provenance"])


def _policy(description: Mapping[str, Any]) -> tuple[str, Policy]:
    fields = {key: _tuples(value) for key, value in description.items()}
    name = fields.pop("name", None)
    if not isinstance(name, str):
        raise ValueError(f"the policy's name must be text, not {name!r}")
    found = lookup("policy", name)
    try:
        policy = make_policy(name, found, **fields)  # with its layout, computed from fields which may make no sense
    except (TypeError, AttributeError) as error:
        raise ValueError(f"the header does not describe a policy {name!r} ({error})") from error
    return name, policy


def _check_imports(header: Header, imports: Sequence[str], allow_imports: Sequence[str]) -> None:
    """Refuses a header that names code which is neither ours nor in a package that the caller allows.

    Any text with a colon may be such a name, wherever it stands: Gymnasium too takes ids like `module:Name-v0`.
    """
    named = {text for text in _texts([header["policy"], header["environment"]]) if ":" in text}
    foreign = sorted(text for text in named if not is_ours(text))
    check_allowed((*imports, *(name.partition(":")[0] for name in foreign)), allow_imports)


def _texts(tree: Any) -> Iterator[str]:
    """Every text in a tree of JSON values."""
    waiting = [tree]
    while waiting:
        match waiting.pop():
            case str() as text:
                yield text
            case dict() as entries:
                waiting += [*entries, *entries.values()]
            case list() as items:
                waiting += items


def _tuples(value: Any) -> Any:
    """JSON has only lists; frozen dataclasses have only tuples."""
    return tuple(_tuples(item) for item in value) if isinstance(value, list) else value
