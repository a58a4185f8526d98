"""Requests of a lost stream: a write is sent again only if none of its bytes was handed over."""

from __future__ import annotations

import pytest

from tests.core.runtime.kv import simulated
from tests.core.runtime.kv.pool.pool_cases import TWO
from tests.rows import rows
from triclinium_core import errors
from triclinium_core.contract import neutral
from triclinium_core.retry.couchbase import RetryReason


def lost_at(offset: int) -> tuple[simulated.Recorded, list[neutral.Token]]:
    """Lose a stream with ``offset`` bytes of three writes handed over; return the simulation and the tokens."""
    simulation = simulated.ready()
    begin = simulation.links[TWO].handed_over
    tokens = [simulation.submit(simulated.upsert(key)) for key in ("a", "b", "c")]
    simulation.links.pop(TWO)
    simulation.node.connection_lost(TWO, simulation.now)
    simulation.feed(neutral.StreamLost(TWO, neutral.LossCause.RESET, handed_over=begin + offset))
    simulation.run()
    return simulation, tokens


SIZE = 24 + 8 + 2 + 2
"""Size in bytes of one write: header, extras, prefix and key, value."""


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
    """A write of which no byte was handed over is sent again; any other may have been applied (decision C24)."""
    simulation, tokens = lost_at(offset)
    succeeded = "".join(key for key, token in zip("abc", tokens, strict=True) if token in simulation.results)

    assert safe == succeeded
    for token in tokens:
        if token not in simulation.results:
            error = simulation.error(errors.RequestCanceledException, token)
            assert "SOCKET_CLOSED_WHILE_IN_FLIGHT" == error.context.refused_reason


def test_handed_over_on_the_second_stream() -> None:
    """The byte count of a second stream starts at 0 again."""
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
    """If the client closes a stream, an unsent write is sent again, and a partly sent write fails."""
    simulation = simulated.ready()
    write = simulation.submit(simulated.upsert("a"))
    # The driver hands over the bytes, but the node does not receive them.
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
    """If the driver does not report the byte count, a write may have been applied and is not sent again."""
    simulation = simulated.ready()
    write = simulation.submit(simulated.upsert("a"))
    simulation.links.pop(TWO)
    simulation.feed(neutral.StreamLost(TWO, neutral.LossCause.RESET))

    simulation.error(errors.RequestCanceledException, write)


def test_streams_that_were_never_opened_leave_nothing_behind() -> None:
    """If the driver does not report that abandoned streams are closed, the client still keeps nothing of them."""
    client = simulated.machine()
    while client.wakeup < 100.0:
        client.handle(neutral.TimePassed(), max(client.wakeup, 0.0))

    assert {} == client._connections.streams._closed


def closed_without_an_answer() -> tuple[simulated.Recorded, neutral.Token]:
    """Return a simulation and a write's token. The client has closed the stream; the driver has not reported it."""
    simulation = simulated.ready()
    token, _ = simulation.submit_in_flight(simulated.upsert())
    simulation.machine.handle(neutral.BytesReceived(TWO, b"nonsense"), simulation.now)
    simulation.links.pop(TWO)
    return simulation, token


def test_requests_stay_open_until_the_drivers_report() -> None:
    """Until the driver reports the byte count of a closed stream, its requests stay open and are ambiguous."""
    simulation, token = closed_without_an_answer()

    assert token not in simulation.settled_at
    assert simulation.machine.is_ambiguous(token)

    simulation.feed(neutral.StreamLost(TWO, neutral.LossCause.CLOSED_BY_US, handed_over=10**6))

    simulation.error(errors.RequestCanceledException, token)


def test_a_missing_report_of_the_driver() -> None:
    """If the driver never reports the byte count, the operation times out as ambiguous; a late report is ignored."""
    simulation, token = closed_without_an_answer()
    simulation.live(simulated.TIMEOUT)

    simulation.error(errors.AmbiguousTimeoutException, token)
    assert [] == list(simulation.feed(neutral.StreamLost(TWO, neutral.LossCause.CLOSED_BY_US, handed_over=10**6)))


@rows("handed_over", [None, 0, 10**6])
def test_abandoning_before_the_drivers_report(handed_over: int | None) -> None:
    """If an operation is abandoned before the driver's report, the report causes no action, whatever its byte count."""
    simulation, token = closed_without_an_answer()
    simulation.abandon(token)
    report = neutral.StreamLost(TWO, neutral.LossCause.CLOSED_BY_US, handed_over=handed_over)

    assert [] == list(simulation.feed(report))
    assert 0 == simulation.open_operations
