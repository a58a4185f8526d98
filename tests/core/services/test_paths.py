"""Names in the URL paths of all HTTP requests."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import unquote

import pytest
from hypothesis import given, strategies as st

from tests.rows import rows
from triclinium_core import errors
from triclinium_core.services.management import buckets, collections, search_indexes, users
from triclinium_core.services.paths import path
from triclinium_core.services.search.queries import MatchNoneQuery
from triclinium_core.services.search.search_request import SearchQueryRequest, SearchRequest
from triclinium_core.services.service_request import ServiceRequest
from triclinium_core.services.views.view_request import ViewRequest

SEARCH = SearchRequest.create(MatchNoneQuery())
NAMED: tuple[Callable[[str], ServiceRequest], ...] = (
    lambda name: buckets.CreateBucket(buckets.BucketSettings(name=name, ram_quota_mb=100)),
    lambda name: buckets.UpdateBucket(buckets.BucketSettings(name=name, ram_quota_mb=100)),
    buckets.DropBucket,
    buckets.GetBucket,
    buckets.FlushBucket,
    collections.GetAllScopes,
    lambda name: collections.CreateScope(name, "s"),
    lambda name: collections.DropScope("b", name),
    lambda name: collections.CreateCollection("b", name, "c"),
    lambda name: collections.DropCollection("b", "s", name),
    lambda name: collections.UpdateCollection("b", "s", name, collections.UpdateCollectionSettings(max_expiry=1)),
    users.GetUser,
    users.DropUser,
    lambda name: users.UpsertUser(users.User(username=name)),
    users.GetGroup,
    users.DropGroup,
    lambda name: users.UpsertGroup(users.Group(name=name)),
    search_indexes.GetSearchIndex,
    search_indexes.DropSearchIndex,
    search_indexes.GetIndexedDocumentsCount,
    search_indexes.PauseIngest,
    lambda name: search_indexes.AnalyzeDocument(name, {}),
    lambda name: search_indexes.UpsertSearchIndex(search_indexes.SearchIndex(name=name)),
    lambda name: search_indexes.GetSearchIndex("i", scope=search_indexes.SearchScope(name, "s")),
    lambda name: search_indexes.GetSearchIndex("i", scope=search_indexes.SearchScope("b", name)),
    lambda name: SearchQueryRequest(index=name, search=SEARCH),
    lambda name: SearchQueryRequest(index="i", search=SEARCH, bucket_name=name, scope_name="s"),
    lambda name: SearchQueryRequest(index="i", search=SEARCH, bucket_name="b", scope_name=name),
    lambda name: ViewRequest(bucket_name=name, design_document="d", view_name="v"),
    lambda name: ViewRequest(bucket_name="b", design_document=name, view_name="v"),
    lambda name: ViewRequest(bucket_name="b", design_document="d", view_name=name),
)
"""Constructors of every request with a name in its path; each takes that name."""


@pytest.mark.parametrize("make", NAMED)
def test_dot_segments_and_empty_names(make: Callable[[str], ServiceRequest]) -> None:
    """A request whose name is empty, ``.`` or ``..`` is refused when it is created."""
    for name in ("", ".", ".."):
        with pytest.raises(errors.InvalidArgumentException):
            make(name)


@given(st.text() | st.text(".%2eE/\\ab"))
def test_any_name_is_refused_or_one_segment(name: str) -> None:
    """An accepted name does not change the number of segments, and creates no empty segment and no dot segment."""
    for make in NAMED:
        honest = make("a").encode(1.0).target.split("/")
        try:
            target = make(name).encode(1.0).target
        except errors.InvalidArgumentException:
            continue
        segments = target.partition("?")[0].split("/")

        assert len(honest) == len(segments)
        assert not {"", ".", ".."} & {unquote(part) for part in segments[1:]}


def test_segments_are_encoded() -> None:
    """A slash or a percent sign in a segment is encoded."""
    assert "/a/b%2Fc/%25" == path("a", "b/c", "%")


@rows("segment", ["", ".", ".."])
def test_invalid_segments_are_refused(segment: str) -> None:
    """``path`` refuses an empty segment, ``.`` and ``..``."""
    with pytest.raises(errors.InvalidArgumentException):
        path("a", segment)
