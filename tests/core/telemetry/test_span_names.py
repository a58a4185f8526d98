"""Span names, compared with the tables of SDK-RFC 0067."""

from __future__ import annotations

from collections.abc import Iterator

from tests.core.telemetry.rfc_identifiers import RFC_IDENTIFIERS
from triclinium_core.kv.operation.document_operations import Operation
from triclinium_core.kv.operation.inquiries import Inquiry
from triclinium_core.services.analytics.analytics_request import AnalyticsRequest
from triclinium_core.services.management import buckets, collections, query_indexes, search_indexes, users
from triclinium_core.services.ping_request import PingRequest
from triclinium_core.services.query.query_request import PrepareRequest
from triclinium_core.services.search.search_request import SearchQueryRequest
from triclinium_core.services.service_request import ServiceRequest
from triclinium_core.services.views.view_request import ViewRequest
from triclinium_core.telemetry.span_names import SPAN_NAMES, WrappingCall

ALL_REQUESTS = (
    (buckets, collections, query_indexes, search_indexes, users),
    (AnalyticsRequest, PingRequest, PrepareRequest, SearchQueryRequest, ViewRequest),
)
"""Modules and classes that are imported only so that ``__subclasses__`` of their bases returns their classes."""


def _kinds(base: type[Operation | ServiceRequest | Inquiry]) -> Iterator[str]:
    for kind in base.__subclasses__():
        if kind.__module__.startswith("triclinium_core.") and kind.name:
            yield kind.name
        yield from _kinds(kind)


def test_everything_submitted_has_a_span_name() -> None:
    """Each operation, request and inquiry that a machine accepts has a span name."""
    submitted = {name for base in (Operation, ServiceRequest, Inquiry) for name in _kinds(base)}

    assert {"get", "query", "create_bucket", "ping"} <= submitted
    assert set() == submitted - SPAN_NAMES.keys()


def test_names_are_those_of_the_rfc() -> None:
    """The span names are the RFC's, except for the listed additions and for the RFC's APIs that the client lacks."""
    ours = {*SPAN_NAMES.values(), *(call.value for call in WrappingCall)}
    additions = {name for name in ours if name not in RFC_IDENTIFIERS}
    lacking = {name for name in RFC_IDENTIFIERS if name not in ours}

    assert {
        "lookup_in_any_replica",
        "lookup_in_all_replicas",
        "range_scan",
        "range_scan_create",
        "range_scan_continue",
        "range_scan_cancel",
        "noop",
        "wait_until_ready",
        "wait_for_nodes",
        "get_collections_manifest",
        "manager_users_change_password",
    } == additions
    assert {"analytics", "views", "eventing"} == {name.split("_")[1] for name in lacking if name.startswith("manager_")}
    assert {"observe"} == {name for name in lacking if not name.startswith("manager_")}
