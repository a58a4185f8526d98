"""What gives each retry reason."""

from __future__ import annotations

import pytest

from tests.core.retry.smithy.cases import Fixed
from triclinium_core.explain.couchbase.happenings import HAPPENINGS, ErrorCode, Happening, KvAnswer, verdict_of
from triclinium_core.explain.couchbase.reaction import put_to_machine
from triclinium_core.retry.couchbase.retry_machine import RequestAnnotation
from triclinium_core.retry.couchbase.strategy import FailFastRetryStrategy
from triclinium_core.retry.couchbase.tables.kv_responses import KvVerdict
from triclinium_core.retry.couchbase.tables.reasons import RetryReason
from triclinium_core.retry.couchbase.tables.service import Service
from triclinium_core.retry.couchbase.tables.service_responses import ServiceVerdict


@pytest.mark.parametrize("reason", RetryReason)
def test_the_machine_finds_the_reason(reason: RetryReason) -> None:
    """A machine that meets the occasion gives the reason, for a request of its service."""
    service, happened = HAPPENINGS[reason]
    annotation = RequestAnnotation(
        operation="",
        idempotent=False,
        strategy=FailFastRetryStrategy(),
        submitted_at=0.0,
        deadline=1.0,
        service=service,
    )

    trial = put_to_machine(happened, annotation, 0.0, rng=Fixed())

    assert reason is trial.machine.last_reason


@pytest.mark.parametrize(
    ("service", "happened", "kind"),
    [
        (Service.KV, KvAnswer(0x86), KvVerdict),
        (Service.QUERY, ErrorCode(4040), ServiceVerdict),
        (*HAPPENINGS[RetryReason.NODE_NOT_AVAILABLE], type(None)),
    ],
)
def test_verdict(service: Service, happened: Happening, kind: type) -> None:
    """The tables say something of an answer, and nothing where none came."""
    assert kind is type(verdict_of(service, "upsert", happened))
