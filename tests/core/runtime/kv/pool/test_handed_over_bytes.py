"""Requests on a lost stream: one is sent again only if none of its bytes were handed over to the network."""

from __future__ import annotations

import pytest

from tests.core.runtime.kv import simulated
from tests.core.runtime.kv.pool.pool_cases import TWO
from tests.rows import rows
from triclinium_core import errors
from triclinium_core.contract import neutral
from triclinium_core.retry.couchbase import RetryReason


def lost_at(offset: int) -> tuple[simulated.Recorded, list[neutral.Token]]:
    """Lose a stream after ``offset`` bytes, counted from the first of three writes, were handed over."""
    simulation = simulated.ready()
    begin = simulation.links[TWO].handed_over
    tokens = [simulation.submit(simulated.upsert(key)) for key in ("a", "b", "c")]
    simulation.links.pop(TWO)
    simulation.node.connection_lost(TWO, simulation.now)
    simulation.feed(neutral.StreamLost(TWO, neutral.LossCause.RESET, handed_over=begin + offset))
    simulation.run()
    return simulation, tokens


SIZE = 24 + 8 + 2 + 2
"""Bytes of one write: header, extras, prefix and key, value."""


@rows(
    ("offset", "safe"),
    [
        (-SIZE, "abc"),
        (0, "abc"),
        (1, "bc"),
        (SIZE - 1, "bc"),
        (SIZE, "bc"),
        (SIZE + 1, "c"),
        (2 * SIZE, "c"),
        (3 * SIZE - 1, ""),
        (3 * SIZE, ""),
        (10**9, ""),
    ],
)
def test_handed_over(offset: int, safe: str) -> None:
    """A frame behind the handed-over bytes is sent again; any other may have been applied (decision C24)."""
    simulation, tokens = lost_at(offset)
    succeeded = "".join(key for key, token in zip("abc", tokens, strict=True) if token in simulation.results)

    assert safe == succeeded
    for token in tokens:
        if token not in simulation.results:
            error = simulation.error(errors.RequestCanceledException, token)
            assert "SOCKET_CLOSED_WHILE_IN_FLIGHT" == error.context.refused_reason


def test_handed_over_on_the_second_stream() -> None:
    """Offsets start again with each stream."""
    simulation = simulated.ready()
    simulation.lose(TWO)
    simulation.live(1.0)
    stream = simulation.newest
    handed_over = simulation.links[stream].handed_over
    token = simulation.submit(simulated.upsert())
    simulation.links.pop(stream)
    simulation.node.connection_lost(stream, simulation.now)
    simulation.feed(neutral.StreamLost(stream, neutral.LossCause.RESET, handed_over=handed_over))
    simulation.run()

    assert token in simulation.results


@pytest.mark.parametrize(("offset", "safe"), [(0, True), (1, False), (SIZE, False)])
def test_a_stream_that_the_client_closes(offset: int, safe: bool) -> None:
    """If the client closes a stream, an unsent write is sent again and a partly sent one fails."""
    simulation = simulated.ready()
    write = simulation.submit(simulated.upsert("a"))
    # The node never receives the bytes.
    simulation.links[TWO].is_hung_up = True
    simulation.hand_over(TWO, offset)
    simulation.inject(b"nonsense", TWO)
    simulation.run()

    if safe:
        assert {RetryReason.SOCKET_NOT_AVAILABLE} == {retry.reason for retry in simulation.retries}
        assert write in simulation.results
    else:
        simulation.error(errors.RequestCanceledException, write)


def test_an_unknown_count_fails_a_write() -> None:
    """If the driver does not report the count, a write may have been sent and is not sent again."""
    simulation = simulated.ready()
    write = simulation.submit(simulated.upsert("a"))
    simulation.links.pop(TWO)
    simulation.feed(neutral.StreamLost(TWO, neutral.LossCause.RESET))

    simulation.error(errors.RequestCanceledException, write)


def test_streams_that_were_never_opened_leave_nothing_behind() -> None:
    """Abandoned attempts leave nothing behind, even if the driver does not report them."""
    client = simulated.machine()
    while client.wakeup < 100.0:
        client.handle(neutral.TimePassed(), max(client.wakeup, 0.0))

    assert {} == client._connections.streams._closed


def closed_without_an_answer() -> tuple[simulated.Recorded, neutral.Token]:
    """Let a client close a stream with a write in flight, before the driver reports its byte count."""
    simulation = simulated.ready()
    token, _ = simulation.submit_in_flight(simulated.upsert())
    simulation.machine.handle(neutral.BytesReceived(TWO, b"nonsense"), simulation.now)
    simulation.links.pop(TWO)
    return simulation, token


def test_requests_stay_open_until_the_drivers_report() -> None:
    """Requests of a closed stream stay open and ambiguous until the driver reports how many bytes it handed over."""
    simulation, token = closed_without_an_answer()

    assert token not in simulation.settled_at
    assert simulation.machine.is_ambiguous(token)

    simulation.feed(neutral.StreamLost(TWO, neutral.LossCause.CLOSED_BY_US, handed_over=10**6))

    simulation.error(errors.RequestCanceledException, token)


def test_a_missing_report_of_the_driver() -> None:
    """Without the driver's report, the operation times out as ambiguous, and a later report is ignored."""
    simulation, token = closed_without_an_answer()
    simulation.live(simulated.TIMEOUT)

    simulation.error(errors.AmbiguousTimeoutException, token)
    assert [] == list(simulation.feed(neutral.StreamLost(TWO, neutral.LossCause.CLOSED_BY_US, handed_over=10**6)))


def test_abandoning_before_the_drivers_report() -> None:
    """If an operation is abandoned before the driver's report, the report causes no action."""
    simulation, token = closed_without_an_answer()
    simulation.abandon(token)

    assert [] == list(simulation.feed(neutral.StreamLost(TWO, neutral.LossCause.CLOSED_BY_US)))
    assert 0 == simulation.open_operations
