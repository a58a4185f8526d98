"""Events of a connection for the client machine, in the order in which they happened."""

from __future__ import annotations

import msgspec

from triclinium_core.kv.wire.frame import Frame
from triclinium_core.runtime.kv.connection.bootstrap import BootstrapFailure
from triclinium_core.runtime.kv.connection.in_flight import InFlightRequest


class SaslAnswered(msgspec.Struct, frozen=True, gc=False):
    """SASL has ended, with this status."""

    status: int


class BucketSelected(msgspec.Struct, frozen=True, gc=False):
    """The node has responded to SELECT_BUCKET with this status, which may be an error."""

    bucket: str
    status: int


class BecameReady(msgspec.Struct, frozen=True):
    """The connection has become ready for operations."""

    losses: int
    """Number of streams that were lost, or could not be opened, since the connection was last ready."""


class AuthenticatedAgain(msgspec.Struct, frozen=True, gc=False):
    """The connection has reauthenticated with other credentials and is ready again."""


class Answered(msgspec.Struct, frozen=True, gc=False):
    """The node has responded to a request. The value of the frame is decompressed, or empty if decompression failed."""

    request: InFlightRequest
    frame: Frame
    problem: str | None = None
    """Reason why decompression failed; None if it succeeded, or if the value was not compressed."""


class Strayed(msgspec.Struct, frozen=True, gc=False):
    """A response has arrived that matches no unanswered request: it is a second response, or is unsolicited."""


class ConfigAnnounced(msgspec.Struct, frozen=True, gc=False):
    """The node has announced another cluster config. ``Connection.own_requests`` records the version of the config."""


class BecameUnusable(msgspec.Struct, frozen=True):
    """The client must close the stream: the protocol was violated, or the bootstrap, SASL or a decoder failed."""

    text: str
    failure: BootstrapFailure | None = None


News = (
    SaslAnswered
    | BucketSelected
    | BecameReady
    | AuthenticatedAgain
    | Answered
    | Strayed
    | ConfigAnnounced
    | BecameUnusable
)
