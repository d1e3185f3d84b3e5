"""Chooses the back end of an environment (EnvPool or Gymnasium), and makes it as a BatchEnv in its wrappers."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib.util import find_spec
from typing import Any, cast

import gymnasium

from hebbes.contracts.environment import BatchEnv
from hebbes.contracts.option import list_options
from hebbes.environments.environment_spec import BACKENDS, EnvironmentSpec
from hebbes.environments.gymnasium_env import GymnasiumEnv
from hebbes.environments.ids import is_built_into_gymnasium, register
from hebbes.environments.morphologies import INTACT
from hebbes.environments.part_spec import PartSpec, check_gymnasium_wrapper
from hebbes.environments.wrapper_errors import UsersWrapper
from hebbes.registry.lookup import find_class
from hebbes.registry.users_classes import check_arguments, check_class, is_users_class, make_instance


def choose_backend(
    requested: str, environment: str, env_kwargs: Mapping[str, Any], gymnasium_wrappers: Sequence[PartSpec]
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
        for wrapper in spec.batch_wrappers if training else spec.wrappers:
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
    environment: str, env_kwargs: Mapping[str, Any], gymnasium_wrappers: Sequence[PartSpec]
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


def _find_gymnasium_wrapper(wrapper: PartSpec) -> Callable[..., gymnasium.Env]:
    check_gymnasium_wrapper(wrapper)
    found = find_class("wrapper", wrapper.name)
    if not issubclass(found, gymnasium.Wrapper):
        raise ValueError(f"gymnasium_wrappers: {wrapper.name!r} is not a gymnasium.Wrapper")
    check_arguments("gymnasium_wrappers", wrapper.name, found, wrapper.kwargs)
    return partial(_make_gymnasium_wrapper, wrapper.name, found)


def _make_gymnasium_wrapper(name: str, found: type[gymnasium.Wrapper], env: gymnasium.Env, /, **kwargs: Any) -> Any:
    """The wrapper. Gymnasium's own take tuples where options, which can be in a file, have lists."""
    if name.startswith("gymnasium.wrappers:"):
        kwargs = {key: tuple(value) if isinstance(value, list) else value for key, value in kwargs.items()}
    return make_instance("gymnasium_wrappers", name, found, env, **kwargs)


def _apply_batch_wrapper(env: BatchEnv, wrapper: PartSpec) -> BatchEnv:
    found = find_class("wrapper", wrapper.name)
    if issubclass(found, gymnasium.Wrapper):
        raise ValueError(f"wrapper {wrapper.name!r} is a gymnasium.Wrapper, to be named in gymnasium_wrappers")
    check_class("wrappers", wrapper.name, found)
    check_arguments("wrappers", wrapper.name, found, wrapper.kwargs)
    _check_acts(found, wrapper)
    made: BatchEnv = make_instance("wrappers", wrapper.name, found, env, **wrapper.kwargs)
    return cast(BatchEnv, UsersWrapper(made, wrapper.name)) if is_users_class(wrapper.name) else made


def _check_acts(found: type, wrapper: PartSpec) -> None:
    """ValueError for a wrapper of ours without arguments, if it has options, because their defaults do nothing."""
    takes = ", ".join(each.name for each in list_options(found))
    if takes and not wrapper.kwargs and not is_users_class(wrapper.name):
        raise ValueError(f"wrappers: {wrapper.name!r} cannot be made with no arguments; it takes {takes}")
