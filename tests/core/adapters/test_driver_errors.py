"""ERROR frames that cassandra-driver decodes, which become our errors with all figures of the frame."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from io import BytesIO

import pytest

pytest.importorskip("cassandra")

from cassandra import protocol

from tests.core.adapters.driver_errors import from_driver
from tests.rows import rows
from triclinium_core.retry.cassandra import ConsistencyLevel, WriteType, errors

pytestmark = pytest.mark.native

QUORUM = ConsistencyLevel.QUORUM
SAID = "Zut, rien ne va plus à n2"


def string(text: str) -> bytes:
    """Return a ``[string]`` of the protocol."""
    return struct.pack("!H", len(text.encode())) + text.encode()


LEVEL = struct.pack("!H", QUORUM.value)
ONE_OF_TWO = LEVEL + struct.pack("!ii", 1, 2)
REASONS = struct.pack("!i", 1) + b"\x04" + bytes([10, 0, 0, 2]) + struct.pack("!H", 1)
REPLICAS: Mapping[str, object] = {"consistency": QUORUM, "received": 1, "block_for": 2}
BY_NODE: Mapping[str, object] = {"failures": 1, "reasons": {"10.0.0.2": 1}}
COUNTED: Mapping[str, object] = {"failures": 3, "reasons": {}}
WROTE: Mapping[str, object] = {"write_type": WriteType.BATCH_LOG}


@rows(
    ("kind", "version", "body", "expected"),
    [
        (errors.Unavailable, 5, LEVEL + struct.pack("!ii", 2, 1), {"consistency": QUORUM, "required": 2, "alive": 1}),
        (errors.WriteTimeout, 5, ONE_OF_TWO + string("BATCH_LOG"), {**REPLICAS, **WROTE}),
        (errors.ReadTimeout, 5, ONE_OF_TWO + b"\x01", {**REPLICAS, "data_present": True}),
        (errors.ReadFailure, 4, ONE_OF_TWO + struct.pack("!ib", 3, 0), {**REPLICAS, **COUNTED, "data_present": False}),
        (errors.ReadFailure, 5, ONE_OF_TWO + REASONS + b"\x01", {**REPLICAS, **BY_NODE, "data_present": True}),
        (
            errors.WriteFailure,
            4,
            ONE_OF_TWO + struct.pack("!i", 3) + string("BATCH_LOG"),
            {**REPLICAS, **COUNTED, **WROTE},
        ),
        (errors.WriteFailure, 5, ONE_OF_TWO + REASONS + string("BATCH_LOG"), {**REPLICAS, **BY_NODE, **WROTE}),
        (
            errors.FunctionFailure,
            5,
            string("ks") + string("f") + struct.pack("!H", 1) + string("int"),
            {"keyspace": "ks", "function": "f", "arg_types": ("int",)},
        ),
        (errors.AlreadyExists, 5, string("ks") + string(""), {"keyspace": "ks", "table": ""}),
        (errors.Unprepared, 5, string("id"), {"statement_id": b"id"}),
        *(
            (kind, 5, b"", {})
            for kind in (errors.ServerError, errors.Overloaded, errors.InvalidSyntax, errors.CdcWriteFailure)
        ),
    ],
)
def test_every_error_body_is_decoded(
    kind: type[errors.CoordinatorError], version: int, body: bytes, expected: Mapping[str, object]
) -> None:
    """The bodies of errors are decoded completely, with the node's message; those of failures also in version 4."""
    frame = BytesIO(struct.pack("!i", kind.code) + string(SAID) + body)
    error = from_driver(protocol.ErrorMessage.recv_body(frame, version))

    assert b"" == frame.read()
    assert (kind, kind.code, SAID) == (type(error), error.code, error.message)
    assert expected == {name: getattr(error, name) for name in expected}


def test_unknown_code_keeps_its_message() -> None:
    """A code of a later version gives a CoordinatorError with its code and message."""
    frame = BytesIO(struct.pack("!i", 0x7777) + string(SAID))
    error = from_driver(protocol.ErrorMessage.recv_body(frame, 5))

    assert (errors.CoordinatorError, 0x7777, SAID) == (type(error), error.code, error.message)
