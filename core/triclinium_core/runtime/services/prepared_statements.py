"""Requests for prepared statements: the one that prepares, or the one that executes the plan.

A plan that turns out stale, or that reads an index that is gone, is forgotten, so the next attempt has the statement
planned anew.

Source: SDK-RFC 0056 ``adhoc``; SDK-RFC 0049 "Response Code Retry List".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from triclinium_core import decoder_faults
from triclinium_core.decoder_faults import Decoder
from triclinium_core.kv.topology.capabilities import ClusterCapability
from triclinium_core.retry.couchbase.tables.reasons import RetryReason
from triclinium_core.retry.couchbase.tables.service import Service
from triclinium_core.runtime.kv.known_configs import KnownConfigs
from triclinium_core.runtime.services.prepared_plans import PreparedPlans
from triclinium_core.services.query.request import PrepareRequest, QueryRequest
from triclinium_core.services.request import HttpAnswer, MalformedAnswer, ServiceRequest

P = TypeVar("P")

REASONS_TO_PREPARE_AGAIN = frozenset({RetryReason.QUERY_PREPARED_STATEMENT_FAILURE, RetryReason.QUERY_INDEX_NOT_FOUND})
"""The plan is stale, or reads an index that is gone: executed again, it would fail again."""


class PreparedStatements:
    """The statements that a client has prepared, as far as it remembers their plans.

    Args:
        configs: they tell how the cluster prepares.
    """

    def __init__(self, configs: KnownConfigs) -> None:
        self._configs = configs
        self._plans = PreparedPlans()

    def message(self, request: ServiceRequest) -> ServiceRequest:
        """Return what to send for a request: itself, the plan of its statement, or what asks for that."""
        if not isinstance(request, QueryRequest) or request.adhoc:
            return request
        plan = self._plans.recall(request.plan_key)
        if plan is not None:
            return request.with_plan(plan)
        can = self._configs.capabilities_of(Service.QUERY)
        return request.preparation(enhanced=ClusterCapability.ENHANCED_PREPARED_STATEMENTS in can)

    def learn(self, message: ServiceRequest, answer: HttpAnswer) -> None:
        """Store the plan in a successful answer, if the message requested one.

        Raises:
            MalformedAnswer: the body is not a valid answer to a preparation.
            DecoderFault: the decoder of plans failed.
        """
        if isinstance(message, PrepareRequest):
            self._plans.remember(message.query.plan_key, _decoded(message.decode, answer))
        elif isinstance(message, QueryRequest) and message.auto_execute:
            plan = _decoded(message.plan_of, answer)
            if plan is not None:
                self._plans.remember(message.plan_key, plan)

    def failed(self, request: ServiceRequest, reason: RetryReason) -> None:
        """Forget the plan of a statement where that may be why it failed."""
        if reason in REASONS_TO_PREPARE_AGAIN and isinstance(request, QueryRequest):
            self._plans.forget(request.plan_key)


def _decoded(decode: Callable[[HttpAnswer], P], answer: HttpAnswer) -> P:
    """Return the plan in an answer.

    Raises:
        MalformedAnswer: the body is not a valid answer of the service.
        DecoderFault: the decoder of plans failed.
    """
    try:
        return decode(answer)
    except MalformedAnswer:
        raise
    except Exception as error:
        raise decoder_faults.unexpected(Decoder.QUERY_PLAN, error) from None
