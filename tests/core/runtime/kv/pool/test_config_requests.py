"""Config requests: a stream has at most one pending request, and its loss permits another on a new stream."""

from __future__ import annotations

from tests.core.runtime.kv import simulated
from tests.core.runtime.kv.pool.pool_cases import TWO, configs_asked
from triclinium_core.options import TimeoutOptions
from triclinium_core.retry.couchbase import Status


def test_config_is_requested_once() -> None:
    """While a config request is pending, responses cause no other; the next one waits for the minimum interval."""
    simulation = simulated.ready()
    requests = [simulation.submit_in_flight(simulated.get(key))[1] for key in "abc"]
    for request in requests[:2]:
        simulation.inject(simulated.respond(request, Status.NOT_MY_VBUCKET))
    counts = [configs_asked(simulation)]
    asked = simulation.requests[TWO][-1]
    simulation.inject(simulated.respond(asked))
    simulation.inject(simulated.respond(requests[2], Status.NOT_MY_VBUCKET))
    counts.append(configs_asked(simulation))
    simulation.advance(TimeoutOptions().config_poll_floor)
    counts.append(configs_asked(simulation))

    assert [2, 2, 3] == counts


def test_config_is_requested_on_a_new_stream() -> None:
    """If a config request is lost with its stream, the client repeats it on the new stream when it needs a config."""
    simulation = simulated.ready()
    _, request = simulation.submit_in_flight(simulated.get())
    simulation.inject(simulated.respond(request, Status.NOT_MY_VBUCKET))
    simulation.lose(TWO)
    simulation.live(1.0)
    before = configs_asked(simulation)
    _, request = simulation.submit_in_flight(simulated.get("other"))
    simulation.inject(simulated.respond(request, Status.NOT_MY_VBUCKET))

    assert [1, 2] == [before, configs_asked(simulation)]
