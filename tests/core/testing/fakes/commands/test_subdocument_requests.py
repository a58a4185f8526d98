"""Checks of a command on parts of a document, which the node makes before it carries the command out."""

from __future__ import annotations

from functools import partial

import pytest

from tests.core.testing.node_client import USUAL_FEATURES, NodeClient, as_json, ready_client, status_of, with_options
from tests.rows import rows
from triclinium_core.kv.wire.constants import HelloFeature, Opcode
from triclinium_core.kv.wire.subdocument import DocumentFlag as D, PathFlag as P, PathOpcode as Op
from triclinium_core.retry.couchbase import Status
from triclinium_core.testing.fakes.commands.subdocument_requests import TRAITS
from triclinium_core.testing.fakes.options import IMPLEMENTED_FEATURES

X = P.XATTR
MACRO = b'"${Mutation.CAS}"'


def lookup(opcode: int, path: bytes = b"", flags: int = 0) -> bytes:
    """Return a lookup spec."""
    return bytes((opcode, flags)) + len(path).to_bytes(2, "big") + path


def mutation(opcode: int, path: bytes = b"", value: bytes = b"", flags: int = 0) -> bytes:
    """Return a mutation spec."""
    return bytes((opcode, flags)) + len(path).to_bytes(2, "big") + len(value).to_bytes(4, "big") + path + value


def ready(*, without: tuple[HelloFeature, ...] = ()) -> NodeClient:
    """Return a client whose node has the document "ada"."""
    client = ready_client(features=[HelloFeature.XATTR, *USUAL_FEATURES], without=without)
    client.node.documents.put("default", "ada", b'{"a":1}')
    return client


def status_for(opcode: Opcode, value: bytes, flags: int = 0, **parts: int | bytes) -> Status:
    """Return the status with which the node replies to a lookup or a mutation of the document."""
    extras = bytes((flags,)) if flags else b""
    return status_of(ready().ask_of(opcode, "ada", value=value, extras=extras, **parts))


look_up = partial(status_for, Opcode.SUBDOC_MULTI_LOOKUP)
mutate = partial(status_for, Opcode.SUBDOC_MULTI_MUTATION)


def test_every_opcode_has_traits() -> None:
    """The table has a row for each opcode."""
    assert set(Op) == set(TRAITS)


@rows("opcode", Op)
def test_well_formed_specs(opcode: Op) -> None:
    """Either the lookup or the mutation accepts an opcode in a spec, and the other of the two refuses it."""
    traits = TRAITS[opcode]
    path = b"" if traits.is_whole_document else b"b[0]" if opcode is Op.ARRAY_INSERT else b"b"
    flags = X if opcode is Op.REPLACE_BODY_WITH_XATTR else P.NONE
    reading, writing = lookup(opcode, path, flags), mutation(opcode, path, b"1" if traits.has_value else b"", flags)

    right, wrong = (mutate(writing), look_up(reading)) if traits.is_mutation else (look_up(reading), mutate(writing))
    assert right in (Status.SUCCESS, Status.SUBDOC_MULTI_PATH_FAILURE)
    assert Status.SUBDOC_INVALID_COMBO is wrong


@rows("opcode", [op for op in Op if TRAITS[op].is_mutation])
def test_required_and_forbidden_values(opcode: Op) -> None:
    """A spec must have a value if its opcode requires one, and otherwise must not."""
    path = b"" if TRAITS[opcode].is_whole_document else b"b"

    assert Status.INVALID_ARGUMENTS is mutate(mutation(opcode, path, b"" if TRAITS[opcode].has_value else b"1"))


@rows("opcode", Op)
def test_empty_paths(opcode: Op) -> None:
    """An empty path is accepted only by opcodes that apply to the whole document."""
    traits = TRAITS[opcode]
    value = b"1" if traits.has_value else b""
    status = mutate(mutation(opcode, b"", value)) if traits.is_mutation else look_up(lookup(opcode))

    assert traits.path_may_be_empty is (status is not Status.INVALID_ARGUMENTS)


@pytest.mark.parametrize("opcode", [Op.GET_DOCUMENT, Op.SET_DOCUMENT, Op.REMOVE_DOCUMENT], ids=lambda op: op.name)
def test_a_whole_document_has_no_path(opcode: Op) -> None:
    """A spec for the whole document accepts neither a path nor the attribute flag."""
    value = b"1" if TRAITS[opcode].has_value else b""
    for spec in (mutation(opcode, b"a", value), mutation(opcode, b"", value, X)):
        status = mutate(spec) if TRAITS[opcode].is_mutation else look_up(lookup(opcode, b"a"))
        assert Status.INVALID_ARGUMENTS is status


@rows(
    ("value", "status"),
    [
        (b"", Status.SUBDOC_INVALID_COMBO),
        (lookup(Op.GET, b"a") * 16, Status.SUCCESS),
        (lookup(Op.GET, b"a") * 17, Status.SUBDOC_INVALID_COMBO),
        (lookup(Op.GET, b"a")[:-1], Status.INVALID_ARGUMENTS),
        (lookup(Op.GET, b"a") + b"\xc5", Status.INVALID_ARGUMENTS),
        (lookup(Op.GET, b"a" * 1024), Status.SUBDOC_MULTI_PATH_FAILURE),
        (lookup(Op.GET, b"a" * 1025), Status.INVALID_ARGUMENTS),
        (lookup(0x55, b"a"), Status.SUBDOC_INVALID_COMBO),
        (lookup(Op.GET, b"\xff"), Status.INVALID_ARGUMENTS),
        (lookup(Op.GET, b"a", 0x80), Status.INVALID_ARGUMENTS),
        (lookup(Op.GET, b"a", P.CREATE_PARENTS), Status.INVALID_ARGUMENTS),
        (lookup(Op.GET, b"x", X) + lookup(Op.GET, b"a"), Status.SUBDOC_MULTI_PATH_FAILURE),
        (lookup(Op.GET, b"a") + lookup(Op.GET, b"x", X), Status.SUBDOC_INVALID_XATTR_ORDER),
        (lookup(Op.GET, b"", X), Status.XATTR_INVALID),
        (lookup(Op.GET, b"#x", X), Status.XATTR_INVALID),
        (lookup(Op.GET, b"$nobody", X), Status.SUBDOC_MULTI_PATH_FAILURE),
    ],
)
def test_lookups(value: bytes, status: Status) -> None:
    """A lookup is checked for its number of specs, opcodes, lengths, paths, flags and order."""
    assert status is look_up(value)


@rows(
    ("value", "status"),
    [
        (b"", Status.SUBDOC_INVALID_COMBO),
        (mutation(Op.UPSERT, b"a", b"1") * 16, Status.SUCCESS),
        (mutation(Op.UPSERT, b"a", b"1") * 17, Status.SUBDOC_INVALID_COMBO),
        (mutation(Op.UPSERT, b"a", b"1")[:-1], Status.INVALID_ARGUMENTS),
        (mutation(Op.REPLACE_BODY_WITH_XATTR, b"a"), Status.INVALID_ARGUMENTS),
        (mutation(Op.REPLACE_BODY_WITH_XATTR, b"a", b"1", X), Status.INVALID_ARGUMENTS),
        (mutation(Op.UPSERT, b"a", b"1", P.EXPAND_MACROS), Status.SUBDOC_XATTR_INVALID_FLAG_COMBO),
        (mutation(Op.UPSERT, b"x", b"1", X | P.EXPAND_MACROS), Status.SUBDOC_XATTR_UNKNOWN_MACRO),
        (mutation(Op.UPSERT, b"x", MACRO, X | P.EXPAND_MACROS), Status.SUCCESS),
        (mutation(Op.ARRAY_ADD_UNIQUE, b"x", MACRO, X | P.EXPAND_MACROS), Status.INVALID_ARGUMENTS),
        (mutation(Op.REPLACE, b"a", b"1", P.CREATE_PARENTS), Status.INVALID_ARGUMENTS),
        (mutation(Op.UPSERT, b"$document", b"1", X), Status.SUBDOC_XATTR_CANNOT_MODIFY_VATTR),
        (mutation(Op.UPSERT, b"a", b"1") + mutation(Op.UPSERT, b"x", b"1", X), Status.SUBDOC_INVALID_XATTR_ORDER),
        (mutation(Op.UPSERT, b"x", b"1", X) + mutation(Op.REMOVE_DOCUMENT), Status.SUCCESS),
        (mutation(Op.UPSERT, b"a", b"1") + mutation(Op.REMOVE_DOCUMENT), Status.SUBDOC_INVALID_COMBO),
        (mutation(Op.REMOVE_DOCUMENT) + mutation(Op.UPSERT, b"a", b"1"), Status.SUBDOC_INVALID_COMBO),
    ],
)
def test_mutations(value: bytes, status: Status) -> None:
    """A mutation is checked for its number of specs, lengths, paths, values, flags, macros, order and combinations."""
    assert status is mutate(value)


UPSERT, REMOVE, REPLACE = mutation(Op.UPSERT, b"b", b"1"), mutation(Op.REMOVE, b"a"), mutation(Op.REPLACE, b"a", b"1")


@rows(
    ("value", "flags", "status"),
    [
        (UPSERT, D.UPSERT, Status.SUCCESS),
        (UPSERT, D.INSERT, Status.KEY_EXISTS),
        (UPSERT, D.UPSERT | D.INSERT, Status.INVALID_ARGUMENTS),
        (UPSERT, D.ACCESS_DELETED, Status.SUCCESS),
        (UPSERT, D.REVIVE, Status.INVALID_ARGUMENTS),
        (UPSERT, D.REVIVE | D.ACCESS_DELETED, Status.SUBDOC_CAN_ONLY_REVIVE_DELETED_DOCUMENTS),
        (UPSERT, D.REVIVE | D.ACCESS_DELETED | D.CREATE_AS_DELETED, Status.INVALID_ARGUMENTS),
        (UPSERT, D.REPLICA_READ, Status.INVALID_ARGUMENTS),
        (UPSERT, 0x80, Status.INVALID_ARGUMENTS),
        (REMOVE, D.UPSERT, Status.INVALID_ARGUMENTS),
        (REMOVE, D.ACCESS_DELETED, Status.SUCCESS),
        (REPLACE, D.UPSERT, Status.INVALID_ARGUMENTS),
        (REPLACE, D.INSERT, Status.KEY_EXISTS),
    ],
)
def test_flags_of_the_document(value: bytes, flags: int, status: Status) -> None:
    """Document flags must fit each other and the operations at the paths."""
    assert status is mutate(value, flags)


def test_flags_that_want_no_version() -> None:
    """INSERT accepts no CAS; a lookup accepts ACCESS_DELETED, but neither UPSERT nor, for a living document, REVIVE."""
    reading = lookup(Op.GET, b"a")

    assert Status.INVALID_ARGUMENTS is mutate(UPSERT, D.INSERT, cas=7)
    assert Status.SUCCESS is look_up(reading, D.ACCESS_DELETED)
    assert Status.INVALID_ARGUMENTS is look_up(reading, D.UPSERT)
    assert Status.SUBDOC_CAN_ONLY_REVIVE_DELETED_DOCUMENTS is look_up(reading, D.REVIVE | D.ACCESS_DELETED)


@rows(
    ("feature", "value", "flags", "status"),
    [
        (
            HelloFeature.SUBDOC_CREATE_AS_DELETED,
            UPSERT,
            D.CREATE_AS_DELETED | D.INSERT | D.ACCESS_DELETED,
            Status.INVALID_ARGUMENTS,
        ),
        (HelloFeature.REPLACE_BODY_WITH_XATTR, UPSERT, D.REVIVE | D.ACCESS_DELETED, Status.INVALID_ARGUMENTS),
        (
            HelloFeature.REPLACE_BODY_WITH_XATTR,
            mutation(Op.REPLACE_BODY_WITH_XATTR, b"x", flags=X),
            D.ACCESS_DELETED,
            Status.SUBDOC_INVALID_COMBO,
        ),
    ],
)
def test_old_nodes_refuse_newer_flags_and_opcodes(
    feature: HelloFeature, value: bytes, flags: int, status: Status
) -> None:
    """A node without a feature refuses the flag and the opcode that came with it, which need no negotiation."""
    new, old = (
        ready_client(with_options(features=features), features=[HelloFeature.XATTR, *USUAL_FEATURES])
        for features in (IMPLEMENTED_FEATURES, IMPLEMENTED_FEATURES - {feature})
    )
    found = [
        status_of(client.ask_of(Opcode.SUBDOC_MULTI_MUTATION, "ada", extras=bytes((flags,)), value=value))
        for client in (new, old)
    ]

    assert [False, True] == [each is status for each in found]


def test_attributes_must_be_granted() -> None:
    """Attributes must be granted; with extended errors, the refusal of a spec with an attribute has a text."""
    client = ready(without=(HelloFeature.XATTR,))
    reply = client.ask_of(Opcode.SUBDOC_MULTI_LOOKUP, "ada", value=lookup(Op.GET, b"x", X))

    assert Status.NOT_SUPPORTED is status_of(reply)
    assert "extended attributes" in str(as_json(reply.value)["error"])


@pytest.mark.parametrize(("extras", "expiry"), [(b"", 0), (b"\1", 0), (b"\0\0\0\x0a", 10), (b"\0\0\0\x0a\1", 10)])
def test_extras(extras: bytes, expiry: int) -> None:
    """The extras contain an expiry, flags, both, or neither."""
    client = ready()
    reply = client.ask_of(Opcode.SUBDOC_MULTI_MUTATION, "ada", value=UPSERT, extras=extras)
    document = client.node.documents.get("default", "ada")

    assert Status.SUCCESS is status_of(reply)
    assert document is not None
    assert (expiry or float("inf")) == document.expires_at
