"""Errors of a user's batch wrapper, told apart from those of the environment that it wraps."""

import traceback
from collections.abc import Iterator
from contextlib import contextmanager

from hebbes.contracts.engine import EngineError
from hebbes.environments.environment_spec import EnvironmentSpec
from hebbes.registry.lookup import find_class
from hebbes.registry.users_classes import describe_users_error, is_users_class


@contextmanager
def convert_wrapper_errors(spec: EnvironmentSpec, target: type[ValueError] | type[EngineError]) -> Iterator[None]:
    """Turns an exception in a method of a user's batch wrapper into `target`, in one line that names the wrapper.

    Others pass, such as those that a simulator raises while a wrapper steps it.
    """
    try:
        yield
    except Exception as error:
        if name := _find_raising_wrapper(error, spec):
            raise target(describe_users_error("wrappers", name, error)) from error
        raise


def _find_raising_wrapper(error: Exception, spec: EnvironmentSpec) -> str:
    """The name of the wrapper, if the innermost environment in the traceback is one of a user's; else empty."""
    wrappers = (*spec.wrappers, *spec.training_wrappers)
    names = {find_class("wrapper", each.name): each.name for each in wrappers if is_users_class(each.name)}
    owners = [type(frame.f_locals.get("self")) for frame, _ in traceback.walk_tb(error.__traceback__)]
    return next((names.get(each, "") for each in reversed(owners) if each in names or hasattr(each, "step")), "")
