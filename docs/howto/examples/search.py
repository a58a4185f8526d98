"""Search for documents by their text, and by vectors."""

from __future__ import annotations

from dataclasses import dataclass

import trio
import trio.testing

from triclinium import Scope
from triclinium.errors import InvalidArgumentException
from triclinium.search import (
    BooleanQuery,
    DisjunctionQuery,
    GeoDistanceQuery,
    HighlightStyle,
    MatchQuery,
    NumericFacet,
    NumericRange,
    NumericRangeQuery,
    SearchRequest,
    TermFacet,
    VectorQuery,
    VectorSearch,
)
from triclinium.testing import FakeAnswer, FakeNodes, Service, open_fake_cluster


@dataclass
class Hotel:
    """Type of the fields of a hit."""

    name: str
    stars: int


QUIET = BooleanQuery(
    must=[MatchQuery("quiet garden", field="description"), NumericRangeQuery(3, field="stars")],
    should=GeoDistanceQuery("5km", (2.3522, 48.8566), field="place"),
    must_not=MatchQuery("nightclub", field="description"),
)


async def search_by_words(hotels: Scope) -> None:
    """Print the best hits, and the number of hits of each kind."""
    async with hotels.search(
        "by_text",
        QUIET,
        limit=2,
        fields=["name", "stars"],
        highlight_style=HighlightStyle.HTML,
        facets={
            "towns": TermFacet("town"),
            "prices": NumericFacet("price", [NumericRange("cheap", max=80), NumericRange("dear", 80)]),
        },
    ) as result:
        async for hit in result:
            print(f"{hit.score:.1f} {hit.id} {hit.fields_as(Hotel)}")
            for fragment in (hit.fragments or {}).get("description", ()):
                print("   ", fragment)
        facets, metadata = await result.facets(), await result.metadata()

    print(
        "of", metadata.metrics.total_rows, "in all;", *(f"{each.term}: {each.count}" for each in facets["towns"].terms)
    )
    print(*(f"{each.name}: {each.count}" for each in facets["prices"].numeric_ranges))
    for part, why in metadata.errors.items():
        print("hits may be missing:", part, why)


async def search_by_vector(hotels: Scope, embedding: list[float]) -> None:
    """Print the hits of a search that combines vectors and words."""
    near = VectorQuery("embedding", embedding, num_candidates=3, prefilter=MatchQuery("Paris", field="town"))
    request = SearchRequest.create(VectorSearch(near)).with_search_query(QUIET)
    async with hotels.search("by_vector", request) as result:
        print("near:", [hit.id for hit in await result.rows()])


def script(nodes: FakeNodes) -> None:
    """Script the fake cluster, which indexes nothing."""
    hits = [
        {
            "index": "by_text_1",
            "id": "inn",
            "score": 2.5,
            "fields": {"name": "The Inn", "stars": 4},
            "fragments": {"description": ["a <mark>quiet</mark> house with a <mark>garden</mark>"]},
        },
        {"index": "by_text_2", "id": "lodge", "score": 1.5, "fields": {"name": "The Lodge", "stars": 3}},
    ]
    towns = {"field": "town", "total": 17, "terms": [{"term": "Paris", "count": 12}, {"term": "Lyon", "count": 5}]}
    ranges = [{"name": "cheap", "max": 80, "count": 3}, {"name": "dear", "min": 80, "count": 14}]
    facets = {"towns": towns, "prices": {"field": "price", "total": 17, "numeric_ranges": ranges}}
    found = FakeAnswer(rows=hits, metadata={"total_hits": 17, "facets": facets})
    nodes.script.answer("default._default.by_text", found, service=Service.SEARCH)
    nodes.script.answer("default._default.by_vector", FakeAnswer(rows=hits[:1]), service=Service.SEARCH)


async def main() -> None:
    """Search, and show that a wrong argument raises before a request is sent."""
    async with open_fake_cluster() as fake, fake.open_client() as cluster:
        script(fake.nodes)
        hotels = cluster.bucket("default").default_scope()
        await search_by_words(hotels)
        await search_by_vector(hotels, [0.25, -0.5, 0.125])
        try:
            DisjunctionQuery(MatchQuery("pool"), MatchQuery("sauna"), min=3)
        except InvalidArgumentException as error:
            print("refused:", error)


if __name__ == "__main__":
    trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))
