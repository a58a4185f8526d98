"""Prepared statements: a cache of their plans, and the choice of the message to send for each statement.

The query service plans a statement once and gives the plan a name. A node that has forgotten the plan, or has a
different plan with this name, responds with an error (4040, 4050, 4070). The client then drops the plan, so that the
next attempt prepares the statement again. It also drops a plan that reads a dropped index.

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
"""Maximum number of plans, the same as in other Couchbase clients. Most programs have dozens of statements. One that
formats values into its statements may have any number of them, and does not benefit from preparing each."""
PLANS_SIZE_MAX = 32 * 1024 * 1024
"""Maximum number of characters of several plans together. The plan of one statement has a few thousand."""

REASONS_TO_PREPARE_AGAIN = frozenset({RetryReason.QUERY_PREPARED_STATEMENT_FAILURE, RetryReason.QUERY_INDEX_NOT_FOUND})
"""Retry reasons which show that a plan is stale or reads a dropped index, so that another execution would also fail."""


class PreparedPlans:
    """Bounded cache of plans. A full cache drops the least recently used plan."""

    def __init__(self, *, count_max: int = PLANS_MAX, size_max: int = PLANS_SIZE_MAX) -> None:
        self._count_max = count_max
        self._size_max = size_max
        self._plans: OrderedDict[PlanKey, PreparedPlan] = OrderedDict()
        self._size = 0

    def __len__(self) -> int:
        return len(self._plans)

    def remember(self, key: PlanKey, plan: PreparedPlan) -> None:
        """Store a plan, replacing an older one."""
        self.forget(key)
        self._plans[key] = plan
        self._size += _size(key, plan)
        # Keep the newest plan at any size. Otherwise each execution would prepare the statement again.
        while len(self._plans) > 1 and (len(self._plans) > self._count_max or self._size > self._size_max):
            self._size -= _size(*self._plans.popitem(last=False))

    def recall(self, key: PlanKey) -> PreparedPlan | None:
        """Return the plan of a statement; None if the statement must be prepared."""
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
    """Prepared statements of a client.

    Args:
        configs: source of the cluster's capabilities, which determine the form of a preparation.
    """

    def __init__(self, configs: KnownConfigs) -> None:
        self._configs = configs
        self._plans = PreparedPlans()

    def message(self, request: ServiceRequest) -> ServiceRequest:
        """Return the message to send for a request: the request itself, the execution of its plan, or a preparation."""
        if not isinstance(request, QueryRequest) or request.adhoc:
            return request
        plan = self._plans.recall(request.plan_key)
        if plan is not None:
            return request.with_plan(plan)
        can = self._configs.capabilities_of(Service.QUERY)
        return request.preparation(enhanced=ClusterCapability.ENHANCED_PREPARED_STATEMENTS in can)

    def learn(self, message: ServiceRequest, answer: HttpResponse) -> None:
        """Store the plan in a successful response, if ``message`` requested a plan.

        Raises:
            MalformedAnswer: the body is not a valid response to a preparation.
            DecoderFault: the decoder of plans failed.
        """
        if isinstance(message, PrepareRequest):
            self._plans.remember(message.query.plan_key, _decoded(message.decode, answer))
        elif isinstance(message, QueryRequest) and message.auto_execute:
            plan = _decoded(message.plan_of, answer)
            if plan is not None:
                self._plans.remember(message.plan_key, plan)

    def failed(self, request: ServiceRequest, reason: RetryReason) -> None:
        """Forget the plan of a statement if the plan may have caused the failure."""
        if reason in REASONS_TO_PREPARE_AGAIN and isinstance(request, QueryRequest):
            self._plans.forget(request.plan_key)


def _decoded(decode: Callable[[HttpResponse], P], answer: HttpResponse) -> P:
    """Return the plan in a response.

    Raises:
        MalformedAnswer: the body is not a valid response of the service.
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
