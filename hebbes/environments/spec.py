"""Makes a wrapped BatchEnv from a description of an environment that a policy file can hold."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, asdict, dataclass, field, fields
from functools import partial
from importlib.util import find_spec
from typing import Any

import gymnasium

from hebbes.contracts.environment import BatchEnv
from hebbes.environments.gymnasium_env import GymnasiumEnv
from hebbes.environments.ids import is_built_into_gymnasium, register
from hebbes.environments.morphologies import INTACT, check_morphologies
from hebbes.environments.wrapper_spec import WrapperSpec as WrapperSpec
from hebbes.environments.wrapper_spec import check_wrapper
from hebbes.registry.former_names import find_current_class_name, rename_options
from hebbes.registry.lookup import find_class
from hebbes.registry.users_classes import check_class, make_instance

BACKENDS = ("envpool", "gymnasium")


@dataclass(frozen=True)
class EnvironmentSpec:
    """Description of an environment: its id, its back end, its wrappers."""

    environment: str
    """The current id, from `hebbes.environments.ids.resolve`."""
    backend: str
    """One of `BACKENDS`, from `choose_backend`."""
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


def choose_backend(
    requested: str,
    environment: str,
    env_kwargs: Mapping[str, Any],
    gymnasium_wrappers: Sequence[WrapperSpec],
) -> str:
    """The back end to use. "auto": EnvPool if it can make this, else Gymnasium. "envpool": ValueError if it cannot."""
    if requested not in ("auto", *BACKENDS):
        raise ValueError(f"backend must be one of auto, {', '.join(BACKENDS)}, got {requested!r}")
    if requested == "gymnasium":
        return "gymnasium"
    refusal = _explain_envpool_refusal(environment, env_kwargs, gymnasium_wrappers)
    if refusal is None:
        return "envpool"
    if requested == "envpool":
        raise ValueError(f"backend 'envpool' cannot be used: {refusal}")
    return "gymnasium"


def make_batch_env(
    spec: EnvironmentSpec,
    seeds: Sequence[int],
    *,
    threads: int,
    training: bool,
    morphology: str | None = None,
    render_mode: str | None = None,
) -> BatchEnv:
    """A BatchEnv of the environment, wrapped.

    Args:
        spec: what to make.
        seeds: one seed in [0, 2^31) per sub-environment; equal seeds give equal start states.
        threads: number of threads that step the simulators, >= 1. The Gymnasium back end uses only the calling one.
        training: whether to apply the training-only wrappers.
        morphology: that of all sub-environments; default: the description's first.
        render_mode: Gymnasium's, for sub-environment 0; only for the Gymnasium back end.
    """
    if not len(seeds) or not all(0 <= seed < 2**31 for seed in seeds):
        raise ValueError(f"seeds must be at least one, each in [0, 2^31), got {list(seeds)}")
    if threads < 1:
        raise ValueError(f"threads must be >= 1, got {threads}")
    env = _make_bare_env(spec, seeds, threads, spec.morphologies[0] if morphology is None else morphology, render_mode)
    try:
        for wrapper in (*spec.wrappers, *(spec.training_wrappers if training else ())):
            env = _apply_batch_wrapper(env, wrapper)
    except BaseException:
        env.close()
        raise
    return env


def _make_bare_env(
    spec: EnvironmentSpec, seeds: Sequence[int], threads: int, morphology: str, render_mode: str | None
) -> BatchEnv:
    register(spec.environment, spec.imports)
    if morphology != INTACT and "xml_file" in spec.env_kwargs:
        raise ValueError(
            f"morphologies has {morphology!r} and env_kwargs has an xml_file: only one of them can set the morphology"
        )
    if spec.backend == "gymnasium":
        wrappers = [(_find_gymnasium_wrapper(wrapper), wrapper.kwargs) for wrapper in spec.gymnasium_wrappers]
        return GymnasiumEnv(
            spec.environment, seeds, spec.env_kwargs, wrappers=wrappers, morphology=morphology, render_mode=render_mode
        )
    if render_mode is not None:
        raise ValueError(f"render_mode {render_mode!r} needs backend 'gymnasium', got {spec.backend!r}")
    choose_backend(spec.backend, spec.environment, spec.env_kwargs, spec.gymnasium_wrappers)
    from hebbes.environments.envpool_env import EnvPoolEnv  # EnvPool is not installed everywhere

    return EnvPoolEnv(spec.environment, seeds, spec.env_kwargs, threads=threads, morphology=morphology)


def _explain_envpool_refusal(
    environment: str, env_kwargs: Mapping[str, Any], gymnasium_wrappers: Sequence[WrapperSpec]
) -> str | None:
    if gymnasium_wrappers:
        return "gymnasium_wrappers need the Gymnasium back end"
    if find_spec("envpool") is None:
        return "EnvPool is not installed"
    from hebbes.environments.envpool_env import explain_refusal  # EnvPool is not installed everywhere

    found = explain_refusal(environment, env_kwargs)
    if found is None and environment in gymnasium.registry and not is_built_into_gymnasium(environment):
        return f"a package other than Gymnasium registers {environment}, and EnvPool's of that name may be different"
    return found


def _find_gymnasium_wrapper(wrapper: WrapperSpec) -> Callable[..., gymnasium.Env]:
    check_wrapper("gymnasium_wrappers", wrapper)
    found = find_class("wrapper", wrapper.name)
    if not issubclass(found, gymnasium.Wrapper):
        raise ValueError(f"gymnasium_wrappers: {wrapper.name!r} is not a gymnasium.Wrapper")
    _check_options("gymnasium_wrappers", found, wrapper)
    return partial(make_instance, "gymnasium_wrappers", wrapper.name, found)


def _apply_batch_wrapper(env: BatchEnv, wrapper: WrapperSpec) -> BatchEnv:
    found = find_class("wrapper", wrapper.name)
    if issubclass(found, gymnasium.Wrapper):
        raise ValueError(f"wrapper {wrapper.name!r} is a gymnasium.Wrapper, to be named in gymnasium_wrappers")
    _check_options("wrappers", check_class("wrappers", wrapper.name, found), wrapper)
    made: BatchEnv = make_instance("wrappers", wrapper.name, found, env, **wrapper.kwargs)
    return made


def _check_options(option: str, found: type, wrapper: WrapperSpec) -> None:
    try:
        inspect.signature(found).bind("env", **wrapper.kwargs)
    except TypeError as error:
        given = dict(wrapper.kwargs) or "no arguments"
        known = inspect.signature(found).parameters
        unknown = [name for name in wrapper.kwargs if name not in known]
        if unknown and not any(each.kind is each.VAR_KEYWORD for each in known.values()):
            takes = ", ".join(name for name in known if name != "env") or "none"
            raise ValueError(f"{option}: {wrapper.name!r} has no argument {unknown[0]!r}; it takes {takes}") from error
        raise ValueError(f"{option}: {wrapper.name!r} cannot be made with {given}: {error}") from error


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
        found.append(
            WrapperSpec(
                find_current_class_name(given["name"]), _read_options(given.get("kwargs", {}), f"kwargs in {key}")
            )
        )
    return tuple(found)
