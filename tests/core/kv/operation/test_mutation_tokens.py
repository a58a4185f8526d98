"""Mutation tokens that a caller passes: an invalid token raises immediately."""

from __future__ import annotations

from typing import Any

import pytest

from tests.rows import rows
from triclinium_core import errors
from triclinium_core.kv.operation.document_operations import Keyspace
from triclinium_core.kv.operation.mutation_tokens import check_mutation_token
from triclinium_core.kv.operation.results import MutationToken
from triclinium_core.kv.operation.scan.scan_machine import newest_tokens
from triclinium_core.kv.operation.scan.scan_requests import RangeScanCreate
from triclinium_core.kv.operation.scan.scans import Bounds
from triclinium_core.services.mutation_state import MutationState
from triclinium_core.services.search.search_request import SearchOptions

WRONG: tuple[Any, ...] = (
    ("travel", 1, 2),
    MutationToken(None, 1, 2, 3),  # type: ignore[arg-type]
    MutationToken("", 1, 2, 3),
    MutationToken("travel", [], 2, 3),  # type: ignore[arg-type]
    MutationToken("travel", 2**16, 2, 3),
    MutationToken("travel", 1, "2", 3),  # type: ignore[arg-type]
    MutationToken("travel", 1, 2**64, 3),
    MutationToken("travel", 1, 10**5000, 3),
    MutationToken("travel", 1, 2, "3"),  # type: ignore[arg-type]
    MutationToken("travel", 1, 2, True),
    MutationToken("travel", 1, 2, 2**64),
)


@rows("token", WRONG)
def test_invalid_tokens(token: Any) -> None:
    """Mutation states, searches and scans reject an invalid token."""
    for give in (
        lambda: MutationState(token),
        lambda: SearchOptions(consistent_with=[token]),
        lambda: newest_tokens([token], Keyspace("travel")),
        lambda: RangeScanCreate(Keyspace("travel"), 3, Bounds(), token=token),
    ):
        with pytest.raises(errors.InvalidArgumentException):
            give()


@rows("uuid", [0, 2**64 - 1, -1, -(2**63)])
def test_numbers_of_64_bits(uuid: int) -> None:
    """A vbucket UUID may be negative, because other clients store UUIDs as signed numbers."""
    token = MutationToken("travel", 2**16 - 1, uuid, 2**64 - 1)

    assert token is check_mutation_token(token, "mutations")
