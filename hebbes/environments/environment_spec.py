"""EnvironmentSpec: the description of an environment in its wrappers, which a policy file can hold as JSON."""

from collections.abc import Mapping
from dataclasses import MISSING, asdict, dataclass, field, fields
from typing import Any

from hebbes.contracts.option import check_argument, get_default, get_hints
from hebbes.contracts.plain_values import make_list
from hebbes.environments.morphologies import INTACT, check_morphologies, shorten_morphology_name
from hebbes.environments.part_spec import PartSpec
from hebbes.registry.former_names import find_current_class_name, rename_arguments, rename_options

BACKENDS = ("envpool", "gymnasium")
WRAPPER_LISTS = ("gymnasium_wrappers", "wrappers", "training_wrappers")
START_WRAPPERS = ("settle", "fire_reset")
"""Wrappers of ours that play the first env steps of an episode."""


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
    gymnasium_wrappers: tuple[PartSpec, ...] = ()
    """`gymnasium.Wrapper` classes around each sub-environment, innermost first; only for the Gymnasium back end."""
    wrappers: tuple[PartSpec, ...] = ()
    """Batch wrappers, innermost first."""
    training_wrappers: tuple[PartSpec, ...] = ()
    """Batch wrappers outside the others, only in training."""
    morphologies: tuple[str, ...] = (INTACT,)
    """Every episode is played in each of them. As from `hebbes.environments.morphologies.pin_morphology`."""

    @property
    def batch_wrappers(self) -> tuple[PartSpec, ...]:
        """The batch wrappers of training, innermost first."""
        return (*self.wrappers, *self.training_wrappers)

    @property
    def all_wrappers(self) -> tuple[PartSpec, ...]:
        """The wrappers of training, innermost first."""
        return (*self.gymnasium_wrappers, *self.batch_wrappers)


def describe_environment(spec: EnvironmentSpec, cap: int | None = None) -> str:
    """What its returns depend on: id, simulator options, wrappers, morphologies, and a cap on env steps if it has one.

    Wrappers of ours that only change what a policy sees are left out, and so are `training_wrappers`, which are not in
    evaluations.
    """
    options = [f"{name}={value}" for name, value in sorted(spec.env_kwargs.items())]
    own = [each for each in spec.wrappers if ":" in each.name or each.name in START_WRAPPERS]
    wrappers = [f"{each.name}{dict(each.kwargs) or ''}" for each in (*spec.gymnasium_wrappers, *own)]
    named = spec.morphologies if spec.morphologies != (INTACT,) else ()
    morphologies = [f"morphology {shorten_morphology_name(morphology)}" for morphology in named]
    capped = [] if cap is None else [f"up to {cap:,} env steps"]
    return " ".join([spec.environment, *options, *wrappers, *morphologies, *capped])


def spec_to_json(spec: EnvironmentSpec) -> dict[str, Any]:
    """The description as plain dicts and lists, which JSON can hold as far as the options can."""
    return {key: make_list(value) for key, value in asdict(spec).items()}


def spec_from_json(plain: Any) -> EnvironmentSpec:
    """The description from what `spec_to_json` returned; ValueError for anything else. Imports and executes nothing."""
    given = _check_keys(plain, EnvironmentSpec, "environment description")
    given |= {name: _read_wrappers(given[name], name) for name in WRAPPER_LISTS if name in given}
    hints = get_hints(EnvironmentSpec)
    spec = EnvironmentSpec(**{name: check_argument(name, value, hints[name]) for name, value in given.items()})
    check_argument("backend", spec.backend, str, choices=BACKENDS)
    check_morphologies(spec.morphologies)
    return spec


def _check_keys(plain: Any, described: type, what: str) -> dict[str, Any]:
    """The mapping under current names; ValueError if a field without a default is missing, or for unknown keys."""
    known = {entry.name for entry in fields(described)}
    required = {entry.name for entry in fields(described) if get_default(entry) is MISSING}
    found = rename_options(check_argument(what, plain, Mapping[str, Any]), known)
    unknown, missing = sorted(set(found) - known), sorted(required - set(found))
    if unknown or missing:
        raise ValueError(f"{what} has unknown keys {unknown} and lacks {missing}; known: {', '.join(sorted(known))}")
    return found


def _read_wrappers(entries: Any, key: str) -> tuple[PartSpec, ...]:
    found = []
    for entry in check_argument(key, entries, tuple[Mapping[str, Any], ...]):
        given = _check_keys(entry, PartSpec, key)
        name = find_current_class_name(check_argument(f"name in {key}", given["name"], str))
        kwargs = check_argument(f"kwargs in {key}", given.get("kwargs", {}), Mapping[str, Any])
        found.append(PartSpec(name, rename_arguments(name, kwargs)))
    return tuple(found)
