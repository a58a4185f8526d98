"""HTTP API that controls fake nodes: the checks of a request, and its response.

Any web page can send requests to a port of this machine. So a request is refused if its ``Host`` is a foreign name (DNS
rebinding) or its ``Origin`` a foreign page, and needs the token that the server printed. A change also needs
``Content-Type: application/json``, which a browser does not send to a foreign host without permission, and the API
gives none. Reading needs the token too: one rule for all requests, and the state contains addresses and faults.

========  =============  ===============================================================
method    path           response
========  =============  ===============================================================
POST      ``/commands``  200 after the command in the body was carried out or planned
GET       ``/commands``  200 with all commands, their fields and the allowed values
GET       ``/state``     200 with time, seed, nodes, faults and planned commands
========  =============  ===============================================================
"""

from __future__ import annotations

import hmac
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from triclinium_core.json_depth import shallow
from triclinium_core.shown import json_text, shown
from triclinium_core.testing.fakes.cluster.nodes import FakeNodes
from triclinium_core.testing.fakes.control.command_text import apply_command
from triclinium_core.testing.fakes.control.commands import COMMAND_NAMES, fields_of
from triclinium_core.testing.fakes.control.invalid_command import InvalidCommand
from triclinium_core.testing.fakes.control.nodes_state import state_of

PATHS: Mapping[str, Sequence[str]] = {"/commands": ("GET", "POST"), "/state": ("GET",)}
"""Methods of each path."""

JSON = "application/json"

_NO_JSON = (msgspec.MsgspecError, ValueError, RecursionError)
"""Exceptions that the decoder raises, including for text that is not UTF-8 and for deep nesting."""


@dataclass(frozen=True, slots=True)
class ControlRequest:
    """A request, as received."""

    method: str
    target: str
    headers: Sequence[tuple[str, str]]
    """Names in lower case, and values."""
    body: bytes = b""

    def only(self, name: str) -> str | None:
        """Return the value of a header that occurs once; None for any other header."""
        values = [value for known, value in self.headers if known == name]
        return values[0] if len(values) == 1 else None

    def has(self, name: str) -> bool:
        """Return whether the request has the header."""
        return any(known == name for known, _ in self.headers)


@dataclass(frozen=True, slots=True)
class ControlResponse:
    """A response with a JSON body."""

    status: int
    body: Mapping[str, object]
    headers: Sequence[tuple[str, str]] = field(default=())

    @property
    def content(self) -> bytes:
        """Body on the wire, one line."""
        return json_text(self.body).encode() + b"\n"


class ControlApi:
    """Control API for fake nodes.

    Args:
        nodes: the nodes.
        token: token that every request needs.
        seed: seed of the randomness of the nodes, reported by ``/state``.
        hosts: values of ``Host`` that the API accepts, in lower case, such as ``127.0.0.1:8080``.
    """

    def __init__(self, nodes: FakeNodes, *, token: str, seed: int, hosts: Collection[str]) -> None:
        self._nodes = nodes
        self._token = token.encode()
        self._seed = seed
        self._hosts = tuple(hosts)

    def respond(self, request: ControlRequest) -> ControlResponse:
        """Check a request, carry out or plan its command, and return the response."""
        return self._refusal(request) or self._carry_out(request)

    def _refusal(self, request: ControlRequest) -> ControlResponse | None:
        host = request.only("host")
        if host is None or host.lower() not in self._hosts:
            return refused(403, "host", f"Host {shown(host)} is not that of the API", self._hosts)
        origins = tuple(f"http://{name}" for name in self._hosts)
        if request.has("origin") and (request.only("origin") or "").lower() not in origins:
            return refused(403, "origin", "a page of a foreign origin may not use the API", origins)
        scheme, _, given = (request.only("authorization") or "").partition(" ")
        # Compare the tokens even if the scheme is wrong, so that the response time does not depend on the scheme.
        if not hmac.compare_digest(given.strip().encode(errors="replace"), self._token) or scheme.lower() != "bearer":
            text = "the request needs the header Authorization: Bearer TOKEN, with the token that the server printed"
            return refused(401, "authorization", text, ["Bearer TOKEN"], [("WWW-Authenticate", "Bearer")])
        methods = PATHS.get(request.target)
        if methods is None:
            return refused(404, "path", f"there is no {shown(request.target)}", PATHS)
        if request.method not in methods:
            text = f"{request.target} does not support {shown(request.method)}"
            return refused(405, "method", text, methods, [("Allow", ", ".join(methods))])
        if request.method == "POST":
            kind = (request.only("content-type") or "").partition(";")[0].strip().lower()
            if kind != JSON:
                return refused(415, "content-type", f"Content-Type {shown(kind)} is not {JSON}", [JSON])
        return None

    def _carry_out(self, request: ControlRequest) -> ControlResponse:
        if request.method == "GET":
            return ControlResponse(
                200, describe_commands() if request.target == "/commands" else state_of(self._nodes, self._seed)
            )
        try:
            command = msgspec.json.decode(shallow(request.body))
        except _NO_JSON as error:
            return refused(400, "body", f"the body is not JSON: {error}", ['{"command": NAME, ...}', '"TEXT"'])
        try:
            apply_command(self._nodes, command)
        except InvalidCommand as error:
            return ControlResponse(400, {"error": describe_error(error)})
        return ControlResponse(200, {"done": command})


def refused(
    status: int, name: str, message: str, allowed: Collection[str], headers: Sequence[tuple[str, str]] = ()
) -> ControlResponse:
    """Return the response to a request that is refused because of one field or header."""
    return ControlResponse(
        status, {"error": describe_error(InvalidCommand(message, field=name, allowed=allowed))}, headers
    )


def describe_error(error: InvalidCommand) -> dict[str, object]:
    """Return an error in JSON terms: its field, its message, and the allowed values."""
    return {"field": error.field, "message": error.message, "allowed": list(error.allowed)}


def describe_commands() -> dict[str, object]:
    """Return the table of commands in JSON terms."""
    return {
        "commands": {
            name: {
                each.name: {"meaning": each.meaning, "allowed": list(each.allowed), "required": each.is_required}
                for each in fields_of(name)
            }
            for name in COMMAND_NAMES
        }
    }
