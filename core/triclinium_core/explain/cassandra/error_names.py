"""Errors by the names that people and files call them: the class, the protocol's name, the driver's exception.

Source: CQL binary protocol v5 §9; the exceptions of the Cassandra Java driver.
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
"""What an error is called besides its class; in any case, with or without ``_``, and ``Exception`` at the end."""


def canonical(name: str) -> str:
    """Return ``name`` as all its spellings are compared."""
    return name.strip().casefold().replace("_", "").replace("-", "").removesuffix("exception")


def _by_name(kinds: Iterable[type[T]]) -> Mapping[str, type[T]]:
    return {name: kind for kind in kinds for name in (kind.__name__, *_ALIASES.get(kind, ()))}


_DETAILED = frozenset({errors.ReadTimeout, errors.WriteTimeout, errors.Unavailable})

ABORTS: Mapping[str, type[errors.RequestAborted]] = _by_name(errors.RequestAborted.__subclasses__())
"""Why there is no answer, by every name that it has."""

ANSWERS: Mapping[str, type[errors.CoordinatorError]] = _by_name(
    kind for kind in errors.CODES.values() if kind not in _DETAILED
)
"""What a coordinator answers, by every name that it has; without the three that come with details."""


def kind_of(name: str, names: Mapping[str, type[T]]) -> type[T] | None:
    """Return the error that is called ``name``, in any spelling; None for a name that is not known."""
    spelling = canonical(name)
    return next((kind for known, kind in names.items() if canonical(known) == spelling), None)


def aborted(name: str) -> errors.RequestAborted:
    """Return why there is no answer, by name; a plain RequestAborted for a name that is not known."""
    kind = kind_of(name, ABORTS)
    return errors.RequestAborted(name) if kind is None else kind()


def answered(name: str) -> errors.CoordinatorError:
    """Return an error without details that a coordinator answers, by name; a plain one for a name that is not known."""
    kind = kind_of(name, ANSWERS)
    return errors.CoordinatorError(name) if kind is None else kind()
