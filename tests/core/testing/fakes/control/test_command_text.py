"""Commands as text on a command line."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, strategies as st

from tests.rows import rows
from triclinium_core import errors, testing
from triclinium_core.kv.wire.constants import Opcode
from triclinium_core.retry.couchbase import Service
from triclinium_core.testing import delay
from triclinium_core.testing.fakes.control.command_text import COMMAND_SIZE_MAX, read_command_text
from triclinium_core.testing.fakes.control.new_faults import TARGETS, AddFault
from triclinium_core.testing.fakes.fault_names import spelled
from triclinium_core.testing.fault_catalogue import DATA_FAULTS, SERVICE_FAULTS


@rows(
    ("text", "expected"),
    [
        ("temporary_failure", AddFault(testing.temporary_failure())),
        ("any: hang_up", AddFault(testing.hang_up())),
        ("get: delay(0.4)", AddFault(delay(0.4), Opcode.GET)),
        ("get:delay(seconds=0.4)  x3 ", AddFault(delay(0.4), Opcode.GET, times=3)),
        ("GET: garble()", AddFault(testing.garble(), Opcode.GET)),
        ("upsert: locked always", AddFault(testing.locked(), Opcode.SET, times=None)),
        ("get-and-lock@2: locked", AddFault(testing.locked(), Opcode.GET_AND_LOCK, node=2)),
        ("@1: drop_response", AddFault(testing.drop_response(), node=1)),
        ("0x09: status(0x86, 'busy')", AddFault(testing.status(0x86, b"busy"), 9)),
        ("9: status(134)", AddFault(testing.status(134), 9)),
        ("query: http_status(503) x2", AddFault(testing.http_status(503), Service.QUERY, times=2)),
        ("query: delay(1)", AddFault(delay(1), Service.QUERY)),
        (
            "views: redirect('http://a.example/b: c')",
            AddFault(testing.redirect("http://a.example/b: c"), Service.VIEWS),
        ),
        (
            "search: http_status(500, body='x2 always')",
            AddFault(testing.http_status(500, b"x2 always"), Service.SEARCH),
        ),
        ("refuse_connection x3", AddFault(testing.refuse_connection(), times=3)),
    ],
)
def test_read_command_text(text: str, expected: AddFault) -> None:
    """The text gives the fault, its target, its node and its number."""
    assert expected == read_command_text(text)


@rows(
    ("text", "words"),
    [
        ("", "the form of a fault is"),
        ("get: learn_late(3)", "'get'"),
        ("learn_late(3) x2", "'x2'"),
        ("kill always", "'always'"),
        ("learn_late", "requires seconds"),
        ("learn_late(1, 2)", "learn_late(seconds)"),
        ("learn_late(minutes=1)", "learn_late(seconds)"),
        ("kill(3)", "kill"),
        ("kill 3", "@3: kill"),
        ("learn_late(-1)", "seconds"),
        ("slow_down('x')", "seconds"),
        ("learn_lat(3)", "did you mean learn_late"),
        ("get:", "the form of a fault is"),
        ("delay(", "the form of a fault is"),
        ("(" * 10_000, "the form of a fault is"),
        (" " * 20_000 + "x y", "the form of a fault is"),
        ("kill" + " " * COMMAND_SIZE_MAX, f"at most {COMMAND_SIZE_MAX}"),
        ("get: delay(0.4)x2", "the form of a fault is"),
        ("a.b()", "the form of a fault is"),
        ("gett: garble", "did you mean get?"),
        ("0x100: garble", "neither a command nor a service"),
        ("999: garble", "neither a command nor a service"),
        ("kv: garble", "neither a command nor a service"),
        ("dela(1)", "did you mean delay?"),
        ("nonsense", "drop_response"),
        ("delay", "write delay"),
        ("delay(soon)", "an argument of delay"),
        ("delay(**{'seconds': 1})", "delay"),
        ("delay(-1)", "seconds"),
        ("get: http_status(503)", "analytics, "),
        ("query: locked", "a request to query"),
        ("get: refuse_connection", "omit the target"),
        ("any: refuse_connectio", "did you mean refuse_connection?"),
        ("garble x0", "from 1 to"),
        ("garble x9999999999999", "from 1 to"),
        ("get@one: garble", "@one"),
    ],
)
def test_meaningless_text_is_refused(text: str, words: str) -> None:
    """A string that is not a valid command is refused, and the error has a hint."""
    with pytest.raises(errors.InvalidArgumentException) as caught:
        read_command_text(text)

    assert words in caught.value.message


@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    """Any string is read, or refused with InvalidArgumentException."""
    try:
        read_command_text(text)
    except errors.InvalidArgumentException as error:
        assert error.message


def test_spelled_faults_can_be_read() -> None:
    """Each fault that a history draws, if it has only text, is read from its spelling as an equal value."""
    for target, kinds in (("any", DATA_FAULTS), ("query", SERVICE_FAULTS)):
        for fault in itertools.chain(*kinds):
            if getattr(fault, "data", b"").isascii() and getattr(fault, "headers", None) is None:
                assert AddFault(fault, TARGETS[target]) == read_command_text(f"{target}: {spelled(fault)}")


def test_a_name_is_one_target() -> None:
    """A command's name selects its opcode, an operation's name that of its command; each service but KV is a target."""
    assert all(TARGETS[opcode.name.lower()] is opcode for opcode in Opcode)
    assert Opcode.SET is TARGETS["upsert"]
    assert {*Service} - {Service.KV} == {target for target in TARGETS.values() if isinstance(target, Service)}


def test_placed_at_one_node_or_at_each() -> None:
    """A fault is queued at its node, or at each node if it names none; with ``always`` it lasts."""
    nodes = testing.FakeNodes(nodes=3)
    for text in ("get@1: garble x2", "set: garble", "touch: locked always"):
        read_command_text(text).apply(nodes)

    assert [1, 3, 1] == [node.faults.pending for node in nodes]
    assert [testing.locked(), testing.locked()] == [nodes[0].faults.take(Opcode.TOUCH) for _ in range(2)]
    assert testing.garble() == nodes[1].faults.take(Opcode.GET)
    assert nodes[0].faults.take(Opcode.GET) is None
