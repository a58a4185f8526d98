"""Events that only the Couchbase client understands: of operations, requests, look-ups and authentication.

A fact that cannot be raises where it is made.
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
    """The user asked for something. ``token`` must not have been used before."""

    token: neutral.Token
    operation: Operation
    retry_strategy: AnyRetryStrategy | None = None
    """None for the client's own."""
    client_context: Mapping[str, object] | None = None
    """What a retry strategy may look at."""
    is_traced: bool = False
    """Whether ``ReportDispatch`` and ``ReportAnswer`` are to tell of each attempt."""
    is_part: bool = False
    """Whether it is one of several operations of a call, which the meter counts as one at ``CallEnded``."""


class CallEnded(msgspec.Struct, frozen=True, gc=False):
    """A call of several operations that are parts has ended, in whatever way."""

    name: WrappingCall
    seconds: float
    """Duration of the call."""

    def __post_init__(self) -> None:
        check_type(self.name, "name", WrappingCall)
        check_seconds(self.seconds, "seconds")


class OperationsSubmitted(msgspec.Struct, frozen=True):
    """Users asked for several things at once: all of them are submitted, in order, or the mistake of one raises."""

    submissions: Sequence[OperationSubmitted]

    def __post_init__(self) -> None:
        check_type(self.submissions, "submissions", Sequence)


class RequestSubmitted(msgspec.Struct, frozen=True):
    """The user asked a service over HTTP. ``token`` must not have been used before, for an operation neither.

    Rows are wanted from the beginning: the first that come leave as ``RowsReceived``.
    """

    token: neutral.Token
    request: ServiceRequest
    retry_strategy: AnyRetryStrategy | None = None
    """None for the client's own."""
    client_context: Mapping[str, object] | None = None
    """What a retry strategy may look at."""
    is_traced: bool = False
    """As in ``OperationSubmitted``; ``ReportEnd`` tells then when the answer is whole."""
    encoding: Encoding | None = None
    """Has the payload of each attempt encoded, and measures that, for which the core has no clock; None if nothing
    needs it."""


class RowsWanted(msgspec.Struct, frozen=True, gc=False):
    """The user has taken the rows of a request, and waits for more, or for the end; unknown tokens are ignored."""

    token: neutral.Token


class InquirySubmitted(msgspec.Struct, frozen=True):
    """The user asked about the cluster. ``token`` must not have been used before, not even for an operation."""

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
    """The caller was cancelled, or left for another reason."""
    NOT_NEEDED = "not_needed"
    """The caller has all that it needs: another copy answered first, or it reads no further rows. This is no failure."""


class OperationAbandoned(msgspec.Struct, frozen=True):
    """The user left. A reply that still comes is dropped as an orphan; unknown tokens are ignored."""

    token: neutral.Token
    fault: DecoderFault | None = None
    """The defect, if the decoder of the request's rows failed; the machine then closes the connection that sent
    them."""
    reason: AbandonReason = AbandonReason.CANCELLED


class SubscribersChanged(msgspec.Struct, frozen=True, gc=False):
    """Another number of subscribers reads ``PublishTopology``.

    As long as there is one, no bucket with a topology is forgotten, so that its sequence of versions has no gap.
    """

    count: int


class ServiceLookedUp(msgspec.Struct, frozen=True, gc=False):
    """A ``LookUpService`` was answered, or nobody answered it."""

    service: str
    targets: tuple[tuple[str, int], ...] = ()
    """Host and port of each record, in any order; empty where there is none."""
    text: str = ""
    """What went wrong, in the resolver's words."""

    def __post_init__(self) -> None:
        check_type(self.service, "service", str)
        check_type(self.targets, "targets", tuple)
        check_type(self.text, "text", str)
        for target in self.targets:
            if not isinstance(target, tuple) or list(map(type, target)) != [str, int]:
                raise errors.InvalidArgumentException(
                    f"targets has {target!r}, no pair of host and port", parameter="targets"
                )


class AuthenticatorChanged(msgspec.Struct, frozen=True):
    """The client has new credentials. ``repr`` keeps the nonce to itself.

    New connections use the authenticator. Live ones authenticate again, with a password or a token: what was sent
    before is still answered, what is submitted now waits until that is over. What already waits for a connection that
    is being opened uses the authenticator that the opening began with. One whose authentication is refused is closed,
    as it would be when it was new; one that is waiting to connect again does so at once. A certificate is shown by the
    driver, in the handshakes to come.

    It must go with the scheme, and be shown as the one before it was: by SASL, or by TLS.
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
