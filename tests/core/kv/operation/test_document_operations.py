"""Operations as values: invalid arguments raise in the constructor, and operations are immutable."""

from __future__ import annotations

import pickle
from collections.abc import Mapping

import pytest

from tests.core.kv.operation.examples import DEFAULT, VALID, make
from tests.refusals import refused
from tests.rows import rows
from triclinium_core import errors
from triclinium_core.kv.operation import document_operations as ops
from triclinium_core.kv.operation.catalogue import OPERATIONS
from triclinium_core.kv.operation.manifest.manifest_request import GetCollectionsManifest
from triclinium_core.kv.operation.replica.replica_requests import LookupInReplica
from triclinium_core.kv.operation.scan.scans import RangeScan
from triclinium_core.kv.operation.subdocument.specs import MutateInSpec, StoreSemantics
from triclinium_core.kv.operation.subdocument.subdocument_requests import LookupIn, MutateIn
from triclinium_core.kv.operation.validation import UINT32_MAX, UINT64_MAX
from triclinium_core.kv.wire.constants import VALUE_SIZE_MAX
from triclinium_core.retry.couchbase import Service, is_idempotent
from triclinium_core.transcoding.transcoder import RawBinaryTranscoder

WRONG: Mapping[str, tuple[object, ...]] = {
    "key": ("", None, b"k", 5, "\ud800", "k" * 251),
    "value": (None, "text", bytearray(b"x"), 5),
    "flags": (-1, UINT32_MAX + 1, True, 1.0, None),
    "expiry": (-1, UINT32_MAX + 1, False, 1.5, None),
    "cas": (-1, UINT64_MAX + 1, True, None, "5"),
    "lock_time": (0, 31, True, 15.0, None),
    "delta": (-1, UINT64_MAX + 1, True, 1.0, None),
    "initial": (-1, UINT64_MAX + 1, True, 1.0, "0"),
    "preserve_expiry": (None, 0, 1, "yes"),
    "durability": (None, 0, 1, True, "MAJORITY"),
    "encode_seconds": (-0.25, float("nan"), float("inf"), True, None, "1"),
    "replica": (0, -1, 4, True, 1.0, None),
    "vbucket": (-1, 0x1_0000, True, 1.0, None),
    "selection": (None, "ada", b"ada", RangeScan(), 5),
    "ids_only": (None, 0, 1, "yes"),
    "token": ("token", 5, (1, 2)),
    "scan_id": (None, 10**5000, b"", b"fifteen bytes i", b"seventeen bytes it", "sixteen bytes it", bytearray(16)),
    "item_limit": (0, -1, UINT32_MAX + 1, True, 1.0, None),
    "byte_limit": (-1, UINT32_MAX + 1, True, 1.0, None),
    "time_limit_ms": (-1, UINT32_MAX + 1, True, 1.0, None),
    "transcoder": (None, "json", RawBinaryTranscoder, 5),
    "specs": (None, (), [], "specs", (5,), (None,) * 17, ("path",)),
    "access_deleted": (None, 0, 1, "yes"),
    "create_as_deleted": (None, 0, 1, "yes"),
    "store_semantics": (None, "upsert", 1, StoreSemantics),
}

WRONG_ARGUMENTS = [
    (kind, name, value) for kind, arguments in VALID.items() for name in arguments for value in WRONG[name]
]


def arguments_of(operation: ops.Operation) -> dict[str, object]:
    """Return the arguments of an operation by name."""
    return {name: getattr(operation, name) for name in operation.__struct_fields__}


def test_every_operation_is_listed() -> None:
    """The list has every operation; all names differ, and only two operations share an opcode."""
    assert set(VALID) == set(OPERATIONS)
    assert 23 == len(OPERATIONS) == len({kind.name for kind in OPERATIONS})
    assert 22 == len({kind.opcode for kind in OPERATIONS})


@rows("kind", OPERATIONS)
def test_operations_are_values(kind: type[ops.Operation]) -> None:
    """An operation stores its arguments unchanged and immutable; a pickled copy has the same type and repr."""
    operation = make(kind)
    copy: object = pickle.loads(pickle.dumps(operation))  # noqa: S301  # our own bytes

    assert {**VALID[kind], "keyspace": DEFAULT} == arguments_of(operation)
    assert (type(operation), repr(operation)) == (type(copy), repr(copy))
    for name in operation.__struct_fields__:
        with pytest.raises(AttributeError):
            setattr(operation, name, getattr(operation, name))


@rows(("kind", "name", "value"), WRONG_ARGUMENTS)
def test_wrong_arguments(kind: type[ops.Operation], name: str, value: object) -> None:
    """For each argument of each operation, a wrong type or range raises an error that names the argument."""
    refused(name, make, kind, **{name: value})


@rows("kind", OPERATIONS)
@rows("keyspace", [None, "travel", 10**5000, ("travel", "_default", "_default")])
def test_wrong_keyspace(kind: type[ops.Operation], keyspace: object) -> None:
    """A keyspace of another type is rejected."""
    refused("keyspace", make, kind, keyspace)


@pytest.mark.parametrize(
    "kind", [ops.Insert, ops.Upsert, ops.Replace, ops.Append, ops.Prepend], ids=lambda kind: kind.__name__
)
def test_value_size(kind: type[ops.Operation]) -> None:
    """A value of 20 MiB is accepted; a longer one raises ValueTooLargeException with both sizes."""
    largest = bytes(VALUE_SIZE_MAX)

    assert isinstance(make(kind, value=largest), ops.Store | ops.Concatenate)
    with pytest.raises(errors.ValueTooLargeException, match=f"{VALUE_SIZE_MAX + 1} bytes.* {VALUE_SIZE_MAX}"):
        make(kind, value=largest + b"x")


REMOVE, UPSERT, ATTRIBUTE = (
    spec.encode(ops.JSON_TRANSCODER)
    for spec in (MutateInSpec.remove(""), MutateInSpec.upsert("a", 1), MutateInSpec.upsert("x", 1, xattr=True))
)


@rows(
    ("parameter", "kind", "arguments"),
    [
        # On the wire, this expiry of a counter means "do not create".
        *(("expiry", kind, {"expiry": UINT32_MAX}) for kind in (ops.Increment, ops.Decrement)),
        ("specs", LookupIn, {"specs": VALID[MutateIn]["specs"]}),
        ("specs", MutateIn, {"specs": VALID[LookupIn]["specs"]}),
        # An insertion has no earlier CAS, and a replacement creates no document.
        ("cas", MutateIn, {"cas": 1, "store_semantics": StoreSemantics.INSERT}),
        ("create_as_deleted", MutateIn, {"create_as_deleted": True, "store_semantics": StoreSemantics.REPLACE}),
        # A removal of the document excludes other specs, except those of extended attributes.
        ("specs", MutateIn, {"specs": (UPSERT, REMOVE)}),
        ("cas", ops.Unlock, {"cas": 0}),
    ],
)
def test_excluded_arguments(parameter: str, kind: type[ops.Operation], arguments: Mapping[str, object]) -> None:
    """An operation rejects a value that it, or another of its arguments, excludes."""
    refused(parameter, make, kind, **arguments)


@rows(
    ("kind", "arguments"),
    [
        (MutateIn, {"cas": 0, "store_semantics": StoreSemantics.INSERT}),
        (MutateIn, {"specs": (ATTRIBUTE, REMOVE)}),
        (ops.Remove, {"cas": 0}),
    ],
)
def test_permitted_arguments(kind: type[ops.Operation], arguments: Mapping[str, object]) -> None:
    """An operation accepts a value that is excluded elsewhere."""
    assert arguments.items() <= arguments_of(make(kind, **arguments)).items()


@pytest.mark.parametrize("kind", [LookupIn, LookupInReplica, MutateIn], ids=lambda kind: kind.__name__)
def test_number_of_specs(kind: type[ops.Operation]) -> None:
    """An operation accepts 16 specs and rejects 17."""
    specs = VALID[kind]["specs"]
    assert isinstance(specs, tuple)

    assert isinstance(make(kind, specs=specs * 16), kind)
    refused("specs", make, kind, specs=specs * 17)


@pytest.mark.parametrize(
    ("keyspace", "expected"),
    [
        (ops.Keyspace("travel"), True),
        (ops.Keyspace(None), True),
        (ops.Keyspace("travel", "_default", "_default"), True),
        (ops.Keyspace("travel", "inventory"), False),
        (ops.Keyspace("travel", "_default", "hotel"), False),
    ],
    ids=repr,
)
def test_default_collection(keyspace: ops.Keyspace, expected: bool) -> None:
    """A keyspace is the default collection only if both scope and collection have the default name."""
    assert expected is keyspace.is_default_collection


def test_wrong_names() -> None:
    """Each part of a keyspace has its own rule for valid names, and must not be empty."""
    for value in ("", 5, "a b", "@no bucket@"):
        refused("bucket", ops.Keyspace, value)
        refused("scope", ops.Keyspace, "travel", value)
        refused("collection", ops.Keyspace, "travel", "inventory", value)
    for wrong in (None, "a.b"):
        refused("scope", ops.Keyspace, "a.b", wrong)
        refused("collection", ops.Keyspace, None, "inventory", wrong)


def test_names_are_those_of_the_idempotent_list() -> None:
    """Exactly the operations of RFC 0049's list, and ``exists`` by decision C34, are idempotent."""
    reads = {kind for kind in OPERATIONS if is_idempotent(Service.KV, kind.name)}

    assert {ops.Noop, ops.Get, ops.GetReplica, ops.Exists, LookupIn, LookupInReplica, GetCollectionsManifest} == reads
