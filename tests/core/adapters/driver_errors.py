"""ERROR frames as ``cassandra-driver`` decodes them, in the words of ``from_wire``."""

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
"""What the driver calls a field of ours; the rest have the same name."""


def from_driver(answer: protocol.ErrorMessage) -> CoordinatorError:
    """Return the error that an answer stands for, of all that the driver has read of it."""
    info = {"statement_id": answer.info} if isinstance(answer.info, bytes) else answer.info or {}
    fields = {NAMES.get(name, name): value for name, value in info.items() if value is not None}
    if "write_type" in fields:
        fields["write_type"] = cassandra.WriteType.value_to_name[fields["write_type"]]
    return from_wire(answer.code, answer.message, fields)
