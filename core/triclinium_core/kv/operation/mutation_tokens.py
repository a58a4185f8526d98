"""Tokens of mutations that a caller gives: made by the caller, or read from what another client wrote."""

from __future__ import annotations

from triclinium_core.checks import check_integer, check_text, check_type
from triclinium_core.kv.operation.results import MutationToken
from triclinium_core.kv.operation.validation import UINT64_MAX

VBUCKET_MAX = 2**16 - 1
"""The field of a frame has 16 bits."""
_UUID_MIN = -(2**63)
"""Clients without unsigned numbers write the upper half of them as negative ones."""


def check_mutation_token(value: object, parameter: str) -> MutationToken:
    """Return a token that can travel.

    Raises:
        InvalidArgumentException: it is not a token, or holds what no server tells.
    """
    check_type(value, parameter, MutationToken)
    assert isinstance(value, MutationToken)
    check_text(value.bucket, parameter)
    check_integer(value.vbucket, parameter, 0, VBUCKET_MAX)
    check_integer(value.vbucket_uuid, parameter, _UUID_MIN, UINT64_MAX)
    check_integer(value.sequence_number, parameter, 0, UINT64_MAX)
    return value
