"""The KV error map: a node's description of statuses that the client does not know.

Source: SDK-RFC 0013; kv_engine ``docs/ErrorMap.md`` for version 2; decisions C13 to C19.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum, unique
from typing import TypeVar

from triclinium_core import errors
from triclinium_core.shown import JSON_KINDS, in_json, one_line, shown

T = TypeVar("T")

ERROR_MAP_VERSION_MAX = 2
"""The newest format understood; GET_ERROR_MAP asks for it (decision C35)."""
ERROR_MAP_SIZE_BYTES_MAX = 128 * 1024
"""Six times the largest map that servers are known to have; to parse one holds up the whole event loop."""
ERROR_MAP_ENTRIES_MAX = 1024
"""Ten times as many as servers send."""
_DELAY_MS_MAX = 86_400_000
"""A day: no deadline is longer, so a schedule without a ceiling stops growing here."""
_EXPONENT_MAX = 64
_REVISION_MAX = 2**63 - 1
"""The highest revision that is accepted. Revisions are kept, and JSON allows numbers of thousands of digits."""
_RETRY_NUMBER_MAX = 2**63 - 1
"""A schedule with a larger number is nonsense, and would overflow a float."""


class MalformedErrorMap(ValueError):
    """The map is corrupt; the text says where. It must be ignored as a whole (RFC 0013 "Parsing the Error Map")."""


@unique
class Attribute(StrEnum):
    """What an error map may say of a status; attributes that are not listed here are ignored."""

    AUTH = "auth"
    AUTO_RETRY = "auto-retry"
    CONN_STATE_INVALIDATED = "conn-state-invalidated"
    DCP = "dcp"
    FETCH_CONFIG = "fetch-config"
    INTERNAL = "internal"
    INVALID_INPUT = "invalid-input"
    ITEM_DELETED = "item-deleted"
    ITEM_LOCKED = "item-locked"
    ITEM_ONLY = "item-only"
    NO_RETRY = "no-retry"
    RATE_LIMIT = "rate-limit"
    RETRY_LATER = "retry-later"
    RETRY_NOW = "retry-now"
    SPECIAL_HANDLING = "special-handling"
    SUBDOC = "subdoc"
    SUCCESS = "success"
    SUPPORT = "support"
    SYSTEM_CONSTRAINT = "system-constraint"
    TEMP = "temp"


_ATTRIBUTES = {attribute.value: attribute for attribute in Attribute}

RETRY_ATTRIBUTES = frozenset({Attribute.RETRY_NOW, Attribute.RETRY_LATER, Attribute.AUTO_RETRY})
"""Any of these permits a retry; ``temp`` alone is information (decision C13)."""


@unique
class RetryAlgorithm(StrEnum):
    """How the delays of a retry specification grow."""

    CONSTANT = "constant"
    LINEAR = "linear"
    EXPONENTIAL = "exponential"


@dataclass(frozen=True, slots=True)
class RetrySpecification:
    """The ``retry`` object of an entry; all numbers are milliseconds, as in the map."""

    algorithm: RetryAlgorithm
    interval_ms: int
    after_ms: int
    max_duration_ms: int | None = None
    """Counted from the first failure, ``after`` included; None for as long as the request itself may take."""
    ceil_ms: int | None = None

    def delay(self, retry_attempts: int) -> float:
        """Return the seconds to wait after ``retry_attempts`` retries for this status.

        The first wait is ``after``; then ``interval``, ``min(interval * r, ceil)`` or ``min(interval ** r, ceil)``.

        Source: RFC 0013 "Retry Intervals"; decision C15.
        """
        if retry_attempts == 0:
            return self.after_ms / 1000
        grown = self.interval_ms
        if self.algorithm is RetryAlgorithm.CONSTANT:
            return grown / 1000
        if self.algorithm is RetryAlgorithm.LINEAR:
            grown *= retry_attempts
        else:
            grown **= min(retry_attempts, _EXPONENT_MAX)
        return min(grown, _DELAY_MS_MAX if self.ceil_ms is None else self.ceil_ms) / 1000


@dataclass(frozen=True, slots=True)
class ErrorMapEntry:
    """One status of a map."""

    name: str
    description: str
    attributes: frozenset[Attribute]
    retry: RetrySpecification | None = None
    """None where the entry has no usable schedule; the attributes hold all the same (decision C16)."""
    unknown_algorithm: str | None = None
    """The ``strategy`` of the ``retry`` object, one line of at most 300 characters, if ``RetryAlgorithm`` does not have it
    (decision C16)."""

    @property
    def indicates_retry(self) -> bool:
        """Whether the map permits a retry of this status."""
        return bool(self.attributes & RETRY_ATTRIBUTES)


@dataclass(frozen=True, slots=True)
class ErrorMap:
    """One node's map."""

    version: int
    revision: int
    entries: Mapping[int, ErrorMapEntry]


def parse_error_map(document: bytes | str) -> ErrorMap:
    """Return the map in ``document``, the JSON value of a GET_ERROR_MAP response.

    Raises:
        MalformedErrorMap: not JSON, wrong types, an impossible status, a version that was not asked for, or a size
            beyond all sense. Unknown attributes and unknown fields are no reason.
    """
    if not isinstance(document, bytes | str):
        raise errors.InvalidArgumentException(f"document={shown(document)} must be bytes or str", parameter="document")
    if len(document) > ERROR_MAP_SIZE_BYTES_MAX:
        raise MalformedErrorMap(f"{len(document)} bytes; at most {ERROR_MAP_SIZE_BYTES_MAX} make sense")
    try:
        root = json.loads(document, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise MalformedErrorMap(f"not JSON: {error}") from error
    root = _require(root, dict, "the document")
    version = _require(root.get("version"), int, "version")
    if not 1 <= version <= ERROR_MAP_VERSION_MAX:
        raise MalformedErrorMap(f"version {shown(version)} is not from 1 to {ERROR_MAP_VERSION_MAX}")
    revision = _require(root.get("revision"), int, "revision")
    if not 0 <= revision <= _REVISION_MAX:
        raise MalformedErrorMap(f"revision {shown(revision)} is not from 0 to {_REVISION_MAX}")
    rows = _require(root.get("errors"), dict, "errors")
    if len(rows) > ERROR_MAP_ENTRIES_MAX:
        raise MalformedErrorMap(f"{len(rows)} entries; at most {ERROR_MAP_ENTRIES_MAX} make sense")
    entries: dict[int, ErrorMapEntry] = {}
    for code, row in rows.items():
        status = _parse_status(code)
        if status in entries:
            raise MalformedErrorMap(f"status {code} stands twice")
        entries[status] = parse_entry(row, f"errors[{code}]")
    return ErrorMap(version, revision, entries)


def parse_entry(row: object, where: str = "the entry") -> ErrorMapEntry:
    """Return one entry of a map, given as decoded JSON.

    Raises:
        MalformedErrorMap: wrong types; ``where`` stands in the text.
    """
    fields = _require(row, dict, where)
    name = _require(fields.get("name", ""), str, f"{where}.name")
    description = _require(fields.get("desc", ""), str, f"{where}.desc")
    attributes = _require(fields.get("attrs"), list, f"{where}.attrs")
    for item in attributes:
        if type(item) is not str:
            _require(item, str, f"an item of {where}.attrs")
    known = frozenset(_ATTRIBUTES[name] for name in set(attributes) if name in _ATTRIBUTES)
    retry = fields.get("retry")
    return ErrorMapEntry(
        one_line(name), one_line(description), known, _parse_retry(retry), unknown_algorithm=_unknown_algorithm(retry)
    )


def _unknown_algorithm(row: object) -> str | None:
    """Return the name of an algorithm that is unknown here; None for a known one, and where there is no name."""
    name = row.get("strategy") if isinstance(row, dict) else None
    return one_line(name) if isinstance(name, str) and name and name not in tuple(RetryAlgorithm) else None


def _parse_retry(row: object) -> RetrySpecification | None:
    """Return the schedule, or None where it lacks a required field or has a nonsensical one."""
    if not isinstance(row, dict) or row.get("strategy") not in tuple(RetryAlgorithm):
        return None
    numbers: dict[str, int | None] = {}
    for name in ("interval", "after", "max-duration", "ceil"):
        value = row.get(name)
        if value is not None and (type(value) is not int or not 0 <= value <= _RETRY_NUMBER_MAX):
            return None
        numbers[name] = value
    interval, after = numbers["interval"], numbers["after"]
    if interval is None or after is None:
        return None
    # RFC 0013 "Questions": a max-duration of 0 means that the client's own behaviour holds.
    return RetrySpecification(
        RetryAlgorithm(row["strategy"]), interval, after, numbers["max-duration"] or None, numbers["ceil"]
    )


def _parse_status(code: str) -> int:
    if not 1 <= len(code) <= 4 or any(digit not in "0123456789abcdefABCDEF" for digit in code):
        raise MalformedErrorMap(f"{one_line(code)!r} is not a 16-bit status in hexadecimal")
    return int(code, 16)


def _require(value: object, kind: type[T], where: str) -> T:
    # bool is an int to Python, not to JSON.
    if not isinstance(value, kind) or isinstance(value, bool):
        raise MalformedErrorMap(f"{where} is {in_json(value)}, expected {JSON_KINDS[kind]}")
    return value


def _refuse_constant(name: str) -> object:
    raise ValueError(f"{name} is not JSON")


class ErrorMapStore:
    """The newest error map of each node (RFC 0013 "Getting the Error Map"; decision C19)."""

    def __init__(self) -> None:
        self._maps: dict[str, ErrorMap] = {}

    def shared(self, error_map: ErrorMap) -> ErrorMap:
        """Return the map of some node that equals ``error_map``, or that one itself: most nodes of a cluster have equal ones."""
        distinct = {id(known): known for known in self._maps.values()}
        return next((known for known in distinct.values() if known == error_map), error_map)

    def load(self, node: str, error_map: ErrorMap) -> None:
        """Keep ``error_map`` for ``node`` unless the one it has is of a higher revision."""
        known = self._maps.get(node)
        if known is None or error_map.revision >= known.revision:
            self._maps[node] = error_map

    def forget(self, node: str) -> None:
        """Forget the map of ``node``, if there is one: nobody is connected to it any more."""
        self._maps.pop(node, None)

    def entry(self, node: str | None, status: int) -> ErrorMapEntry | None:
        """Return what ``node`` says of ``status``, or None where it says nothing."""
        error_map = self._maps.get(node) if node is not None else None
        return error_map.entries.get(status) if error_map is not None else None
