"""Example events, one for each retry reason."""

from __future__ import annotations

import pytest

from tests.core.retry.couchbase.request_cases import annotation
from tests.core.retry.smithy.cases import Fixed
from triclinium_core.explain.couchbase.happenings import HAPPENINGS, ErrorCode, Happening, KvAnswer, verdict_of
from triclinium_core.explain.couchbase.reaction import put_to_machine
from triclinium_core.retry import couchbase


@pytest.mark.parametrize("reason", couchbase.RetryReason)
def test_the_machine_finds_the_reason(reason: couchbase.RetryReason) -> None:
    """For a request of the reason's service, a machine that gets the event of the reason records the reason."""
    service, happened = HAPPENINGS[reason]
    request = annotation(couchbase.FailFastRetryStrategy(), service=service, operation="", submitted_at=0.0)

    trial = put_to_machine(happened, request, 0.0, rng=Fixed())

    assert reason is trial.machine.last_reason


@pytest.mark.parametrize(
    ("service", "happened", "kind"),
    [
        (couchbase.Service.KV, KvAnswer(0x86), couchbase.KvVerdict),
        (couchbase.Service.QUERY, ErrorCode(4040), couchbase.ServiceVerdict),
        (*HAPPENINGS[couchbase.RetryReason.NODE_NOT_AVAILABLE], type(None)),
    ],
)
def test_verdict(service: couchbase.Service, happened: Happening, kind: type) -> None:
    """The tables classify a response; without a response ``verdict_of`` returns None."""
    assert kind is type(verdict_of(service, "upsert", happened))
