"""Prepared statements: their plans, as far as they are remembered, and the message that is sent for each.

The query service plans a statement once and gives the plan a name. A node that has forgotten it, or has another idea of
it by now, says so (4040, 4050, 4070). A plan that turns out stale, or that reads an index that is gone, is forgotten, so
the next attempt has the statement planned anew.

Source: SDK-RFC 0056 ``adhoc``; SDK-RFC 0049 "Response Code Retry List".
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import TypeVar

from triclinium_core import decoder_faults
from triclinium_core.kv.topology.capabilities import ClusterCapability
from triclinium_core.retry.couchbase import RetryReason, Service
from triclinium_core.runtime.kv.known_configs import KnownConfigs
from triclinium_core.services.query.query_request import PlanKey, PreparedPlan, PrepareRequest, QueryRequest
from triclinium_core.services.service_request import HttpResponse, MalformedAnswer, ServiceRequest

P = TypeVar("P")

PLANS_MAX = 5000
"""As many as other Couchbase clients remember. A program has dozens of statements; one that writes values into them has
any number, each planned in vain."""
PLANS_SIZE_MAX = 32 * 1024 * 1024
"""Characters of all plans together; those of one statement are some thousands."""

REASONS_TO_PREPARE_AGAIN = frozenset({RetryReason.QUERY_PREPARED_STATEMENT_FAILURE, RetryReason.QUERY_INDEX_NOT_FOUND})
"""The plan is stale, or reads an index that is gone: executed again, it would fail again."""


class PreparedPlans:
    """The plans that a client remembers, bounded: the least recently used is forgotten first."""

    def __init__(self, *, count_max: int = PLANS_MAX, size_max: int = PLANS_SIZE_MAX) -> None:
        self._count_max = count_max
        self._size_max = size_max
        self._plans: OrderedDict[PlanKey, PreparedPlan] = OrderedDict()
        self._size = 0

    def __len__(self) -> int:
        return len(self._plans)

    def remember(self, key: PlanKey, plan: PreparedPlan) -> None:
        """Keep a plan, in place of an older one."""
        self.forget(key)
        self._plans[key] = plan
        self._size += _size(key, plan)
        # The newest stays, however large: without it a statement would be prepared again and again.
        while len(self._plans) > 1 and (len(self._plans) > self._count_max or self._size > self._size_max):
            self._size -= _size(*self._plans.popitem(last=False))

    def recall(self, key: PlanKey) -> PreparedPlan | None:
        """Return the plan of a statement; None if it has to be prepared."""
        if key not in self._plans:
            return None
        self._plans.move_to_end(key)
        return self._plans[key]

    def forget(self, key: PlanKey) -> None:
        """Drop the plan of a statement, if there is one."""
        plan = self._plans.pop(key, None)
        if plan is not None:
            self._size -= _size(key, plan)


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

    def learn(self, message: ServiceRequest, answer: HttpResponse) -> None:
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


def _decoded(decode: Callable[[HttpResponse], P], answer: HttpResponse) -> P:
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
        raise decoder_faults.unexpected(decoder_faults.Decoder.QUERY_PLAN, error) from None


def _size(key: PlanKey, plan: PreparedPlan) -> int:
    return len(key.statement) + len(plan.name) + len(plan.encoded_plan or "")
