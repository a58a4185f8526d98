"""Conversion of JavaScript's options to objects of the core, and of results and errors to plain values."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from functools import lru_cache
from typing import Any

from msgspec import Raw, to_builtins

from triclinium_core import errors, options
from triclinium_core.kv.operation import document_operations, durability, results, validation
from triclinium_core.kv.operation.subdocument import specs, subdocument_requests
from triclinium_core.retry import couchbase as retry
from triclinium_core.services.query import query_request
from triclinium_core.services.statement import parameters, statement_request
from triclinium_core.transcoding.flags import BINARY_FLAGS, JSON_FLAGS

keyspace_of = lru_cache(maxsize=1024)(document_operations.Keyspace)


def _members(kind: type[Enum]) -> dict[str, Any]:
    return {each.name.lower(): each for each in kind}


def _factories(kind: type) -> dict[str, Any]:
    return {name: getattr(kind, name) for name, found in vars(kind).items() if isinstance(found, classmethod)}


def _raw(texts: Iterable[str]) -> list[Raw]:
    return [Raw(text.encode()) for text in texts]


STRATEGIES = (retry.BestEffortRetryStrategy, retry.FastFailOnTerminalErrorRetryStrategy, retry.ErrorMapRetryStrategy)
CHOICES: Mapping[str, Mapping[str, Any]] = {
    "durability": _members(durability.DurabilityLevel),
    "macro": _members(specs.MutationMacro),
    "op of LookupIn": _factories(specs.LookupInSpec),
    "op of MutateIn": _factories(specs.MutateInSpec),
    "profile": _members(query_request.QueryProfile),
    "retry_strategy": {kind.__name__: kind() for kind in (*STRATEGIES, retry.FailFastRetryStrategy)},
    "scan_consistency": _members(query_request.QueryScanConsistency),
    "store_semantics": _members(specs.StoreSemantics),
}
"""Values of options, by name."""
CONVERSIONS: Mapping[str, Callable[[Any], object]] = {
    "authenticator": lambda given: (
        options.PasswordAuthenticator(*given) if given else options.CertificateAuthenticator()
    ),
    "consistent_with": lambda given: tuple(made(results.MutationToken, token) for token in given),
    "expiry": lambda given: validation.encode_expiry(None if given is False else given, wall_seconds=time.time()),
    "lock_time": validation.encode_lock_time,
    "parameters": lambda given: parameters.Parameters(_raw(given[0]), dict(zip(given[1], _raw(given[2]), strict=True))),
    "query_context": lambda given: statement_request.QueryContext(*given),
    "raw": lambda given: parameters.RawOptions(dict(zip(given, _raw(given.values()), strict=True))),
    "timeouts": lambda given: made(options.TimeoutOptions, {name: each / 1000 for name, each in given.items()}),
}
"""Functions that convert other options. JavaScript has encoded a user's values as JSON texts."""


def converted(name: str, value: Any) -> Any:
    """Return the value of an option. If it is invalid, raise InvalidArgumentException or, for example, TypeError."""
    if name not in CHOICES:
        return CONVERSIONS[name](value) if name in CONVERSIONS else value
    if isinstance(value, str) and value in CHOICES[name]:
        return CHOICES[name][value]
    text = f"{name}={value!r} must be one of {', '.join(CHOICES[name])}"
    raise errors.InvalidArgumentException(text, parameter=name)


def made(make: Callable[..., Any], given: Mapping[str, Any], *first: object) -> Any:
    """Return what ``make`` returns for converted options, or raise CouchbaseException."""
    try:
        return make(*first, **{name: converted(name, value) for name, value in given.items()})
    except (TypeError, AttributeError, OverflowError) as error:
        raise errors.InvalidArgumentException(f"an option is unknown, missing or invalid: {error}") from error


def request_of(name: str, place: Iterable[Any], given: dict[str, Any]) -> Any:
    """Return a query, or an operation on a document; or raise CouchbaseException.

    ``name`` is the name of the class, ``place`` the keyspace and the key of the document.
    """
    if name == "QueryRequest":
        return made(query_request.QueryRequest, given)
    *names, key = place
    kind = getattr(document_operations, name, None) or getattr(subdocument_requests, name)
    if "value" in given:
        value = given["value"]
        given["value"] = value.encode() if isinstance(value, str) else bytes(value)
        if issubclass(kind, document_operations.Store):
            given["flags"] = JSON_FLAGS if isinstance(value, str) else BINARY_FLAGS
    if "specs" in given:
        given["specs"] = tuple(_spec(name, spec) for spec in given["specs"])
    return made(kind, given, keyspace_of(*names), key)


def _spec(name: str, spec: dict[str, Any]) -> object:
    make, values = converted(f"op of {name}", spec.pop("op", None)), _raw(spec.pop("values", ()))
    macro = [converted("macro", spec.pop("macro"))] if "macro" in spec else []
    found = made(make, spec, spec.pop("path", None), *values, *macro)
    return found.encode(document_operations.JSON_TRANSCODER) if name == "MutateIn" else found


def fields_of(result: Any) -> dict[str, object]:
    """Return the fields of a result. A lookup has the JSON or the described error of each path."""
    if isinstance(result, results.LookupInResult):
        parts = [_part(result, index) for index in range(len(result.specs))]
        return {"cas": result.cas, "values": parts, "is_deleted": result.is_deleted}
    fields: dict[str, object] = to_builtins(result, builtin_types=(bytes,))
    return {name: value for name, value in fields.items() if name != "transcoder"}


def _part(result: results.LookupInResult, index: int) -> object:
    try:
        return result.content_as(bytes, index)
    except errors.CouchbaseException as error:
        return described(error)


def described(error: Exception) -> list[str]:
    """Return the class, the message, the context as JSON and the parameter of an error."""
    parameter = getattr(error, "parameter", "")
    if isinstance(error, errors.CouchbaseException):
        return [type(error).__name__, str(error), error.context.to_json(), parameter]
    return ["InvalidArgumentException", str(error), "{}", parameter]
