"""Settings of a request, and invalid arguments."""

from __future__ import annotations

from typing import Any

import pytest

from tests.refusals import refusal_of
from tests.rows import rows
from triclinium_core.argument_error import ArgumentError
from triclinium_core.retry import cassandra
from triclinium_core.shown import shown


def test_defaults() -> None:
    """A default request is a statement that is not idempotent, with a timeout of two seconds and one execution."""
    request = cassandra.CassandraRequest(policy=cassandra.DefaultRetryPolicy())

    assert (False, cassandra.RequestKind.STATEMENT, None, 2.0) == (
        request.idempotent,
        request.kind,
        request.consistency,
        request.timeout,
    )
    assert cassandra.NoSpeculativeExecution() == request.speculation


@rows(
    ("kind", "idempotent", "may_repeat", "may_speculate"),
    [
        (cassandra.RequestKind.STATEMENT, False, False, False),
        (cassandra.RequestKind.STATEMENT, True, True, True),
        (cassandra.RequestKind.PREPARE, False, True, False),
        (cassandra.RequestKind.PREPARE, True, True, False),
    ],
)
def test_a_prepare_may_be_repeated(
    kind: cassandra.RequestKind, idempotent: bool, may_repeat: bool, may_speculate: bool
) -> None:
    """A PREPARE may be repeated but not sent speculatively; a statement must be idempotent for either."""
    request = cassandra.CassandraRequest(policy=cassandra.DefaultRetryPolicy(), kind=kind, idempotent=idempotent)

    assert (may_repeat, may_speculate) == (request.may_repeat, request.may_speculate)


@rows(
    ("parameter", "value"),
    [
        ("policy", None),
        ("policy", cassandra.DefaultRetryPolicy),
        ("idempotent", 1),
        ("kind", "STATEMENT!"),
        ("consistency", "QUORUM"),
        ("serial_consistency", "SERIAL"),
        ("timeout", 0),
        ("timeout", 1e10),
        ("speculation", 0.5),
    ],
)
def test_invalid_arguments(parameter: str, value: Any) -> None:
    """An invalid argument raises an error with the name and the value of the argument."""
    arguments: dict[str, Any] = {"policy": cassandra.DefaultRetryPolicy(), parameter: value}
    with refusal_of(parameter, f"{parameter}=", said=shown(value)):
        cassandra.CassandraRequest(**arguments)


@pytest.mark.parametrize("parameter", ["consistency", "serial_consistency"])
def test_a_prepare_has_no_level(parameter: str) -> None:
    """A PREPARE that has a consistency level is refused."""
    level: dict[str, Any] = {parameter: cassandra.ConsistencyLevel.SERIAL}
    with refusal_of(parameter, f"{parameter}=SERIAL"):
        cassandra.CassandraRequest(policy=cassandra.DefaultRetryPolicy(), kind=cassandra.RequestKind.PREPARE, **level)


@rows("level", list(cassandra.ConsistencyLevel))
def test_the_serial_consistency_must_be_serial(level: cassandra.ConsistencyLevel) -> None:
    """Only the two serial levels are accepted as serial consistency."""
    policy = cassandra.DefaultRetryPolicy()
    try:
        request = cassandra.CassandraRequest(policy=policy, serial_consistency=level)
    except ArgumentError as error:
        assert ("serial_consistency", False) == (error.parameter, level.is_serial)
    else:
        assert level.is_serial
        assert level is request.serial_consistency
