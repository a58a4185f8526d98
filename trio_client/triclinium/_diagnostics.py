"""The health of a cluster or of one bucket: what ``Cluster`` and ``Bucket`` have in common."""

from __future__ import annotations

import uuid

from triclinium._driver.driver import Driver
from triclinium_core.kv.operation.inquiries import Ping, WaitUntilReady
from triclinium_core.kv.operation.reports import ClusterState, DiagnosticsResult, PingResult, Ready


async def ping(driver: Driver, bucket: str | None, report_id: str | None) -> PingResult:
    """Return what came of a NOOP on each connection of a bucket, or of the cluster where that is None."""
    return await driver.perform(PingResult, lambda: Ping(bucket, _named(report_id)), None)


async def wait_until_ready(driver: Driver, bucket: str | None, desired_state: ClusterState) -> None:
    """Return once the connections of a bucket, or of the cluster where that is None, are in a state."""
    await driver.perform(Ready, lambda: WaitUntilReady(bucket, desired_state), None)


def diagnostics(driver: Driver, report_id: str | None) -> DiagnosticsResult:
    """Return how all connections stand."""
    return driver.diagnostics(_named(report_id))


def _named(report_id: str | None) -> str:
    return str(uuid.uuid4()) if report_id is None else report_id
