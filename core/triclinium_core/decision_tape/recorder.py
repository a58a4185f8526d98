"""Recorder of a decision tape: it keeps the newest facts that the parts of a client add.

It keeps references, and ``encoding`` makes lines of them later. A recorded operation keeps neither its value nor its
statement alive.
"""

from __future__ import annotations

import hmac
from collections import deque
from collections.abc import Callable, Sequence

import msgspec

from triclinium_core.checks import check_flag, check_integer
from triclinium_core.contract.couchbase import AbandonReason
from triclinium_core.contract.neutral import StreamLost, Token
from triclinium_core.decision_tape import lines
from triclinium_core.decision_tape.retry_recording import RecordedRetryMachine, node_name
from triclinium_core.errors import InvalidArgumentException
from triclinium_core.kv.operation.document_operations import Keyspace
from triclinium_core.kv.topology.cluster_config import ClusterConfig
from triclinium_core.retry.backoff import Random
from triclinium_core.retry.couchbase import BreakerState, Service
from triclinium_core.retry.couchbase.retry_machine import RequestAnnotation, RetryMachine
from triclinium_core.retry.couchbase.states import RetryState
from triclinium_core.retry.couchbase.tables.error_map import ErrorMapStore

FACTS_MAX = 1_000_000
"""Maximum number of facts that a recorder can keep."""

KEY_SIZE_MIN = 16
"""Minimum size in bytes of the key of pseudonyms."""


class Place(msgspec.Struct, frozen=True, gc=False):
    """Names in a request to an HTTP service; None for a name that the request lacks."""

    bucket: str | None
    scope: str | None
    collection: str | None
    index: str | None


class RecordedCall(msgspec.Struct):
    """Facts about an operation or request that has ended, or is open while the tape is saved."""

    token: Token
    name: str
    service: Service
    idempotent: bool
    place: Keyspace | Place
    key: str
    """Key of the document; empty without one. Without pseudonyms, ``add`` drops the key."""
    strategy: object
    """Strategy that decides about retries; for a token strategy, the strategy itself, not the permit that it issued."""
    submitted_at: float
    deadline: float
    dispatched_at: float | None
    node: str | None
    stream: int | None
    opaque: int | None
    retry: RetryMachine | None
    """Retry machine with the recorded steps; None if the call has no retry machine, and after ``settled``."""
    ended_at: float | None
    error: type | None = None
    abandoned: AbandonReason | None = None
    began_in_flight: bool = True
    is_async: bool = False
    """Whether the strategy is asynchronous; False if it was not consulted."""
    steps: Sequence[lines.Step] | None = None
    omitted: int = 0


Fact = RecordedCall | lines.Connection | lines.Breaker | lines.ClusterMap


class DecisionRecorder:
    """Ring of the newest facts of one client.

    Args:
        capacity: maximum number of facts. When it is reached, a new fact replaces the oldest.
        names: whether the tape has the names of buckets, scopes, collections and indexes, not numbers.
        pseudonym_key: random key, of at least 16 bytes, for the pseudonyms of documents' keys. None, the default, for a
            tape without pseudonyms.

    Raises:
        InvalidArgumentException: an argument is invalid.
    """

    def __init__(self, capacity: int, *, names: bool = True, pseudonym_key: bytes | None = None) -> None:
        check_integer(capacity, "capacity", 1, FACTS_MAX)
        self.names: bool = check_flag(names, "names")
        if pseudonym_key is not None and (type(pseudonym_key) is not bytes or len(pseudonym_key) < KEY_SIZE_MIN):
            raise InvalidArgumentException(
                f"pseudonym_key must be at least {KEY_SIZE_MIN} random bytes", parameter="pseudonym_key"
            )
        self._key = pseudonym_key
        self._facts: deque[Fact] = deque(maxlen=capacity)
        self._added = 0
        self._taken = 0
        self.now: float = 0.0
        """Time of the event that the client handles, in monotonic seconds. The client sets it."""

    def __len__(self) -> int:
        return len(self._facts)

    @property
    def lost(self) -> int:
        """Number of facts that newer facts replaced."""
        return self._added - self._taken - len(self._facts)

    @property
    def pseudonym(self) -> Callable[[str], str] | None:
        """Function that returns the pseudonym of a key; None for a tape without pseudonyms."""
        key = self._key
        return None if key is None else lambda name: hmac.digest(key, name.encode(), "sha256")[:16].hex()

    def facts(self) -> Sequence[Fact]:
        """Return all facts, oldest first, and keep them."""
        return tuple(self._facts)

    def take(self) -> Sequence[Fact]:
        """Remove and return all facts, oldest first. Another thread may call this."""
        facts = [self._facts.popleft() for _ in range(len(self._facts))]
        self._taken += len(facts)
        return facts

    # -- Facts about operations and requests.

    def retry_machine(
        self,
        annotation: RequestAnnotation,
        *,
        rng: Random,
        error_maps: ErrorMapStore,
        state: RetryState,
        call: RecordedCall,
    ) -> RetryMachine:
        """Return the retry machine of an operation or request, which records its decisions.

        Args:
            call: facts about the operation or request so far.
        """
        sent, pseudonym = sent_line(call) if state is RetryState.IN_FLIGHT else None, self.pseudonym
        name = pseudonym(call.key) if pseudonym is not None and call.key else None
        return RecordedRetryMachine(annotation, rng=rng, error_maps=error_maps, state=state, sent=sent, pseudonym=name)

    def add(self, call: RecordedCall) -> None:
        """Add an operation or request that has ended."""
        if self._key is None:
            call.key = ""
        if call.retry is not None:
            settled(call)
        self._added += 1
        self._facts.append(call)

    # -- Facts about connections and the cluster.

    def connection(self, event: lines.Milestone, stream: int, node: str | None, bucket: str | None) -> None:
        """Add a change of a connection."""
        self._add(lines.Connection(at=self.now, stream=stream, event=event, node=node_name(node), bucket=bucket))

    def stream_lost(self, event: StreamLost) -> None:
        """Add the loss of a stream."""
        self._add(
            lines.Connection(
                at=self.now, stream=event.stream, event="stream_lost", cause=event.cause, handed_over=event.handed_over
            )
        )

    def breaker(self, state: BreakerState, node: str, bucket: str | None) -> None:
        """Add a change of a circuit breaker."""
        self._add(lines.Breaker(at=self.now, state=state, node=node_name(node), bucket=bucket))

    def cluster_map(self, bucket: str | None, old: ClusterConfig | None, new: ClusterConfig) -> None:
        """Add a config that the client has accepted."""
        epoch, revision = new.revision
        self._add(
            lines.ClusterMap(
                at=self.now,
                epoch=epoch,
                revision=revision,
                nodes=len(new.nodes_ext),
                moved=moved_vbuckets(old, new),
                bucket=bucket,
            )
        )

    def _add(self, fact: Fact) -> None:
        self._added += 1
        self._facts.append(fact)


def sent_line(call: RecordedCall) -> lines.Sent:
    """Return the line of the newest attempt of a call that has had no failure."""
    at = call.dispatched_at if call.dispatched_at is not None else call.submitted_at
    return lines.Sent(at=at, node=node_name(call.node), stream=call.stream, opaque=call.opaque)


def settled(call: RecordedCall) -> RecordedCall:
    """Replace the retry machine of a call with its recorded steps, so that the call does not keep the machine alive."""
    machine, call.retry = call.retry, None
    if isinstance(machine, RecordedRetryMachine):
        call.steps, call.omitted = tuple(machine.steps), machine.omitted
        call.began_in_flight, call.is_async = machine.began_in_flight, machine.is_async
    return call


def moved_vbuckets(old: ClusterConfig | None, new: ClusterConfig) -> int:
    """Return the number of vbuckets whose active copy is on another node than in ``old``; 0 if a config has no map."""
    before = old.v_bucket_server_map if old is not None else None
    after = new.v_bucket_server_map
    if before is None or after is None:
        return 0
    was, now = ([*servers.server_list, None] for servers in (before, after))  # -1, for no server, is the last index
    pairs = zip(before.v_bucket_map, after.v_bucket_map, strict=False)
    return sum(was[ours[0]] != now[theirs[0]] for ours, theirs in pairs)
