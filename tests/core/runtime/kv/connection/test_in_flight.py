"""Unanswered requests of one stream: their opaques, their offsets and the limits of the table."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from triclinium_core.contract.neutral import StreamId
from triclinium_core.kv.wire.constants import Opcode
from triclinium_core.kv.wire.frame import Frame
from triclinium_core.retry.couchbase import HandedOver, Status
from triclinium_core.runtime.kv.connection import in_flight

NOTHING, PART, ALL = HandedOver.NOTHING, HandedOver.PART, HandedOver.ALL


def add(table: in_flight.InFlightTable, owner: int, size: int = 24) -> int:
    """Add a request to the table, and return its opaque."""
    opaque = table.next_opaque
    table.send(in_flight.Probe(owner), bytes(size))
    return opaque


def pop(table: in_flight.InFlightTable, opaque: int) -> in_flight.InFlightRequest | None:
    """Return the request to which a response with this opaque belongs, or None."""
    return table.answered(Frame(0x81, 0, 0, 0, opaque, 0, b"", b"", b"", b""))


@pytest.mark.parametrize(
    ("byte_count", "expected"),
    [
        (0, NOTHING),
        (99, NOTHING),
        (100, NOTHING),
        (101, PART),
        (149, PART),
        (150, ALL),
        (10**9, ALL),
        (-1, NOTHING),
    ],
)
def test_handed_over(byte_count: int, expected: HandedOver) -> None:
    """The byte count shows whether the driver handed over all, some or none of a frame's bytes (decision C24)."""
    assert expected is in_flight.InFlightRequest(1, 0, None, 100, 50).handed_over(byte_count)


@given(st.lists(st.integers(24, 80), min_size=1, max_size=20), st.integers(0, 200), st.integers(0, 2_000))
def test_offsets_cover_the_stream(sizes: list[int], skipped: int, byte_count: int) -> None:
    """The frames of a stream follow each other without gaps, so the byte count cuts at most one of them."""
    table = in_flight.InFlightTable([])
    table.send_foreign(bytes(skipped), 0)
    for owner, size in enumerate(sizes):
        add(table, owner, size)
    verdicts = [request.handed_over(byte_count) for request in table.clear()]

    whole = 0
    while whole < len(sizes) and skipped + sum(sizes[: whole + 1]) <= byte_count:
        whole += 1
    cut = whole < len(sizes) and skipped + sum(sizes[:whole]) < byte_count
    assert [ALL] * whole + [PART] * cut + [NOTHING] * (len(sizes) - whole - cut) == verdicts


def test_clear() -> None:
    """When a stream is lost, ``clear`` returns its unanswered requests, oldest first; offsets start again at 0."""
    table = in_flight.InFlightTable([])
    table.send_foreign(bytes(100), 0)
    opaques = [add(table, owner) for owner in (1, 2, 3)]
    pop(table, opaques[1])

    assert [in_flight.Probe(1), in_flight.Probe(3)] == [request.owner for request in table.clear()]
    assert 0 == len(table)

    request = pop(table, add(table, 4))

    assert request is not None
    assert 0 == request.offset


def test_abandon() -> None:
    """An abandoned request stays in the table without its owner; abandoning an unknown opaque changes nothing."""
    table = in_flight.InFlightTable([])
    opaque = add(table, 1)
    table.abandon(opaque)
    table.abandon(99)
    request = pop(table, opaque)

    assert request is not None
    assert request.owner is None


def test_opaques_differ_from_those_in_flight() -> None:
    """Opaques are numbers from 1 to 0xFFFFFFFF, of which 1 follows the last; requests in flight have different ones."""
    table = in_flight.InFlightTable([])
    first, second, third = (add(table, owner) for owner in range(3))
    pop(table, first)
    table.send_foreign(b"", in_flight.OPAQUE_MAX - 2)

    assert (1, 2, 3) == (first, second, third)
    assert [0xFFFF_FFFE, 0xFFFF_FFFF, 1, 4] == [add(table, owner) for owner in range(4)]


def test_full_by_count() -> None:
    """The table is full at a maximum number of unanswered requests, including abandoned ones (decision C37)."""
    table = in_flight.InFlightTable([])
    opaques = [add(table, owner) for owner in range(in_flight.REQUESTS_MAX + 1)]
    table.abandon(opaques[0])
    pop(table, opaques[0])

    assert table.is_full

    pop(table, opaques[1])

    assert not table.is_full


def test_full_by_size() -> None:
    """Unanswered bytes, even of abandoned requests, can fill the table; their count is 0 after the stream is lost."""
    table = in_flight.InFlightTable([])
    table.abandon(add(table, 1, in_flight.BYTES_MAX - 24))

    assert not table.is_full

    first, second = add(table, 2, 24), add(table, 3, 24)
    pop(table, first)

    assert table.is_full

    pop(table, second)

    assert not table.is_full

    add(table, 3, 100)
    table.clear()

    assert not table.is_full


def test_outgoing() -> None:
    """Frames stay in order until they are sent; the table adds itself to ``sending`` once per event, and a loss drops
    them.
    """
    sending: list[in_flight.InFlightTable] = []
    table = in_flight.InFlightTable(sending)
    table.begin(StreamId(7))
    table.send_foreign(b"bootstrap", 0)
    add(table, 1)

    assert (7, [b"bootstrap", bytes(24)]) == (table.stream, table.outgoing)
    assert [table] == sending

    table.clear()

    assert [] == table.outgoing


def test_room() -> None:
    """The wait for capacity starts with the first waiting operation; a response or a check restarts the measurement."""
    table = in_flight.InFlightTable([])
    opaque = add(table, 1, in_flight.BYTES_MAX)
    first = [table.lacks_room(1.0), table.lacks_room(2.0)]
    verdicts = [table.has_lacked_room(11.0, 10.0), table.has_lacked_room(99.0, 10.0)]
    table.lacks_room(3.0)
    pop(table, opaque)

    assert ([True, False], [True, False]) == (first, verdicts)
    assert table.lacks_room(4.0)
    assert not table.has_lacked_room(99.0, 10.0)


def test_only_continuations_have_further_responses() -> None:
    """A success is the last response of its request, unless the request continues a scan."""
    answers = {opcode: in_flight.is_last(opcode, Status.SUCCESS) for opcode in (Opcode.GET, Opcode.RANGE_SCAN_CONTINUE)}

    assert {Opcode.GET: True, Opcode.RANGE_SCAN_CONTINUE: False} == answers
