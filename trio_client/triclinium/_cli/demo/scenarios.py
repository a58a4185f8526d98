"""Scenarios of the demo: operations, their faults, and the demands of RFC 0049.

The demands are written down here once more and are not taken from the tables of the core, for they judge it.

Source: SDK-RFC 0049 rev 16, SDK-RFC 0013, SDK-RFC 0056.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from itertools import repeat
from typing import NamedTuple

from triclinium import AnyRetryStrategy, ErrorMapRetryStrategy, RetryAction, RetryReason, RetryRequest
from triclinium._collection.collection import Collection
from triclinium._keyspace import Scope
from triclinium_core import testing
from triclinium_core.kv.wire.constants import Opcode
from triclinium_core.retry.couchbase import FailFastRetryStrategy, Service

SUCCESS = "success"

BEST_EFFORT_MS = (1, 2, 4, 8, 16, 32, 64, 128, 256, *repeat(500, 50))
"""RFC 0049 "Best Effort": delay of each retry."""
CONTROLLED_MS = (1, 10, 50, 100, 500, *repeat(1000, 50))
"""RFC 0049 "Controlled Backoff for Always Retry": delay of each retry."""
ERROR_MAP_MS = (50, *repeat(10, 50))
"""RFC 0013 "Retry Intervals": the plan of status 0x7ff0 in the node's error map, ``after`` and then ``interval``."""


class DemoOperation(NamedTuple):
    """An operation on a document, or a request to a service over HTTP."""

    name: str
    travels_as: Opcode | Service
    """How it travels; by this, and by the key of a document, its requests are found in the log of the node."""
    perform: Callable[[Scope, str], Awaitable[object]]


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoScenario:
    """One operation, what goes wrong with it, and what must come of that."""

    name: str
    title: str
    operation: DemoOperation
    key: str
    """Of the document; for a query its statement."""
    arrange: DemoOperation | None = None
    """What has to be done before, when nothing goes wrong yet."""
    fault: testing.Fault | None = None
    times: int = 1
    """How many commands the fault strikes."""
    strategy: AnyRetryStrategy | None = None
    node_is_late: bool = False
    """Whether the node is started only once the client has failed to reach it."""
    plans_go_stale: bool = False
    """Whether the node cannot use its plans of prepared statements any more when the operation comes."""
    password_is_wrong: bool = False
    reasons: tuple[RetryReason, ...]
    """What the client must report, one reason for each decision, in order."""
    then: frozenset[RetryReason] = frozenset()
    """What it may report after these, any number of times: a connection takes its time to come back."""
    delays_ms: tuple[int, ...] = BEST_EFFORT_MS
    """Delays of the retries, as far as there are retries."""
    outcome: str = SUCCESS
    """Or the name of the exception."""
    answer: object = None
    """What the operation returns; None where that does not matter."""
    frames: int
    """How often the request reaches the node."""
    applied: int
    """How often it changes the document, or executes the statement."""
    prepared: int = 0
    """How often the node has to plan the statement."""
    clause: str

    @property
    def logged_key(self) -> str | None:
        """What the client's log calls the document; None for a request over HTTP, which is about none."""
        return self.key if isinstance(self.operation.travels_as, Opcode) else None


class Reckless:
    """A strategy that retries everything, which no strategy should."""

    def retry_after(self, request: RetryRequest, reason: RetryReason, /) -> RetryAction:
        """Return a retry, whatever happened."""
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
        title="A write, and nobody listens yet",
        operation=INSERT,
        key="ada",
        node_is_late=True,
        reasons=(R.NODE_NOT_AVAILABLE,),
        then=frozenset({R.NODE_NOT_AVAILABLE}),
        frames=1,
        applied=1,
        clause="RFC 0049 Client Dispatch: nothing was sent, so even a write is tried again",
    ),
    DemoScenario(
        name="in flight, a read",
        title="A read, and the node hangs up in the middle of its reply",
        operation=GET,
        key="ada",
        arrange=UPSERT,
        fault=testing.hang_up_mid_reply(),
        reasons=(R.SOCKET_CLOSED_WHILE_IN_FLIGHT,),
        then=frozenset({R.SOCKET_NOT_AVAILABLE}),
        answer=ADA,
        frames=2,
        applied=0,
        clause="RFC 0049 Network Time: what is idempotent is sent again, and nobody notices",
    ),
    DemoScenario(
        name="in flight, a write",
        title="A write, and the node hangs up once it is applied",
        operation=INCREMENT,
        key="visits",
        fault=testing.hang_up_after_applying(),
        reasons=(R.SOCKET_CLOSED_WHILE_IN_FLIGHT,),
        outcome="RequestCanceledException",
        frames=1,
        applied=1,
        clause="RFC 0049 Network Time: what is not idempotent fails, twice would be wrong",
    ),
    DemoScenario(
        name="a reckless strategy",
        title="The same, and a strategy that would send it again",
        operation=INCREMENT,
        key="likes",
        fault=testing.hang_up_after_applying(),
        strategy=Reckless(),
        reasons=(R.SOCKET_CLOSED_WHILE_IN_FLIGHT,),
        outcome="RequestCanceledException",
        frames=1,
        applied=1,
        clause="RFC 0049 Retry Orchestration: no strategy can make the client do that",
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
        title="Somebody holds a lock on the document, twice",
        operation=REPLACE,
        key="ada",
        arrange=UPSERT,
        fault=testing.locked(),
        times=2,
        reasons=(R.KV_LOCKED,) * 2,
        frames=3,
        applied=1,
        clause="RFC 0049 Response Code Retry List: 0x09, for all but unlock",
    ),
    DemoScenario(
        name="unknown status",
        title="A status that only the node's error map knows",
        operation=UPSERT,
        key="alan",
        fault=testing.status(0x7FF0),
        times=2,
        reasons=(R.KV_ERROR_MAP_RETRY_INDICATED,) * 2,
        frames=3,
        applied=1,
        clause="RFC 0049 KV Error Map Handling: the map permits it, so the strategy decides",
    ),
    DemoScenario(
        name="the map's own plan",
        title="The same, by a strategy that follows the map's plan",
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
        clause="RFC 0049 Controlled Backoff for Always Retry: no strategy is asked",
    ),
    DemoScenario(
        name="a stale plan",
        title="A prepared statement, and the node cannot use its plan any more",
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
        clause="RFC 0049 Fail Fast (Terminal Errors): no retry would help, it fails at once",
    ),
)
