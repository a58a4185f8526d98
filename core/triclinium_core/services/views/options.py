"""Options of a view query, checked and encoded when they are created.

Source: SDK-RFC 0051 "IBucket::ViewQuery".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, unique

from triclinium_core import errors
from triclinium_core.checks import check_choice, check_flag, check_integer, check_text, check_type
from triclinium_core.kv.operation.validation import UINT32_MAX
from triclinium_core.services.json_values import encode_json
from triclinium_core.shown import shown, total_repr


@unique
class ViewScanConsistency(Enum):
    """Required freshness of the view. The value is sent as ``stale``."""

    NOT_BOUNDED = "ok"
    """Read the view as it is."""
    UPDATE_AFTER = "update_after"
    """Read the view as it is, and update it afterwards."""
    REQUEST_PLUS = "false"
    """Update the view first."""


@unique
class ViewOrdering(Enum):
    """Order of the rows by their keys. The value is sent as ``descending``."""

    ASCENDING = "false"
    DESCENDING = "true"


@unique
class ViewErrorMode(Enum):
    """Reaction of the service to a node that does not return its rows."""

    CONTINUE = "continue"
    """Return the rows of the other nodes, and the error in the metadata."""
    STOP = "stop"
    """Return no more rows."""


@unique
class DesignDocumentNamespace(Enum):
    """Namespace of a design document. The value is the prefix of its name on the server."""

    PRODUCTION = ""
    DEVELOPMENT = "dev_"


@dataclass(frozen=True, slots=True, init=False, repr=False)
class ViewOptions:
    """Options of one view query. The service uses its default for an option of None.

    A key is any value that JSON can express. None means no key; use ``raw={"key": "null"}`` for the key ``null``. Later
    changes to a value have no effect. ``repr`` shows names only.

    Args:
        limit: maximum number of rows.
        skip: number of rows to skip first.
        scan_consistency: required freshness of the view.
        order: order of the rows by key.
        reduce: whether to reduce the rows, if the view has a reduce function.
        group: whether to reduce the rows of each key separately.
        group_level: number of leading elements of array keys by which rows are grouped.
        key: return only rows with this key.
        keys: return only rows with one of these keys.
        startkey: first key of the rows.
        endkey: last key of the rows.
        startkey_docid: first document id, if several rows have ``startkey``.
        endkey_docid: last document id, if several rows have ``endkey``.
        inclusive_end: whether rows with ``endkey`` are included.
        on_error: whether to return the rows of the other nodes if a node does not return its rows.
        debug: whether the metadata has debug information.
        raw: more options of the query string, by name.

    Raises:
        InvalidArgumentException: an argument is invalid; ``.parameter`` names it.
        EncodingFailureException: a key cannot be encoded as JSON.
    """

    parameters: tuple[tuple[str, str], ...]
    """Names and values of the query string."""
    keys: bytes | None
    """JSON array, which is sent in the body because it may be too long for a query string. None without keys."""

    def __init__(
        self,
        *,
        limit: int | None = None,
        skip: int | None = None,
        scan_consistency: ViewScanConsistency | None = None,
        order: ViewOrdering | None = None,
        reduce: bool | None = None,
        group: bool | None = None,
        group_level: int | None = None,
        key: object = None,
        keys: Sequence[object] | None = None,
        startkey: object = None,
        endkey: object = None,
        startkey_docid: str | None = None,
        endkey_docid: str | None = None,
        inclusive_end: bool | None = None,
        on_error: ViewErrorMode | None = None,
        debug: bool = False,
        raw: Mapping[str, str] | None = None,
    ) -> None:
        parameters: dict[str, str] = {}
        for name, count in (("limit", limit), ("skip", skip), ("group_level", group_level)):
            if count is not None:
                parameters[name] = str(check_integer(count, name, 0, UINT32_MAX))
        for name, flag in (("reduce", reduce), ("group", group), ("inclusive_end", inclusive_end)):
            if flag is not None:
                parameters[name] = _FLAGS[check_flag(flag, name)]
        if check_flag(debug, "debug"):
            parameters["debug"] = _FLAGS[True]
        for name, value in (("key", key), ("startkey", startkey), ("endkey", endkey)):
            if value is not None:
                parameters[name] = encode_json(value, name).decode()
        for name, document_id in (("startkey_docid", startkey_docid), ("endkey_docid", endkey_docid)):
            if document_id is not None:
                parameters[name] = check_text(document_id, name)
        for name, parameter, kind, choice in (
            ("stale", "scan_consistency", ViewScanConsistency, scan_consistency),
            ("descending", "order", ViewOrdering, order),
            ("on_error", "on_error", ViewErrorMode, on_error),
        ):
            if choice is not None:
                check_choice(choice, parameter, kind)
                parameters[name] = choice.value
        parameters |= _checked_raw(raw if raw is not None else {}, parameters)
        object.__setattr__(self, "parameters", tuple(parameters.items()))
        object.__setattr__(self, "keys", _encoded_keys(keys) if keys is not None else None)

    @total_repr
    def __repr__(self) -> str:
        names = [name for name, _ in self.parameters] + (["keys"] if self.keys is not None else [])
        return f"ViewOptions({', '.join(names)})"


_FLAGS = {False: "false", True: "true"}


def _checked_raw(raw: Mapping[str, str], given: Mapping[str, str]) -> Mapping[str, str]:
    check_type(raw, "raw", Mapping)
    for name, value in raw.items():
        check_text(name, "a name in raw")
        check_text(value, f"raw[{name!r}]", empty=True)
        if name in given:
            raise errors.InvalidArgumentException(
                f"raw[{name!r}] is also given as an option; omit one of the two", parameter="raw"
            )
    return raw


def _encoded_keys(keys: Sequence[object]) -> bytes:
    if isinstance(keys, str | bytes | bytearray) or not isinstance(keys, Sequence):
        raise errors.InvalidArgumentException(f"keys={shown(keys)} must be a list or a tuple", parameter="keys")
    return encode_json(keys, "keys")
