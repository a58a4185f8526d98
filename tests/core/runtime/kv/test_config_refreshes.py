"""Config refreshes: a response that shows an outdated map causes a config request, one at a time per stream."""

from __future__ import annotations

import pytest

from tests.core.runtime.kv import simulated
from tests.core.runtime.kv.carrier_cases import MAP, TWO
from tests.core.runtime.kv.pool.pool_cases import configs_asked
from triclinium_core.contract import neutral
from triclinium_core.contract.couchbase import ReportRetry
from triclinium_core.kv.wire.constants import Opcode
from triclinium_core.options import TimeoutOptions
from triclinium_core.retry import couchbase
from triclinium_core.runtime.kv.connection.grace_period import SECONDS_MAX
from triclinium_core.testing.fakes import faults

REFRESHING = (couchbase.Status.NOT_MY_VBUCKET, 0x7F0C)
"""Statuses after which the client requests a config, unless the response has one, and retries after a delay."""


def refreshing() -> simulated.Recorded:
    """Return a simulation whose client retries after each status in ``REFRESHING``."""
    return simulated.ready(
        error_map=MAP, options=simulated.client_options(retry_strategy=couchbase.BestEffortRetryStrategy())
    )


@pytest.mark.parametrize("code", REFRESHING)
def test_config_request_precedes_waiting_operations(code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """If a response shows that the map is outdated, the config request precedes queued operations and the retry."""
    monkeypatch.setattr("triclinium_core.runtime.kv.connection.in_flight.REQUESTS_MAX", 1)
    simulation = refreshing()
    token, request = simulation.submit_in_flight(simulated.upsert("a"))
    queued = simulation.submit(simulated.get("b"))
    before = len(simulation.requests[TWO])
    simulation.inject(simulated.respond(request, code))
    first = [frame.opcode for frame in simulation.requests[TWO][before:]]
    simulation.flow()
    then = [frame.opcode for frame in simulation.requests[TWO][before:]]
    simulation.run()

    # The limit of requests in flight is 1, so the config request holds back the others until its response.
    assert [Opcode.GET_CLUSTER_CONFIG] == first
    assert [Opcode.GET_CLUSTER_CONFIG, Opcode.GET] == then
    assert [*then, Opcode.SET] == [frame.opcode for frame in simulation.requests[TWO][before:]]
    assert (True, True) == (token in simulation.results, queued in simulation.errors)


@pytest.mark.parametrize("code", REFRESHING)
def test_responses_in_one_piece_request_one_config(code: int) -> None:
    """If two operations are refused in one chunk of bytes, the client requests one config and retries both in order."""
    simulation = refreshing()
    (_, first), (_, second) = (simulation.submit_in_flight(simulated.upsert(key)) for key in "ab")
    del simulation.actions[:]
    before = len(simulation.requests[TWO])
    simulation.inject(simulated.respond(first, code) + simulated.respond(second, code))
    kinds = [type(action) for action in simulation.actions]
    simulation.live(0.1)
    sent = [(frame.opcode, frame.key[-1:]) for frame in simulation.requests[TWO][before:]]

    assert [ReportRetry, ReportRetry, neutral.SendBytes] == kinds
    assert [(Opcode.GET_CLUSTER_CONFIG, b""), (Opcode.SET, b"a"), (Opcode.SET, b"b")] == sent


def test_config_request_closes_before_the_retry() -> None:
    """If a config request is overdue, the connection is closed before the retry of a refused operation is reported."""
    simulation = simulated.ready(options=simulated.client_options(timeouts=TimeoutOptions(config_poll_interval=60.0)))
    simulation.node.faults.always(Opcode.GET_CLUSTER_CONFIG, faults.drop_response())
    for seconds in (0, SECONDS_MAX):
        simulation.live(seconds)
        simulation.feed(neutral.TimePassed())
        _, request = simulation.submit_in_flight(simulated.get())
        del simulation.actions[:]
        simulation.inject(simulated.respond(request, couchbase.Status.NOT_MY_VBUCKET))

    assert [neutral.CloseStream, neutral.ReportConnection, ReportRetry] == [
        type(action) for action in simulation.actions[:3]
    ]
    assert f"{SECONDS_MAX:g} s" in simulation.closings()[0]


def test_config_is_requested_once() -> None:
    """While a config request is pending, responses cause no other; the next one waits for the minimum interval."""
    simulation = simulated.ready()
    requests = [simulation.submit_in_flight(simulated.get(key))[1] for key in "abc"]
    for request in requests[:2]:
        simulation.inject(simulated.respond(request, couchbase.Status.NOT_MY_VBUCKET))
    counts = [configs_asked(simulation)]
    asked = simulation.requests[TWO][-1]
    simulation.inject(simulated.respond(asked))
    simulation.inject(simulated.respond(requests[2], couchbase.Status.NOT_MY_VBUCKET))
    counts.append(configs_asked(simulation))
    simulation.advance(TimeoutOptions().config_poll_floor)
    counts.append(configs_asked(simulation))

    assert [2, 2, 3] == counts


def test_config_is_requested_on_a_new_stream() -> None:
    """If a config request is lost with its stream, the client repeats it on the new stream when it needs a config."""
    simulation = simulated.ready()
    _, request = simulation.submit_in_flight(simulated.get())
    simulation.inject(simulated.respond(request, couchbase.Status.NOT_MY_VBUCKET))
    simulation.lose(TWO)
    simulation.live(1.0)
    before = configs_asked(simulation)
    _, request = simulation.submit_in_flight(simulated.get("other"))
    simulation.inject(simulated.respond(request, couchbase.Status.NOT_MY_VBUCKET))

    assert [1, 2] == [before, configs_asked(simulation)]
