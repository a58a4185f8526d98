"""Lines of a decision tape, which are the only facts that it can contain.

A tape has one JSON object per line: a ``Header``, then facts in the order in which they were recorded, then an ``End``.
Fields with their default value are omitted. Times are monotonic seconds, except ``unix_time``. Delays are seconds,
except those of an error map.

No field can contain a key, a value, a statement, a parameter, a path, a user name, a credential or a message of a server.
Each string has a type that limits it: an enumeration, a version, a pseudonym, the name of a class or an operation, a
clause of this package's tables, the address of a node, or, unless the tape replaces them with numbers, the name of a
bucket, scope, collection or index.
"""

from __future__ import annotations

import sys
from typing import Annotated, Literal

from msgspec import Meta, Struct

from triclinium_core.contract.couchbase import AbandonReason
from triclinium_core.contract.neutral import LossCause
from triclinium_core.retry.couchbase import BreakerState, HandedOver, RetryReason, Service
from triclinium_core.retry.couchbase.tables.error_map import Attribute, RetryAlgorithm

FORMAT = 1
"""Version of the format. A reader refuses a tape with a higher version."""

LINE_SIZE_MAX = 1024 * 1024
"""Maximum size of a line in bytes, without the line break."""

STEPS_MAX = 500
"""Maximum number of steps of an operation: enough for more than a hundred retries."""

Version = Annotated[str, Meta(pattern=r"^[0-9A-Za-z.+-]{1,40}\Z")]
CLASS_NAME_PATTERN = r"^[A-Za-z_][A-Za-z0-9_]{0,99}\Z"
ClassName = Annotated[str, Meta(pattern=CLASS_NAME_PATTERN)]
OperationName = Annotated[str, Meta(pattern=r"^[a-z][a-z0-9_]{0,59}\Z")]
NODE_PATTERN = r"^[A-Za-z0-9._:%\[\]-]{1,300}\Z"
Node = Annotated[str, Meta(pattern=NODE_PATTERN)]
Clause = Annotated[str, Meta(pattern=r"^[ -~]{1,400}\Z")]
"""Clause of a decision, always from a table of this package."""
NAME_PATTERN = r"^[A-Za-z0-9._%-]{1,251}\Z"
Name = Annotated[str, Meta(pattern=NAME_PATTERN)] | int
"""Name of a bucket, scope, collection or index; its number if the tape replaces names."""
Pseudonym = Annotated[str, Meta(pattern=r"^[0-9a-f]{32}\Z")]
Seconds = Annotated[float, Meta(ge=-1e13, le=1e13)]
Delay = Annotated[float, Meta(ge=0, le=sys.float_info.max)]
Count = Annotated[int, Meta(ge=0, le=2**63 - 1)]
CODE_MAX = 2**53
"""Maximum absolute value of an error code. A tape omits a code beyond it."""
Code = Annotated[int, Meta(ge=-CODE_MAX, le=CODE_MAX)]

Milestone = Literal[
    "opening", "opened", "connecting", "negotiating", "authenticating", "joining", "ready", "lost", "stream_lost"
]
"""State of a key-value connection, or event of a stream: ``opening``, ``opened`` (only for an HTTP service) or
``stream_lost``."""


EndReason = Literal["saved", "closed", "full", "disk"]
"""Reason for the end of a tape: a ring was saved, the cluster was closed, the file is full, or the disk failed."""


class Header(Struct, frozen=True, omit_defaults=True, tag_field="tape", tag="decisions"):
    """First line of a tape."""

    version: Annotated[int, Meta(ge=1)]
    core: Version
    """Version of the core that recorded the tape."""
    at: Seconds
    """Time at which the line was written: the beginning of a file that grows, or the time at which a ring was saved."""
    unix_time: Seconds | None = None
    """Time of the clock at ``at``, in seconds since 1970; None if the driver reported none."""
    names: bool = True
    """Whether the tape has the names of buckets, scopes, collections and indexes, not numbers."""
    pseudonyms: bool = False
    """Whether operations have the pseudonyms of their keys."""


class MapEntry(Struct, frozen=True, omit_defaults=True):
    """Entry for a status in the error map of a node, without its texts."""

    attributes: tuple[Attribute, ...] = ()
    algorithm: RetryAlgorithm | None = None
    """Algorithm of the retry schedule; None without a schedule."""
    interval_ms: Count = 0
    after_ms: Count = 0
    max_duration_ms: Count | None = None
    ceil_ms: Count | None = None
    has_unknown_algorithm: bool = False


class Answer(Struct, frozen=True, omit_defaults=True):
    """Answer of a retry strategy."""

    delay: Delay | None = None
    """Delay before the retry; None without a retry."""
    error: ClassName | None = None
    within: Delay | None = None
    raised: ClassName | None = None
    """Class of the exception that the strategy raised; None if it returned."""
    is_invalid: bool = False
    """Whether the strategy returned something other than a ``RetryAction``."""


class Decision(Struct, frozen=True, omit_defaults=True):
    """Decision of the retry machine about one event."""

    kind: Literal["none", "retry", "expire", "consult", "dispatch", "complete", "fail"]
    """``expire`` is a wait after which the request fails, because its delay was cut."""
    reason: RetryReason | None = None
    delay: Delay | None = None
    error: ClassName | None = None
    clause: Clause | None = None
    """Clause for the meaning of the event and for the decision; None for an event that needs no decision."""
    refresh_topology: bool = False
    refresh_collection: bool = False
    close_connection: bool = False


class Sent(Struct, frozen=True, omit_defaults=True, kw_only=True, tag_field="event", tag="sent"):
    """An attempt was handed to a connection."""

    at: Seconds
    node: Node | None = None
    stream: Count | None = None
    opaque: Count | None = None


class _Judged(Struct, frozen=True, omit_defaults=True, kw_only=True, tag_field="event"):
    """Base of the events about which the retry machine decides."""

    at: Seconds
    decision: Decision
    answer: Answer | None = None
    """Answer of the strategy; None if the machine did not consult one, or awaits an asynchronous one."""


class NotSent(_Judged, frozen=True, omit_defaults=True, kw_only=True, tag="not_sent"):
    """An attempt could not be handed to a connection."""

    reason: RetryReason
    node: Node | None = None
    error: ClassName | None = None
    """Exception class that an earlier failure prescribes; None without one."""


class Lost(_Judged, frozen=True, omit_defaults=True, kw_only=True, tag="lost"):
    """The connection was lost before the response arrived."""

    handed_over: HandedOver
    reason: RetryReason
    """Retry reason if nothing was handed over."""
    is_partial: bool = False
    """Whether the caller had received rows."""


class Responded(_Judged, frozen=True, omit_defaults=True, kw_only=True, tag="responded"):
    """A node responded to a key-value attempt."""

    status: Annotated[int, Meta(ge=0, le=0xFFFF)]
    node: Node | None = None
    error: ClassName | None = None
    """Exception class, if operation and status do not determine it."""
    entry: MapEntry | None = None
    """Entry for the status in the node's error map; None without an entry."""


class ServiceResponded(_Judged, frozen=True, omit_defaults=True, kw_only=True, tag="service_responded"):
    """An HTTP service responded. The tape has the classification of the body, not the body."""

    http_status: Annotated[int, Meta(ge=0, le=999_999)]
    code: Code | None = None
    """Code of the first error in the body; None without one."""
    reason: RetryReason | None = None
    error: ClassName | None = None
    clause: Clause | None = None
    """Clause of the classification."""
    is_partial: bool = False


class Woken(_Judged, frozen=True, omit_defaults=True, kw_only=True, tag="woken"):
    """A delay or the deadline has passed."""

    is_partial: bool = False


class StrategyResponded(_Judged, frozen=True, omit_defaults=True, kw_only=True, tag="strategy_responded"):
    """An asynchronous strategy has returned or raised."""


Step = Sent | NotSent | Lost | Responded | ServiceResponded | Woken | StrategyResponded


class StrategyFacts(Struct, frozen=True, omit_defaults=True):
    """Retry strategy of a call."""

    name: ClassName
    is_async: bool = False
    """Whether it is asynchronous; False if it was not consulted."""
    is_default: bool = False
    """Whether it is a strategy of this package with its default backoff, which a replay runs again."""


class Operation(Struct, frozen=True, omit_defaults=True, tag="operation"):
    """One operation or request of a user, written when it has ended or when the tape is saved."""

    token: Count
    name: OperationName
    service: Service
    idempotent: bool
    strategy: StrategyFacts
    submitted_at: Seconds
    deadline: Seconds | None = None
    """None for no deadline."""
    ended_at: Seconds | None = None
    """None if the operation was still open."""
    result: Literal["completed", "failed", "abandoned", "open"] = "completed"
    error: ClassName | None = None
    abandoned: AbandonReason | None = None
    bucket: Name | None = None
    scope: Name | None = None
    collection: Name | None = None
    index: Name | None = None
    key: Pseudonym | None = None
    began_in_flight: bool = False
    """Whether the first step is an attempt that was sent before the retry machine was created."""
    steps: tuple[Step, ...] = ()
    """Events of the retry machine, in order. Each except ``Sent`` has its decision. A key-value operation whose first
    attempt succeeded has only that attempt."""
    omitted: Count = 0
    """Number of later events that were not recorded, because the operation had too many."""


class Connection(Struct, frozen=True, omit_defaults=True, tag="connection"):
    """Event of a connection or of its stream."""

    at: Seconds
    stream: Count
    event: Milestone
    node: Node | None = None
    bucket: Name | None = None
    cause: LossCause | None = None
    handed_over: Count | None = None


class Breaker(Struct, frozen=True, omit_defaults=True, tag="breaker"):
    """A circuit breaker entered another state."""

    at: Seconds
    state: BreakerState
    node: Node | None = None
    bucket: Name | None = None


class ClusterMap(Struct, frozen=True, omit_defaults=True, tag="map"):
    """The client accepted a newer cluster config."""

    at: Seconds
    epoch: Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
    revision: Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
    nodes: Count
    moved: Count
    """Number of vbuckets whose active copy is on another node than in the previous map."""
    bucket: Name | None = None


class End(Struct, frozen=True, omit_defaults=True, tag="end"):
    """Last line of a complete tape. A tape without it was cut off."""

    at: Seconds
    reason: EndReason
    lost: Count = 0
    """Number of facts until this time that are not on the tape: newer facts replaced them in memory before they were
    written, the file was full, or the disk failed."""


Fact = Operation | Connection | Breaker | ClusterMap | End
