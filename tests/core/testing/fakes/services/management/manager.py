"""Connection to the cluster manager of a fake node, for tests."""

from __future__ import annotations

from urllib.parse import urlencode

from tests.core.testing.http_client import Answered, HttpClient
from triclinium_core.retry.couchbase import Service
from triclinium_core.testing import FakeNode

BUCKETS = "/pools/default/buckets"
SCOPES = f"{BUCKETS}/default/scopes"
USERS = "/settings/rbac/users/local"
GROUPS = "/settings/rbac/groups"


class Manager(HttpClient):
    """A connection to the cluster manager."""

    def __init__(self, node: FakeNode | None = None, connection: int = 9, *, now: float = 0.0) -> None:
        super().__init__(FakeNode() if node is None else node, Service.MANAGEMENT, connection, now=now)

    def submit(self, method: str, target: str, **form: object) -> Answered:
        """Submit a form and return the response."""
        return self.ask(method, target, urlencode(form).encode())
