"""The services that a request may go to."""

from __future__ import annotations

from enum import StrEnum, unique


@unique
class Service(StrEnum):
    """The services of a Couchbase cluster that requests go to."""

    KV = "kv"
    QUERY = "query"
    ANALYTICS = "analytics"
    SEARCH = "search"
    VIEWS = "views"
    MANAGEMENT = "management"
