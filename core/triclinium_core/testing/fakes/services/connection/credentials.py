"""Authentication of clients of the HTTP services."""

from __future__ import annotations

import base64
import binascii

from triclinium_core.retry.couchbase import Service
from triclinium_core.testing.fakes.options import FakeNodeOptions
from triclinium_core.testing.fakes.services.fake_request import FakeRequest
from triclinium_core.testing.fakes.services.management.users import FakeUsers

PUBLIC = frozenset({(Service.QUERY, "GET", ("admin", "ping")), (Service.SEARCH, "GET", ("api", "ping"))})
"""Requests that the services answer without credentials.

Source: the cluster manager requires credentials even for ``/pools``; query and search answer pings without credentials.
No document covers analytics and views; the fake requires credentials for them.
"""


def is_public(service: Service, request: FakeRequest) -> bool:
    """Return whether the service answers a request without credentials."""
    return (service, request.method, request.segments) in PUBLIC


def is_let_in(request: FakeRequest, options: FakeNodeOptions, users: FakeUsers) -> bool:
    """Return whether the credentials of a request are valid: user and password, or a token."""
    scheme, _, credentials = request.headers.get("authorization", "").partition(" ")
    match scheme.lower():
        case "basic":
            try:
                given = base64.b64decode(credentials, validate=True)
            except (binascii.Error, ValueError):
                return False
            return given == f"{options.username}:{options.password}".encode() or users.knows(given)
        case "bearer":
            return credentials in options.tokens
        case _:
            return False
