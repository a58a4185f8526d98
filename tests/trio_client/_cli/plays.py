"""Invented runs of demo scenarios, as input for the checks and the output of the demo."""

from __future__ import annotations

from collections.abc import Sequence

from triclinium import Scope
from triclinium._cli.demo.recorder import ClientDecided, ConnectionReported, NodeTook, Play
from triclinium._cli.demo.scenarios import DemoOperation, DemoScenario
from triclinium.retries import RetryReason
from triclinium_core.kv.wire.constants import Opcode
from triclinium_core.retry.couchbase import Service, Status
from triclinium_core.testing import CommandFault, LoggedCommand, LoggedRequest


async def do_nothing(scope: Scope, key: str) -> None:
    """Stand in for an operation, and do nothing."""


SCENARIO = DemoScenario(
    name="locked",
    title="Somebody holds a lock",
    operation=DemoOperation("replace", Opcode.REPLACE, do_nothing),
    key="ada",
    reasons=(RetryReason.KV_LOCKED, RetryReason.KV_LOCKED),
    answer="done",
    frames=3,
    applied=1,
    clause="RFC 0049",
)


def frame(
    now: float,
    status: int | None = Status.LOCKED,
    *,
    key: str = "ada",
    opcode: int = Opcode.REPLACE,
    applied: bool = False,
    fault: CommandFault | None = None,
) -> LoggedCommand:
    """Return a command as in the node's log."""
    return LoggedCommand(
        connection=1,
        opcode=opcode,
        key=key.encode(),
        opaque=1,
        cas=0,
        now=now,
        fault=fault,
        status=status,
        applied=applied,
        bucket="default",
        collection_id=0,
        vbucket=0,
    )


def request(body: bytes, status: int, *, applied: bool = False, service: Service = Service.QUERY) -> LoggedRequest:
    """Return a request as in the log of a node's services."""
    return LoggedRequest(
        connection=2,
        service=service,
        method="POST",
        target="/query/service",
        statement="SELECT 1",
        body=body,
        now=0.0,
        fault=None,
        status=status,
        applied=applied,
    )


def decided(at: float, delay: float | None, reason: str = "KV_LOCKED", key: str | None = "ada") -> ClientDecided:
    """Return a decision that the client made a millisecond before its record. The client is as old as the run."""
    return ClientDecided(at, key, at - 100.001, reason, delay)


FRAMES: Sequence[LoggedCommand] = (frame(0.0), frame(0.002), frame(0.005, Status.SUCCESS, applied=True))

PLAY = Play(
    scenario=SCENARIO,
    began=100.0,
    ended=100.006,
    entries=(
        NodeTook(100.0005, FRAMES[0]),
        ConnectionReported(100.001, "ready"),
        decided(100.002, 0.001),
        NodeTook(100.0025, FRAMES[1]),
        decided(100.004, 0.002),
        NodeTook(100.0055, FRAMES[2]),
    ),
    outcome="success",
    message="",
    answer="done",
    context=None,
    retries_by_reason={"KV_LOCKED": 2},
)
"""Run that passes all checks."""
