"""Each row and each exclusion of the RFC's list of response codes, in a simulation under all laws."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from triclinium_core.retry import couchbase
from triclinium_core.testing.fakes.cluster.nodes import FakeNodes
from triclinium_core.testing.request_templates import SERVICE_REFUSALS, VIEW_FAILURES, RequestTemplates
from triclinium_core.testing.simulation.checked import CheckedSimulation
from triclinium_core.testing.simulation.history import BUCKET, COLLECTION_IDS, NAMED, NODE_OPTIONS, SERVICE_TIMEOUTS
from triclinium_core.testing.simulation.simulation import client_options

KINDS = {
    couchbase.Service.SEARCH: "search refused",
    couchbase.Service.ANALYTICS: "analytics refused",
    couchbase.Service.VIEWS: "view refused",
}
ROWS = [(service, place) for service, answers in SERVICE_REFUSALS.items() for place in range(len(answers))]


def asking(kind: str, place: int) -> tuple[CheckedSimulation, RequestTemplates]:
    """Return a simulation, and templates for one kind of request with the response at this index."""
    nodes = FakeNodes(NODE_OPTIONS, 1)
    options = replace(client_options(nodes), timeouts=SERVICE_TIMEOUTS)
    simulation = CheckedSimulation(nodes, options, COLLECTION_IDS)
    simulation.tick()
    simulation.flow()

    def choose(choices: Sequence[object]) -> object:
        if isinstance(choices, range):
            return min(place, len(choices) - 1)
        return kind if kind in choices else choices[0]

    return simulation, RequestTemplates(nodes.script, choose, bucket=BUCKET, scope=NAMED.scope, asks_all=True)


def test_every_row_is_drawn() -> None:
    """The simulation can draw each row: those of analytics by error code, those of search and views by HTTP status."""
    codes = {
        (couchbase.Service.ANALYTICS, answer.errors[0]["code"])
        for answer in SERVICE_REFUSALS[couchbase.Service.ANALYTICS]
    }
    statuses = {
        (service, answer.http_status)
        for service in (couchbase.Service.SEARCH, couchbase.Service.VIEWS)
        for answer in SERVICE_REFUSALS[service]
    }

    assert codes == {row for row in couchbase.RETRYABLE_ERROR_CODES if row[0] is couchbase.Service.ANALYTICS}
    assert statuses == set(couchbase.RETRYABLE_HTTP_STATUSES)


@pytest.mark.parametrize(("service", "place"), ROWS)
def test_refusal_is_retried(service: couchbase.Service, place: int) -> None:
    """A refusal is retried for its row's reason until rows arrive; fail fast fails, unless the reason is always
    retried.
    """
    simulation, templates = asking(KINDS[service], place)
    patient, hasty = templates.draw(), templates.draw()
    first = simulation.ask(patient, reads_slowly=False)
    second = simulation.ask(hasty, retry_strategy=couchbase.FailFastRetryStrategy(), reads_slowly=False)
    simulation.run()
    reasons = {report.reason for report in simulation.retries if report.token == first}

    assert list(patient.rows) == simulation.rows[first]
    assert 1 == len(reasons)
    assert patient.refusals == sum(report.token == first for report in simulation.retries) > 0
    assert (reasons == {couchbase.RetryReason.VIEWS_NO_ACTIVE_PARTITION}) == (second in simulation.answers)


@pytest.mark.parametrize("place", range(len(VIEW_FAILURES)))
def test_exclusion_is_final(place: int) -> None:
    """An excluded response fails the request immediately with its own error."""
    simulation, templates = asking("view failed", place)
    token = simulation.ask(templates.draw(), reads_slowly=False)
    simulation.run()

    assert [] == simulation.retries
    assert isinstance(simulation.errors[token], VIEW_FAILURES[place][1])
