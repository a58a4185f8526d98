"""Mutations that a query or a search must include.

Source: SDK-RFC 0004 "Internal implementation" and "Serialization and Deserialization of MutationState".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import ClassVar

import msgspec

from triclinium_core import errors
from triclinium_core.checks import check_type
from triclinium_core.json_depth import shallow
from triclinium_core.kv.operation.mutation_tokens import check_mutation_token
from triclinium_core.kv.operation.results import CounterResult, MutateInResult, MutationResult, MutationToken
from triclinium_core.shown import shown, total_repr

Mutation = MutationResult | CounterResult | MutateInResult | MutationToken
"""Result or token that identifies a mutation in the history of its vbucket."""

Vectors = Mapping[str, Mapping[str, tuple[int, str]]]
"""Sequence number and vbucket UUID (as text), by bucket and vbucket."""


class MutationState:
    """Newest mutation of each vbucket, among the mutations that were added.

    Equal states have the same mutations. Mutations that are added later do not affect requests that already have the
    state.

    Args:
        mutations: results of mutations, or their tokens.

    Raises:
        InvalidArgumentException: an argument is neither a result nor a token, or has no valid token. A result from a
            plain memcached server has none.
    """

    __slots__ = ("_newest",)

    def __init__(self, *mutations: Mutation) -> None:
        self._newest: dict[tuple[str, int], MutationToken] = {}
        self.add_results(*mutations)

    @classmethod
    def from_json(cls, text: str | bytes) -> MutationState:
        """Return the state from JSON that this or another client, possibly in another language, exported.

        Raises:
            InvalidArgumentException: ``text`` is not a mutation state.
        """
        try:
            vectors = msgspec.json.decode(shallow(text), type=dict[str, dict[int, tuple[int, str]]])
            tokens = [
                MutationToken(bucket, vbucket, int(uuid), sequence_number)
                for bucket, of_bucket in vectors.items()
                for vbucket, (sequence_number, uuid) in of_bucket.items()
            ]
            return cls(*tokens)
        except (msgspec.MsgspecError, ValueError, RecursionError) as error:
            raise errors.InvalidArgumentException(
                f"text is not a mutation state in JSON: {error}", parameter="text"
            ) from error

    @property
    def tokens(self) -> tuple[MutationToken, ...]:
        """One token for each vbucket, sorted by bucket and vbucket."""
        return tuple(token for _, token in sorted(self._newest.items()))

    def add_results(self, *mutations: Mutation) -> None:
        """Add mutations. Keep the mutation with the highest sequence number for each vbucket.

        Raises:
            InvalidArgumentException: an argument is not a mutation, or has no valid token. Then no mutation is added.
        """
        for token in [_token_of(mutation) for mutation in mutations]:
            place = (token.bucket, token.vbucket)
            known = self._newest.get(place)
            if known is None or known.sequence_number < token.sequence_number:
                self._newest[place] = token

    def to_json(self) -> str:
        """Return the state as JSON, in the format that clients in all languages exchange."""
        return msgspec.json.encode(vectors_of(self.tokens)).decode()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MutationState) and self._newest == other._newest

    __hash__: ClassVar[None]  # type: ignore[assignment]  # it changes

    @total_repr
    def __repr__(self) -> str:
        buckets = sorted({bucket for bucket, _ in self._newest})
        return f"<MutationState of {len(self._newest)} vbuckets in {', '.join(buckets) or 'no bucket'}>"


def tokens_of(consistent_with: MutationState | None) -> tuple[MutationToken, ...]:
    """Return the tokens of the mutation state in the option ``consistent_with``. Empty for None.

    Raises:
        InvalidArgumentException: the option is not a mutation state.
    """
    if consistent_with is None:
        return ()
    check_type(consistent_with, "consistent_with", MutationState)
    return consistent_with.tokens


def vectors_of(tokens: Iterable[MutationToken]) -> Vectors:
    """Return tokens as scan vectors of the query service. ``tokens`` has at most one token for each vbucket."""
    vectors: dict[str, dict[str, tuple[int, str]]] = {}
    for token in tokens:
        of_bucket = vectors.setdefault(token.bucket, {})
        of_bucket[str(token.vbucket)] = (token.sequence_number, str(token.vbucket_uuid))
    return vectors


def _token_of(mutation: Mutation) -> MutationToken:
    token = mutation if isinstance(mutation, MutationToken) else getattr(mutation, "mutation_token", None)
    if isinstance(token, MutationToken):
        return check_mutation_token(token, "mutations")
    why = (
        "has no token"
        if isinstance(mutation, MutationResult | CounterResult | MutateInResult)
        else "is not a result of a mutation"
    )
    raise errors.InvalidArgumentException(
        f"{shown(mutation)} {why}; pass mutation results that have a token", parameter="mutations"
    )
