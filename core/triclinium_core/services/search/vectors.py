"""Vector search: the documents whose vectors are nearest to given ones.

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
"""SDK-RFC 0052 "VectorQuery"; the service has no default."""


@unique
class VectorQueryCombination(Enum):
    """How the vector queries of one search are combined."""

    AND = "and"
    OR = "or"


@dataclass(frozen=True, slots=True)
class VectorQuery(parts.SearchPart):
    """The documents whose vectors are nearest to a given one.

    Args:
        vector_field_name: the field of the index that holds the vectors.
        vector: one or more numbers, which travel as they are and are rounded to 32 bits by the service; or a string,
            the Base64 of little-endian floats of 32 bits, which takes less room and needs Couchbase Server 7.6.2.
        num_candidates: how many documents are found.
        boost: how much the query counts in the score compared to others.
        prefilter: only documents that match this query are considered.

    Raises:
        InvalidArgumentException: an argument is wrong; ``.parameter`` names it.
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
        """Return the members of the JSON object that it is in a request."""
        members = parts.SearchPart.members(self)
        if isinstance(self.vector, str):
            members["vector_base64"] = members.pop("vector")
        return members


@dataclass(frozen=True, slots=True)
class VectorSearch(parts.SearchPart):
    """One vector query, or several of them.

    Args:
        queries: a ``VectorQuery``, or a sequence of one or more.
        vector_query_combination: whether a document has to be near to one of the vectors, or to all; the service's
            default, which is ``OR``, unless given.

    Raises:
        InvalidArgumentException: an argument is wrong; ``.parameter`` names it.
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
