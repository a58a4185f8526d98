"""Result of a view query: rows and metadata.

Source: SDK-RFC 0051 "Return Types"; the responses of couchdb's ``couch_index_merger`` for errors of single nodes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

import msgspec

from triclinium_core.json_depth import shallow
from triclinium_core.services.json_values import decode_json
from triclinium_core.services.received import UNREADABLE, Members, as_text, body_members, decoded, members_of
from triclinium_core.services.service_request import HttpResponse, MalformedAnswer, ServiceResult
from triclinium_core.shown import one_line

T = TypeVar("T")


class ViewRow(msgspec.Struct, frozen=True):
    """Row of a view. Its key and value are decoded on access."""

    encoded_key: bytes
    """Key as JSON."""
    encoded_value: bytes
    """Value as JSON."""
    id: str | None = None
    """Id of the document; None without a readable one, as in a row of a reduction."""

    @property
    def key(self) -> object:
        """Key that the view emitted."""
        return self.key_as(object)

    @property
    def value(self) -> object:
        """Value that the view emitted, or the result of its reduction."""
        return self.value_as(object)

    def key_as(self, as_type: type[T]) -> T:
        """Return the key converted to ``as_type`` in one pass.

        Raises:
            DecodingFailureException: the key does not fit the type, or is too large to be decoded.
        """
        return decode_json(self.encoded_key, as_type, "the key of a row is")

    def value_as(self, as_type: type[T]) -> T:
        """Return the value converted to ``as_type`` in one pass.

        Raises:
            DecodingFailureException: the value does not fit the type, or is too large to be decoded.
        """
        return decode_json(self.encoded_value, as_type, "the value of a row is")


class ViewError(msgspec.Struct, frozen=True):
    """Error of a node that did not return its rows."""

    source: str
    """Node, as named by the service; empty if the service does not name it."""
    reason: str


class ViewMetaData(ServiceResult, frozen=True):
    """Metadata of a view query, which follows its rows."""

    total_rows: int | None = None
    """Number of rows in the whole view; None without a readable one, as for a reduction."""
    debug: Mapping[str, object] | None = None
    """Debug information, decoded from JSON, if requested; otherwise None."""
    errors: tuple[ViewError, ...] = ()
    """Errors of nodes that did not return their rows. If there are any, rows are missing."""


class _Row(msgspec.Struct):
    key: msgspec.Raw
    value: msgspec.Raw
    id: str | None = None


_ROWS = msgspec.json.Decoder(_Row)
_NULL = msgspec.Raw(b"null")


def decode_row(data: bytes) -> ViewRow:
    """Return a row. Use null for a missing key or value, and None for an id of another type.

    Raises:
        MalformedAnswer: the row is not an object, or has neither key nor value.
    """
    try:
        row = _ROWS.decode(shallow(data))
    except UNREADABLE:
        found = members_of(msgspec.Raw(data))
        if not {"key", "value"} & found.raw.keys():
            raise MalformedAnswer("a row with neither key nor value") from None
        row = _Row(found.raw.get("key", _NULL), found.raw.get("value", _NULL), found.get("id", str))
    return ViewRow(bytes(row.key), bytes(row.value), row.id)


def decode_meta_data(answer: HttpResponse) -> ViewMetaData:
    """Return the metadata in a response.

    Raises:
        MalformedAnswer: the response is not a JSON object.
    """
    answered = body_members(answer)
    total = answered.integer("total_rows")
    errors = [_error(each) for each in answered.array("errors")]
    # Any error, even one in an unknown form, means that rows are missing.
    errors += [ViewError("", as_text(each)) for each in answered.no_arrays("errors")]
    return ViewMetaData(
        total if total is not None and total >= 0 else None,
        answered.get("debug_info", dict[str, object]),
        tuple(errors),
    )


def _error(raw: msgspec.Raw) -> ViewError:
    found = decoded(raw, dict[str, msgspec.Raw])
    if found is None:
        return ViewError("", as_text(raw))
    return ViewError(one_line(Members(found).text("from")), one_line(Members(found).text("reason")))
