"""Types that the garbage collector skips, by the rule in ``triclinium_core.contract.couchbase.actions``."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Collection, Iterator, Mapping
from enum import Enum
from types import UnionType
from typing import NewType, Union, get_args, get_origin, get_type_hints

import msgspec
import pytest

import triclinium
import triclinium_core

pytestmark = pytest.mark.native

PLAIN = frozenset({bool, bytes, float, int, str, type(None)})
"""Types whose values reference nothing."""
CONTAINERS = frozenset({Collection, Mapping, tuple})
"""Types whose values reference only what their parameters name."""
VALUES = frozenset({"Bounds", "EncodedMutation", "Keyspace", "LookupInSpec", "Sample"})
"""Names of other types of this library whose values hold only text, bytes, numbers and None."""
RELEASED: Mapping[str, str] = {
    "Waiter.task": "Waiter.release: before an error is raised, and when the task is cancelled",
    "Waiter.asked": "Waiter.release",
    "Waiter.owner": "Waiter.release",
    "Waiter.result": "ClusterDriver.perform and _take_rows return it; they raise nothing then",
    "Waiter.error": "Waiter.unwrap",
    **{
        f"CollectedWaiter.{name}": "Waiters.deliver and MachineDriver.abandon, after which nothing keeps the waiter"
        for name in ("task", "asked", "owner", "result", "error", "collector")
    },
    "InFlightRequest.owner": "InFlightTable.abandon, and ClientMachine._learn after the last answer",
    "CompleteOperation.result": "MachineDriver._handle, for which alone it exists",
    "transcoder": "ClusterDriver.perform, which deletes the operation before it waits",
}
"""Fields that may hold a task or a user object, and the functions that release them. Operations have ``transcoder``."""
EXPECTED_MIN = 30
"""Minimum number of untracked types; with fewer the search is broken."""


def modules(package: str) -> Iterator[str]:
    """Yield the names of all modules of a package, except programs and adapters of optional packages."""
    for module in pkgutil.walk_packages(importlib.import_module(package).__path__, f"{package}."):
        if not module.name.endswith("__main__") and ".adapters." not in module.name:
            yield module.name


def untracked_types() -> list[type[msgspec.Struct]]:
    """Return all types of both packages that are declared with ``gc=False``."""
    for package in (triclinium_core, triclinium):
        for module in modules(package.__name__):
            importlib.import_module(module)
    found, unseen = dict[type[msgspec.Struct], None](), [msgspec.Struct]
    while unseen:
        for subclass in unseen.pop().__subclasses__():
            unseen.append(subclass)
            if subclass.__module__.partition(".")[0] in ("triclinium", "triclinium_core"):
                found[subclass] = None
    return [each for each in found if not each.__struct_config__.gc]


def is_harmless(annotation: object) -> bool:
    """Return whether no value of ``annotation`` can reference a task or a user object."""
    if isinstance(annotation, NewType):
        return is_harmless(annotation.__supertype__)
    origin = get_origin(annotation)
    if origin is type:
        # A class of this library is harmless, because it lives as long as the program.
        return all(each.__module__.startswith("triclinium_core.") for each in get_args(annotation))
    if origin in CONTAINERS or origin in (Union, UnionType):
        return all(each is Ellipsis or is_harmless(each) for each in get_args(annotation))
    if not isinstance(annotation, type):
        return False
    is_untracked = issubclass(annotation, msgspec.Struct) and not annotation.__struct_config__.gc
    is_value = annotation in PLAIN or annotation.__name__ in VALUES or issubclass(annotation, Enum)
    return is_value or is_untracked


@pytest.mark.parametrize("annotation", [object, list[object], Exception, Mapping[str, object], int | msgspec.Struct])
def test_unrestricted_annotations_are_not_harmless(annotation: object) -> None:
    """Annotations whose values may reference a task or a user object are not harmless."""
    assert not is_harmless(annotation)


def test_untracked_types_hold_plain_values() -> None:
    """A field of a type with gc=False holds no task and no user object, or its value is listed as released."""
    types = untracked_types()
    risky = {
        f"{each.__module__}.{each.__qualname__}.{name}": annotation
        for each in types
        for name, annotation in get_type_hints(each).items()
        if name in each.__struct_fields__ and not is_harmless(annotation)
        if not {name, f"{each.__name__}.{name}"} & RELEASED.keys()
    }

    assert {} == risky
    assert EXPECTED_MIN <= len(types)
