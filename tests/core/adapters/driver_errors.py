"""ERROR frames decoded by ``cassandra-driver`` and passed to ``from_wire`` with our field names."""

from __future__ import annotations

from collections.abc import Mapping

import cassandra
from cassandra import protocol

from triclinium_core.retry.cassandra import CoordinatorError, from_wire

NAMES: Mapping[str, str] = {
    "required_replicas": "required",
    "alive_replicas": "alive",
    "required_responses": "block_for",
    "received_responses": "received",
    "data_retrieved": "data_present",
    "error_code_map": "reasons",
}
"""Our name for each field that the driver names differently."""


def from_driver(answer: protocol.ErrorMessage) -> CoordinatorError:
    """Return our error for a decoded ERROR frame, with all fields that the driver decoded."""
    info = {"statement_id": answer.info} if isinstance(answer.info, bytes) else answer.info or {}
    fields = {NAMES.get(name, name): value for name, value in info.items() if value is not None}
    if "write_type" in fields:
        fields["write_type"] = cassandra.WriteType.value_to_name[fields["write_type"]]
    return from_wire(answer.code, answer.message, fields)
