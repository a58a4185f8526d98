"""Mutation states: sets of mutations that a query must see."""

from __future__ import annotations

import json

import pytest

from tests.rows import rows
from triclinium_core import errors
from triclinium_core.kv.operation.results import Cas, CounterResult, MutateInResult, MutationResult, MutationToken
from triclinium_core.services.mutation_state import MutationState
from triclinium_core.transcoding.transcoder import JsonTranscoder

FIRST = MutationToken("default", 1, 1234, 1)
OTHER = MutationToken("beer-sample", 25, 5678, 10)

IN_RFC = '{"default": {"1": [1, "1234"]}, "beer-sample": {"25": [10, "5678"]}}'
"""Example of SDK-RFC 0004 "Serialization and Deserialization of MutationState"."""


def test_results() -> None:
    """A state accepts results of all kinds of mutations, and tokens."""
    results = (
        MutationResult(Cas(1), MutationToken("travel", 1, 7, 1)),
        CounterResult(5, Cas(1), MutationToken("travel", 2, 7, 1)),
        MutateInResult(Cas(1), (), JsonTranscoder(), MutationToken("travel", 3, 7, 1)),
        MutationToken("travel", 4, 7, 1),
    )

    assert [1, 2, 3, 4] == [token.vbucket for token in MutationState(*results).tokens]


def test_newest() -> None:
    """A state keeps the highest sequence number for each vbucket of a bucket, in any order of results."""
    newer = MutationToken("default", 1, 1234, 2)
    state = MutationState(newer, FIRST, OTHER)
    known = state.tokens
    state.add_results(MutationToken("default", 1, 1234, 3))

    assert (OTHER, newer) == known
    assert [10, 3] == [token.sequence_number for token in state.tokens]


def test_json() -> None:
    """The JSON of the RFC's example is read as a state, which is written as that JSON."""
    state = MutationState(FIRST, OTHER)

    assert json.loads(IN_RFC) == json.loads(state.to_json())
    assert state == MutationState.from_json(IN_RFC) == MutationState.from_json(state.to_json().encode())
    assert state != MutationState(FIRST)
    assert "<MutationState of 2 vbuckets in beer-sample, default>" == repr(state)


@rows(
    "text",
    [
        "",
        "[]",
        '{"default": {"x": [1, "2"]}}',
        '{"default": {"1": [1]}}',
        '{"default": {"1": [1, "uuid"]}}',
        '{"default": {"1": [18446744073709551616, "2"]}}',
    ],
)
def test_invalid_json(text: str) -> None:
    """Text that is not the JSON of a mutation state is refused."""
    with pytest.raises(errors.InvalidArgumentException, match="mutation state"):
        MutationState.from_json(text)


@rows("mutation", [MutationResult(Cas(1)), "token", None])
def test_without_token(mutation: object) -> None:
    """If a result has no token, the call raises an error and adds none of the results (SDK-RFC 0004 "Errors")."""
    state = MutationState(FIRST)

    with pytest.raises(errors.InvalidArgumentException, match="mutations|token"):
        state.add_results(OTHER, mutation)  # type: ignore[arg-type]
    assert MutationState(FIRST) == state
