"""Histories in which callers query services: their content, under all laws."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.core.testing.simulation.played import played
from triclinium_core.retry.couchbase import Service
from triclinium_core.services.management.management_request import ManagementRequest
from triclinium_core.services.query.query_request import QueryRequest
from triclinium_core.testing.simulation.history import ClusterHistory
from triclinium_core.testing.simulation.readers import asks_all, has_readers
from triclinium_core.testing.simulation.simulation_command import REGRESSIONS

SEEDS = (0, 1, 2, 3)


@pytest.fixture(scope="module")
def histories() -> list[ClusterHistory]:
    """Return some complete histories."""
    return [played(seed) for seed in SEEDS]


@pytest.mark.history
def test_every_kind_of_request_ends(histories: list[ClusterHistory]) -> None:
    """Queries of all kinds and management requests occur with all results, and all of them end."""
    books = [history.simulation.requests for history in histories]
    asked = [book[token] for book in books for token in range(2000) if token in book]
    figures = Counter[str]()
    for history in histories:
        figures += history.figures().request_outcomes
    queries = [each.drawn.request for each in asked if isinstance(each.drawn.request, QueryRequest)]

    assert {(True, True), (True, False), (False, True), (False, False)} == {(q.readonly, q.adhoc) for q in queries}
    assert 3 == len({type(each.drawn.request) for each in asked if isinstance(each.drawn.request, ManagementRequest)})
    assert len(asked) == figures.total() == sum(history.figures().requests for history in histories)
    assert {"done", "refused by the service", "abandoned by their callers", "failed in trouble"} <= set(figures)
    assert [] == [each for each in asked if each.is_open]


@pytest.mark.history
def test_rows_are_retried_struck_and_paused(histories: list[ClusterHistory]) -> None:
    """These histories include retried requests, faults during rows, and stale plans."""
    books = [history.simulation.requests for history in histories]
    asked = [book[token] for book in books for token in range(2000) if token in book]

    assert any(each.retries for each in asked)
    assert any(each.strikes and len(each.rows) == len(each.drawn.rows) > 0 for each in asked)
    assert any(each.times_sent > 1 for each in asked)
    assert sum(history.figures().rows for history in histories) == sum(len(each.rows) for each in asked) > 1000
    assert sum(history.figures().changes["plans gone stale"] for history in histories)


@pytest.mark.history
def test_every_service_is_queried(histories: list[ClusterHistory]) -> None:
    """About half of the histories use all services, but no known regression does; the others here use two services."""
    services = [
        {book[token].drawn.request.service for token in range(2000) if token in book}
        for book in (history.simulation.requests for history in histories)
    ]

    assert {len(Service) - 1, 2} == set(map(len, services))
    assert [asks_all(seed) for seed in SEEDS] == [len(each) > 2 for each in services]
    assert not any(asks_all(seed) for seed in REGRESSIONS)
    assert 0.4 < sum(map(asks_all, range(1000))) / 1000 < 0.6


def test_some_histories_have_only_documents() -> None:
    """Some histories query no service, among them those of the regressions on documents."""
    assert [False, False, True, True] == [has_readers(seed) for seed in REGRESSIONS]
    assert 0.6 < sum(map(has_readers, range(1000))) / 1000 < 0.9
