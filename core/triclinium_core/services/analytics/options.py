"""What can be chosen for an analytics query, with the words that travel.

Source: SDK-RFC 0057 "AnalyticsScanConsistency".
"""

from __future__ import annotations

from enum import StrEnum, unique


@unique
class AnalyticsScanConsistency(StrEnum):
    """How new the datasets have to be that an analytics query reads."""

    NOT_BOUNDED = "not_bounded"
    """As they are; what an analytics query does unless told otherwise."""
    REQUEST_PLUS = "request_plus"
    """With all mutations from before the query; it waits until they have arrived."""
