"""Errors by the names that people and files call them: the class, the protocol's name, the driver's exception.

Source: CQL binary protocol v5 §9; the exceptions of the Cassandra Java driver.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import TypeVar

from triclinium_core.retry.cassandra import errors as e

T = TypeVar("T", bound=e.CassandraError)

_ALIASES: Mapping[type[e.CassandraError], tuple[str, ...]] = {
    e.AuthenticationError: ("AUTH_ERROR", "BAD_CREDENTIALS"),
    e.Bootstrapping: ("IS_BOOTSTRAPPING",),
    e.TruncateError: ("Truncate",),
    e.InvalidSyntax: ("SYNTAX_ERROR",),
    e.InvalidQuery: ("INVALID",),
    e.InvalidConfiguration: ("CONFIG_ERROR", "InvalidConfigurationInQuery"),
    e.HeartbeatFailure: ("Heartbeat",),
}
"""What an error is called besides its class; in any case, with or without ``_``, and ``Exception`` at the end."""


def _canonical(name: str) -> str:
    return name.strip().casefold().replace("_", "").replace("-", "").removesuffix("exception")


def _by_name(kinds: Iterable[type[T]]) -> Mapping[str, type[T]]:
    table: dict[str, type[T]] = {}
    for kind in kinds:
        for name in {_canonical(name) for name in (kind.__name__, *_ALIASES.get(kind, ()))}:
            if name in table:
                raise RuntimeError(f"{name} names two errors")
            table[name] = kind
    return MappingProxyType(table)


_DETAILED = frozenset({e.ReadTimeout, e.WriteTimeout, e.Unavailable})
"""The answers that come with details, on which policies have methods of their own."""

_ABORTS = _by_name(e.RequestAborted.__subclasses__())
_ANSWERS = _by_name(kind for kind in e.CODES.values() if kind not in _DETAILED)


def aborted(name: str) -> e.RequestAborted:
    """Return why there is no answer, by name; a plain RequestAborted for a name that is not known."""
    return _ABORTS.get(_canonical(name), e.RequestAborted)(name)


def answered(name: str) -> e.CoordinatorError:
    """Return an error without details that a coordinator answers, by name; a plain one for a name that is not known."""
    return _ANSWERS.get(_canonical(name), e.CoordinatorError)(name)
