"""EnvironmentSpec: the description of an environment in its wrappers, which a policy file can hold as JSON."""

from collections.abc import Mapping
from dataclasses import MISSING, asdict, dataclass, field, fields
from typing import Any

from hebbes.environments.morphologies import INTACT, check_morphologies
from hebbes.environments.wrapper_spec import WrapperSpec
from hebbes.registry.former_names import find_current_class_name, rename_arguments, rename_options

BACKENDS = ("envpool", "gymnasium")


@dataclass(frozen=True)
class EnvironmentSpec:
    """Description of an environment: its id, its back end, its wrappers."""

    environment: str
    """The current id, from `hebbes.environments.ids.resolve`."""
    backend: str
    """One of `BACKENDS`, from `hebbes.environments.make_batch_env.choose_backend`."""
    env_kwargs: Mapping[str, Any] = field(default_factory=dict)
    """Options of the simulator's constructor."""
    imports: tuple[str, ...] = ()
    """Packages that register the environment when imported."""
    gymnasium_wrappers: tuple[WrapperSpec, ...] = ()
    """`gymnasium.Wrapper` classes around each sub-environment, innermost first; only for the Gymnasium back end."""
    wrappers: tuple[WrapperSpec, ...] = ()
    """Batch wrappers, innermost first."""
    training_wrappers: tuple[WrapperSpec, ...] = ()
    """Batch wrappers outside the others, only in training."""
    morphologies: tuple[str, ...] = (INTACT,)
    """Every episode is played in each of them. As from `hebbes.environments.morphologies.pin_morphology`."""


def spec_to_json(spec: EnvironmentSpec) -> dict[str, Any]:
    """The description as plain dicts and lists, which JSON can hold as far as the options can."""
    plain = asdict(spec)
    return {key: list(value) if isinstance(value, tuple) else value for key, value in plain.items()}


def spec_from_json(plain: Any) -> EnvironmentSpec:
    """The description from what `spec_to_json` returned; ValueError for anything else. Imports and executes nothing."""
    given = _check_keys(plain, EnvironmentSpec, "environment description")
    for key in ("environment", "backend"):
        _check(isinstance(given[key], str), key, given[key], "text")
    _check(given["backend"] in BACKENDS, "backend", given["backend"], f"one of {', '.join(BACKENDS)}")
    imports = given.get("imports", [])
    _check(isinstance(imports, list) and all(isinstance(name, str) for name in imports), "imports", imports, "names")
    morphologies = given.get("morphologies", [INTACT])
    _check(
        isinstance(morphologies, list) and all(isinstance(morphology, str) for morphology in morphologies),
        "morphologies",
        morphologies,
        "names",
    )
    check_morphologies(morphologies)
    wrappers = ("gymnasium_wrappers", "wrappers", "training_wrappers")
    return EnvironmentSpec(
        given["environment"],
        given["backend"],
        _read_options(given.get("env_kwargs", {}), "env_kwargs"),
        tuple(imports),
        **{key: _read_wrappers(given.get(key, []), key) for key in wrappers},
        morphologies=tuple(morphologies),
    )


def _check(holds: bool, key: str, value: Any, allowed: str) -> None:
    if not holds:
        raise ValueError(f"{key} must be {allowed}, got {value!r}")


def _check_keys(plain: Any, described: type, what: str) -> dict[str, Any]:
    """The dict under current names; ValueError if a field without a default is missing, or for unknown keys."""
    _check(isinstance(plain, dict), what, plain, "a mapping")
    known = {entry.name for entry in fields(described)}
    plain = rename_options(plain, known)
    optional = {
        entry.name for entry in fields(described) if (entry.default, entry.default_factory) != (MISSING, MISSING)
    }
    unknown, missing = sorted(map(str, set(plain) - known)), sorted(known - optional - set(plain))
    if unknown or missing:
        raise ValueError(f"{what} has unknown keys {unknown} and lacks {missing}; known: {', '.join(sorted(known))}")
    return plain


def _read_options(value: Any, key: str) -> dict[str, Any]:
    _check(isinstance(value, dict) and all(isinstance(option, str) for option in value), key, value, "a mapping")
    return dict(value)


def _read_wrappers(value: Any, key: str) -> tuple[WrapperSpec, ...]:
    _check(isinstance(value, list), key, value, "a list")
    found = []
    for entry in value:
        given = _check_keys(entry, WrapperSpec, key)
        _check(isinstance(given["name"], str), f"name in {key}", given["name"], "text")
        name = find_current_class_name(given["name"])
        kwargs = _read_options(given.get("kwargs", {}), f"kwargs in {key}")
        found.append(WrapperSpec(name, rename_arguments(name, kwargs)))
    return tuple(found)
