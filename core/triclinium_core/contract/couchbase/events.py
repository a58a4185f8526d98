"""Events of the Couchbase client only: operations, requests, look-ups and authentication.

The constructor of an event raises if a field is invalid.
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
    """User data for the retry strategy."""
    is_traced: bool = False
    """Whether the machine orders ``ReportDispatch`` and ``ReportAnswer`` for each attempt."""
    is_part: bool = False
    """Whether it is one of several operations of a call, which the meter counts as one at ``CallEnded``."""


class CallEnded(msgspec.Struct, frozen=True, gc=False):
    """A call of several operations that are parts has ended, with a result or without."""

    name: WrappingCall
    seconds: float
    """Duration of the call."""

    def __post_init__(self) -> None:
        check_type(self.name, "name", WrappingCall)
        check_seconds(self.seconds, "seconds")


class OperationsSubmitted(msgspec.Struct, frozen=True):
    """Users submitted several operations together. Either all are submitted, in order, or an invalid one raises."""

    submissions: Sequence[OperationSubmitted]

    def __post_init__(self) -> None:
        check_type(self.submissions, "submissions", Sequence)


class RequestSubmitted(msgspec.Struct, frozen=True):
    """The user submitted a request to an HTTP service. ``token`` must not have been used before, even by an operation.

    Rows are wanted from the start: the first ones are delivered as ``RowsReceived``.
    """

    token: neutral.Token
    request: ServiceRequest
    retry_strategy: AnyRetryStrategy | None = None
    """Retry strategy of the request; None for the client's strategy."""
    client_context: Mapping[str, object] | None = None
    """User data for the retry strategy."""
    is_traced: bool = False
    """As in ``OperationSubmitted``; in addition, ``ReportEnd`` reports the end of the response."""
    encoding: Encoding | None = None
    """Encoder of each attempt's payload, which also measures the time, because the core has no clock; None if nothing
    needs the time."""


class RowsWanted(msgspec.Struct, frozen=True, gc=False):
    """The user has taken the rows of a request, and waits for more or for the end. Unknown tokens are ignored."""

    token: neutral.Token


class InquirySubmitted(msgspec.Struct, frozen=True):
    """The user submitted an inquiry. ``token`` must not have been used before, even by an operation."""

    token: neutral.Token
    inquiry: Inquiry
    is_traced: bool = False
    """As in ``OperationSubmitted``: each probe is an attempt."""


@unique
class AbandonReason(StrEnum):
    """Reason of an ``OperationAbandoned``. The machine records it in telemetry and decides nothing by it."""

    TIMEOUT = "timeout"
    """A time limit of the caller passed."""
    CANCELLED = "cancelled"
    """The caller was cancelled, or stopped waiting for another reason."""
    NOT_NEEDED = "not_needed"
    """The caller needs no more: another copy arrived first, or it reads no further rows. This is not a failure."""


class OperationAbandoned(msgspec.Struct, frozen=True):
    """The user stopped waiting. A later response is an orphan and dropped. Unknown tokens are ignored."""

    token: neutral.Token
    fault: DecoderFault | None = None
    """Defect of the decoder, if it failed on the request's rows; the machine then closes the connection that sent
    them."""
    reason: AbandonReason = AbandonReason.CANCELLED


class SubscribersChanged(msgspec.Struct, frozen=True, gc=False):
    """The number of subscribers to ``PublishTopology`` changed.

    While there is at least one, the client forgets no bucket with a topology, so the sequence of its versions has no
    gap.
    """

    count: int


class ServiceLookedUp(msgspec.Struct, frozen=True, gc=False):
    """A ``LookUpService`` has ended, with or without an answer from DNS."""

    service: str
    targets: tuple[tuple[str, int], ...] = ()
    """Host and port of each record, in any order; empty without records."""
    text: str = ""
    """Error message of the resolver."""

    def __post_init__(self) -> None:
        check_type(self.service, "service", str)
        check_type(self.targets, "targets", tuple)
        check_type(self.text, "text", str)
        for target in self.targets:
            if not isinstance(target, tuple) or list(map(type, target)) != [str, int]:
                raise errors.InvalidArgumentException(
                    f"targets contains {target!r}, which is not a pair of host and port", parameter="targets"
                )


class AuthenticatorChanged(msgspec.Struct, frozen=True):
    """The client has new credentials. ``repr`` omits the nonce.

    New connections use the new authenticator. With a password or a token, open connections authenticate again: requests
    already sent still get their responses, and new operations wait until authentication has ended. Operations that wait
    for a connection that is being opened use the authenticator with which the opening started. A connection whose
    authentication is refused is closed, like a new one. A connection in backoff connects immediately. The driver
    presents a new certificate in later handshakes.

    The authenticator must suit the scheme, and use the same method as the previous one: SASL or TLS.
    """

    authenticator: Authenticator
    nonce: str
    """Fresh entropy for SCRAM, as in ``StreamOpened``."""

    def __post_init__(self) -> None:
        neutral.check_nonce(self.nonce)

    @total_repr
    def __repr__(self) -> str:
        return f"AuthenticatorChanged({self.authenticator!r})"


# Every event that the client machine handles.
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
