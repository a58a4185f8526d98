"""Two commands on parts of a document, with their changes and their replies."""

from __future__ import annotations

import struct

import pytest

from tests.core.testing.fakes.commands.test_subdocument_requests import MACRO, lookup, mutation, ready
from tests.core.testing.node_client import NodeClient, status_of
from tests.rows import rows
from triclinium_core.kv.wire.constants import VALUE_SIZE_MAX, Datatype, Opcode
from triclinium_core.kv.wire.frame import Frame
from triclinium_core.kv.wire.framing_extras import RequestFrameInfo, encode_framing_extras
from triclinium_core.kv.wire.subdocument import DocumentFlag as D, PathFlag as P, PathOpcode as Op
from triclinium_core.retry.couchbase import Status
from triclinium_core.testing.fakes.store.documents import LOCKED_CAS, Document
from triclinium_core.testing.fakes.store.histories import vbucket_uuid

X = P.XATTR
PRESERVE = encode_framing_extras({RequestFrameInfo.PRESERVE_TTL: b""})


def look_up(client: NodeClient, *specs: bytes, key: str = "ada", flags: int = 0, **parts: int | bytes) -> Frame:
    """Read parts of a document, and return the reply."""
    extras = bytes((flags,)) if flags else b""
    return client.ask_of(Opcode.SUBDOC_MULTI_LOOKUP, key, value=b"".join(specs), extras=extras, **parts)


def mutate(
    client: NodeClient, *specs: bytes, key: str = "ada", flags: int = 0, expiry: int = 0, **parts: int | bytes
) -> Frame:
    """Change parts of a document, and return the reply."""
    extras = (struct.pack(">I", expiry) if expiry else b"") + (bytes((flags,)) if flags else b"")
    return client.ask_of(Opcode.SUBDOC_MULTI_MUTATION, key, value=b"".join(specs), extras=extras, **parts)


def outcomes(reply: Frame) -> list[tuple[Status, bytes]]:
    """Return the results of a lookup."""
    found, body = [], reply.value
    while body:
        status, size = struct.unpack_from(">HI", body)
        found.append((Status(status), body[6 : 6 + size]))
        body = body[6 + size :]
    return found


def stored(client: NodeClient, key: str = "ada") -> Document:
    """Return a document."""
    document = client.node.documents.get("default", key)
    assert document is not None
    return document


def test_lookup_results() -> None:
    """A lookup returns one result for each spec, in order, with the document's CAS."""
    client = ready()
    reply = look_up(
        client,
        lookup(Op.GET, b"$document.value_bytes", X),
        lookup(Op.GET, b"x", X),
        lookup(Op.GET, b"a"),
        lookup(Op.EXISTS, b"a"),
        lookup(Op.COUNT),
        lookup(Op.GET, b"a.b"),
        lookup(Op.GET, b"a["),
        lookup(Op.GET_DOCUMENT),
    )

    assert (Status.SUBDOC_MULTI_PATH_FAILURE, stored(client).cas) == (status_of(reply), reply.cas)
    assert [
        (Status.SUCCESS, b"7"),
        (Status.SUBDOC_PATH_NOT_FOUND, b""),
        (Status.SUCCESS, b"1"),
        (Status.SUCCESS, b""),
        (Status.SUCCESS, b"1"),
        (Status.SUBDOC_PATH_MISMATCH, b""),
        (Status.SUBDOC_PATH_INVALID, b""),
        (Status.SUCCESS, b'{"a":1}'),
    ] == outcomes(reply)


@pytest.mark.parametrize("value", [b"\xff", b"[1e999]", b"{"])
def test_lookup_in_invalid_json(value: bytes) -> None:
    """If a document has invalid JSON or a number out of range, its body can only be read as a whole."""
    client = ready()
    client.node.documents.put("default", "ada", value, xattrs={"x": b"1"})
    reply = look_up(client, lookup(Op.GET, b"x", X), lookup(Op.GET, b"a"), lookup(Op.GET_DOCUMENT))

    assert [Status.SUCCESS, Status.SUBDOC_DOCUMENT_NOT_JSON, Status.SUCCESS] == [each for each, _ in outcomes(reply)]


def test_lookup_with_a_cas() -> None:
    """A given CAS must match; a locked document hides its CAS, and a missing document is not found."""
    client = ready()
    spec = lookup(Op.GET, b"a")

    assert Status.SUCCESS is status_of(look_up(client, spec, cas=stored(client).cas))
    assert Status.KEY_EXISTS is status_of(look_up(client, spec, cas=7))
    assert Status.KEY_NOT_FOUND is status_of(look_up(client, spec, key="bob"))
    client.node.documents.lock("default", "ada")
    reply = look_up(client, spec)
    assert (Status.SUCCESS, LOCKED_CAS) == (status_of(reply), reply.cas)


def test_mutation_results() -> None:
    """Changes are applied in order; each result has the index of its spec."""
    client = ready()
    reply = mutate(
        client,
        mutation(Op.COUNT_BY, b"x", b"2", X),
        mutation(Op.UPSERT, b"b", b"[]"),
        mutation(Op.ARRAY_APPEND, b"b", b"7"),
        mutation(Op.COUNT_BY, b"b[0]", b"1"),
    )
    document = stored(client)

    assert (Status.SUCCESS, document.cas) == (status_of(reply), reply.cas)
    assert struct.pack(">BHI", 0, 0, 1) + b"2" + struct.pack(">BHI", 3, 0, 1) + b"8" == reply.value
    assert struct.pack(">QQ", vbucket_uuid(368), document.sequence_number) == reply.extras
    assert (b'{"a":1,"b":[8]}', {"x": b"2"}, Datatype.JSON) == (document.value, document.xattrs, document.datatype)


def test_a_change_that_fails() -> None:
    """The reply has the index and status of the first failed change, and nothing is stored."""
    client = ready()
    before = stored(client)
    reply = mutate(
        client,
        mutation(Op.UPSERT, b"x", b"1", X),
        mutation(Op.UPSERT, b"b", b"1"),
        mutation(Op.INSERT, b"a", b"1"),
        mutation(Op.REMOVE, b"nothing"),
    )

    assert Status.SUBDOC_MULTI_PATH_FAILURE is status_of(reply)
    assert (struct.pack(">BH", 2, Status.SUBDOC_PATH_EXISTS), b"") == (reply.value, reply.extras)
    assert before == stored(client)


@rows(
    ("spec", "value"),
    [
        (mutation(Op.UPSERT, b"a.b", b"1"), b'{"a":{"b":1}}'),
        (mutation(Op.ARRAY_APPEND, b"", b"1"), b"[1]"),
        (mutation(Op.ARRAY_ADD_UNIQUE, b"", b"1"), b"[1]"),
        (mutation(Op.ARRAY_APPEND, b"a", b"1"), b'{"a":[1]}'),
        (mutation(Op.SET_DOCUMENT, b"", b"raw"), b"raw"),
        (mutation(Op.UPSERT, b"x.y", b"1", X), b"{}"),
        (mutation(Op.COUNT_BY, b"n", b"-1"), b'{"n":-1}'),
    ],
)
@rows("flags", [D.UPSERT, D.INSERT])
def test_created_documents(spec: bytes, value: bytes, flags: int) -> None:
    """The first path determines whether a new document is an object or an array; parents are created."""
    client = ready()

    assert Status.KEY_NOT_FOUND is status_of(mutate(client, spec, key="bob"))
    assert Status.SUCCESS is status_of(mutate(client, spec, key="bob", flags=flags))
    assert (value, 0) == (stored(client, "bob").value, stored(client, "bob").flags)


def test_versions_and_locks() -> None:
    """A mutation requires the current CAS, and the lock's CAS while the document is locked."""
    client = ready()
    spec = mutation(Op.UPSERT, b"b", b"1")

    assert Status.KEY_EXISTS is status_of(mutate(client, spec, cas=7))
    assert Status.SUCCESS is status_of(mutate(client, spec, cas=stored(client).cas))
    lock = client.node.documents.lock("default", "ada")
    assert Status.LOCKED is status_of(mutate(client, spec))
    assert Status.LOCKED is status_of(mutate(client, spec, cas=7))
    assert Status.SUCCESS is status_of(mutate(client, spec, cas=lock))
    assert Status.SUCCESS is status_of(mutate(client, spec))


def test_expiry() -> None:
    """A mutation sets a new expiry, removes it or preserves it, and keeps the flags."""
    client = ready()
    client.node.documents.put("default", "ada", b"{}", flags=7, expires_after=50)
    spec = mutation(Op.UPSERT, b"b", b"1")

    mutate(client, spec, framing_extras=PRESERVE)
    assert (50, 7) == (stored(client).expires_at, stored(client).flags)
    mutate(client, spec, expiry=10)
    assert 10 == stored(client).expires_at
    mutate(client, spec)
    assert float("inf") == stored(client).expires_at


def test_the_whole_document() -> None:
    """The whole document can be replaced, or removed with all attributes except system attributes."""
    client = ready()
    client.node.documents.put("default", "ada", b"{}", xattrs={"x": b"1", "_s": b"2"})

    mutate(client, mutation(Op.SET_DOCUMENT, b"", b"[1]"), mutation(Op.ARRAY_APPEND, b"", b"2"))
    assert (b"[1,2]", {"x": b"1", "_s": b"2"}) == (stored(client).value, stored(client).xattrs)
    reply = mutate(client, mutation(Op.REMOVE_DOCUMENT))
    remains = client.node.documents.find_remains(client.node.documents.address("default", "ada"))

    assert Status.SUCCESS is status_of(reply)
    assert client.node.documents.get("default", "ada") is None
    assert remains is not None
    assert ({"_s": b"2"}, reply.cas) == (remains.xattrs, remains.cas)


@pytest.mark.parametrize("removed", ["by a command", "by its expiry"])
def test_remains_of_a_document(removed: str) -> None:
    """The system attributes of a removed document can be read and changed with access to deleted documents."""
    client = ready()
    client.node.documents.put("default", "ada", b"{}", expires_after=5, xattrs={"x": b"1", "_s": b"2"})
    if removed == "by a command":
        client.ask_of(Opcode.DELETE, "ada")
    client.now = 10.0
    specs = [lookup(Op.GET, b"_s", X), lookup(Op.GET, b"$document.deleted", X)]

    assert Status.KEY_NOT_FOUND is status_of(look_up(client, *specs))
    found = look_up(client, *specs, flags=D.ACCESS_DELETED)
    assert Status.SUBDOC_SUCCESS_DELETED is status_of(found)
    assert [(Status.SUCCESS, b"2"), (Status.SUCCESS, b"true")] == outcomes(found)
    partly = look_up(client, lookup(Op.GET, b"x", X), lookup(Op.GET_DOCUMENT), flags=D.ACCESS_DELETED)
    assert Status.SUBDOC_MULTI_PATH_FAILURE_DELETED is status_of(partly)
    assert [(Status.SUBDOC_PATH_NOT_FOUND, b"")] * 2 == outcomes(partly)
    changed = mutate(client, mutation(Op.COUNT_BY, b"_s", b"1", X), flags=D.ACCESS_DELETED)
    assert Status.SUBDOC_SUCCESS_DELETED is status_of(changed)


def test_a_deleted_document_has_no_body() -> None:
    """The body of a removed document cannot be changed, nor its attributes by INSERT or with a wrong CAS."""
    client = ready()
    client.ask_of(Opcode.DELETE, "ada")
    reply = mutate(client, mutation(Op.UPSERT, b"a", b"1"), flags=D.ACCESS_DELETED)

    assert struct.pack(">BH", 0, Status.SUBDOC_DOCUMENT_NOT_JSON) == reply.value
    assert Status.KEY_EXISTS is status_of(
        mutate(client, mutation(Op.UPSERT, b"_x", b"1", X), flags=D.ACCESS_DELETED | D.INSERT)
    )
    assert Status.KEY_EXISTS is status_of(
        mutate(client, mutation(Op.UPSERT, b"_x", b"1", X), flags=D.ACCESS_DELETED, cas=7)
    )


def test_creating_as_deleted() -> None:
    """Attributes, but no body, can be created once for an absent document, which can be revived later."""
    client = ready()
    spec = mutation(Op.UPSERT, b"_x", b"1", X)
    flags = D.CREATE_AS_DELETED | D.INSERT | D.ACCESS_DELETED

    assert Status.SUBDOC_SUCCESS_DELETED is status_of(mutate(client, spec, key="bob", flags=flags))
    assert client.node.documents.get("default", "bob") is None
    assert Status.KEY_EXISTS is status_of(mutate(client, spec, key="bob", flags=flags))
    assert Status.SUCCESS is status_of(mutate(client, spec, key="bob", flags=D.REVIVE | D.ACCESS_DELETED))
    assert {"_x": b"1"} == stored(client, "bob").xattrs
    body = mutation(Op.UPSERT, b"_x", b"1", X) + mutation(Op.UPSERT, b"a", b"1")
    reply = mutate(client, body, key="eve", flags=flags)
    assert struct.pack(">BH", 1, Status.SUBDOC_DOCUMENT_NOT_JSON) == reply.value
    assert client.node.documents.get("default", "eve") is None


def test_staged_document_becomes_the_body() -> None:
    """A removed document is revived with the value that is staged in its attribute; a missing attribute is refused."""
    client = ready()
    staging = mutation(Op.UPSERT, b"txn.staged", b'{"b":2}', X | P.CREATE_PARENTS)
    commit = mutation(Op.REPLACE_BODY_WITH_XATTR, b"txn.staged", flags=X) + mutation(Op.REMOVE, b"txn", flags=X)
    missing = mutation(Op.REPLACE_BODY_WITH_XATTR, b"txn.gone", flags=X)
    reviving = D.REVIVE | D.ACCESS_DELETED
    mutate(client, staging, key="bob", flags=D.CREATE_AS_DELETED | D.INSERT | D.ACCESS_DELETED)
    refused = mutate(client, missing, key="bob", flags=reviving)
    committed = mutate(client, commit, key="bob", flags=reviving)

    assert struct.pack(">BH", 0, Status.SUBDOC_PATH_NOT_FOUND) == refused.value
    assert Status.SUCCESS is status_of(committed)
    assert (b'{"b":2}', {}) == (stored(client, "bob").value, stored(client, "bob").xattrs)


def test_macros() -> None:
    """Macros in attributes are expanded to the CAS of the stored document."""
    client = ready()
    reply = mutate(
        client,
        mutation(Op.UPSERT, b"x.cas", MACRO, X | P.EXPAND_MACROS | P.CREATE_PARENTS),
        mutation(Op.ARRAY_APPEND, b"x.all", MACRO, X | P.EXPAND_MACROS | P.CREATE_PARENTS),
        mutation(Op.UPSERT, b"a", b"2"),
    )
    cas = b'"0x%b"' % reply.cas.to_bytes(8, "little").hex().encode()

    assert b'{"cas":%b,"all":[%b]}' % (cas, cas) == stored(client).xattrs["x"]


def test_attributes_survive_document_writes() -> None:
    """A write or touch of the whole document keeps its attributes; a newly created document has no attributes."""
    client = ready()
    mutate(client, mutation(Op.UPSERT, b"x", b"1", X))
    client.ask_of(Opcode.SET, "ada", extras=bytes(8), value=b"{}")
    client.ask_of(Opcode.TOUCH, "ada", extras=bytes(4))
    assert {"x": b"1"} == stored(client).xattrs
    client.ask_of(Opcode.DELETE, "ada")
    client.ask_of(Opcode.ADD, "ada", extras=bytes(8), value=b"{}")

    assert {} == stored(client).xattrs


def test_documents_that_would_be_too_large() -> None:
    """A mutation that would make the document too large is refused."""
    client = ready()
    client.node.documents.put("default", "ada", b'{"a":"' + b"x" * (VALUE_SIZE_MAX - 100) + b'"}')

    assert Status.TOO_BIG is status_of(mutate(client, mutation(Op.UPSERT, b"b", b'"' + b"x" * 200 + b'"')))


def test_deleted_document_keeps_written_attributes() -> None:
    """A document that was written as deleted returns its user attributes; a removed document has none."""
    client = ready()
    flags = D.CREATE_AS_DELETED | D.INSERT | D.ACCESS_DELETED
    mutate(client, mutation(Op.UPSERT, b"txn", b"1", X), key="bob", flags=flags)
    mutate(client, mutation(Op.UPSERT, b"txn", b"1", X))
    client.ask_of(Opcode.DELETE, "ada")
    found = [look_up(client, lookup(Op.GET, b"txn", X), key=key, flags=D.ACCESS_DELETED) for key in ("bob", "ada")]

    assert [[(Status.SUCCESS, b"1")], [(Status.SUBDOC_PATH_NOT_FOUND, b"")]] == [outcomes(reply) for reply in found]
