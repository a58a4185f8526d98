"""A request over HTTP as the services read it."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from urllib.parse import parse_qsl, unquote

import msgspec

from triclinium_core.testing.fakes.options import FakeNodeOptions


class FakeRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One request that was read to its end; ``headers`` are by their names in lower case."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def segments(self) -> tuple[str, ...]:
        """The parts of the path, decoded one by one: a name may have a slash in it."""
        path = self.target.partition("?")[0]
        return tuple(unquote(part) for part in path.strip("/").split("/")) if path.strip("/") else ()

    @property
    def parameters(self) -> dict[str, str]:
        """Those in the target."""
        return dict(parse_qsl(self.target.partition("?")[2], keep_blank_values=True))

    @property
    def form(self) -> dict[str, str]:
        """Those in the body of a form; nothing where it is none."""
        return dict(parse_qsl(self.body.decode("utf-8", "replace"), keep_blank_values=True))

    def document(self) -> dict[str, object] | None:
        """Return the JSON object that the body is; None where it is none."""
        try:
            return msgspec.json.decode(self.body, type=dict[str, object])
        except msgspec.DecodeError:
            return None


def is_let_in(request: FakeRequest, options: FakeNodeOptions) -> bool:
    """Tell whether the credentials of a request are right: user and password, or a token.

    Source: RFC 7617 (Basic), RFC 6750 §2.1 (Bearer).
    """
    scheme, _, credentials = request.headers.get("authorization", "").partition(" ")
    match scheme.lower():
        case "basic":
            try:
                given = base64.b64decode(credentials, validate=True)
            except (binascii.Error, ValueError):
                return False
            return given == f"{options.username}:{options.password}".encode()
        case "bearer":
            return credentials in options.tokens
        case _:
            return False
