"""Attributes of a call's outer span and metric, as far as the client knows them before it sends anything.

Those of an operation on a document contain neither its key nor its value.

Source: SDK-RFC 0067 "Outer Request Span Attributes".
"""

from __future__ import annotations

from collections.abc import Mapping

from triclinium_core.kv.operation.document_operations import DocumentOperation, Mutation, Operation
from triclinium_core.kv.operation.durability import DurabilityLevel
from triclinium_core.kv.operation.inquiries import Inquiry
from triclinium_core.kv.operation.scan.scan_requests import VBucketOperation
from triclinium_core.retry.couchbase import Service
from triclinium_core.services.service_request import ServiceRequest
from triclinium_core.services.statement.statement_request import StatementRequest
from triclinium_core.telemetry.attributes import COLLECTION_NAME, DURABILITY, NAMESPACE, QUERY_TEXT, SCOPE_NAME, SERVICE
from triclinium_core.telemetry.span_names import SPAN_NAMES
from triclinium_core.telemetry.tracing import AttributeValue

Asked = Operation | Inquiry | ServiceRequest
"""Operation, inquiry or request that a call submits."""

DURABILITY_NAMES: Mapping[DurabilityLevel, str | None] = {
    DurabilityLevel.NONE: None,
    DurabilityLevel.MAJORITY: "majority",
    DurabilityLevel.MAJORITY_AND_PERSIST_TO_ACTIVE: "majority_and_persist_active",
    DurabilityLevel.PERSIST_TO_MAJORITY: "persist_majority",
}
"""Names of the durability levels in RFC 0067 "Attribute: Durability Level"; None without durability."""


def name_of(submission: Asked) -> str:
    """Return the name of the outer span."""
    return SPAN_NAMES[submission.name]


def attributes_of(submission: Asked) -> Mapping[str, AttributeValue]:
    """Return the attributes of the outer span, except the call's name, that the client knows when the call begins."""
    if isinstance(submission, Operation):
        known = _of_operation(submission)
    elif isinstance(submission, ServiceRequest):
        known = _of_request(submission)
    else:
        # An inquiry may concern several services, so it has no attribute for a service.
        known = {NAMESPACE: submission.bucket}
    return {key: value for key, value in known.items() if value is not None}


def _of_operation(operation: Operation) -> dict[str, AttributeValue | None]:
    keyspace = operation.keyspace
    known: dict[str, AttributeValue | None] = {SERVICE: str(Service.KV), NAMESPACE: keyspace.bucket}
    if isinstance(operation, DocumentOperation | VBucketOperation):
        known |= {SCOPE_NAME: keyspace.scope, COLLECTION_NAME: keyspace.collection}
    if isinstance(operation, Mutation):
        known[DURABILITY] = DURABILITY_NAMES[operation.durability]
    return known


def _of_request(request: ServiceRequest) -> dict[str, AttributeValue | None]:
    context = request.error_context()
    # RFC 0067 "Attribute: Statement": include a statement only if it has parameters, because its sensitive data is then
    # most likely in the parameters.
    has_parameters = isinstance(request, StatementRequest) and bool(context.parameters)
    return {
        SERVICE: str(request.service),
        NAMESPACE: context.bucket,
        SCOPE_NAME: context.scope,
        COLLECTION_NAME: context.collection,
        QUERY_TEXT: context.statement if has_parameters else None,
    }
