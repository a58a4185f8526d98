"""Scripted service for the request pipeline of smithy-core. No request leaves the process."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from smithy_core import URI
from smithy_core.aio.client import ClientCall, RequestPipeline
from smithy_core.auth import NoAuthResolver
from smithy_core.documents import TypeRegistry
from smithy_core.endpoints import Endpoint
from smithy_core.exceptions import CallError
from smithy_core.interceptors import InterceptorChain
from smithy_core.response import EMPTY_RESPONSE_METADATA
from smithy_core.schemas import APIOperation, Schema
from smithy_core.shapes import ShapeID, ShapeType
from smithy_core.traits import LongPollTrait
from smithy_core.types import TypedProperties

NOWHERE = URI(host="service.test")


def fault(*, throttling: bool = False, retry_after: float | None = None, safe: bool | None = True) -> CallError:
    """Return a server's error as clients raise it, with these retry attributes."""
    return CallError(
        message="no luck", fault="server", is_retry_safe=safe, is_throttling_error=throttling, retry_after=retry_after
    )


@dataclass
class Service:
    """Protocol, transport and endpoint resolver of an operation in one object.

    Args:
        answers: for each attempt, the exception to raise or the output to return.
    """

    answers: Iterable[object]
    sent: int = 0
    """Number of attempts received."""
    TIMEOUT_EXCEPTIONS: tuple[type[Exception], ...] = (TimeoutError,)
    id: ShapeID = field(default_factory=lambda: ShapeID("test#protocol"))
    _script: Iterator[object] = field(init=False)

    def __post_init__(self) -> None:
        self._script = iter(self.answers)

    def serialize_request(self, **arguments: object) -> Any:
        """Return a request without a body."""
        return SimpleNamespace(destination=NOWHERE, body=b"")

    def set_service_endpoint(self, *, request: Any, endpoint: Any) -> Any:
        """Return the request unchanged; there is only one endpoint."""
        return request

    async def resolve_endpoint(self, params: Any) -> Any:
        """Return the only endpoint."""
        return Endpoint(uri=NOWHERE)

    async def send(self, request: Any) -> Any:
        """Return the script's next item, or raise it if it is a transport exception."""
        self.sent += 1
        answer = next(self._script)
        if isinstance(answer, Exception) and not isinstance(answer, CallError):
            raise answer
        return answer

    async def deserialize_response(self, *, response: Any, **arguments: object) -> Any:
        """Return the output, or raise the service's error."""
        if isinstance(response, Exception):
            raise response
        return response

    def extract_response_metadata(self, **arguments: object) -> Any:
        """Return empty metadata."""
        return EMPTY_RESPONSE_METADATA


async def call(service: Service, strategy: Any, *, scope: str | None = None, long_poll: bool = False) -> Any:
    """Make one call through the real pipeline and return its output."""
    structure = Schema(id=ShapeID("test#Nothing"), shape_type=ShapeType.STRUCTURE)
    operation = APIOperation(
        input=SimpleNamespace,
        output=SimpleNamespace,
        schema=Schema(
            id=ShapeID("test#Ask"),
            shape_type=ShapeType.OPERATION,
            traits=[LongPollTrait({"timeoutMillis": 20_000})] if long_poll else [],
        ),
        input_schema=structure,
        output_schema=structure,
        error_registry=TypeRegistry({}),
        effective_auth_schemes=[],
        error_schemas=[],
    )
    return await RequestPipeline(protocol=service, transport=service)(
        ClientCall(
            input=SimpleNamespace(),
            operation=operation,
            context=TypedProperties(),
            interceptor=InterceptorChain([]),
            auth_scheme_resolver=NoAuthResolver(),
            supported_auth_schemes={},
            endpoint_resolver=service,
            retry_strategy=strategy,
            retry_scope=scope,
        )
    )
