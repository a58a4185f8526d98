"""What the demo plays: operations, what goes wrong with each, and what RFC 0049 demands then.

The demands are written down here once more and are not taken from the tables of the core, for they judge it.

Source: SDK-RFC 0049 rev 16, SDK-RFC 0013.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from itertools import repeat
from typing import NamedTuple

from triclinium import (
    AnyRetryStrategy,
    Collection,
    ErrorMapRetryStrategy,
    RetryAction,
    RetryReason,
    RetryRequest,
)
from triclinium_core.kv.wire.constants import Opcode
from triclinium_core.retry.couchbase.strategy import FailFastRetryStrategy
from triclinium_core.testing import (
    Fault,
    hang_up_after_applying,
    hang_up_mid_reply,
    locked,
    not_my_vbucket,
    status,
    temporary_failure,
)

SUCCESS = "success"

BEST_EFFORT_MS = (1, 2, 4, 8, 16, 32, 64, 128, 256, *repeat(500, 50))
"""RFC 0049 "Best Effort": delay of each retry."""
CONTROLLED_MS = (1, 10, 50, 100, 500, *repeat(1000, 50))
"""RFC 0049 "Controlled Backoff for Always Retry": delay of each retry."""
ERROR_MAP_MS = (50, *repeat(10, 50))
"""RFC 0013 "Retry Intervals": the plan of status 0x7ff0 in the node's error map, ``after`` and then ``interval``."""


class DemoOperation(NamedTuple):
    """An operation on a document of a key."""

    name: str
    opcode: Opcode
    """How it travels; by key and opcode its frames are found in the log of the node."""
    perform: Callable[[Collection, str], Awaitable[object]]


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoScenario:
    """One operation, what goes wrong with it, and what must come of that."""

    name: str
    title: str
    operation: DemoOperation
    key: str
    arrange: DemoOperation | None = None
    """What has to be done before, when nothing goes wrong yet."""
    fault: Fault | None = None
    times: int = 1
    """How many commands the fault strikes."""
    strategy: AnyRetryStrategy | None = None
    node_is_late: bool = False
    """Whether the node is started only once the client has failed to reach it."""
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
    """How often it changes the document."""
    clause: str


class Reckless:
    """A strategy that retries everything, which no strategy should."""

    def retry_after(self, request: RetryRequest, reason: RetryReason, /) -> RetryAction:
        """Return a retry, whatever happened."""
        return RetryAction.after(0.001)


ADA = {"born": 1815, "name": "Ada Lovelace"}


async def _insert(people: Collection, key: str) -> None:
    await people.insert(key, ADA)


async def _upsert(people: Collection, key: str) -> None:
    await people.upsert(key, ADA)


async def _replace(people: Collection, key: str) -> None:
    await people.replace(key, ADA)


async def _get(people: Collection, key: str) -> object:
    return (await people.get(key)).content


async def _increment(people: Collection, key: str) -> object:
    return (await people.binary.increment(key, initial=1)).content


INSERT = DemoOperation("insert", Opcode.ADD, _insert)
UPSERT = DemoOperation("upsert", Opcode.SET, _upsert)
REPLACE = DemoOperation("replace", Opcode.REPLACE, _replace)
GET = DemoOperation("get", Opcode.GET, _get)
INCREMENT = DemoOperation("increment", Opcode.INCREMENT, _increment)

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
        fault=hang_up_mid_reply(),
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
        fault=hang_up_after_applying(),
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
        fault=hang_up_after_applying(),
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
        fault=temporary_failure(),
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
        fault=locked(),
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
        fault=status(0x7FF0),
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
        fault=status(0x7FF0),
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
        fault=not_my_vbucket(),
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
