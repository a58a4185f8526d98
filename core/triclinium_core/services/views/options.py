"""Options of a view query, checked and encoded when they are given.

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
    """How new the view has to be; the value travels as ``stale``."""

    NOT_BOUNDED = "ok"
    """As it is."""
    UPDATE_AFTER = "update_after"
    """As it is, and it is brought up to date afterwards."""
    REQUEST_PLUS = "false"
    """It is brought up to date first."""


@unique
class ViewOrdering(Enum):
    """In which order rows come, by their keys; the value travels as ``descending``."""

    ASCENDING = "false"
    DESCENDING = "true"


@unique
class ViewErrorMode(Enum):
    """What becomes of the rows when a node fails to give its own."""

    CONTINUE = "continue"
    """The others are told, and the metadata has the error."""
    STOP = "stop"
    """No more rows are told."""


@unique
class DesignDocumentNamespace(Enum):
    """Which of two design documents of one name is meant; the value is what its name begins with on the server."""

    PRODUCTION = ""
    DEVELOPMENT = "dev_"


@dataclass(frozen=True, slots=True, init=False, repr=False)
class ViewOptions:
    """Options of one question; what is None is left to the service.

    A key is any value that JSON can express. None is no key: the key ``null`` is ``raw={"key": "null"}``. What the caller
    changes in a value afterwards changes nothing. ``repr`` tells names only.

    Args:
        limit: how many rows at most.
        skip: how many rows are passed over first.
        scan_consistency: how new the view has to be.
        order: by key.
        reduce: whether rows are reduced, where the view can reduce them.
        group: whether those of each key are reduced by themselves.
        group_level: how many elements of the keys, if they are arrays, count for that.
        key: only rows with this key.
        keys: only rows with one of these.
        startkey: the rows begin there.
        endkey: the rows end there.
        startkey_docid: where several rows have ``startkey``, they begin with this document.
        endkey_docid: where several rows have ``endkey``, they end with this document.
        inclusive_end: whether the end belongs to it.
        on_error: whether rows are told though those of a node are missing.
        debug: whether the metadata tells how the answer came about.
        raw: further options of the query string, by name.

    Raises:
        InvalidArgumentException: an argument is wrong; ``.parameter`` names it.
        EncodingFailureException: a key has no form in JSON.
    """

    parameters: tuple[tuple[str, str], ...]
    """Names and values of the query string."""
    keys: bytes | None
    """A JSON array; it would be too long for a query string."""

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
            raise errors.InvalidArgumentException(f"raw[{name!r}] is given as an option as well", parameter="raw")
    return raw


def _encoded_keys(keys: Sequence[object]) -> bytes:
    if isinstance(keys, str | bytes | bytearray) or not isinstance(keys, Sequence):
        raise errors.InvalidArgumentException(f"keys={shown(keys)} must be a list or a tuple", parameter="keys")
    return encode_json(keys, "keys")
