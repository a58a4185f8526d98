"""Names of all faults, with which faults are created, described and spelled."""

from __future__ import annotations

import json
from typing import get_args

import pytest

from tests.rows import rows
from triclinium_core import errors, testing
from triclinium_core.testing import delay
from triclinium_core.testing.fakes import fault_names


def test_no_fault_is_left_out() -> None:
    """Each class of faults has one function that makes it, and each function has a target."""
    assert set(get_args(testing.Fault)) == set(fault_names.MADE_BY)
    assert len(fault_names.MADE_BY) == len(set(fault_names.MADE_BY.values()))
    assert {*fault_names.COMMAND_FAULTS, *fault_names.SERVICE_FAULTS, fault_names.REFUSAL} == set(fault_names.FAULTS)
    assert all(fault_names.FAULTS[make.__name__] is make for make in fault_names.MADE_BY.values())
    assert all(getattr(testing, name) is make for name, make in fault_names.FAULTS.items())


@rows(
    ("fault", "expected"),
    [
        (delay(0.5), {"kind": "delay", "seconds": 0.5}),
        (testing.temporary_failure(), {"kind": "status", "code": 0x86}),
        (testing.status(1, b"why\xff"), {"kind": "status", "code": 1, "body": "why\\xff"}),
        (testing.not_my_vbucket(), {"kind": "not_my_vbucket"}),
        (testing.not_my_vbucket(with_config=False), {"kind": "not_my_vbucket", "with_config": False}),
        (
            testing.http_status(503, headers={"Retry-After": "1"}),
            {"kind": "http_status", "code": 503, "headers": {"Retry-After": "1"}},
        ),
    ],
)
def test_described_fault(fault: testing.Fault, expected: dict[str, object]) -> None:
    """A fault is described as a JSON object without its default arguments."""
    assert expected == json.loads(json.dumps(fault_names.described(fault)))


def test_spelled_fault() -> None:
    """A fault is spelled as a call with named arguments."""
    assert "delay(seconds=0.5)" == fault_names.spelled(delay(0.5))
    assert "status(code=134)" == fault_names.spelled(testing.temporary_failure())
    assert "not_my_vbucket" == fault_names.spelled(testing.not_my_vbucket())
    assert "hang_up_mid_reply(bytes_sent=12)" == fault_names.spelled_call("hang_up_mid_reply")
    assert "garble" == fault_names.spelled_call("garble")


def test_made_by_name() -> None:
    """A fault is made from its name and named arguments; a string is accepted for bytes."""
    assert testing.raw_answer(b"HTTP/1.1 2") == fault_names.make_fault("raw_answer", data="HTTP/1.1 2")
    assert testing.raw_answer(b"\xff") == fault_names.make_fault("raw_answer", data=b"\xff")
    assert testing.cut_body(bytes_sent=7) == fault_names.make_fault("cut_body", bytes_sent=7)


@rows(
    ("name", "arguments", "word"),
    [("delay", {}, "seconds"), ("garble", {"size": 1}, "garble"), ("garble", {"name": 1}, "name")],
)
def test_arguments_that_a_fault_does_not_have(name: str, arguments: dict[str, object], word: str) -> None:
    """The error for a wrong argument names the argument or the fault."""
    with pytest.raises(errors.InvalidArgumentException, match=word):
        fault_names.make_fault(name, **arguments)


def test_text_with_a_lone_surrogate_is_refused() -> None:
    """The error for text that UTF-8 cannot encode names the argument."""
    with pytest.raises(errors.InvalidArgumentException) as caught:
        fault_names.make_fault("http_status", code=503, body="\ud800")

    assert "body" == caught.value.parameter
