"""Events of a connection for the client machine, in the order in which they happened."""

from __future__ import annotations

import msgspec

from triclinium_core.kv.wire.frame import Frame
from triclinium_core.runtime.kv.connection.bootstrap import BootstrapFailure
from triclinium_core.runtime.kv.connection.in_flight import InFlightRequest


class SaslAnswered(msgspec.Struct, frozen=True, gc=False):
    """SASL came to an end with this status."""

    status: int


class BucketSelected(msgspec.Struct, frozen=True, gc=False):
    """SELECT_BUCKET was answered with this status."""

    bucket: str
    status: int


class BecameReady(msgspec.Struct, frozen=True):
    """The connection is usable."""

    losses: int
    """How often a stream was lost, or could not be opened, since it was last usable."""


class AuthenticatedAgain(msgspec.Struct, frozen=True, gc=False):
    """The connection, which was ready before, is so with other credentials."""


class Answered(msgspec.Struct, frozen=True, gc=False):
    """A request was answered; the frame's value is inflated, and empty where that cannot be done."""

    request: InFlightRequest
    frame: Frame
    problem: str | None = None
    """Why the value cannot be inflated; None where it can."""


class Strayed(msgspec.Struct, frozen=True, gc=False):
    """A response came that answers no request: a second answer, or one to a request that was never made."""


class ConfigAnnounced(msgspec.Struct, frozen=True, gc=False):
    """The node has another cluster config: it is recorded in ``Connection.own_requests``."""


class BecameUnusable(msgspec.Struct, frozen=True):
    """The peer made a mistake, or refused the bootstrap: the stream has to be closed."""

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
