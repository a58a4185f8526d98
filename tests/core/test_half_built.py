"""Reprs of objects whose constructor has raised: crash reports show them as local variables."""

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
"""Modules of packages that need not be installed."""


def described() -> Iterator[type[object]]:
    """Yield the classes of the core with a hand-written ``__repr__`` and a constructor that can fail halfway."""
    for module in pkgutil.walk_packages(triclinium_core.__path__, f"{triclinium_core.__name__}."):
        if module.name.endswith("__main__") or module.name in OPTIONAL:
            continue
        for found in vars(import_module(module.name)).values():
            if isinstance(found, type) and found.__module__ == module.name and _is_by_hand(found):
                yield found


def _is_by_hand(found: type[object]) -> bool:
    method = vars(found).get("__repr__")
    # Constructors of dataclasses and structs set every field before hand-written code runs.
    if not isinstance(method, FunctionType) or issubclass(found, msgspec.Struct):
        return False
    is_generated = inspect.unwrap(method).__code__.co_filename == "<string>"
    return not is_generated and method.__module__ == found.__module__


CLASSES = sorted(described(), key=lambda each: each.__qualname__)


@pytest.mark.parametrize("kind", CLASSES, ids=lambda each: each.__qualname__)
def test_the_representation_of_an_object_without_attributes(kind: type[object]) -> None:
    """Each class has a repr for an object whose constructor has not set any attribute."""
    assert kind.__name__ in repr(kind.__new__(kind))


def test_classes_were_found() -> None:
    """The machines are among the classes, so the test above checks at least these."""
    assert {"ClientMachine", "RetryMachine", "CallMachine", "RequestMachine"} <= {kind.__name__ for kind in CLASSES}


def test_a_traceback_with_a_rejected_client() -> None:
    """A traceback with local variables can be formatted after a machine has rejected its options."""
    options = ClientOptions(connection_string="couchbase://h", authenticator=PasswordAuthenticator("a:b", "password"))
    with pytest.raises(errors.InvalidArgumentException) as refused:
        ClientMachine(options, rng=random.Random(1))
    report = "".join(traceback.TracebackException.from_exception(refused.value, capture_locals=True).format())

    assert "not initialised" in report
