"""Inquiries about a cluster, whose constructors check the arguments."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from tests.refusals import refused
from tests.rows import rows
from triclinium_core.kv.operation.inquiries import Ping, WaitForNodes, WaitUntilReady, check_report_id
from triclinium_core.kv.operation.reports import ClusterState, EndpointState
from triclinium_core.retry.couchbase import Service


@pytest.mark.parametrize("report_id", ["i", "x" * 250, "é\n"])
def test_the_name_of_a_report(report_id: str) -> None:
    """A report id may be any string of 1 to 250 characters."""
    assert report_id == Ping("travel", report_id).report_id


@rows(
    ("parameter", "values", "makes"),
    [
        ("report_id", ("", "x" * 251, None, 7, b"i"), (partial(Ping, None), check_report_id)),
        (
            "desired_state",
            (ClusterState.OFFLINE, EndpointState.CONNECTED, "online", None),
            (partial(WaitUntilReady, None),),
        ),
        ("bucket", ("", "a b", 7), (lambda bucket: Ping(bucket, "i"), WaitUntilReady, WaitForNodes)),
        ("bucket", (None,), (WaitForNodes,)),
        ("manifest_uid", (-1, 2**64), (partial(WaitForNodes, "travel"),)),
        (
            "service_types",
            ((), "query", Service.QUERY, ["query"], 7, [None]),
            (partial(Ping, None, "i"), lambda services: WaitUntilReady(None, service_types=services)),
        ),
    ],
)
def test_invalid_arguments(parameter: str, values: tuple[Any, ...], makes: tuple[Callable[[Any], object], ...]) -> None:
    """An invalid argument raises an error that names the parameter; OFFLINE is no desired state (RFC 0061)."""
    for make in makes:
        for value in values:
            refused(parameter, make, value)


def test_the_desired_state() -> None:
    """By default a wait desires the state ONLINE."""
    assert ClusterState.ONLINE is WaitUntilReady(None).desired_state
    assert ClusterState.DEGRADED is WaitUntilReady("travel", ClusterState.DEGRADED).desired_state
