"""Codec of the values on an event tape: JSON for events and answers, with placeholders for what it cannot express.

None, booleans, strings without surrogates, finite floats and integers of 64 bits are themselves, and an array is a
tuple. Any other value is an object. Its first key is a tag from ``_TAGS``, or ``$`` with the name of a class in
``CLASSES`` or ``STRATEGIES``, followed by the fields of the instance. Default values of structs are omitted, because
they mean absence; those of settings are written, because a later version may have other defaults. An object of the user
is a placeholder with the name of its class, unless JSON can express the object.

The decoder creates instances only of known classes, of new exception classes and, by ``resolve``, of stand-ins, and
never imports a name from a tape.
"""

from __future__ import annotations

import inspect
import math
from base64 import b64encode
from binascii import a2b_base64
from collections.abc import Callable, Mapping, Set as AbstractSet
from contextlib import suppress
from dataclasses import MISSING, fields, is_dataclass
from datetime import timedelta
from enum import Enum, Flag
from functools import cache
from types import ModuleType
from typing import Any, cast

from msgspec import NODEFAULT, Struct, structs, to_builtins

from triclinium_core import decoder_faults, errors, options
from triclinium_core.argument_error import ArgumentError
from triclinium_core.contract.couchbase import events as couchbase_events
from triclinium_core.contract.neutral import events as neutral_events
from triclinium_core.kv.operation import document_operations, durability, inquiries, reports, results
from triclinium_core.kv.operation.manifest import manifest_request
from triclinium_core.kv.operation.replica import replica_requests
from triclinium_core.kv.operation.scan import scan_requests, scans
from triclinium_core.kv.operation.subdocument import specs, subdocument_requests
from triclinium_core.kv.wire import subdocument
from triclinium_core.retry import backoff
from triclinium_core.retry.combined import strategies
from triclinium_core.retry.couchbase import circuit_breaker, strategy
from triclinium_core.retry.couchbase.tables import service
from triclinium_core.retry.smithy import RetryError
from triclinium_core.services import ping_request
from triclinium_core.services.analytics import analytics_request
from triclinium_core.services.management import buckets, collections, query_indexes, search_indexes, users
from triclinium_core.services.query import query_request
from triclinium_core.services.search import facets, parts, queries, search_request, sorting, vectors
from triclinium_core.services.statement import parameters, statement_request
from triclinium_core.services.views import options as view_options, view_request
from triclinium_core.shown import one_line, printable, shown
from triclinium_core.telemetry import defaults, span_names
from triclinium_core.transcoding import transcoder

NESTING_MAX = 64
"""Maximum depth of a value, such as 29 search queries inside each other. Deeper parts become placeholders, so the
replay of such a request differs."""
INTEGER_BITS_MAX = 128
"""Maximum size of an integer in bits. The largest integer of a valid event has 64."""
NAME_SIZE_MAX = 100
"""Maximum length of the name of a class of the user."""

_MODULES: tuple[ModuleType, ...] = (
    analytics_request, backoff, buckets, circuit_breaker, collections, couchbase_events, decoder_faults, defaults,
    document_operations, durability, facets, inquiries, manifest_request, neutral_events, options, parameters, parts,
    ping_request, queries, query_indexes, query_request, replica_requests, reports, results, scan_requests, scans,
    search_indexes, search_request, service, sorting, span_names, specs, statement_request, strategies, strategy,
    subdocument, subdocument_requests, transcoder, users, vectors, view_options, view_request,
)  # fmt: skip
"""Modules of the core whose public structs, dataclasses and enumerations may be on a tape."""


def _is_value(kind: object) -> bool:
    return isinstance(kind, type) and (issubclass(kind, Struct | Enum) or is_dataclass(kind))


CLASSES: Mapping[str, type] = {
    name: kind
    for module in _MODULES
    for name, kind in vars(module).items()
    if _is_value(kind) and kind.__module__ == module.__name__ and not name.startswith("_")
}
"""Classes that a tape may name."""

STRATEGIES: Mapping[type, str | None] = {
    strategy.BestEffortRetryStrategy: "_backoff",
    strategy.FastFailOnTerminalErrorRetryStrategy: "_backoff",
    strategy.ErrorMapRetryStrategy: "otherwise",
    strategy.FailFastRetryStrategy: None,
}
"""Couchbase strategies of the core, which a replay runs again, with the attribute that has the constructor's argument,
or None without arguments."""

_ENCODING = (parameters.Parameters, parameters.RawOptions)
"""Classes whose constructors encode the arguments, so that a field is not the argument with its name."""

EXCEPTIONS: Mapping[str, type[Exception]] = {
    kind.__name__: kind
    for kind in (*vars(errors).values(), ArgumentError, RetryError, Exception)
    if isinstance(kind, type) and issubclass(kind, Exception)
}
"""Exceptions that a tape may name as the nearest base of an exception class of the user."""


class InvalidValue(ValueError):
    """A value on a tape is invalid. The message names it and the expected content."""


class UserObject:
    """Object of the user on a tape. A replay has only these facts.

    Args:
        name: name of its class.
        number: number on the tape of an object whose methods the machine calls; 0 for other objects.
        role: interface that the machine requires; empty for none.
    """

    def __init__(self, name: str, number: int = 0, role: str = "") -> None:
        self.name: str = printable(str(name), NAME_SIZE_MAX)
        self.number: int = number
        self.role: str = role


Resolve = Callable[[str, int, str], object]
"""Function that returns the object of the user with this name, number and role."""


# -- Encoder.


def encode_value(value: object, depth: int = 0) -> object:
    """Return ``value`` as data for JSON. It never raises: what a tape cannot express becomes a placeholder."""
    kind: Any = type(value)
    if value is None or kind is bool or (kind is str and cast(str, value).isascii()):
        return value
    if depth < NESTING_MAX:
        with suppress(Exception):  # A container of the user may raise.
            return _encoded(value, kind, depth + 1)
    return _placeholder(kind)


def _encoded(value: Any, kind: Any, deeper: int) -> object:
    match value:
        case Enum() if _is_allowed(kind):
            return {"$enum": [kind.__name__, value.value if isinstance(value, Flag) else value.name]}
        case int():
            if value.bit_length() < 64:
                return int(value)
            return {"$int": f"{int(value):x}"} if value.bit_length() <= INTEGER_BITS_MAX else _placeholder(kind)
        case float():
            return float(value) if math.isfinite(value) else {"$float": str(float(value))}
        case str():
            text = str.__str__(value)  # ``str()`` of a subclass, such as an enumeration, may differ.
            is_text = not any("\ud800" <= character <= "\udfff" for character in text)
            return text if is_text else {"$text": _base64(text.encode("utf-8", "surrogatepass"))}
        case bytes() | bytearray() | memoryview():
            return {"$bytes": _base64(bytes(value))}
        case timedelta():
            return {"$timedelta": [value.days, value.seconds, value.microseconds]}
        case tuple():
            return [encode_value(each, deeper) for each in value]
        case list():
            return {"$list": [encode_value(each, deeper) for each in value]}
        case AbstractSet():
            return {"$set": sorted((encode_value(each, deeper) for each in value), key=str)}
        case Mapping():
            return {"$map": [[encode_value(name, deeper), encode_value(each, deeper)] for name, each in value.items()]}
        case decoder_faults.DecoderFault():
            return {"$fault": [value.kind[0].name, value.kind[1], str(value)]}
        case BaseException():
            return {"$error": [*_bases(kind), _text(value)]}
        case type() if issubclass(value, Exception):
            return {"$class": _bases(value)}
        case UserObject():
            return {"$user": [value.name, value.number, value.role]}
        case _ if kind in STRATEGIES:
            part = STRATEGIES[kind]
            return {"$": kind.__name__} | ({"": encode_value(getattr(value, part), deeper)} if part else {})
        case _ if _is_allowed(kind):
            named = {name: getattr(value, name) for name in _fields(kind)}
            kept = {name: each for name, each in named.items() if not _is_default(kind, name, each)}
            return {"$": kind.__name__} | {name: encode_value(each, deeper) for name, each in kept.items()}
    return _of_user(value, deeper)


def _is_allowed(kind: type) -> bool:
    return CLASSES.get(kind.__name__) is kind


def _base64(data: bytes) -> str:
    return b64encode(data).decode("ascii")


def _of_user(value: object, depth: int) -> object:
    """Return the object as JSON if JSON can express it, as in a document for the search service; else a placeholder."""
    if callable(getattr(type(value), "decode", None)):
        return _placeholder(type(value), "transcoder")
    with suppress(Exception):  # JSON cannot express the object, or its code raises.
        return encode_value(to_builtins(value), depth)
    return _placeholder(type(value))


def _placeholder(kind: type, role: str = "") -> object:
    return {"$user": [printable(kind.__name__, NAME_SIZE_MAX), 0, role]}


def _text(error: BaseException) -> str:
    try:
        return one_line(str(error))
    except Exception:
        return ""


def _bases(kind: type) -> list[str]:
    """Return the name of an exception class, and that of its nearest base in ``EXCEPTIONS``."""
    base = next((each for each in kind.__mro__ if EXCEPTIONS.get(each.__name__) is each), Exception)
    return [printable(kind.__name__, NAME_SIZE_MAX), base.__name__]


@cache
def _fields(kind: Any) -> tuple[str, ...]:
    if issubclass(kind, Struct):
        return tuple(kind.__struct_fields__)
    return tuple(field.name for field in fields(kind) if field.init)


@cache
def _defaults(kind: type) -> Mapping[str, object]:
    if not issubclass(kind, Struct):
        return {}
    found = {field.name: field.default for field in structs.fields(kind) if field.default is not NODEFAULT}
    return found | {f.name: f.default_factory() for f in structs.fields(kind) if f.default_factory is not NODEFAULT}


def _is_default(kind: type, name: str, value: object) -> bool:
    default = _defaults(kind).get(name, MISSING)
    return value is default or (type(value) is type(default) and bool(value == default))


# -- Decoder.


def decode_value(data: object, resolve: Resolve, depth: int = 0) -> object:
    """Return the value that ``encode_value`` has written.

    Raises:
        InvalidValue: ``data`` is not such a value.
    """
    if depth > NESTING_MAX:
        raise InvalidValue(f"a value is nested deeper than {NESTING_MAX} levels")
    if isinstance(data, list):
        return tuple(decode_value(each, resolve, depth + 1) for each in data)
    if not isinstance(data, dict):
        if isinstance(data, int) and data.bit_length() > INTEGER_BITS_MAX:
            raise InvalidValue(f"an integer has {data.bit_length()} bits, more than {INTEGER_BITS_MAX}")
        return data
    tag = next(iter(data), "")
    try:
        if tag == "$":
            return _instance(data, lambda each: decode_value(each, resolve, depth + 1))
        if len(data) != 1 or tag not in _TAGS:
            raise InvalidValue(
                f"{shown(tag)} is not a known tag, or not the only key; expected one of $, {', '.join(_TAGS)}"
            )
        return _TAGS[tag](data[tag], lambda each: decode_value(each, resolve, depth + 1), resolve)
    except InvalidValue:
        raise
    except Exception as error:
        # The constructors of the core's values check their arguments.
        raise InvalidValue(f"a value with the tag {shown(tag)} is invalid: {one_line(shown(error))}") from error


Decode = Callable[[object], Any]


def _instance(data: dict[str, object], decode: Decode) -> object:
    name, given = data["$"], {field: decode(each) for field, each in data.items() if field != "$"}
    kind: Any = next((each for each in STRATEGIES if each.__name__ == name), None)
    if kind is not None:
        return kind(*given.values())
    if not isinstance(name, str) or name not in CLASSES or issubclass(CLASSES[name], Enum):
        raise InvalidValue(
            f"{shown(name)} is not a class of the core with fields; expected a class such as OperationSubmitted"
        )
    kind = CLASSES[name]
    unknown = given.keys() - set(_fields(kind))
    if unknown:
        raise InvalidValue(f"{name} has no field {shown(min(unknown))}; expected {', '.join(_fields(kind))}")
    if _takes_fields(kind):
        return kind(**given)
    instance: Any = object.__new__(kind)
    for field in _fields(kind):
        object.__setattr__(instance, field, given[field])
    getattr(instance, "__post_init__", lambda: None)()
    return instance


@cache
def _takes_fields(kind: Any) -> bool:
    """Return whether the constructor takes the fields. The constructors of some search parts take other arguments."""
    if kind in _ENCODING:
        return False
    if issubclass(kind, Struct):
        return True
    taken = inspect.signature(kind).parameters.values()
    return set(_fields(kind)) <= {each.name for each in taken if each.kind is not inspect.Parameter.VAR_POSITIONAL}


def _exception_class(name: object, base: object) -> type[Exception]:
    if not isinstance(name, str) or not name.isidentifier() or len(name) > NAME_SIZE_MAX or base not in EXCEPTIONS:
        raise InvalidValue(
            f"{shown(name)} with the base {shown(base)} is not an exception class; expected an identifier and a known "
            "base"
        )
    found = EXCEPTIONS[cast(str, base)]
    return found if name == base else type(name, (found,), {})


def _enumerated(name: str, member: object) -> object:
    kind = CLASSES.get(name)
    if kind is None or not issubclass(kind, Enum):
        raise InvalidValue(f"{shown(name)} is not an enumeration of the core")
    return kind(member) if issubclass(kind, Flag) else kind[cast(str, member)]


def _fault(decoder: str, error_type: str, text: str) -> decoder_faults.DecoderFault:
    fault = decoder_faults.DecoderFault(decoder_faults.Decoder[decoder], error_type, "")
    fault.args = (text,)
    return fault


_TAGS: Mapping[str, Callable[[Any, Decode, Resolve], object]] = {
    "$bytes": lambda data, decode, resolve: a2b_base64(data, strict_mode=True),
    "$class": lambda data, decode, resolve: _exception_class(*data),
    "$enum": lambda data, decode, resolve: _enumerated(*data),
    "$error": lambda data, decode, resolve: _exception_class(*data[:2])(data[2]),
    "$fault": lambda data, decode, resolve: _fault(*data),
    "$float": lambda data, decode, resolve: {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}[data],
    "$int": lambda data, decode, resolve: decode(int(data, 16)),
    "$list": lambda data, decode, resolve: list(map(decode, data)),
    "$map": lambda data, decode, resolve: {decode(name): decode(each) for name, each in data},
    "$set": lambda data, decode, resolve: frozenset(map(decode, data)),
    "$text": lambda data, decode, resolve: a2b_base64(data, strict_mode=True).decode("utf-8", "surrogatepass"),
    "$timedelta": lambda data, decode, resolve: timedelta(*data),
    "$user": lambda data, decode, resolve: resolve(*data) if data[2] else UserObject(*data),
}
"""Decoders of the tags."""
