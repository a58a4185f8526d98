"""Query and its options, the request that prepares it, and the request that executes its plan.

Source: SDK-RFC 0056 "ICluster#Query", "QueryProfile", "QueryScanConsistency"; SDK-RFC 0004 "Internal implementation".
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum, unique
from typing import ClassVar, NamedTuple

import msgspec

from triclinium_core import errors
from triclinium_core.checks import check_choice, check_duration, check_flag, check_integer, check_type
from triclinium_core.error_context import ErrorContext
from triclinium_core.kv.operation.results import MutationToken
from triclinium_core.kv.operation.validation import UINT32_MAX
from triclinium_core.kv.topology.capabilities import ClusterCapability
from triclinium_core.retry.couchbase import Service
from triclinium_core.services import service_request
from triclinium_core.services.mutation_state import vectors_of
from triclinium_core.services.query.result import QueryMetaData, metadata_of
from triclinium_core.services.statement.go_durations import SECONDS_MAX, go_duration
from triclinium_core.services.statement.statement_request import MEMBERS, StatementRequest
from triclinium_core.shown import total_repr

NUMBERS = ("max_parallelism", "pipeline_batch", "pipeline_cap", "scan_cap")
"""Options that are sent under their own names, as strings (SDK-RFC 0056, revision 4)."""

QUERY_MEMBERS: Mapping[str, str] = {
    **MEMBERS,
    "auto_execute": "adhoc",
    "encoded_plan": "adhoc",
    "metrics": "metrics",
    "prepared": "adhoc",
    "preserve_expiry": "preserve_expiry",
    "profile": "profile",
    "scan_vectors": "consistent_with",
    "scan_wait": "scan_wait",
    "use_fts": "flex_index",
    "use_replica": "use_replica",
    **{name: name for name in NUMBERS},
}


@unique
class QueryScanConsistency(StrEnum):
    """Required freshness of the indexes that a query reads."""

    NOT_BOUNDED = "not_bounded"
    """Read the indexes as they are. The default."""
    REQUEST_PLUS = "request_plus"
    """Wait until the indexes contain all mutations from before the query."""


@unique
class QueryProfile(StrEnum):
    """Amount of detail in the profile of a query."""

    OFF = "off"
    PHASES = "phases"
    """Duration of each phase."""
    TIMINGS = "timings"
    """Duration of each phase and of each part of the plan."""


class PreparedPlan(service_request.ServiceResult, frozen=True):
    """Plan of a statement, made by a node. ``repr`` shows only its name."""

    name: str
    encoded_plan: str | None = None
    """Plan for nodes to which the name is unknown; None if nodes get plans from each other."""

    @total_repr
    def __repr__(self) -> str:
        return f"PreparedPlan({self.name!r})"


class PlanKey(NamedTuple):
    """Key of a plan: everything on which it depends."""

    statement: str
    query_context: str
    flex_index: bool


class QueryRequest(StatementRequest, frozen=True, kw_only=True):
    """SQL++ statement for the query service.

    With ``adhoc=False``, executions share a plan. Without a cached plan, a request sends its
    ``preparation``; other requests execute the plan that a preparation has returned (``with_plan``).
    """

    name: ClassVar[str] = "query"
    service: ClassVar[Service] = Service.QUERY
    path: ClassVar[str] = "/query/service"
    members: ClassVar[Mapping[str, str]] = QUERY_MEMBERS

    adhoc: bool = True
    """Whether to plan the statement for each execution. False reuses a plan while it is valid."""
    scan_consistency: QueryScanConsistency | None = None
    """Required freshness of the indexes. None means ``NOT_BOUNDED``."""
    consistent_with: tuple[MutationToken, ...] = ()
    """Mutations that the indexes must contain, one for each vbucket: the ``tokens`` of a ``MutationState``."""
    metrics: bool = False
    """Whether to request metrics. Without them, all metrics in the metadata are 0."""
    profile: QueryProfile = QueryProfile.OFF
    """Amount of detail in the metadata's profile."""
    flex_index: bool = False
    """Whether the statement may use search indexes."""
    preserve_expiry: bool = False
    """Whether documents that the statement changes keep their expiry."""
    use_replica: bool | None = None
    """Whether the query reads from a replica if the active node is down. None uses the setting of the query node."""
    max_parallelism: int | None = None
    """Maximum number of cores; 0 for all cores of the node. None uses the service's default."""
    pipeline_batch: int | None = None
    """Number of documents per fetch. None uses the service's default."""
    pipeline_cap: int | None = None
    """Maximum number of documents between two parts of the plan. None uses the service's default."""
    scan_cap: int | None = None
    """Maximum number of entries between an index and the query. None uses the service's default."""
    scan_wait: float | None = None
    """Maximum time in seconds that the query waits for consistent indexes. None uses the service's default."""
    plan: PreparedPlan | None = None
    """Plan to execute, set by ``with_plan``; None to send the statement."""
    auto_execute: bool = False
    """Whether the request prepares the statement and executes it; set by ``preparation``."""

    def __post_init__(self) -> None:
        StatementRequest.__post_init__(self)
        for name in ("adhoc", "metrics", "flex_index", "preserve_expiry", "auto_execute"):
            check_flag(getattr(self, name), name)
        check_choice(self.profile, "profile", QueryProfile)
        check_type(self.consistent_with, "consistent_with", tuple)
        for token in self.consistent_with:
            check_type(token, "consistent_with", MutationToken)
        if self.scan_consistency is not None:
            check_choice(self.scan_consistency, "scan_consistency", QueryScanConsistency)
            if self.consistent_with:
                # SDK-RFC 0004 "Errors": a request with both options is an error.
                raise errors.InvalidArgumentException(
                    "consistent_with and scan_consistency exclude each other; omit scan_consistency",
                    parameter="scan_consistency",
                )
        if self.use_replica is not None:
            check_flag(self.use_replica, "use_replica")
        for name in NUMBERS:
            if getattr(self, name) is not None:
                check_integer(getattr(self, name), name, 0, UINT32_MAX)
        if self.scan_wait is not None:
            check_duration(self.scan_wait, "scan_wait", most=SECONDS_MAX)
        if self.plan is not None:
            check_type(self.plan, "plan", PreparedPlan)

    @property
    def required_capabilities(self) -> frozenset[ClusterCapability]:
        """Capability to read from replicas, if ``use_replica`` is given."""
        return frozenset() if self.use_replica is None else frozenset({ClusterCapability.READ_FROM_REPLICA})

    @property
    def plan_key(self) -> PlanKey:
        """Key under which the plan is cached."""
        context = self.query_context.written(self.identifier) if self.query_context is not None else ""
        return PlanKey(self.statement, context, self.flex_index)

    def preparation(self, *, enhanced: bool) -> service_request.ServiceRequest:
        """Return the request that prepares the statement.

        Args:
            enhanced: whether the cluster has ``ClusterCapability.ENHANCED_PREPARED_STATEMENTS``. If so, the request
                also executes the statement, and its response has the rows and the plan for ``plan_of``. Otherwise the
                response has only the ``PreparedPlan`` for ``with_plan``.
        """
        if enhanced:
            return msgspec.structs.replace(self, auto_execute=True)
        return PrepareRequest(client_context_id=self.client_context_id, query=self)

    def with_plan(self, plan: PreparedPlan) -> QueryRequest:
        """Return the request that executes a plan."""
        return msgspec.structs.replace(self, plan=plan)

    def plan_of(self, answer: service_request.HttpResponse) -> PreparedPlan | None:
        """Return the plan in the response to an enhanced preparation, or None if the response names no plan.

        Raises:
            MalformedAnswer: the body is not a response of the service.
        """
        name = answer.body_as(_Prepared).prepared
        return PreparedPlan(name) if isinstance(name, str) and name else None

    def statement_members(self) -> dict[str, object]:
        """Return the members of the request that contain the statement or the plan."""
        if self.plan is not None:
            executed: dict[str, object] = {"prepared": self.plan.name}
            return executed | ({"encoded_plan": self.plan.encoded_plan} if self.plan.encoded_plan else {})
        if self.auto_execute:
            return {"statement": f"PREPARE {self.statement}", "auto_execute": True}
        return {"statement": self.statement}

    def options(self) -> dict[str, object]:
        """Return the members of the request that contain the options. Omit defaults, except that of ``metrics``."""
        # Always send ``metrics``, because the service returns metrics by default.
        options = {"metrics": self.metrics, **StatementRequest.options(self)}
        if self.scan_consistency is QueryScanConsistency.REQUEST_PLUS:
            options["scan_consistency"] = self.scan_consistency.value
        if self.consistent_with:
            options |= {"scan_consistency": "at_plus", "scan_vectors": vectors_of(self.consistent_with)}
        if self.profile is not QueryProfile.OFF:
            options["profile"] = self.profile.value
        if self.flex_index:
            options["use_fts"] = True
        if self.preserve_expiry:
            options["preserve_expiry"] = True
        if self.use_replica is not None:
            options["use_replica"] = "on" if self.use_replica else "off"
        options |= {name: str(getattr(self, name)) for name in NUMBERS if getattr(self, name) is not None}
        if self.scan_wait is not None:
            options["scan_wait"] = go_duration(self.scan_wait)
        return options

    def decode(self, answer: service_request.HttpResponse) -> QueryMetaData:
        """Return the metadata in the response."""
        return metadata_of(answer)


class PrepareRequest(service_request.IdentifiedRequest, frozen=True, kw_only=True):
    """Request that plans a statement without executing it."""

    name: ClassVar[str] = "query"
    service: ClassVar[Service] = Service.QUERY

    query: QueryRequest

    @property
    def idempotent(self) -> bool:
        """True: a preparation changes no document."""
        return True

    @property
    def has_body(self) -> bool:
        """True: the body contains the statement."""
        return True

    def encode(self, remaining: float, context_id: str = "") -> service_request.HttpRequest:
        """Return the HTTP request of the query, with ``PREPARE`` before its statement."""
        statement = f"PREPARE {self.query.statement}"
        return msgspec.structs.replace(self.query, statement=statement, plan=None).encode(remaining, context_id)

    def decode(self, answer: service_request.HttpResponse) -> PreparedPlan:
        """Return the plan, which is the only row.

        Raises:
            MalformedAnswer: the response does not have exactly one plan with a name.
        """
        plans = answer.body_as(_Plans).results
        if len(plans) != 1 or not plans[0].name:
            raise service_request.MalformedAnswer(f"plans returned by PREPARE: {len(plans)}; expected one with a name")
        return PreparedPlan(plans[0].name, plans[0].encoded_plan)

    def error_context(self) -> ErrorContext:
        """Return the error context of the query."""
        return self.query.error_context()


class _Prepared(msgspec.Struct, frozen=True):
    prepared: object = None


class _AnsweredPlan(msgspec.Struct, frozen=True):
    name: str
    encoded_plan: str | None = None


class _Plans(msgspec.Struct, frozen=True):
    results: tuple[_AnsweredPlan, ...]
