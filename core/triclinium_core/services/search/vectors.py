"""Vector search, which finds documents whose vectors are nearest to given vectors.

Source: SDK-RFC 0052 "Vector search".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from enum import Enum, unique
from typing import ClassVar

from triclinium_core.checks import check_text
from triclinium_core.services.search import parts
from triclinium_core.services.search.queries import SearchQuery

CANDIDATES_DEFAULT = 3
"""Default number of candidates (SDK-RFC 0052 "VectorQuery"). The service has no default."""


@unique
class VectorQueryCombination(Enum):
    """Combination of the vector queries of one search."""

    AND = "and"
    OR = "or"


@dataclass(frozen=True, slots=True)
class VectorQuery(parts.SearchPart):
    """Documents whose vectors are nearest to a given vector.

    Args:
        vector_field_name: field of the index that has the vectors.
        vector: one or more numbers, which are sent unchanged and rounded to 32 bits by the service; or the Base64 of
            little-endian 32-bit floats as a string, which is shorter and requires Couchbase Server 7.6.2.
        num_candidates: number of documents to find. Default: 3.
        boost: weight of the query in the score. None, the default, for 1.
        prefilter: consider only documents that match this query. None, the default, for all documents.

    Raises:
        InvalidArgumentException: an argument is invalid; ``.parameter`` names it.
    """

    _OWN_READERS: ClassVar[Mapping[str, parts.Reader]] = {
        "vector_field_name": check_text,
        "vector": parts.read_vector,
        "num_candidates": parts.read_positive,
        "prefilter": parts.read_part(SearchQuery),
    }
    _JSON_NAMES: ClassVar[Mapping[str, str]] = {
        "vector_field_name": "field",
        "num_candidates": "k",
        "prefilter": "filter",
    }

    vector_field_name: str
    vector: Iterable[float] | str
    _: KW_ONLY
    num_candidates: int = CANDIDATES_DEFAULT
    boost: float | None = None
    prefilter: SearchQuery | None = None

    def members(self) -> dict[str, object]:
        """Return the members of the query's JSON object."""
        members = parts.SearchPart.members(self)
        if isinstance(self.vector, str):
            members["vector_base64"] = members.pop("vector")
        return members


@dataclass(frozen=True, slots=True)
class VectorSearch(parts.SearchPart):
    """One or more vector queries.

    Args:
        queries: a ``VectorQuery``, or a sequence of one or more.
        vector_query_combination: whether a document must be near one of the vectors or all. Default: the service's
            default, which is ``OR``.

    Raises:
        InvalidArgumentException: an argument is invalid; ``.parameter`` names it.
    """

    _OWN_READERS: ClassVar[Mapping[str, parts.Reader]] = {
        "queries": parts.read_several(parts.read_part(VectorQuery), "vector queries"),
        "vector_query_combination": parts.read_choice(VectorQueryCombination),
    }
    _JSON_NAMES: ClassVar[Mapping[str, str]] = {"queries": "knn", "vector_query_combination": "knn_operator"}

    queries: VectorQuery | Sequence[VectorQuery]
    _: KW_ONLY
    vector_query_combination: VectorQueryCombination | None = None

    def __post_init__(self) -> None:
        if isinstance(self.queries, VectorQuery):
            object.__setattr__(self, "queries", (self.queries,))
        parts.SearchPart.__post_init__(self)
