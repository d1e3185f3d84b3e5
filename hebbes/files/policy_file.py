"""Policy files (`.dat`): weights and everything needed to use them, in the format of `hebbes.files.checksummed_file`.

Loading runs no code that the file contains or chooses. Names are looked up among our own classes, and a user's module
is imported only if the caller names it. A file that is not exactly as `save_policy` wrote it is refused.
"""

import dataclasses
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium import Space
from gymnasium.spaces import Discrete
from jaxtyping import Float32

from hebbes.contracts.option import find_unused_options, list_options
from hebbes.contracts.plain_values import find_leaves, make_list
from hebbes.contracts.policy import Buffers, Policy
from hebbes.environments.environment_spec import EnvironmentSpec, spec_from_json, spec_to_json
from hebbes.files.atomic_file import write_atomically
from hebbes.files.checksummed_file import MAX_HEADER_BYTES, EntryTypes, Header, Listing, decode, encode, peek
from hebbes.files.torch_file import is_torch_file
from hebbes.files.weight_file import WeightFileError, as_path, open_regular_file, wrap_file_errors
from hebbes.files.zoo import find_in_zoo
from hebbes.policies.action_heads import HEADS
from hebbes.registry.former_names import find_current_class_name, rename_options
from hebbes.registry.lookup import check_allowed, find_class, is_ours
from hebbes.registry.users_classes import make_policy

MAX_FILE_BYTES = 64 * 2**20  # 16 million weights. Refusing a file takes at most twice this in memory.
MAX_DESCRIPTION_BYTES = 2**16  # of policy, head and environment. Many thousand layers would cost time and memory.
_ENTRIES: EntryTypes = {"policy": dict, "action_head": str, "environment": dict, "provenance": dict}
MAX_WEIGHTS = (MAX_FILE_BYTES - MAX_HEADER_BYTES) // 4
"""The largest number of weights, and values of buffers, in a policy file."""
_LARGER = "for larger policies raise MAX_FILE_BYTES in hebbes/files/policy_file.py"


@dataclass(frozen=True)
class SavedPolicy:
    """A policy with its weights and everything that it needs to act."""

    policy: Policy
    policy_name: str
    """The value of `--policy`."""
    weights: Float32[np.ndarray, " params"]
    buffers: Buffers
    action_head: str
    environment: EnvironmentSpec
    provenance: Mapping[str, Any]
    """Where the weights come from, as JSON values by name. A number that is not finite is saved as None."""


def save_policy(path: str | Path, saved: SavedPolicy) -> None:
    """Writes a policy file atomically. The same policy gives the same bytes, and a write cut short changes nothing.

    Raises ValueError if the file could not be loaded again, for example for weights that are not finite.
    """
    path = as_path(path)
    header = _describe(saved.policy_name, saved.policy, saved.action_head, saved.environment)
    _check_description(header)
    header["provenance"] = {name: _replace_non_finite(value) for name, value in saved.provenance.items()}
    _check_arrays(saved.policy, saved.weights, saved.buffers)
    arrays = {"weights": saved.weights} | {f"buffers.{name}": array for name, array in saved.buffers.items()}
    data = encode("policy", header, arrays)
    if len(data) > MAX_FILE_BYTES:
        raise ValueError(f"the policy file would have {len(data)} bytes, more than {MAX_FILE_BYTES}; {_LARGER}")
    write_atomically(path, data)


def check_can_be_saved(
    name: str, policy: Policy, action_head: str, environment: EnvironmentSpec, allow_imports: Sequence[str]
) -> None:
    """Raises ValueError if no file could hold a policy, or if reading the file would fail or make another policy."""
    header = _describe(name, policy, action_head, environment)
    check_named_code(header["policy"], environment, allow_imports)
    try:
        text = json.dumps(header["policy"], allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ValueError(f"policy {name!r} has a field that no file can hold: {error}") from error
    _check_description(header)
    _, again = _make_policy(json.loads(text))
    for field in dataclasses.fields(policy):  # type: ignore[arg-type]  # policies are dataclasses
        was, read = (_convert_lists_to_tuples(getattr(each, field.name)) for each in (policy, again))
        if was != read:
            raise ValueError(f"policy {name!r} would be read from its file with {field.name} {read!r}, not {was!r}")


def read_policy_file(path: str | Path, allow_imports: Sequence[str] = ()) -> SavedPolicy:
    """The policy that `save_policy` wrote, or the released one that `zoo:NAME` names.

    `allow_imports` names the user's packages that it may import from. The header is checked before any array is read.

    Raises:
        WeightFileError: the file is missing, damaged, of another format or newer, or it names code that is unknown or
            not allowed.
    """
    path = as_path(path)
    with wrap_file_errors(path):
        path = find_in_zoo(path)
        if is_torch_file(path):
            raise ValueError(
                "written by torch.save, which keeps only numbers: `hebbes import` makes a policy file of "
                "learning rules, and evaluate_static and compare play others, with --environment and --policy"
            )
        with open_regular_file(path, MAX_FILE_BYTES, _LARGER) as file:
            header, listing, _ = peek(file.read(8 + MAX_HEADER_BYTES), "policy", _ENTRIES)
            name, policy, environment = _read_description(header, allow_imports)
            _check_listing(policy, listing)
            file.seek(0)
            _, arrays = decode(file.read(MAX_FILE_BYTES), "policy", _ENTRIES)
        weights = arrays.pop("weights")
        buffers = {key.removeprefix("buffers."): array for key, array in arrays.items()}
        _check_arrays(policy, weights, buffers)
        return SavedPolicy(policy, name, weights, buffers, header["action_head"], environment, header["provenance"])


def count_outputs(action_space: Space) -> int:
    """Number of outputs that a policy needs: one for each Discrete action, or one for each number of a Box."""
    return int(action_space.n) if isinstance(action_space, Discrete) else prod(action_space.shape or ())


def check_fits(path: Path, saved: SavedPolicy, observation_space: Space, action_space: Space) -> None:
    """Raises WeightFileError, which says both shapes, if the policy does not fit the spaces of a sub-environment."""
    policy, discrete, outputs = saved.policy, isinstance(action_space, Discrete), count_outputs(action_space)
    kind = "discrete" if discrete else "continuous"
    if (
        policy.observation_shape != observation_space.shape
        or policy.num_outputs != outputs
        or discrete != (saved.action_head == "argmax")
    ):
        raise WeightFileError(
            f"{path}: the policy takes observations of shape {policy.observation_shape} and gives "
            f"{policy.num_outputs} outputs to {saved.action_head}, but the environment has observations of shape "
            f"{observation_space.shape} and {kind} actions for {outputs} outputs"
        )


def get_policy_fields(policy: Policy) -> dict[str, Any]:
    """The fields of a policy by name."""
    return dataclasses.asdict(policy)  # type: ignore[call-overload]  # policies are dataclasses, see hebbes/contracts/policy.py


def _describe(name: str, policy: Policy, action_head: str, environment: EnvironmentSpec) -> dict[str, Any]:
    """What the header says of a policy and its environment."""
    fields = get_policy_fields(policy)
    if "name" in fields:
        raise ValueError(f"policy {name!r} must not have a field called name, which policy files use")
    return {"policy": {"name": name, **fields}, "action_head": action_head, "environment": spec_to_json(environment)}


def list_policy_options(policy: Policy) -> dict[str, Any]:
    """The options that a policy uses, in plain types."""
    values = {each.name: getattr(policy, each.name) for each in list_options(type(policy))}
    unused = find_unused_options(type(policy), values)
    return {name: make_list(value) for name, value in values.items() if name not in unused}


def _replace_non_finite(value: Any) -> Any:
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
    """Raises ValueError for arrays that the policy does not have, before they are read."""
    unknown = [name for name in listing if name != "weights" and not name.startswith("buffers.")]
    if unknown or "weights" not in listing:
        raise ValueError(f"the arrays must be 'weights' and 'buffers.<name>', not {sorted(listing)}")
    if policy.layout.num_params > MAX_FILE_BYTES // 4:  # of float32
        raise ValueError(f"the policy has more parameters than a file of {MAX_FILE_BYTES} bytes can hold; {_LARGER}")
    dtype, shape = listing["weights"]
    if dtype != "F32":
        raise ValueError(f"weights must be float32, not {dtype}")
    _check_shape(policy, shape)


def _read_description(header: Header, allow_imports: Sequence[str]) -> tuple[str, Policy, EnvironmentSpec]:
    """The policy that the header describes, with its name and its environment."""
    _check_description(header)
    environment = spec_from_json(header["environment"])
    check_named_code(header["policy"], environment, allow_imports)
    name, policy = _make_policy(header["policy"])
    if header["action_head"] not in HEADS:
        raise ValueError(f"unknown action head {header['action_head']!r}; known are {', '.join(HEADS)}")
    for wrapper in {wrapper.name for wrapper in environment.all_wrappers}:
        find_class("wrapper", wrapper)  # refuses an unknown wrapper before the environment is made
    return name, policy, environment


def _make_policy(description: Mapping[str, Any]) -> tuple[str, Policy]:
    fields = {key: _convert_lists_to_tuples(value) for key, value in description.items()}
    name = fields.pop("name", None)
    if not isinstance(name, str):
        raise ValueError(f"the policy's name must be text, not {name!r}")
    name = find_current_class_name(name)
    found = find_class("policy", name)
    fields = rename_options(fields, {each.name for each in dataclasses.fields(found)})
    try:
        policy = make_policy(name, found, **fields)  # also computes the layout, from fields that may make no sense
    except (TypeError, AttributeError) as error:
        raise ValueError(f"the header does not describe a policy {name!r} ({error})") from error
    return name, policy


def check_named_code(policy: Mapping[str, Any], environment: EnvironmentSpec, allow_imports: Sequence[str]) -> None:
    """Raises ValueError if a policy or its environment names code that is neither ours nor in a package allowed here.

    Any text with a colon may be such a name, wherever it is: Gymnasium, too, takes ids like `module:Name-v0`. What is
    before the colon must be the name of a module that there is, unless the text is the name of a class. An address
    that begins with http:// names no code.
    """
    classes = [policy.get("name"), environment.environment, *(wrapper.name for wrapper in environment.all_wrappers)]
    texts = {leaf for leaf in find_leaves([policy, spec_to_json(environment)]) if isinstance(leaf, str)}
    named = [text for text in sorted(texts) if ":" in text and not text.startswith("http://")]
    foreign = [text for text in named if not is_ours(find_current_class_name(text))]
    modules = {text: text.partition(":")[0] for text in foreign}
    may_be_code = [module for text, module in modules.items() if text in classes or _is_module(module)]
    check_allowed((*environment.imports, *may_be_code), allow_imports)


def _is_module(name: str) -> bool:
    """Whether `name` could be imported. It is looked for only at the top, which imports nothing."""
    top = name.partition(".")[0]
    try:
        return bool(top) and find_spec(top) is not None
    except ValueError:  # of a module without a spec, such as __main__
        return True


def _convert_lists_to_tuples(value: Any) -> Any:
    """The value with tuples instead of lists: JSON has only lists, frozen dataclasses have only tuples."""
    return tuple(_convert_lists_to_tuples(item) for item in value) if isinstance(value, list) else value
