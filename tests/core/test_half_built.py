"""Reprs of objects whose constructor has raised, because crash reports show such objects as local variables."""

from __future__ import annotations

import inspect
import pkgutil
import random
import traceback
from collections.abc import Iterator
from importlib import import_module
from types import FunctionType

import msgspec
import pytest

import triclinium_core
from triclinium_core import errors
from triclinium_core.client.client_machine import ClientMachine
from triclinium_core.options import ClientOptions, PasswordAuthenticator

OPTIONAL = {"triclinium_core.adapters.cassandra_driver", "triclinium_core.adapters.smithy_core"}
"""Modules that import packages which need not be installed."""


def described() -> Iterator[type[object]]:
    """Yield each class of the core whose ``__repr__`` is hand-written and whose constructor may raise halfway."""
    for module in pkgutil.walk_packages(triclinium_core.__path__, f"{triclinium_core.__name__}."):
        if module.name.endswith("__main__") or module.name in OPTIONAL:
            continue
        for found in vars(import_module(module.name)).values():
            if isinstance(found, type) and found.__module__ == module.name and _is_by_hand(found):
                yield found


def _is_by_hand(found: type[object]) -> bool:
    method = vars(found).get("__repr__")
    # The constructor of a struct sets all fields before any hand-written code runs.
    if not isinstance(method, FunctionType) or issubclass(found, msgspec.Struct):
        return False
    is_generated = inspect.unwrap(method).__code__.co_filename == "<string>"
    return not is_generated and method.__module__ == found.__module__


CLASSES = sorted(described(), key=lambda each: each.__qualname__)


@pytest.mark.parametrize("kind", CLASSES, ids=lambda each: each.__qualname__)
def test_the_representation_of_an_object_without_attributes(kind: type[object]) -> None:
    """The repr of an object works even if its constructor has set no attribute."""
    assert kind.__name__ in repr(kind.__new__(kind))


def test_classes_were_found() -> None:
    """The classes under test include the four machines."""
    assert {"ClientMachine", "RetryMachine", "CallMachine", "RequestMachine"} <= {kind.__name__ for kind in CLASSES}


def test_a_traceback_with_a_rejected_client() -> None:
    """If a machine rejects its options, the traceback can be formatted with local variables."""
    options = ClientOptions(connection_string="couchbase://h", authenticator=PasswordAuthenticator("a:b", "password"))
    with pytest.raises(errors.InvalidArgumentException) as refused:
        ClientMachine(options, rng=random.Random(1))
    report = "".join(traceback.TracebackException.from_exception(refused.value, capture_locals=True).format())

    assert "not initialised" in report
