"""Services of a Couchbase cluster."""

from __future__ import annotations

from enum import StrEnum, unique


@unique
class Service(StrEnum):
    """Service of a Couchbase cluster that receives requests."""

    KV = "kv"
    QUERY = "query"
    ANALYTICS = "analytics"
    SEARCH = "search"
    VIEWS = "views"
    MANAGEMENT = "management"
