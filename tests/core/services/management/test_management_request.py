"""Properties that all management requests share."""

from __future__ import annotations

from urllib.parse import parse_qsl

import pytest

from tests.rows import rows
from triclinium_core import errors
from triclinium_core.services.management import buckets, collections, search_indexes, users
from triclinium_core.services.management.management_request import ManagementRequest

ONE_OF_EACH: tuple[ManagementRequest, ...] = (
    buckets.CreateBucket(buckets.BucketSettings(name="b", ram_quota_mb=100)),
    buckets.UpdateBucket(buckets.BucketSettings(name="b", ram_quota_mb=100)),
    buckets.DropBucket("b"),
    buckets.GetBucket("b"),
    buckets.GetAllBuckets(),
    buckets.FlushBucket("b"),
    collections.CreateScope("b", "s"),
    collections.DropScope("b", "s"),
    collections.GetAllScopes("b"),
    collections.CreateCollection("b", "s", "c"),
    collections.UpdateCollection("b", "s", "c", collections.UpdateCollectionSettings(max_expiry=1)),
    collections.DropCollection("b", "s", "c"),
    users.UpsertUser(users.User(username="u")),
    users.GetUser("u"),
    users.GetAllUsers(),
    users.DropUser("u"),
    users.ChangePassword("p"),
    users.GetRoles(),
    users.UpsertGroup(users.Group(name="g")),
    users.GetGroup("g"),
    users.GetAllGroups(),
    users.DropGroup("g"),
    search_indexes.UpsertSearchIndex(search_indexes.SearchIndex(name="i")),
    search_indexes.GetSearchIndex("i"),
    search_indexes.GetAllSearchIndexes(),
    search_indexes.GetIndexedDocumentsCount("i"),
    search_indexes.PauseIngest("i"),
    search_indexes.AnalyzeDocument("i", {}),
)


def test_only_reads_are_idempotent() -> None:
    """A request is idempotent if and only if it is a GET."""
    assert {request.name for request in ONE_OF_EACH if request.name.startswith("get_")} == {
        request.name for request in ONE_OF_EACH if request.idempotent
    }
    for request in ONE_OF_EACH:
        assert request.idempotent == (request.encode(1.0).method == "GET")


def test_the_context_has_the_request() -> None:
    """The error context has the request's name, method and path; no two kinds of requests share a name."""
    assert len(ONE_OF_EACH) == len({request.name for request in ONE_OF_EACH})

    for request in ONE_OF_EACH:
        context, sent = request.error_context(), request.encode(1.0)

        assert (request.name, sent.method, sent.target) == (context.operation, context.http_method, context.http_path)
        assert request.idempotent == context.idempotent


@rows("name", ["a/b", "a b", "ü", "`", "x" * 101, "%2F/"])
def test_invalid_bucket_names(name: str) -> None:
    """A bucket name with characters that key-value does not permit is refused."""
    for make in (buckets.GetBucket, buckets.DropBucket, buckets.FlushBucket, collections.GetAllScopes):
        with pytest.raises(errors.InvalidArgumentException):
            make(name)


def test_a_form_holds_any_text() -> None:
    """A form encodes ampersands, equals signs and Unicode without loss."""
    password = "a&b=c%41+ü 名"
    sent = users.ChangePassword(password).encode(1.0)

    assert "application/x-www-form-urlencoded" == sent.content_type
    assert [("password", password)] == parse_qsl(sent.body.decode("ascii"))


@rows("password", ["", None, b"geheim", "geheim\ud800", 7])
def test_no_message_shows_a_password(password: str) -> None:
    """If a password is invalid, neither the text of the error nor its cause shows the password."""
    with pytest.raises(errors.InvalidArgumentException) as caught:
        users.ChangePassword(password)

    assert "geheim" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


def test_no_repr_shows_a_password() -> None:
    """The ``repr`` of a user or a request, and the error context, do not show the password."""
    role = users.Role("admin")
    for request in (
        users.ChangePassword("geheim"),
        users.UpsertUser(users.User(username="ada", password="geheim", roles={role})),
    ):
        assert "geheim" not in repr(request)
        assert "geheim" not in repr(request.encode(1.0))
        assert "geheim" not in request.error_context().to_json()
        assert b"password=geheim" in request.encode(1.0).body
