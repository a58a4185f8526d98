"""What gives each retry reason."""

from __future__ import annotations

import pytest

from tests.core.retry.smithy.cases import Fixed
from triclinium_core.explain.couchbase.occasions import OCCASIONS, Occasion, kv_answered, service_answered_code
from triclinium_core.explain.couchbase.trial import put_to_machine
from triclinium_core.retry.couchbase.machine import RequestAnnotation
from triclinium_core.retry.couchbase.strategy import FailFastRetryStrategy
from triclinium_core.retry.couchbase.tables.kv_responses import KvVerdict
from triclinium_core.retry.couchbase.tables.reasons import RetryReason
from triclinium_core.retry.couchbase.tables.service import Service
from triclinium_core.retry.couchbase.tables.service_responses import ServiceVerdict


@pytest.mark.parametrize("reason", RetryReason)
def test_the_machine_finds_the_reason(reason: RetryReason) -> None:
    """A machine that meets the occasion gives the reason, for a request of its service."""
    occasion = OCCASIONS[reason]
    annotation = RequestAnnotation(
        operation="",
        idempotent=False,
        strategy=FailFastRetryStrategy(),
        submitted_at=0.0,
        deadline=1.0,
        service=occasion.service,
    )

    trial = put_to_machine(occasion, annotation, 0.0, rng=Fixed())

    assert reason is trial.machine.last_reason


@pytest.mark.parametrize(
    ("occasion", "kind"),
    [
        (kv_answered(0x86), KvVerdict),
        (service_answered_code(Service.QUERY, 4040, ""), ServiceVerdict),
        (OCCASIONS[RetryReason.NODE_NOT_AVAILABLE], type(None)),
    ],
)
def test_verdict(occasion: Occasion, kind: type) -> None:
    """The tables say something of an answer, and nothing where none came."""
    assert kind is type(occasion.verdict("upsert"))
