"""Key-value error map, in which a node describes statuses that may be unknown to the client.

Source: SDK-RFC 0013; kv_engine ``docs/ErrorMap.md`` for version 2; decisions C13 to C19.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum, unique
from typing import TypeVar

from triclinium_core import errors
from triclinium_core.json_depth import shallow_text
from triclinium_core.shown import JSON_KINDS, in_json, one_line, shown

T = TypeVar("T")

ERROR_MAP_VERSION_MAX = 2
"""Newest supported version of the format. GET_ERROR_MAP requests it (decision C35)."""
ERROR_MAP_SIZE_BYTES_MAX = 128 * 1024
"""Maximum size of a map: six times that of the largest known map. Parsing a map blocks the event loop."""
ERROR_MAP_ENTRIES_MAX = 1024
"""Maximum number of entries in a map: ten times the number that servers send."""
_DELAY_MS_MAX = 86_400_000
"""Maximum delay of a growing schedule without ``ceil``, in milliseconds: one day, longer than any usual deadline."""
_EXPONENT_MAX = 64
_REVISION_MAX = 2**63 - 1
"""Maximum revision. A limit is necessary, because the client stores revisions, and a number in JSON may have thousands
of digits."""
_RETRY_NUMBER_MAX = 2**63 - 1
"""Maximum of each number in a schedule. Far larger numbers would overflow a float."""


class MalformedErrorMap(ValueError):
    """The error map is invalid and must be ignored (RFC 0013 "Parsing the Error Map"). The message names the fault."""


@unique
class Attribute(StrEnum):
    """Attribute of a status in an error map. The parser ignores attributes that are not listed here."""

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
"""Attributes of which any one permits a retry. The attribute ``temp`` alone permits none (decision C13)."""


@unique
class RetryAlgorithm(StrEnum):
    """Algorithm by which the delays of a retry schedule grow."""

    CONSTANT = "constant"
    LINEAR = "linear"
    EXPONENTIAL = "exponential"


@dataclass(frozen=True, slots=True)
class RetrySpecification:
    """Retry schedule: the ``retry`` object of an entry. All numbers are in milliseconds, as in the map."""

    algorithm: RetryAlgorithm
    interval_ms: int
    after_ms: int
    max_duration_ms: int | None = None
    """Maximum time from the first failure with this status, including ``after``, to the last retry; None if only the
    request's deadline limits the retries."""
    ceil_ms: int | None = None

    def delay(self, retry_attempts: int) -> float:
        """Return the delay in seconds after ``retry_attempts`` retries for this status.

        The first delay is ``after``. With ``r`` retries, a later delay is ``interval`` if the algorithm is constant,
        ``min(interval * r, ceil)`` if it is linear, and ``min(interval ** r, ceil)`` if it is exponential. A missing
        ``ceil`` counts as one day.

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
    """Entry of an error map, which describes one status."""

    name: str
    description: str
    attributes: frozenset[Attribute]
    retry: RetrySpecification | None = None
    """Retry schedule; None if the entry has no valid schedule. The attributes apply in both cases (decision C16)."""
    unknown_algorithm: str | None = None
    """Value of ``strategy`` in the ``retry`` object, as one line of at most 300 characters. None if the entry has no
    such value, or if it is a ``RetryAlgorithm`` (decision C16)."""

    @property
    def indicates_retry(self) -> bool:
        """Whether the entry permits a retry after this status."""
        return bool(self.attributes & RETRY_ATTRIBUTES)


@dataclass(frozen=True, slots=True)
class ErrorMap:
    """Error map of one node."""

    version: int
    revision: int
    entries: Mapping[int, ErrorMapEntry]


def parse_error_map(document: bytes | str) -> ErrorMap:
    """Return the error map in ``document``, the JSON value of a GET_ERROR_MAP response. Ignore unknown fields.

    Raises:
        MalformedErrorMap: the document is too large or not JSON, it has too many entries, a value has the wrong type, a
            status or the revision is invalid, a status is listed twice, or the version is not supported.
        InvalidArgumentException: ``document`` is neither bytes nor a string.
    """
    if not isinstance(document, bytes | str):
        raise errors.InvalidArgumentException(f"document={shown(document)} must be bytes or str", parameter="document")
    if len(document) > ERROR_MAP_SIZE_BYTES_MAX:
        raise MalformedErrorMap(f"its length is {len(document)}; the maximum is {ERROR_MAP_SIZE_BYTES_MAX}")
    try:
        root = json.loads(shallow_text(document), parse_constant=_refuse_constant)
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
        raise MalformedErrorMap(f"{len(rows)} entries; the maximum is {ERROR_MAP_ENTRIES_MAX}")
    entries: dict[int, ErrorMapEntry] = {}
    for code, row in rows.items():
        status = _parse_status(code)
        if status in entries:
            raise MalformedErrorMap(f"status {code} is listed twice")
        entries[status] = parse_entry(row, f"errors[{code}]")
    return ErrorMap(version, revision, entries)


def parse_entry(row: object, where: str = "the entry") -> ErrorMapEntry:
    """Return the entry in ``row``, which is decoded JSON.

    Raises:
        MalformedErrorMap: a value has the wrong type. The message contains ``where``.
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
    """Return the name of the algorithm in a ``retry`` object if it is unknown; otherwise None."""
    name = row.get("strategy") if isinstance(row, dict) else None
    return one_line(name) if isinstance(name, str) and name and name not in tuple(RetryAlgorithm) else None


def _parse_retry(row: object) -> RetrySpecification | None:
    """Return the schedule in a ``retry`` object; None if a required field is missing or a field is invalid."""
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
    # RFC 0013 "Questions": a max-duration of 0 means that the client's own limit applies.
    return RetrySpecification(
        RetryAlgorithm(row["strategy"]), interval, after, numbers["max-duration"] or None, numbers["ceil"]
    )


def _parse_status(code: str) -> int:
    if not 1 <= len(code) <= 4 or any(digit not in "0123456789abcdefABCDEF" for digit in code):
        raise MalformedErrorMap(f"{one_line(code)!r} is not a 16-bit status in hexadecimal")
    return int(code, 16)


def _require(value: object, kind: type[T], where: str) -> T:
    # A bool is an int in Python, but not a number in JSON.
    if not isinstance(value, kind) or isinstance(value, bool):
        raise MalformedErrorMap(
            f"{where} is {in_json(value)}, expected {'a whole number' if kind is int else JSON_KINDS[kind]}"
        )
    return value


def _refuse_constant(name: str) -> object:
    raise ValueError(f"it contains {name}")


class ErrorMapStore:
    """Store of the newest error map of each node (RFC 0013 "Parsing the Error Map"; decision C19)."""

    def __init__(self) -> None:
        self._maps: dict[str, ErrorMap] = {}

    def shared(self, error_map: ErrorMap) -> ErrorMap:
        """Return a stored map that is equal to ``error_map``, or else ``error_map`` itself.

        Sharing saves memory, because most nodes have equal maps.
        """
        distinct = {id(known): known for known in self._maps.values()}
        return next((known for known in distinct.values() if known == error_map), error_map)

    def load(self, node: str, error_map: ErrorMap) -> None:
        """Store ``error_map`` for ``node`` unless the stored map has a higher revision."""
        known = self._maps.get(node)
        if known is None or error_map.revision >= known.revision:
            self._maps[node] = error_map

    def forget(self, node: str) -> None:
        """Remove the map of ``node``, if there is one. The caller does so when it drops its last connection to the node."""
        self._maps.pop(node, None)

    def entry(self, node: str | None, status: int) -> ErrorMapEntry | None:
        """Return the entry for ``status`` in the map of ``node``; None if there is no entry or no map."""
        error_map = self._maps.get(node) if node is not None else None
        return error_map.entries.get(status) if error_map is not None else None
