"""Facts about an operation for telemetry, which its measurements yield."""

from __future__ import annotations

import math

from msgspec.structs import replace

from triclinium_core.retry.couchbase import Service
from triclinium_core.runtime.lifecycle.link import Link
from triclinium_core.runtime.lifecycle.measured import Measured
from triclinium_core.telemetry.facts import OperationFacts
from triclinium_core.telemetry.past_attempts import PastAttempts

LINK = Link(1, "a:11210", "10.0.0.1:5000", "10.0.0.2:11210", "0a/0b")


def measured() -> Measured:
    """Return an operation submitted at 1 s, with an attempt that took half a second and another in flight."""
    return Measured(
        service=Service.KV,
        name="lookup_in_replica",
        began_at=1.0,
        timeout=2.5,
        encode_seconds=None,
        operation_id="0x23",
        link=LINK,
        dispatched_at=2.0,
        past=PastAttempts(last=0.5, total=0.5, last_server=0.25, total_server=0.25),
    )


def test_an_attempt_that_has_just_ended() -> None:
    """An attempt in flight counts as the last one and adds to the sums; computing the facts twice changes nothing."""
    operation = measured()
    expected = OperationFacts(
        service=Service.KV,
        operation_name="get_replica",
        total_duration_us=2_000_000,
        last_dispatch_duration_us=1_000_000,
        total_dispatch_duration_us=1_500_000,
        last_server_duration_us=125_000,
        total_server_duration_us=375_000,
        last_local_id="0a/0b",
        operation_id="0x23",
        last_local_socket="10.0.0.1:5000",
        last_remote_socket="10.0.0.2:11210",
        timeout_ms=2_500,
    )

    assert expected == operation.facts(3.0, 0.125)
    assert expected == operation.facts(3.0, 0.125)


def test_encoding_time_counts() -> None:
    """The total duration includes the encoding time, because the caller has waited for the encoding."""
    operation = replace(measured(), began_at=0.75, encode_seconds=0.25)
    facts = operation.facts(3.0, 0.125)

    assert (250_000, 2_250_000) == (facts.encode_duration_us, facts.total_duration_us)
    assert (1_500_000, 2_500) == (facts.total_dispatch_duration_us, facts.timeout_ms)


def test_facts_of_an_unsent_operation() -> None:
    """If an operation was never sent and has no timeout, its facts contain neither an attempt nor a timeout."""
    operation = Measured(
        service=Service.QUERY,
        name="query",
        began_at=1.0,
        timeout=math.inf,
        encode_seconds=None,
        operation_id=None,
        link=None,
        dispatched_at=None,
        past=PastAttempts(),
    )

    assert OperationFacts(service=Service.QUERY, operation_name="query", total_duration_us=500_000) == operation.facts(
        1.5
    )
