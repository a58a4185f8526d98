"""Names in the URL paths of HTTP requests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import unquote

import pytest
from hypothesis import given, strategies as st

from tests.rows import rows
from triclinium_core import errors
from triclinium_core.services.management import buckets, collections, search_indexes, users
from triclinium_core.services.paths import NAME_BYTES_MAX, path
from triclinium_core.services.search.queries import MatchNoneQuery
from triclinium_core.services.search.search_request import SearchQueryRequest, SearchRequest
from triclinium_core.services.service_request import ServiceRequest
from triclinium_core.services.views.view_request import ViewRequest

SEARCH = SearchRequest.create(MatchNoneQuery())
NAMED: tuple[Callable[[str], ServiceRequest], ...] = (
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
OF_VIEWS = NAMED[-2:]
"""Constructors that take the name of a design document or a view."""


INVALID: tuple[Any, ...] = ("", ".", "..", "\ud800", None, b"a", 1)
LONG_OR_UNPRINTABLE = ("x" * (NAME_BYTES_MAX + 1), "ü" * NAME_BYTES_MAX, "a\r\nHost: evil", "a\x00", "a\u2028b")


@rows("make", NAMED)
def test_invalid_names(make: Callable[[str], ServiceRequest]) -> None:
    """A request is refused when it is created if its name is not text or cannot be a segment of a path, or, except for
    views, if it is long or unprintable.
    """
    for name in INVALID if make in OF_VIEWS else (*INVALID, *LONG_OR_UNPRINTABLE):
        with pytest.raises(errors.InvalidArgumentException):
            make(name)


def decoded(request: ServiceRequest) -> list[str]:
    """Return the segments of the request's path as the server decodes them."""
    encoded = request.encode(1.0).target.partition("?")[0]
    assert encoded.isascii()
    assert not set("#; \r\n") & set(encoded)
    return [unquote(part) for part in encoded.split("/")]


def segments_with(make: Callable[[str], ServiceRequest], name: str) -> list[str]:
    """Return the segments that the server must decode from the path of a request with this name."""
    segments = decoded(make("a"))
    assert 1 == segments.count("a")
    return [name if part == "a" else part for part in segments]


@rows("make", NAMED)
def test_percent_signs_are_encoded(make: Callable[[str], ServiceRequest]) -> None:
    """Every request accepts percent signs in its name, and the server decodes the same name."""
    assert segments_with(make, "a%2Fb") == decoded(make("a%2Fb"))


HOSTILE = (
    *("a/b", "%", "%2e%2e", "a b", "a?b=c", "a#b", "a&b=c", "a;b", "a+b", "...", "..a", "ü", "名", "\U0001f9f1"),
    *("'", '"', "`", "\\", "a:b", "[x]", "@", "a,b"),
)


@rows("make", [users.DropUser, search_indexes.GetSearchIndex, *OF_VIEWS])
def test_a_name_of_any_characters(make: Callable[[str], ServiceRequest]) -> None:
    """Users, search indexes and views accept names of any printable characters, and the server decodes the same name."""
    for name in HOSTILE:
        assert segments_with(make, name) == decoded(make(name))


@given(st.text() | st.text(".%2eE/\\ab"))
def test_any_name_is_refused_or_one_segment(name: str) -> None:
    """An accepted name is one segment, which the server decodes to that name, and no dot segment."""
    for make in NAMED:
        try:
            found = decoded(make(name))
        except errors.InvalidArgumentException:
            continue

        assert segments_with(make, name) == found
        assert not {"", ".", ".."} & {*found[1:]}


def test_segments_are_encoded() -> None:
    """A slash or a percent sign in a segment is encoded."""
    assert "/a/b%2Fc/%25" == path("a", "b/c", "%")


@rows("segment", ["", ".", ".."])
def test_invalid_segments_are_refused(segment: str) -> None:
    """``path`` refuses an empty segment, ``.`` and ``..``."""
    with pytest.raises(errors.InvalidArgumentException):
        path("a", segment)
