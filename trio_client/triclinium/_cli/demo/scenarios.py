"""Scenarios of the demo: operations, their faults, and the requirements of RFC 0049.

The requirements are written down here and not taken from the tables of the core, because they check these tables.

Source: SDK-RFC 0049 rev 16, SDK-RFC 0013, SDK-RFC 0056.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from itertools import repeat
from typing import NamedTuple

from triclinium import ErrorMapRetryStrategy
from triclinium._collection.collection import Collection
from triclinium._keyspace import Scope
from triclinium.retries import AnyRetryStrategy, RetryAction, RetryReason, RetryRequest
from triclinium_core import testing
from triclinium_core.kv.wire.constants import Opcode
from triclinium_core.retry.couchbase import FailFastRetryStrategy, Service

SUCCESS = "success"

BEST_EFFORT_MS = (1, 2, 4, 8, 16, 32, 64, 128, 256, *repeat(500, 50))
"""Delay of each retry in milliseconds (RFC 0049 "Best Effort")."""
CONTROLLED_MS = (1, 10, 50, 100, 500, *repeat(1000, 50))
"""Delay of each retry in milliseconds (RFC 0049 "Controlled Backoff for Always Retry")."""
ERROR_MAP_MS = (50, *repeat(10, 50))
"""Delays of status 0x7ff0 in milliseconds: ``after``, then ``interval`` (RFC 0013 "Retry Intervals")."""


class DemoOperation(NamedTuple):
    """Operation on a document, or HTTP request to a service."""

    name: str
    travels_as: Opcode | Service
    """Opcode or service. It identifies the requests in the node's log, an opcode together with the document's key."""
    perform: Callable[[Scope, str], Awaitable[object]]


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoScenario:
    """Operation of the demo, its fault, and the required result."""

    name: str
    title: str
    operation: DemoOperation
    key: str
    """Key of the document; for a query its statement."""
    arrange: DemoOperation | None = None
    """Operation to run before the fault is set."""
    fault: testing.Fault | None = None
    times: int = 1
    """Number of commands that the fault affects."""
    strategy: AnyRetryStrategy | None = None
    node_is_late: bool = False
    """Whether the node starts only after the client has failed to reach it."""
    plans_go_stale: bool = False
    """Whether the node's plans of prepared statements are invalid before the operation."""
    password_is_wrong: bool = False
    reasons: tuple[RetryReason, ...]
    """Reasons that the client must report, one for each decision, in order."""
    then: frozenset[RetryReason] = frozenset()
    """Reasons that may follow any number of times, because reconnecting takes time."""
    delays_ms: tuple[int, ...] = BEST_EFFORT_MS
    """Delays of the retries in order; delays after the last retry are unused."""
    outcome: str = SUCCESS
    """``SUCCESS`` or the name of the exception."""
    answer: object = None
    """Result of the operation; None to accept any result."""
    frames: int
    """Number of times the request reaches the node."""
    applied: int
    """Number of times the node changes the document, or executes the statement."""
    prepared: int = 0
    """Number of times the node plans the statement during the operation; 0 to skip the check."""
    clause: str

    @property
    def logged_key(self) -> str | None:
        """Key of the document in the client's log; None for an HTTP request, which has no document."""
        return self.key if isinstance(self.operation.travels_as, Opcode) else None


class Reckless:
    """Strategy that retries everything, which no real strategy should do."""

    def retry_after(self, request: RetryRequest, reason: RetryReason, /) -> RetryAction:
        """Return a retry after 1 ms, whatever the reason."""
        return RetryAction.after(0.001)


ADA = {"born": 1815, "name": "Ada Lovelace"}
STATEMENT = "SELECT 1815 AS born"


def _people(scope: Scope) -> Collection:
    return scope.collection("_default")


async def _insert(scope: Scope, key: str) -> None:
    await _people(scope).insert(key, ADA)


async def _upsert(scope: Scope, key: str) -> None:
    await _people(scope).upsert(key, ADA)


async def _replace(scope: Scope, key: str) -> None:
    await _people(scope).replace(key, ADA)


async def _get(scope: Scope, key: str) -> object:
    return (await _people(scope).get(key)).content


async def _increment(scope: Scope, key: str) -> object:
    return (await _people(scope).binary.increment(key, initial=1)).content


async def _query(scope: Scope, statement: str) -> object:
    async with scope.query(statement, adhoc=False) as result:
        return await result.rows()


INSERT = DemoOperation("insert", Opcode.ADD, _insert)
UPSERT = DemoOperation("upsert", Opcode.SET, _upsert)
REPLACE = DemoOperation("replace", Opcode.REPLACE, _replace)
GET = DemoOperation("get", Opcode.GET, _get)
INCREMENT = DemoOperation("increment", Opcode.INCREMENT, _increment)
QUERY = DemoOperation("query", Service.QUERY, _query)

R = RetryReason

SCENARIOS: tuple[DemoScenario, ...] = (
    DemoScenario(
        name="before dispatch",
        title="A write before the node listens",
        operation=INSERT,
        key="ada",
        node_is_late=True,
        reasons=(R.NODE_NOT_AVAILABLE,),
        then=frozenset({R.NODE_NOT_AVAILABLE}),
        frames=1,
        applied=1,
        clause="RFC 0049 Client Dispatch: nothing was sent, so even a write is retried",
    ),
    DemoScenario(
        name="in flight, a read",
        title="A read; the node hangs up in the middle of its response",
        operation=GET,
        key="ada",
        arrange=UPSERT,
        fault=testing.hang_up_mid_reply(),
        reasons=(R.SOCKET_CLOSED_WHILE_IN_FLIGHT,),
        then=frozenset({R.SOCKET_NOT_AVAILABLE}),
        answer=ADA,
        frames=2,
        applied=0,
        clause="RFC 0049 Network Time: an idempotent operation is sent again",
    ),
    DemoScenario(
        name="in flight, a write",
        title="A write; the node applies it and hangs up",
        operation=INCREMENT,
        key="visits",
        fault=testing.hang_up_after_applying(),
        reasons=(R.SOCKET_CLOSED_WHILE_IN_FLIGHT,),
        outcome="RequestCanceledException",
        frames=1,
        applied=1,
        clause="RFC 0049 Network Time: an operation that is not idempotent fails",
    ),
    DemoScenario(
        name="a reckless strategy",
        title="The same write, with a strategy that requests a retry",
        operation=INCREMENT,
        key="likes",
        fault=testing.hang_up_after_applying(),
        strategy=Reckless(),
        reasons=(R.SOCKET_CLOSED_WHILE_IN_FLIGHT,),
        outcome="RequestCanceledException",
        frames=1,
        applied=1,
        clause="RFC 0049 Retry Orchestration: no strategy can make the client send it again",
    ),
    DemoScenario(
        name="temporary failure",
        title="The node is out of resources three times",
        operation=UPSERT,
        key="grace",
        fault=testing.temporary_failure(),
        times=3,
        reasons=(R.KV_TEMPORARY_FAILURE,) * 3,
        frames=4,
        applied=1,
        clause="RFC 0049 Response Code Retry List: 0x86, with the best-effort backoff",
    ),
    DemoScenario(
        name="locked",
        title="The document is locked, twice",
        operation=REPLACE,
        key="ada",
        arrange=UPSERT,
        fault=testing.locked(),
        times=2,
        reasons=(R.KV_LOCKED,) * 2,
        frames=3,
        applied=1,
        clause="RFC 0049 Response Code Retry List: 0x09, for all operations but unlock",
    ),
    DemoScenario(
        name="unknown status",
        title="A status that only the node's error map lists",
        operation=UPSERT,
        key="alan",
        fault=testing.status(0x7FF0),
        times=2,
        reasons=(R.KV_ERROR_MAP_RETRY_INDICATED,) * 2,
        frames=3,
        applied=1,
        clause="RFC 0049 KV Error Map Handling: the map allows a retry; the strategy decides",
    ),
    DemoScenario(
        name="the map's own plan",
        title="The same status, with a strategy that follows the map's schedule",
        operation=UPSERT,
        key="alan",
        fault=testing.status(0x7FF0),
        times=2,
        strategy=ErrorMapRetryStrategy(),
        reasons=(R.KV_ERROR_MAP_RETRY_INDICATED,) * 2,
        delays_ms=ERROR_MAP_MS,
        frames=3,
        applied=1,
        clause="RFC 0013 Retry Intervals: first `after`, then `interval`",
    ),
    DemoScenario(
        name="not my vbucket",
        title="The document has moved, and the strategy fails fast",
        operation=GET,
        key="ada",
        arrange=UPSERT,
        fault=testing.not_my_vbucket(),
        times=2,
        strategy=FailFastRetryStrategy(),
        reasons=(R.KV_NOT_MY_VBUCKET,) * 2,
        delays_ms=CONTROLLED_MS,
        answer=ADA,
        frames=3,
        applied=0,
        clause="RFC 0049 Controlled Backoff for Always Retry: no strategy is consulted",
    ),
    DemoScenario(
        name="a stale plan",
        title="A prepared statement whose plan the node can no longer use",
        operation=QUERY,
        key=STATEMENT,
        arrange=QUERY,
        plans_go_stale=True,
        reasons=(R.QUERY_PREPARED_STATEMENT_FAILURE,),
        answer=[{"born": 1815}],
        frames=2,
        applied=1,
        prepared=1,
        clause="RFC 0049 Response Code Retry List: 4050; the statement is prepared again",
    ),
    DemoScenario(
        name="wrong password",
        title="The password is wrong",
        operation=GET,
        key="ada",
        password_is_wrong=True,
        reasons=(R.AUTHENTICATION_ERROR,),
        outcome="AuthenticationFailureException",
        frames=0,
        applied=0,
        clause="RFC 0049 Fail Fast (Terminal Errors): no retry would help, so it fails",
    ),
)
