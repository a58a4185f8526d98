"""Classes of Cassandra errors by name: class name, name in the protocol, or exception of the Java driver.

Source: CQL binary protocol v5 §8; the exceptions of the Cassandra Java driver.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeVar

from triclinium_core.retry.cassandra import errors

T = TypeVar("T", bound=errors.CassandraError)

_ALIASES: Mapping[type[errors.CassandraError], tuple[str, ...]] = {
    errors.AuthenticationError: ("AUTH_ERROR", "BAD_CREDENTIALS"),
    errors.Bootstrapping: ("IS_BOOTSTRAPPING",),
    errors.TruncateError: ("Truncate",),
    errors.InvalidSyntax: ("SYNTAX_ERROR",),
    errors.InvalidQuery: ("INVALID",),
    errors.InvalidConfiguration: ("CONFIG_ERROR", "InvalidConfigurationInQuery"),
    errors.HeartbeatFailure: ("Heartbeat",),
}
"""Names of an error besides its class name. Letter case, ``_``, ``-`` and a suffix ``Exception`` do not matter."""


def canonical(name: str) -> str:
    """Return the form of ``name`` that all its spellings share."""
    return name.strip().casefold().replace("_", "").replace("-", "").removesuffix("exception")


def _by_name(kinds: Iterable[type[T]]) -> Mapping[str, type[T]]:
    return {name: kind for kind in kinds for name in (kind.__name__, *_ALIASES.get(kind, ()))}


_DETAILED = frozenset({errors.ReadTimeout, errors.WriteTimeout, errors.Unavailable})

ABORTS: Mapping[str, type[errors.RequestAborted]] = _by_name(errors.RequestAborted.__subclasses__())
"""Classes of the reasons for a missing response, by each of their names."""

ANSWERS: Mapping[str, type[errors.CoordinatorError]] = _by_name(
    kind for kind in errors.CODES.values() if kind not in _DETAILED
)
"""Classes of coordinator errors, by each of their names, except the three whose constructors need details."""


def kind_of(name: str, names: Mapping[str, type[T]]) -> type[T] | None:
    """Return the class of the error ``name``, in any spelling. None for an unknown name."""
    spelling = canonical(name)
    return next((kind for known, kind in names.items() if canonical(known) == spelling), None)


def aborted(name: str) -> errors.RequestAborted:
    """Return the reason ``name`` for a missing response. A plain RequestAborted for an unknown name."""
    kind = kind_of(name, ABORTS)
    return errors.RequestAborted(name) if kind is None else kind()


def answered(name: str) -> errors.CoordinatorError:
    """Return the error ``name`` of a coordinator, without details. A plain CoordinatorError for an unknown name."""
    kind = kind_of(name, ANSWERS)
    return errors.CoordinatorError(name) if kind is None else kind()
