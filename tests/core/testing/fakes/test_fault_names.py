"""Every fault by its name: made, described and spelled."""

from __future__ import annotations

import json
from typing import get_args

import pytest

from tests.rows import rows
from triclinium_core import testing
from triclinium_core.errors import InvalidArgumentException
from triclinium_core.testing import (
    Fault,
    cut_body,
    delay,
    http_status,
    not_my_vbucket,
    raw_answer,
    status,
    temporary_failure,
)
from triclinium_core.testing.fakes.fault_names import (
    COMMAND_FAULTS,
    FAULTS,
    MADE_BY,
    REFUSAL,
    SERVICE_FAULTS,
    described,
    make_fault,
    spelled,
    spelled_call,
)


def test_no_fault_is_left_out() -> None:
    """Each class of a fault has the function that makes it, and each function strikes something."""
    assert set(get_args(Fault)) == set(MADE_BY)
    assert len(MADE_BY) == len(set(MADE_BY.values()))
    assert {*COMMAND_FAULTS, *SERVICE_FAULTS, REFUSAL} == set(FAULTS)
    assert all(FAULTS[make.__name__] is make for make in MADE_BY.values())
    assert all(getattr(testing, name) is make for name, make in FAULTS.items())


@rows(
    ("fault", "expected"),
    [
        (delay(0.5), {"kind": "delay", "seconds": 0.5}),
        (temporary_failure(), {"kind": "status", "code": 0x86}),
        (status(1, b"why\xff"), {"kind": "status", "code": 1, "body": "why\\xff"}),
        (not_my_vbucket(), {"kind": "not_my_vbucket"}),
        (not_my_vbucket(with_config=False), {"kind": "not_my_vbucket", "with_config": False}),
        (
            http_status(503, headers={"Retry-After": "1"}),
            {"kind": "http_status", "code": 503, "headers": {"Retry-After": "1"}},
        ),
    ],
)
def test_described(fault: Fault, expected: dict[str, object]) -> None:
    """A fault is an object of JSON, without what goes without saying."""
    assert expected == json.loads(json.dumps(described(fault)))


def test_spelled() -> None:
    """As a call, with the names of the arguments."""
    assert "delay(seconds=0.5)" == spelled(delay(0.5))
    assert "status(code=134)" == spelled(temporary_failure())
    assert "not_my_vbucket" == spelled(not_my_vbucket())
    assert "hang_up_mid_reply(bytes_sent=12)" == spelled_call("hang_up_mid_reply")
    assert "garble" == spelled_call("garble")


def test_made_by_name() -> None:
    """With arguments by place or by name; text stands for bytes."""
    assert raw_answer(b"HTTP/1.1 2") == make_fault("raw_answer", "HTTP/1.1 2")
    assert raw_answer(b"\xff") == make_fault("raw_answer", b"\xff")
    assert cut_body(bytes_sent=7) == make_fault("cut_body", bytes_sent=7)


@rows(
    ("name", "given", "word"), [("cut_body", (7,), "bytes_sent"), ("delay", (), "seconds"), ("garble", (1,), "garble")]
)
def test_arguments_that_a_fault_does_not_have(name: str, given: tuple[object, ...], word: str) -> None:
    """The message says how the fault is written."""
    with pytest.raises(InvalidArgumentException, match=word):
        make_fault(name, *given)
