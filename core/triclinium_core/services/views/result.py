"""What a view answers: rows, and what is told beside them.

Source: SDK-RFC 0051 "Return Types"; the answers of couchdb's ``couch_index_merger`` for errors of single nodes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, TypeVar

import msgspec

from triclinium_core.services.json_values import decode_json
from triclinium_core.services.request import HttpAnswer, ServiceResult
from triclinium_core.shown import one_line

T = TypeVar("T")

Count = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]


class ViewRow(msgspec.Struct, frozen=True):
    """A row of a view; key and value are decoded when they are asked for."""

    encoded_key: bytes
    """As JSON."""
    encoded_value: bytes
    """As JSON."""
    id: str | None = None
    """Of the document; None for what a reduction made of several."""

    @property
    def key(self) -> object:
        """The key that the view emitted."""
        return self.key_as(object)

    @property
    def value(self) -> object:
        """The value that the view emitted, or that its reduction made of several."""
        return self.value_as(object)

    def key_as(self, as_type: type[T]) -> T:
        """Return the key converted to ``as_type`` in one pass.

        Raises:
            DecodingFailureException: it does not fit.
        """
        return decode_json(self.encoded_key, as_type, "the key of a row is")

    def value_as(self, as_type: type[T]) -> T:
        """Return the value converted to ``as_type`` in one pass.

        Raises:
            DecodingFailureException: it does not fit.
        """
        return decode_json(self.encoded_value, as_type, "the value of a row is")


class ViewError(msgspec.Struct, frozen=True):
    """Why a node has not given its rows."""

    source: str
    """Which one."""
    reason: str


class ViewMetaData(ServiceResult, frozen=True):
    """What the service tells beside the rows, when it has told all of them."""

    total_rows: int | None = None
    """How many rows the view has in all; None where they are reduced."""
    debug: Mapping[str, object] | None = None
    """What was asked for with ``debug``, as JSON."""
    errors: tuple[ViewError, ...] = ()
    """Nodes that have not given their rows: some are missing."""


class _Row(msgspec.Struct):
    key: msgspec.Raw
    value: msgspec.Raw
    id: str | None = None


class _Error(msgspec.Struct):
    source: str = msgspec.field(default="", name="from")
    reason: str = ""


class _Answer(msgspec.Struct):
    """The answer of the service, without its rows."""

    total_rows: Count | None = None
    debug_info: dict[str, object] | None = None
    errors: tuple[_Error, ...] | None = None


_ROWS = msgspec.json.Decoder(_Row)


def decode_row(data: bytes) -> ViewRow:
    """Return a row.

    Raises:
        msgspec.MsgspecError, ValueError, RecursionError: it is not a row.
    """
    row = _ROWS.decode(data)
    return ViewRow(bytes(row.key), bytes(row.value), row.id)


def decode_meta_data(answer: HttpAnswer) -> ViewMetaData:
    """Return what an answer tells beside the rows.

    Raises:
        MalformedAnswer: a view does not answer so.
    """
    answered = answer.body_as(_Answer)
    errors = tuple(ViewError(one_line(error.source), one_line(error.reason)) for error in answered.errors or ())
    return ViewMetaData(answered.total_rows, answered.debug_info, errors)
