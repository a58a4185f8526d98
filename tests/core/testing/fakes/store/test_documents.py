"""Store of documents: versions, expiry and removed documents, with times that the test gives."""

from __future__ import annotations

import math
from typing import Any

import pytest

from tests.rows import rows
from triclinium_core import errors
from triclinium_core.kv.operation.validation import RELATIVE_EXPIRY_MAX
from triclinium_core.kv.wire.constants import VALUE_SIZE_MAX, Datatype
from triclinium_core.testing.fakes.store import documents

WALL = 1_750_000_000


def new_store() -> documents.FakeDocuments:
    """Return an empty store at time 0."""
    return documents.FakeDocuments(vbuckets=1024, wall_seconds_at_zero=WALL)


@pytest.mark.parametrize(
    ("key", "vbuckets", "vbucket"),
    [(b"ada", 1024, 368), (b"ada", 128, 112), (b"nobody", 1024, 690), (b"n", 1024, 8), (b"big", 1024, 1019)],
)
def test_vbuckets_match_the_official_client(key: bytes, vbuckets: int, vbucket: int) -> None:
    """The vbuckets equal those that the official Python client 4.6.3 sends for these keys."""
    assert vbucket == documents.vbucket_of(key, vbuckets)


@rows(
    ("arguments", "parameter"),
    [
        ({"value": "1"}, "value"),
        ({"value": None}, "value"),
        ({"flags": -1}, "flags"),
        ({"flags": 2**32}, "flags"),
        ({"collection_id": -1}, "collection_id"),
        ({"expires_after": math.nan}, "expires_after"),
        ({"expires_after": "1"}, "expires_after"),
        ({"xattrs": {"a": "1"}}, "xattrs"),
        ({"xattrs": {"a": b"no JSON"}}, "xattrs"),
    ],
)
def test_invalid_document_is_refused(arguments: dict[str, Any], parameter: str) -> None:
    """An invalid field of a document raises InvalidArgumentException before a node would have to send it."""
    store = new_store()
    with pytest.raises(errors.InvalidArgumentException) as caught:
        store.put("default", "ada", **{"value": b"1", **arguments})

    assert parameter == caught.value.parameter
    assert store.get("default", "ada") is None


def test_oversized_value_is_refused() -> None:
    """A value above the servers' limit raises ValueTooLargeException, as in a client."""
    with pytest.raises(errors.ValueTooLargeException):
        new_store().put("default", "ada", bytes(VALUE_SIZE_MAX + 1))


def test_every_change_has_its_own_cas() -> None:
    """The CAS is the time in nanoseconds, except for the low bits, and grows even within one instant."""
    store = new_store()
    versions = [store.put("default", key, b"1").cas for key in ("a", "a", "b")]
    store.now = 1.0
    versions.append(store.put("default", "a", b"2").cas)

    assert versions == sorted(set(versions))
    assert WALL * 1_000_000_000 & ~0xFFFF == versions[0]
    assert versions[0] + 2 == versions[2]
    assert (WALL + 1) * 1_000_000_000 & ~0xFFFF == versions[3]


def test_sequence_numbers_count_within_a_vbucket() -> None:
    """Each vbucket of each bucket counts its own sequence numbers and has its own uuid."""
    store = new_store()

    numbers = [
        store.put(bucket, key, b"1").sequence_number
        for bucket, key in (("default", "ada"), ("default", "ada"), ("default", "bob"), ("other", "ada"))
    ]

    assert [1, 2, 1, 1] == numbers
    assert store.histories.uuid_of(1) != store.histories.uuid_of(2) != 0


@pytest.mark.parametrize(
    ("value", "datatype"),
    [
        (b"{}", Datatype.JSON),
        (b"12", Datatype.JSON),
        (b'"a"', Datatype.JSON),
        (b"", Datatype.RAW),
        (b"{", Datatype.RAW),
        (b'"\xff"', Datatype.RAW),
        # Leave this case out in WebAssembly, where the host's stack overflows before msgspec reaches its own limit.
        pytest.param(b"[" * 1_000_000, Datatype.RAW, marks=pytest.mark.native),
    ],
    ids=["object", "number", "string", "nothing", "cut", "not UTF-8", "too deep"],
)
def test_datatype_depends_on_the_value(value: bytes, datatype: Datatype) -> None:
    """The datatype of a document follows from its value, not from the datatype that the client sent."""
    assert datatype == new_store().put("default", "ada", value).datatype


@pytest.mark.parametrize(
    ("expiry", "expires_at"),
    [
        (0, math.inf),
        (1, 101.0),
        (RELATIVE_EXPIRY_MAX, 100.0 + RELATIVE_EXPIRY_MAX),
        (RELATIVE_EXPIRY_MAX + 1, RELATIVE_EXPIRY_MAX + 1 - WALL),
        (WALL + 500, 500.0),
    ],
)
def test_both_encodings_of_an_expiry(expiry: int, expires_at: float) -> None:
    """An expiry of up to 30 days is relative, a larger one is a Unix time, and 0 means never."""
    store = new_store()
    store.now = 100.0

    assert expires_at == store.expires_at(expiry)


@pytest.mark.parametrize(
    ("expires_after", "expiry"),
    [(math.inf, 0), (10, WALL + 10), (10.2, WALL + 11), (1e12, 0xFFFF_FFFF)],
)
def test_expiry_as_unix_time(expires_after: float, expiry: int) -> None:
    """An expiry is returned in whole seconds, rounded up, and limited to 32 bits."""
    store = new_store()

    assert expiry == store.unix_expiry(store.put("default", "ada", b"1", expires_after=expires_after))


def test_missing_document_cannot_be_locked_or_removed() -> None:
    """Locking or removing a missing document raises KeyError, which names the document."""
    store = new_store()

    with pytest.raises(KeyError, match="'ada'.* bucket 'default'"):
        store.lock("default", "ada")
    with pytest.raises(KeyError, match="'ada'.* bucket 'default'"):
        store.remove("default", "ada")


def test_documents_in_one_vbucket() -> None:
    """A vbucket lists its visible documents by key, without removed, expired, rolled-back or foreign ones."""
    store = documents.FakeDocuments(vbuckets=1, wall_seconds_at_zero=WALL)
    for key in ("c", "a", "b"):
        store.put("default", key, b"1")
    snapshot = store.snapshot()
    for key in ("lost", "a"):
        store.put("default", key, b"2")
    store.roll_back(snapshot, [0])
    store.remove("default", "b")
    store.put("default", "d", b"1", expires_after=1)
    store.put("default", "x", b"1", collection_id=8)
    store.put("other", "y", b"1")
    store.now = 1.0
    in_collection = store.in_vbucket("default", 0, 8)
    store.forget_collection(8, ["default"])

    assert [(b"a", b"1"), (b"c", b"1")] == [(key, found.value) for key, found in store.in_vbucket("default", 0, 0)]
    assert [b"x"] == [key for key, _ in in_collection]
    assert [] == store.in_vbucket("default", 0, 8) == store.in_vbucket("default", 1, 0)


def remains_of(store: documents.FakeDocuments, keys: range) -> list[int]:
    """Return the numbers of the removed documents whose remains the store keeps."""
    return [number for number in keys if store.find_remains(store.address("default", f"k{number}")) is not None]


@rows("ends", ["removed", "expired"])
def test_the_oldest_remains_are_purged(ends: str) -> None:
    """The store keeps only the newest remains of removed or expired documents."""
    store, keys = new_store(), range(documents.REMAINS_MAX + 50)
    for number in keys:
        store.now = float(number)
        store.put("default", f"k{number}", b"1", expires_after=1 if ends == "expired" else math.inf)
        if ends == "removed":
            store.remove("default", f"k{number}")
    store.put("default", "stays", b"1")
    store.now += 1
    store.purge()

    assert list(keys[50:]) == remains_of(store, keys)
    assert documents.REMAINS_MAX + 1 == len(store.snapshot())
    assert store.get("default", "stays") is not None


def test_a_purged_document_can_be_written_again() -> None:
    """Writing a removed document takes it out of the remains, so a purge keeps it."""
    store, keys = new_store(), range(documents.REMAINS_MAX + 1)
    for number in keys:
        store.put("default", f"k{number}", b"1")
        store.remove("default", f"k{number}")
    store.put("default", "k0", b"2")
    store.purge()
    found = store.get("default", "k0")

    assert found is not None
    assert b"2" == found.value
    assert list(keys) == remains_of(store, keys)


def test_remains_are_bounded_in_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """The store also limits the total size of the remains, and purges the oldest beyond it."""
    monkeypatch.setattr(documents, "REMAINS_SIZE_BYTES_MAX", 1000)
    store, keys = new_store(), range(20)
    for number in keys:
        store.put("default", f"k{number}", b"1", xattrs={"_sync": b'"%098d"' % number})
        store.remove("default", f"k{number}")
    store.purge()

    assert list(keys[10:]) == remains_of(store, keys)


def test_expired_document_leaves_system_attributes() -> None:
    """A purge reduces an expired document to its system attributes, and changes nothing for readers."""
    store = new_store()
    store.put("default", "ada", b"1", expires_after=1, xattrs={"_sync": b"1", "mine": b"2"})
    address, changes = store.address("default", "ada"), store.changes
    store.now = 1.0
    before = store.find_remains(address)
    store.purge()

    assert before is not None
    assert before == store.find_remains(address) == store.snapshot()[address]
    assert {"_sync": b"1"} == before.xattrs
    assert changes == store.changes
    assert store.get("default", "ada") is None


def test_postponed_expiry_counts_from_the_last_write() -> None:
    """A document whose writes extend its expiry stays until the newest expiry; the store forgets earlier expiries."""
    store = new_store()
    for number in range(10 * documents.EXPIRIES_MIN):
        store.now = float(number)
        store.put("default", "ada", b"1", expires_after=10_000)
        store.purge()
    kept = len(store._expiries)
    store.now += 9999
    store.purge()
    before = store.get("default", "ada")
    store.now += 1
    store.purge()

    assert kept <= documents.EXPIRIES_MIN
    assert before is not None
    assert store.get("default", "ada") is None


def test_rolled_back_document_still_expires() -> None:
    """A document that a rollback restores still expires, and its value is purged."""
    store = documents.FakeDocuments(vbuckets=1, wall_seconds_at_zero=WALL)
    store.put("default", "ada", b"1", expires_after=1)
    snapshot = store.snapshot()
    store.remove("default", "ada")
    store.roll_back(snapshot, [0])
    before = store.get("default", "ada")
    store.now = 1.0
    store.purge()

    assert before is not None
    assert [True] == [document.is_deleted for document in store.snapshot().values()]


def test_dropped_bucket_loses_its_history() -> None:
    """Dropping a bucket resets its sequence numbers and keeps those of other buckets."""
    store = new_store()
    for bucket in ("default", "other"):
        store.put(bucket, "ada", b"1")
    store.forget_bucket("default")
    store.histories.forget("default")

    assert [0, 1] == [
        store.sequence_number(bucket, documents.vbucket_of(b"ada", 1024)) for bucket in ("default", "other")
    ]
