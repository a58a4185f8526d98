"""Base of all requests to services: values that encode themselves and decode their answers.

Each service has its own requests, in a folder of its name. A request is checked when it is made.

Source: SDK-RFC 0059 "HTTP"; the RFCs of the services.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import ClassVar, TypeVar, cast

import msgspec

from triclinium_core.error_context import ErrorContext
from triclinium_core.kv.topology.capabilities import ClusterCapability
from triclinium_core.retry.couchbase import Service
from triclinium_core.shown import one_line, total_repr

T = TypeVar("T")

Steps = Generator[int, None, T]
"""Decoding in steps: yields the units of work of the step that follows, and returns the value."""


def all_steps(steps: Steps[T]) -> T:
    """Take all steps, and return the value."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return cast(T, end.value)


class HttpRequest(msgspec.Struct, frozen=True):
    """One HTTP request, but for what belongs to the connection: host, credentials, length.

    ``repr`` tells only how large the body is, which may hold parameters and passwords.
    """

    method: str
    target: str
    """Path and query string, percent-encoded ASCII."""
    body: bytes = b""
    content_type: str = "application/json"
    """Of the body; of no meaning without one."""
    headers: tuple[tuple[str, str], ...] = ()
    carries_credentials: bool = True
    """Whether the connection adds its ``authorization`` header."""

    @total_repr
    def __repr__(self) -> str:
        return f"HttpRequest({self.method} {self.target}, body=<{len(self.body)} bytes>)"


Encoding = Callable[[Callable[[], HttpRequest]], tuple[HttpRequest, float]]
"""Returns what its argument returns, which encodes a payload, and how many seconds that took."""


class HttpResponse(msgspec.Struct, frozen=True):
    """The answer to one HTTP request, whole."""

    status: int
    body: bytes
    """Without the rows of a request that has some: in their place stands an empty array."""

    def body_as(self, kind: type[T]) -> T:
        """Return the body, which is JSON, as a value of ``kind``.

        Raises:
            MalformedAnswer: it cannot be read as one.
        """
        try:
            return msgspec.json.decode(self.body, type=kind)
        except (msgspec.MsgspecError, ValueError, RecursionError) as error:
            text = f"status {self.status} with a body of another form: {one_line(str(error))}"
            raise MalformedAnswer(text) from error


class MalformedAnswer(ValueError):
    """A service answered what it cannot mean; the text says what."""


class ServiceResult(msgspec.Struct, frozen=True):
    """Base of what requests come to."""


class Listing(ServiceResult, frozen=True, kw_only=True):
    """Base of lists of rows that are read one by one."""

    unread: int = 0
    """Number of rows that were left out because they cannot be read, for the log."""


class Acknowledged(ServiceResult, frozen=True):
    """Answer of a service that has done what was requested and returns nothing else."""


class ServiceRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Base of all requests. Every one raises InvalidArgumentException when an argument is wrong.

    ``name`` is the word for it in errors, reports and tables. ``rows_of`` is the key of the array in the answer whose
    elements leave one by one; None where the answer is read whole.
    """

    name: ClassVar[str] = ""
    service: ClassVar[Service] = Service.MANAGEMENT
    rows_of: ClassVar[str | None] = None

    client_context_id: str = ""
    """What the server's logs call the request, where the service has such a name."""

    @property
    def idempotent(self) -> bool:
        """Whether it may be sent again at any stage."""
        return False

    @property
    def has_body(self) -> bool:
        """Whether ``encode`` has a payload to encode, and so takes a time that is worth telling."""
        return False

    @property
    def passwords(self) -> tuple[str, ...]:
        """Passwords in the request, which its error must not repeat."""
        return ()

    @property
    def bucket(self) -> str | None:
        """Whose nodes alone can answer; None where any node with the service can."""
        return None

    @property
    def required_capabilities(self) -> frozenset[ClusterCapability]:
        """What the cluster has to be able to do; without it the request raises FeatureNotAvailableException, unsent."""
        return frozenset()

    def encode(self, remaining: float) -> HttpRequest:
        """Return what one attempt sends.

        Args:
            remaining: seconds that the request has left, ``inf`` for no limit; for the service's own timeout.
        """
        # Abstract: each request has its own, and the machine takes none without a name, as this base is.
        raise NotImplementedError

    def decode(self, answer: HttpResponse) -> ServiceResult:
        """Return what an answer without an error means.

        Raises:
            MalformedAnswer: it is not what the service answers to this.
        """
        # Abstract: each request has its own, and the machine takes none without a name, as this base is.
        raise NotImplementedError

    def decode_in_steps(self, answer: HttpResponse) -> Steps[ServiceResult]:
        """Decode in steps, so that the event loop does not wait for the whole of a long list.

        Raises:
            MalformedAnswer: as ``decode``.
        """
        yield from ()
        return self.decode(answer)

    def error_context(self) -> ErrorContext:
        """Return what errors tell of the request."""
        return ErrorContext(service=str(self.service), operation=self.name, idempotent=self.idempotent)


class IdentifiedRequest(ServiceRequest, frozen=True, kw_only=True):
    """Base of requests whose answers repeat their client context id."""

    def encode(self, remaining: float, context_id: str = "") -> HttpRequest:
        """Return the message of one attempt.

        Args:
            remaining: as in ``ServiceRequest``.
            context_id: client context id of the attempt. Empty uses the id of the request, if it has one.
        """
        # Abstract, as in ServiceRequest.
        raise NotImplementedError
