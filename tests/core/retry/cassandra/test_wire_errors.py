"""Conversion of an ERROR frame to an exception that has all information in the frame."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from typing import Any

from hypothesis import given, strategies as st

from tests.refusals import refusal_of
from tests.rows import rows
from triclinium_core.retry import cassandra
from triclinium_core.retry.cassandra import errors

QUORUM = cassandra.ConsistencyLevel.QUORUM
SAID = "Operation timed out - received only 1 responses."
REASONS = {"127.0.0.3": 1, "127.0.0.2": 0}
OF_REPLICAS: Mapping[str, object] = {"consistency": 4, "received": 1, "block_for": 2}

CASES: Mapping[int, tuple[type[errors.CoordinatorError], Mapping[str, object], Mapping[str, object]]] = {
    0x1000: (
        errors.Unavailable,
        {"consistency": 4, "required": 2, "alive": 1},
        {"consistency": QUORUM, "required": 2, "alive": 1},
    ),
    0x1100: (
        errors.WriteTimeout,
        {**OF_REPLICAS, "write_type": "CAS", "contentions": 3},
        {"consistency": QUORUM, "received": 1, "block_for": 2, "write_type": cassandra.WriteType.CAS, "contentions": 3},
    ),
    0x1200: (
        errors.ReadTimeout,
        {**OF_REPLICAS, "data_present": 1},
        {"consistency": QUORUM, "received": 1, "block_for": 2, "data_present": True},
    ),
    0x1300: (
        errors.ReadFailure,
        {**OF_REPLICAS, "reasons": REASONS, "data_present": 0},
        {
            "consistency": QUORUM,
            "received": 1,
            "block_for": 2,
            "failures": 2,
            "reasons": REASONS,
            "data_present": False,
        },
    ),
    0x1400: (
        errors.FunctionFailure,
        {"keyspace": "travel", "function": "throws", "arg_types": ["int"]},
        {"keyspace": "travel", "function": "throws", "arg_types": ("int",)},
    ),
    0x1500: (
        errors.WriteFailure,
        {**OF_REPLICAS, "failures": 1, "write_type": "SIMPLE"},
        {
            "consistency": QUORUM,
            "received": 1,
            "block_for": 2,
            "failures": 1,
            "reasons": {},
            "write_type": cassandra.WriteType.SIMPLE,
        },
    ),
    0x1700: (errors.CasWriteUnknown, OF_REPLICAS, {"consistency": QUORUM, "received": 1, "block_for": 2}),
    0x2400: (errors.AlreadyExists, {"keyspace": "travel", "table": ""}, {"keyspace": "travel", "table": ""}),
    0x2500: (errors.Unprepared, {"statement_id": bytearray(b"id")}, {"statement_id": b"id"}),
}


@rows("code", sorted(errors.CODES))
def test_every_code(code: int) -> None:
    """For each code, the exception and its pickled copy have the class, the code, the fields and the node's message."""
    kind, fields, expected = CASES.get(code, (errors.CODES[code], {}, {}))
    error = cassandra.from_wire(code, SAID, fields)
    twin = pickle.loads(pickle.dumps(error))  # noqa: S301

    assert (kind, code, SAID, fields) == (type(error), error.code, error.message, error.fields)
    assert expected == {name: getattr(error, name) for name in expected}
    assert SAID in str(error)
    assert (kind, str(error), vars(error)) == (type(twin), str(twin), vars(twin))


@rows("code", sorted(cassandra.FIELDS))
def test_a_missing_field(code: int) -> None:
    """A missing field raises an error with its name, unless the field is missing in some version of the protocol."""
    fields = CASES[code][1]
    for name in fields:
        rest = {other: value for other, value in fields.items() if other != name}
        if any(field.name == name and field.is_optional for field in cassandra.FIELDS[code]):
            cassandra.from_wire(code, SAID, rest)
            continue
        with refusal_of("fields", name):
            cassandra.from_wire(code, SAID, rest)


@rows(
    ("code", "field", "value"),
    [
        (0x1000, "consistency", 99),
        (0x1000, "consistency", True),
        (0x1000, "alive", -1),
        (0x1100, "write_type", "SINGLE_TABLE"),
        (0x1200, "data_present", "no"),
        (0x1300, "reasons", [1, 2]),
        (0x1400, "arg_types", "int"),
        (0x1400, "keyspace", b"travel"),
        (0x1500, "failures", 1.0),
        (0x2500, "statement_id", "id"),
    ],
)
def test_an_invalid_field(code: int, field: str, value: object) -> None:
    """If a field is invalid, the result is a CoordinatorError; the machine raises it as ProtocolError without a retry."""
    fields = {**CASES[code][1], field: value}
    error = cassandra.from_wire(code, SAID, fields)
    machine = cassandra.RequestMachine(
        cassandra.CassandraRequest(policy=cassandra.DefaultRetryPolicy(), idempotent=True), ["n1", "n2"]
    )
    (order,) = machine.handle(cassandra.RequestStarted(), 0.0)
    assert isinstance(order, cassandra.Send)
    *_, end = machine.handle(cassandra.ErrorReceived(order.attempt, error), 1.0)

    assert (errors.CoordinatorError, code, SAID, fields) == (type(error), error.code, error.message, error.fields)
    assert isinstance(end, cassandra.Fail)
    assert isinstance(end.error, errors.ProtocolError)
    assert error is end.error.__cause__


@given(
    st.integers(0, 0xFFFF_FFFF).filter(lambda code: code not in errors.CODES),
    st.text(),
    st.dictionaries(st.text(), st.integers() | st.text()),
)
def test_an_unknown_code(code: int, message: str, fields: Mapping[str, object]) -> None:
    """If the code is unknown, the result is a CoordinatorError with the code, the message and the fields."""
    error = cassandra.from_wire(code, message, fields)

    assert (errors.CoordinatorError, code, message, fields) == (type(error), error.code, error.message, error.fields)


@rows(
    ("parameter", "arguments"),
    [
        ("code", ("1000", SAID)),
        ("code", (-1, SAID)),
        ("code", (2**32, SAID)),
        ("message", (0, b"no")),
        ("fields", (0, SAID, ["no"])),
    ],
)
def test_invalid_arguments(parameter: str, arguments: Any) -> None:
    """An argument that no frame can contain raises an error that names the argument."""
    with refusal_of(parameter):
        cassandra.from_wire(*arguments)


def test_the_text_of_a_failure() -> None:
    """The text has the numbers, three of the failed replicas, and the node's message."""
    reasons = {f"10.0.0.{n}": 1 for n in range(1, 6)}
    text = str(cassandra.from_wire(0x1300, SAID, {**OF_REPLICAS, "reasons": reasons, "data_present": 0}))

    assert [] == [part for part in ("QUORUM", "5 replicas failed", "10.0.0.3", SAID) if part not in text]
    assert "10.0.0.4" not in text
