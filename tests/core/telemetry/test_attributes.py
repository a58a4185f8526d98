"""What attributes there are, and what an error is called."""

from __future__ import annotations

import pytest

from triclinium_core import errors
from triclinium_core.telemetry import attributes


class _Narrower(errors.DocumentLockedException):
    """What a program may derive for itself."""


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
    """An error is called as SDK-RFC 0058 calls the nearest of its kinds, and what it does not know ``_OTHER``."""
    assert name == attributes.error_type(error)


def test_no_name_has_the_suffix_of_a_language() -> None:
    """RFC 0067: only the name of the RFC, so that metrics of all clients can be compared."""
    assert not [
        name for name in attributes.ERROR_TYPES.values() if name.endswith(("Exception", "Error")) or not name.isalnum()
    ]


def test_what_the_metric_has_the_outer_span_has_too() -> None:
    """Each tag of the metric is an attribute of the outer span under the same key."""
    tags = [key for key, row in attributes.ATTRIBUTES.items() if attributes.Bearer.METRIC in row.bearers]

    assert 9 == len(tags)
    assert all(attributes.Bearer.OUTER in attributes.ATTRIBUTES[key].bearers for key in tags)


def test_an_attempt_before_its_answer() -> None:
    """RFC 0067 "Dispatch Span Attributes": server and peer, each as address and port; an IPv6 address has no brackets."""
    told = attributes.dispatch_attributes(("a.example", 11210), peer="[::1]:31210", local_id="0a/0b", operation_id=35)

    assert {
        "network.transport": "tcp",
        "server.address": "a.example",
        "server.port": 11210,
        "network.peer.address": "::1",
        "network.peer.port": 31210,
        "couchbase.local_id": "0a/0b",
        "couchbase.operation_id": 35,
    } == told


def test_an_attempt_of_which_little_is_known() -> None:
    """What the driver did not tell, and what the service has not, is left out."""
    assert {"network.transport", "server.address", "server.port"} == attributes.dispatch_attributes(
        ("a", 1), peer=None
    ).keys()
    assert {} == attributes.answer_attributes(None)
    assert {"couchbase.server_duration": 1500} == attributes.answer_attributes(0.0015)
