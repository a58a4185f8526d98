"""Events that only a driver of the Couchbase client sends, such as submitted operations and DNS responses.

If a field is invalid, the constructor of the event raises, or ``handle`` does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum, unique

import msgspec

from triclinium_core import errors
from triclinium_core.checks import check_seconds, check_type
from triclinium_core.contract import neutral
from triclinium_core.decoder_faults import DecoderFault
from triclinium_core.kv.operation.document_operations import Operation
from triclinium_core.kv.operation.inquiries import Inquiry
from triclinium_core.options import Authenticator
from triclinium_core.retry.combined.strategies import AnyRetryStrategy
from triclinium_core.services.service_request import Encoding, ServiceRequest
from triclinium_core.shown import total_repr
from triclinium_core.telemetry.span_names import WrappingCall


class OperationSubmitted(msgspec.Struct, frozen=True):
    """The user submitted an operation. ``token`` must not have been used before."""

    token: neutral.Token
    operation: Operation
    retry_strategy: AnyRetryStrategy | None = None
    """Retry strategy of the operation; None for the client's strategy."""
    client_context: Mapping[str, object] | None = None
    """User data for the retry strategy; None without such data."""
    is_traced: bool = False
    """Whether the machine orders ``ReportDispatch`` and ``ReportAnswer`` for each attempt."""
    is_part: bool = False
    """Whether this is one of several operations of a call. The meter counts that call once, at ``CallEnded``."""


class CallEnded(msgspec.Struct, frozen=True, gc=False):
    """A call that consists of several operations (``is_part``) has ended, with a result or without."""

    name: WrappingCall
    seconds: float
    """Duration of the call."""

    def __post_init__(self) -> None:
        check_type(self.name, "name", WrappingCall)
        check_seconds(self.seconds, "seconds")


class OperationsSubmitted(msgspec.Struct, frozen=True):
    """Users submitted several operations together.

    The machine accepts all operations, in order. If one of them is invalid, ``handle`` raises, and the machine accepts
    none.
    """

    submissions: Sequence[OperationSubmitted]

    def __post_init__(self) -> None:
        check_type(self.submissions, "submissions", Sequence)


class RequestSubmitted(msgspec.Struct, frozen=True):
    """The user submitted a request to an HTTP service. ``token`` must not have been used before, even by an operation.

    The user wants rows from the start: the machine delivers the first rows without a ``RowsWanted``.
    """

    token: neutral.Token
    request: ServiceRequest
    retry_strategy: AnyRetryStrategy | None = None
    """Retry strategy of the request; None for the client's strategy."""
    client_context: Mapping[str, object] | None = None
    """User data for the retry strategy; None without such data."""
    is_traced: bool = False
    """As in ``OperationSubmitted``. In addition, the machine orders ``ReportEnd`` at the end of the response."""
    encoding: Encoding | None = None
    """Encoder that the machine uses for the payload of each attempt. It also measures the time that encoding takes,
    because the core has no clock. None if nothing needs this time."""


class RowsWanted(msgspec.Struct, frozen=True, gc=False):
    """The user has read the rows of a request, and waits for more rows or the end.

    The machine ignores unknown tokens.
    """

    token: neutral.Token


class InquirySubmitted(msgspec.Struct, frozen=True):
    """The user submitted an inquiry. ``token`` must not have been used before, even by an operation."""

    token: neutral.Token
    inquiry: Inquiry
    is_traced: bool = False
    """As in ``OperationSubmitted``. Each request that the inquiry sends to a node is an attempt."""


@unique
class AbandonReason(StrEnum):
    """Reason for an ``OperationAbandoned``. Only statistics, telemetry and the decision tape depend on it."""

    TIMEOUT = "timeout"
    """A time limit of the caller passed."""
    CANCELLED = "cancelled"
    """The caller was cancelled, or stopped waiting for another reason."""
    NOT_NEEDED = "not_needed"
    """The caller does not need the result: it has one from another replica, or reads no further rows. This is not a
    failure."""


class OperationAbandoned(msgspec.Struct, frozen=True):
    """The user stopped waiting. The machine ignores unknown tokens.

    The machine drops a later key-value response. The response counts as an orphan unless its result is not needed. If
    the response of an HTTP service is incomplete, the machine closes its connection.
    """

    token: neutral.Token
    fault: DecoderFault | None = None
    """Defect of a decoder that failed on the rows of the request; None if no decoder failed. With a defect, the machine
    closes the connection on which the rows arrived, unless the connection carries another request."""
    reason: AbandonReason = AbandonReason.CANCELLED


class SubscribersChanged(msgspec.Struct, frozen=True, gc=False):
    """The number of subscribers to ``PublishTopology`` changed.

    While there is at least one subscriber, the client keeps every bucket whose topology it knows, so that the versions
    that a subscriber receives have no gap.
    """

    count: int


class ServiceLookedUp(msgspec.Struct, frozen=True, gc=False):
    """A ``LookUpService`` has ended, with or without a response from DNS."""

    service: str
    targets: tuple[tuple[str, int], ...] = ()
    """Host and port of each record, in any order; empty without records."""
    text: str = ""
    """Error message of the resolver; empty without an error."""

    def __post_init__(self) -> None:
        check_type(self.service, "service", str)
        check_type(self.targets, "targets", tuple)
        check_type(self.text, "text", str)
        for target in self.targets:
            if not isinstance(target, tuple) or list(map(type, target)) != [str, int]:
                raise errors.InvalidArgumentException(
                    f"targets contains {target!r}, which is not a pair of a host as a string and a port as an integer",
                    parameter="targets",
                )


class AuthenticatorChanged(msgspec.Struct, frozen=True):
    """The client has new credentials. ``repr`` omits the nonce.

    New connections use the new authenticator. HTTP connections close, busy ones after their request. With a password or
    a token, open key-value connections authenticate again: requests that were sent before still receive their
    responses, and new operations wait for the end of the authentication. A key-value connection that is being opened
    completes its bootstrap with the authenticator with which it started. If a node refuses the authentication, the
    machine closes the connection, as after a refusal on a new connection. The backoff of lost key-value connections
    ends: those that open only on demand connect at their next use, others immediately. With a certificate, the driver
    presents the new certificate in later TLS handshakes.

    The authenticator must suit the scheme of the connection string. It must use the same method as the previous
    authenticator: SASL or TLS.
    """

    authenticator: Authenticator
    nonce: str
    """Fresh entropy for SCRAM, as in ``StreamOpened``."""

    def __post_init__(self) -> None:
        neutral.check_nonce(self.nonce)

    @total_repr
    def __repr__(self) -> str:
        return f"AuthenticatorChanged({self.authenticator!r})"


# All events that the client machine handles.
Event = (
    OperationSubmitted
    | OperationsSubmitted
    | CallEnded
    | RequestSubmitted
    | RowsWanted
    | InquirySubmitted
    | OperationAbandoned
    | SubscribersChanged
    | ServiceLookedUp
    | neutral.StreamOpened
    | neutral.BytesReceived
    | neutral.StreamLost
    | neutral.TimePassed
    | neutral.StrategyDecided
    | AuthenticatorChanged
)
