"""Options of a fake node: defaults and validation."""

from __future__ import annotations

import math

import pytest

from tests.rows import rows
from triclinium_core import errors
from triclinium_core.kv.wire.constants import HelloFeature
from triclinium_core.testing.fakes.options import IMPLEMENTED_FEATURES, FakeNodeOptions


def test_grants_all_features_by_default() -> None:
    """A node with default options grants exactly its implemented features, and has only the default collection."""
    assert IMPLEMENTED_FEATURES == FakeNodeOptions().features
    assert HelloFeature.NON_BLOCKING_THROTTLING not in IMPLEMENTED_FEATURES
    assert {"_default": {"_default": 0}} == FakeNodeOptions().collections


def test_hides_the_password() -> None:
    """The representation of the options hides the password and the tokens."""
    assert "hunter2" not in repr(FakeNodeOptions(password="hunter2", tokens=("hunter2",)))


@rows(
    ("parameter", "value"),
    [
        ("host", ""),
        ("port", 0),
        ("port", 65536),
        ("tls_port", 0),
        ("alternate_addresses", ["external"]),
        ("alternate_addresses", {"": ("ext.example", 1)}),
        ("alternate_addresses", {"external": "ext.example:1"}),
        ("alternate_addresses", {"external": ("", 1)}),
        ("alternate_addresses", {"external": ("ext.example", 0)}),
        ("username", ""),
        ("password", b"password"),
        ("password", "\ud800"),
        ("vbuckets", 64),
        ("replicas", -1),
        ("replicas", 4),
        ("replicas", True),
        ("features", frozenset({HelloFeature.NON_BLOCKING_THROTTLING})),
        ("sasl_mechanisms", ("SCRAM-SHA512", "OAUTHBEARER")),
        ("tokens", "a.b.c"),
        ("tokens", ["a.b.c"]),
        ("tokens", ("a.b.c", "")),
        ("tokens", (b"a.b.c",)),
        ("certificate_users", "ada"),
        ("certificate_users", ["ada"]),
        ("certificate_users", ("",)),
        ("certificate_users", (7,)),
        ("scram_iterations", 0),
        ("config_epoch", 0),
        ("config_revision", 0),
        ("wall_seconds_at_zero", -1.0),
        ("wall_seconds_at_zero", math.nan),
        ("wall_seconds_at_zero", "now"),
        ("buckets", "default"),
        ("memcached_buckets", "memd"),
        ("features", 5),
        ("sasl_mechanisms", "PLAIN"),
        ("error_map", b"{}"),
        ("collections", ["travel"]),
        ("collections", {"travel": ["hotels"]}),
    ],
)
def test_refuses_invalid_options(parameter: str, value: object) -> None:
    """An invalid option raises an error that names the parameter."""
    with pytest.raises(errors.InvalidArgumentException) as caught:
        FakeNodeOptions(**{parameter: value})  # type: ignore[arg-type]

    assert parameter == caught.value.parameter


def test_refuses_a_bucket_without_a_name() -> None:
    """A bucket without a name is refused."""
    with pytest.raises(errors.InvalidArgumentException) as caught:
        FakeNodeOptions(buckets=("default", ""))

    assert "bucket" == caught.value.parameter
