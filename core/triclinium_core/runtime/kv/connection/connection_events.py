"""Events of a connection for the client machine, in the order in which they happened."""

from __future__ import annotations

import msgspec

from triclinium_core.kv.wire.frame import Frame
from triclinium_core.runtime.kv.connection.bootstrap import BootstrapFailure
from triclinium_core.runtime.kv.connection.in_flight import InFlightRequest


class SaslAnswered(msgspec.Struct, frozen=True, gc=False):
    """SASL ended with this status."""

    status: int


class BucketSelected(msgspec.Struct, frozen=True, gc=False):
    """SELECT_BUCKET was answered with this status."""

    bucket: str
    status: int


class BecameReady(msgspec.Struct, frozen=True):
    """The connection is usable."""

    losses: int
    """Number of streams lost, or not opened, since the connection was last usable."""


class AuthenticatedAgain(msgspec.Struct, frozen=True, gc=False):
    """The connection has reauthenticated with other credentials and is ready again."""


class Answered(msgspec.Struct, frozen=True, gc=False):
    """A request was answered. The value of the frame is decompressed, or empty if decompression failed."""

    request: InFlightRequest
    frame: Frame
    problem: str | None = None
    """Reason why the value could not be decompressed; None if it could, or was not compressed."""


class Strayed(msgspec.Struct, frozen=True, gc=False):
    """A response matches no unanswered request: a second response, or an unsolicited one."""


class ConfigAnnounced(msgspec.Struct, frozen=True, gc=False):
    """The node has another cluster config. ``Connection.own_requests`` records its version."""


class BecameUnusable(msgspec.Struct, frozen=True):
    """The node made a mistake or refused the bootstrap, so the stream must be closed."""

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
