"""What can be chosen for a query, with the words that travel.

Source: SDK-RFC 0056 "QueryProfile", "QueryScanConsistency".
"""

from __future__ import annotations

from enum import StrEnum, unique


@unique
class QueryScanConsistency(StrEnum):
    """How new the indexes have to be that a query reads."""

    NOT_BOUNDED = "not_bounded"
    """As they are; the default."""
    REQUEST_PLUS = "request_plus"
    """With all mutations from before the query; it waits until they are indexed."""


@unique
class QueryProfile(StrEnum):
    """How much the service reports of its work on the query."""

    OFF = "off"
    PHASES = "phases"
    """How long each phase took."""
    TIMINGS = "timings"
    """Phases, and how long each part of the plan took."""
