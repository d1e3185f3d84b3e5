"""Environments as batches: from a description that fits in a policy file to a wrapped BatchEnv."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, asdict, dataclass, field, fields
from functools import partial
from importlib.util import find_spec
from typing import Any

import gymnasium

from hebbes.contracts.environment import BatchEnv
from hebbes.environments.gymnasium_env import GymnasiumEnv
from hebbes.environments.ids import is_of_gymnasium, register
from hebbes.environments.morphologies import INTACT, check_bodies
from hebbes.environments.wrapper_spec import WrapperSpec as WrapperSpec
from hebbes.environments.wrapper_spec import check_wrapper
from hebbes.registry.lookup import lookup
from hebbes.registry.users_classes import check_class, make

BACKENDS = ("envpool", "gymnasium")


@dataclass(frozen=True)
class EnvironmentSpec:
    """Which environment, on which back end, in which wrappers."""

    environment: str
    """Today's id, from `hebbes.environments.ids.resolve`."""
    backend: str
    """One of `BACKENDS`, from `choose_backend`."""
    env_kwargs: Mapping[str, Any] = field(default_factory=dict)
    """Options of the simulator's constructor."""
    imports: tuple[str, ...] = ()
    """Packages that register the environment when imported."""
    gymnasium_wrappers: tuple[WrapperSpec, ...] = ()
    """`gymnasium.Wrapper` classes around each copy, innermost first; Gymnasium back end only."""
    wrappers: tuple[WrapperSpec, ...] = ()
    """Batch wrappers, innermost first."""
    training_wrappers: tuple[WrapperSpec, ...] = ()
    """Batch wrappers outside the others, in training only."""
    bodies: tuple[str, ...] = (INTACT,)
    """The bodies in which every episode is played: see `hebbes.environments.morphologies.body_file`; a user's files are `pinned`."""


def spec_to_json(spec: EnvironmentSpec) -> dict[str, Any]:
    """The description as plain dicts, lists and what the options hold."""
    plain = asdict(spec)
    return {key: list(value) if isinstance(value, tuple) else value for key, value in plain.items()}


def spec_from_json(plain: Any) -> EnvironmentSpec:
    """The description that `spec_to_json` wrote; ValueError for anything else. Imports and executes nothing."""
    given = _checked_keys(plain, EnvironmentSpec, "environment description")
    for key in ("environment", "backend"):
        _check(isinstance(given[key], str), key, given[key], "text")
    _check(given["backend"] in BACKENDS, "backend", given["backend"], f"one of {', '.join(BACKENDS)}")
    imports = given.get("imports", [])
    _check(isinstance(imports, list) and all(isinstance(name, str) for name in imports), "imports", imports, "names")
    bodies = given.get("bodies", [INTACT])
    _check(isinstance(bodies, list) and all(isinstance(body, str) for body in bodies), "bodies", bodies, "names")
    check_bodies(bodies)
    wrappers = ("gymnasium_wrappers", "wrappers", "training_wrappers")
    return EnvironmentSpec(
        given["environment"],
        given["backend"],
        _options(given.get("env_kwargs", {}), "env_kwargs"),
        tuple(imports),
        **{key: _wrappers(given.get(key, []), key) for key in wrappers},
        bodies=tuple(bodies),
    )


def choose_backend(
    requested: str,
    environment: str,
    env_kwargs: Mapping[str, Any],
    gymnasium_wrappers: Sequence[WrapperSpec],
) -> str:
    """The back end to use: for "auto" EnvPool where it can, else Gymnasium; ValueError where "envpool" cannot."""
    if requested not in ("auto", *BACKENDS):
        raise ValueError(f"backend must be one of auto, {', '.join(BACKENDS)}, got {requested!r}")
    if requested == "gymnasium":
        return "gymnasium"
    refusal = _envpool_refusal(environment, env_kwargs, gymnasium_wrappers)
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
    body: str | None = None,
    render_mode: str | None = None,
) -> BatchEnv:
    """Copies of the environment, wrapped.

    Args:
        spec: what to make.
        seeds: one environment seed in [0, 2^31) a copy; equal seeds meet equal start states.
        threads: how many step the copies, >= 1; the Gymnasium back end uses the calling one.
        training: whether to apply the training-only wrappers.
        body: the one in which the copies are; the first of the description's where none is given.
        render_mode: Gymnasium's, for copy 0; Gymnasium back end only.
    """
    if not len(seeds) or not all(0 <= seed < 2**31 for seed in seeds):
        raise ValueError(f"seeds must be at least one, each in [0, 2^31), got {list(seeds)}")
    if threads < 1:
        raise ValueError(f"threads must be >= 1, got {threads}")
    env = _bare_env(spec, seeds, threads, spec.bodies[0] if body is None else body, render_mode)
    try:
        for wrapper in (*spec.wrappers, *(spec.training_wrappers if training else ())):
            env = _batch_wrapper(env, wrapper)
    except BaseException:
        env.close()
        raise
    return env


def _bare_env(
    spec: EnvironmentSpec, seeds: Sequence[int], threads: int, body: str, render_mode: str | None
) -> BatchEnv:
    register(spec.environment, spec.imports)
    if body != INTACT and "xml_file" in spec.env_kwargs:
        raise ValueError(f"bodies has {body!r} and env_kwargs an xml_file: only one of them can say what the body is")
    if spec.backend == "gymnasium":
        wrappers = [(_gymnasium_wrapper(wrapper), wrapper.kwargs) for wrapper in spec.gymnasium_wrappers]
        return GymnasiumEnv(
            spec.environment, seeds, spec.env_kwargs, wrappers=wrappers, body=body, render_mode=render_mode
        )
    if render_mode is not None:
        raise ValueError(f"render_mode {render_mode!r} needs backend 'gymnasium', got {spec.backend!r}")
    choose_backend(spec.backend, spec.environment, spec.env_kwargs, spec.gymnasium_wrappers)
    from hebbes.environments.envpool_env import EnvPoolEnv  # EnvPool is not installed everywhere

    return EnvPoolEnv(spec.environment, seeds, spec.env_kwargs, threads=threads, body=body)


def _envpool_refusal(
    environment: str, env_kwargs: Mapping[str, Any], gymnasium_wrappers: Sequence[WrapperSpec]
) -> str | None:
    if gymnasium_wrappers:
        return "gymnasium_wrappers need the Gymnasium back end"
    if find_spec("envpool") is None:
        return "EnvPool is not installed"
    from hebbes.environments.envpool_env import refusal  # EnvPool is not installed everywhere

    found = refusal(environment, env_kwargs)
    if found is None and environment in gymnasium.registry and not is_of_gymnasium(environment):
        return f"{environment} is registered by a package of its own, whatever EnvPool has under that name"
    return found


def _gymnasium_wrapper(wrapper: WrapperSpec) -> Callable[..., gymnasium.Env]:
    check_wrapper("gymnasium_wrappers", wrapper)
    found = lookup("wrapper", wrapper.name)
    if not issubclass(found, gymnasium.Wrapper):
        raise ValueError(f"gymnasium_wrappers: {wrapper.name!r} is not a gymnasium.Wrapper")
    _check_options("gymnasium_wrappers", found, wrapper)
    return partial(make, "gymnasium_wrappers", wrapper.name, found)


def _batch_wrapper(env: BatchEnv, wrapper: WrapperSpec) -> BatchEnv:
    found = lookup("wrapper", wrapper.name)
    if issubclass(found, gymnasium.Wrapper):
        raise ValueError(f"wrapper {wrapper.name!r} is a gymnasium.Wrapper, to be named in gymnasium_wrappers")
    _check_options("wrappers", check_class("wrappers", wrapper.name, found), wrapper)
    made: BatchEnv = make("wrappers", wrapper.name, found, env, **wrapper.kwargs)
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


def _checked_keys(plain: Any, described: type, what: str) -> dict[str, Any]:
    """A dict that has every key without a default, and no key that is not a field."""
    _check(isinstance(plain, dict), what, plain, "a mapping")
    known = {entry.name for entry in fields(described)}
    optional = {
        entry.name for entry in fields(described) if (entry.default, entry.default_factory) != (MISSING, MISSING)
    }
    unknown, missing = sorted(map(str, set(plain) - known)), sorted(known - optional - set(plain))
    if unknown or missing:
        raise ValueError(f"{what} has unknown keys {unknown} and lacks {missing}; known: {', '.join(sorted(known))}")
    return plain


def _options(value: Any, key: str) -> dict[str, Any]:
    _check(isinstance(value, dict) and all(isinstance(option, str) for option in value), key, value, "a mapping")
    return dict(value)


def _wrappers(value: Any, key: str) -> tuple[WrapperSpec, ...]:
    _check(isinstance(value, list), key, value, "a list")
    found = []
    for entry in value:
        given = _checked_keys(entry, WrapperSpec, key)
        _check(isinstance(given["name"], str), f"name in {key}", given["name"], "text")
        found.append(WrapperSpec(given["name"], _options(given.get("kwargs", {}), f"kwargs in {key}")))
    return tuple(found)
