"""Fake node for tests of the bootstrap, which responds to one request at a time."""

from __future__ import annotations

import json
from typing import Any

from tests.core.runtime.kv.connection.scram_exchange import make_server
from tests.core.runtime.kv.simulated import respond
from triclinium_core.kv.wire.constants import HelloFeature, Opcode
from triclinium_core.kv.wire.frame import Frame
from triclinium_core.kv.wire.frame_buffer import CLIENT_ACCEPTS, SERVER_ACCEPTS, FrameBuffer
from triclinium_core.options import SCRAM_ITERATIONS_MIN, PasswordAuthenticator
from triclinium_core.retry.couchbase import Status
from triclinium_core.runtime.kv.connection.bootstrap import Bootstrap, BootstrapPlan
from triclinium_core.runtime.kv.connection.scram import ScramServer
from triclinium_core.runtime.kv.connection.states import CONNECTION_TRANSITIONS, ConnectionEvent, ConnectionState

USERNAME, PASSWORD = "ada", "secret"
FEATURES = (HelloFeature.XERROR, HelloFeature.COLLECTIONS, HelloFeature.JSON)
ERROR_MAP = json.dumps({"version": 2, "revision": 9, "errors": {"7ff0": {"name": "X", "desc": "x", "attrs": ["temp"]}}})
CONFIG = json.dumps({"rev": 5, "name": "travel", "vBucketServerMap": {"serverList": ["h:1"], "vBucketMap": [[0]]}})


def plan(**changes: Any) -> BootstrapPlan:
    """Return a plan for the bucket ``travel`` without TLS, with ``changes`` to its fields."""
    defaults: dict[str, Any] = {
        "authenticator": PasswordAuthenticator(USERNAME, PASSWORD),
        "bucket": "travel",
        "tls": False,
        "nonce": "client-nonce",
        "user_agent": "test/1.0",
        "connection_id": "0123456789abcdef/fedcba9876543210",
    }
    return BootstrapPlan(**{**defaults, **changes})


class Life:
    """State of a connection, as the transition table determines it after the stream has opened."""

    def __init__(self) -> None:
        self.state = ConnectionState.CONNECTING

    def move(self, event: ConnectionEvent) -> None:
        """Change the state as the transition table requires for this event."""
        self.state = CONNECTION_TRANSITIONS[self.state][event]


def bootstrap_of(plan: BootstrapPlan, life: Life | None = None) -> Bootstrap:
    """Return a bootstrap that has not started."""
    return Bootstrap(plan, (life or Life()).move)


def take_apart(data: bytes) -> list[Frame]:
    """Return the requests in ``data``; fail if further bytes follow."""
    frames = FrameBuffer(SERVER_ACCEPTS).receive(data)
    size = sum(
        24 + len(frame.framing_extras) + len(frame.extras) + len(frame.key) + len(frame.value) for frame in frames
    )
    assert size == len(data)
    return frames


def as_frame(data: bytes) -> Frame:
    """Return a response as the frame that the client receives."""
    (frame,) = FrameBuffer(CLIENT_ACCEPTS).receive(data)
    return frame


def features_value(*features: int) -> bytes:
    """Return the value of a HELLO response."""
    return b"".join(feature.to_bytes(2, "big") for feature in features)


class Answering:
    """Node that responds correctly to each request of a bootstrap, unless the arguments replace the response.

    Args:
        statuses, values: status and value of the response to an opcode, instead of the correct ones.
    """

    def __init__(
        self,
        *,
        mechanisms: tuple[str, ...] = ("SCRAM-SHA512", "SCRAM-SHA256", "SCRAM-SHA1", "PLAIN"),
        password: str = PASSWORD,
        iterations: int = SCRAM_ITERATIONS_MIN,
        statuses: dict[Opcode, int] | None = None,
        values: dict[Opcode, bytes] | None = None,
    ) -> None:
        self.mechanisms = mechanisms
        self.password = password
        self.iterations = iterations
        self.statuses = statuses or {}
        self.values = values or {}
        self.scram: ScramServer | None = None
        self.seen: list[Opcode] = []

    def answer(self, request: Frame) -> bytes:
        """Return the response to one request."""
        opcode = Opcode(request.opcode)
        self.seen.append(opcode)
        status, value = self._good_answer(opcode, request)
        return respond(request, self.statuses.get(opcode, status), value=self.values.get(opcode, value))

    def _good_answer(self, opcode: Opcode, request: Frame) -> tuple[int, bytes]:
        match opcode:
            case Opcode.HELLO:
                return Status.SUCCESS, features_value(*FEATURES)
            case Opcode.GET_ERROR_MAP:
                return Status.SUCCESS, ERROR_MAP.encode()
            case Opcode.SASL_LIST_MECHS:
                return Status.SUCCESS, " ".join(self.mechanisms).encode()
            case Opcode.SASL_AUTH:
                return self._authenticate(request)
            case Opcode.SASL_STEP:
                assert self.scram is not None
                return Status.SUCCESS, self.scram.final(request.value)
            case Opcode.GET_CLUSTER_CONFIG:
                return Status.SUCCESS, CONFIG.encode()
            case _:
                return Status.SUCCESS, b""

    def _authenticate(self, request: Frame) -> tuple[int, bytes]:
        mechanism = request.key.decode()
        if mechanism not in self.mechanisms:
            return Status.AUTH_ERROR, b""
        if mechanism == "PLAIN":
            is_right = request.value == f"\0{USERNAME}\0{self.password}".encode()
            return (Status.SUCCESS if is_right else Status.AUTH_ERROR), b""
        self.scram = make_server(mechanism, USERNAME, self.password, iterations=self.iterations)
        return Status.AUTH_CONTINUE, self.scram.first(request.value)
