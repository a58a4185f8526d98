"""Span attributes, and the values of the attribute ``error.type``."""

from __future__ import annotations

import pytest

from triclinium_core import errors
from triclinium_core.telemetry import attributes


class _Narrower(errors.DocumentLockedException):
    """Error class that an application derives from a class of the client."""


@pytest.mark.parametrize(
    ("error", "name"),
    [
        (errors.DocumentLockedException(), "DocumentLocked"),
        (errors.AmbiguousTimeoutException(), "AmbiguousTimeout"),
        (_Narrower(), "DocumentLocked"),
        (errors.BucketAccessException(), "_OTHER"),
        (errors.KeyValueException(), "_OTHER"),
        (errors.CouchbaseException(), "_OTHER"),
        (errors.InternalError(), "_OTHER"),
        (ValueError(), "_OTHER"),
    ],
)
def test_errors_have_the_names_of_the_rfc(error: Exception, name: str) -> None:
    """An error is named after its nearest class in SDK-RFC 0058, or ``_OTHER`` if the RFC has no such class."""
    assert name == attributes.error_type(error)


def test_no_name_has_the_suffix_of_a_language() -> None:
    """No error name ends in "Exception" or "Error", so that the metrics of all clients are comparable (RFC 0067)."""
    assert not [
        name for name in attributes.ERROR_TYPES.values() if name.endswith(("Exception", "Error")) or not name.isalnum()
    ]


def test_outer_span_has_all_metric_tags() -> None:
    """For each tag of the metric, the outer span has an attribute with that key."""
    tags = [key for key, row in attributes.ATTRIBUTES.items() if attributes.Bearer.METRIC in row.bearers]

    assert 9 == len(tags)
    assert all(attributes.Bearer.OUTER in attributes.ATTRIBUTES[key].bearers for key in tags)


def test_dispatch_attributes_of_an_attempt() -> None:
    """Server and peer have an address and a port (RFC 0067 "Dispatch Span Attributes"); IPv6 has no brackets."""
    reported = attributes.dispatch_attributes(
        ("a.example", 11210), peer="[::1]:31210", local_id="0a/0b", operation_id=35
    )

    assert {
        "network.transport": "tcp",
        "server.address": "a.example",
        "server.port": 11210,
        "network.peer.address": "::1",
        "network.peer.port": 31210,
        "couchbase.local_id": "0a/0b",
        "couchbase.operation_id": 35,
    } == reported


def test_unknown_attributes_are_left_out() -> None:
    """A peer that the driver did not report and a duration that the service did not send have no attribute."""
    assert {"network.transport", "server.address", "server.port"} == attributes.dispatch_attributes(
        ("a", 1), peer=None
    ).keys()
    assert {} == attributes.answer_attributes(None)
    assert {"couchbase.server_duration": 1500} == attributes.answer_attributes(0.0015)
