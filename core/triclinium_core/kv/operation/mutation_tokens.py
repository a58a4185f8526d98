"""Checks of mutation tokens that a caller constructed, or read from the output of another client."""

from __future__ import annotations

from triclinium_core.checks import check_integer, check_text, check_type
from triclinium_core.kv.operation.results import MutationToken
from triclinium_core.kv.operation.validation import UINT64_MAX

VBUCKET_MAX = 2**16 - 1
"""Highest number of a vbucket: the field in a frame has 16 bits."""
_UUID_MIN = -(2**63)
"""Lowest UUID of a vbucket. Clients in languages without unsigned integers write the upper half of the range as
negative numbers."""


def check_mutation_token(value: object, parameter: str) -> MutationToken:
    """Return ``value`` if it is a valid mutation token.

    Raises:
        InvalidArgumentException: ``value`` is not a token, or a field is invalid.
    """
    check_type(value, parameter, MutationToken)
    assert isinstance(value, MutationToken)
    check_text(value.bucket, parameter)
    check_integer(value.vbucket, parameter, 0, VBUCKET_MAX)
    check_integer(value.vbucket_uuid, parameter, _UUID_MIN, UINT64_MAX)
    check_integer(value.sequence_number, parameter, 0, UINT64_MAX)
    return value
