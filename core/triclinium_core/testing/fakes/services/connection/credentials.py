"""Authentication of clients of the HTTP services."""

from __future__ import annotations

import base64
import binascii

from triclinium_core.retry.couchbase import Service
from triclinium_core.testing.fakes.options import FakeNodeOptions
from triclinium_core.testing.fakes.services.fake_request import FakeRequest
from triclinium_core.testing.fakes.services.management.user_store import FakeUsers

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
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        return token in options.tokens
    given = basic_credentials(request)
    return given is not None and (given == f"{options.username}:{options.password}".encode() or users.knows(given))


def basic_credentials(request: FakeRequest) -> bytes | None:
    """Return the user and the password of a request, joined by a colon; None without valid basic credentials."""
    scheme, _, credentials = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "basic":
        return None
    try:
        return base64.b64decode(credentials, validate=True)
    except (binascii.Error, ValueError):
        return None
