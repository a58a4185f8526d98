"""Specs as values: their form on the wire, and the errors for invalid arguments."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import pytest

from tests.refusals import refused
from tests.rows import rows
from triclinium_core import errors
from triclinium_core.kv.operation.document_operations import JSON_TRANSCODER
from triclinium_core.kv.operation.subdocument import specs
from triclinium_core.kv.operation.subdocument.specs import MutateInSpec
from triclinium_core.kv.wire.constants import VALUE_SIZE_MAX
from triclinium_core.kv.wire.subdocument import PathFlag, PathOpcode
from triclinium_core.transcoding.transcoder import EncodedValue, RawBinaryTranscoder, RawJsonTranscoder

P, F = PathOpcode, PathFlag
X, C, M = F.XATTR, F.CREATE_PARENTS, F.XATTR | F.EXPAND_MACROS


@pytest.mark.parametrize(
    ("spec", "opcode", "path", "xattr"),
    [
        (specs.LookupInSpec.get("a.b"), P.GET, "a.b", False),
        (specs.LookupInSpec.get("a", xattr=True), P.GET, "a", True),
        (specs.LookupInSpec.get(""), P.GET_DOCUMENT, "", False),
        (specs.LookupInSpec.get(specs.LookupInMacro.CAS, xattr=True), P.GET, "$document.CAS", True),
        (specs.LookupInSpec.exists("a"), P.EXISTS, "a", False),
        (specs.LookupInSpec.exists("a", xattr=True), P.EXISTS, "a", True),
        (specs.LookupInSpec.count("a"), P.COUNT, "a", False),
        (specs.LookupInSpec.count(""), P.COUNT, "", False),
    ],
    ids=lambda value: value.opcode.name if isinstance(value, specs.LookupInSpec) else "",
)
def test_lookups(spec: specs.LookupInSpec, opcode: PathOpcode, path: str, xattr: bool) -> None:
    """Each lookup method has its opcode; without a path, ``get`` has the opcode of the complete document."""
    assert (opcode, path, xattr) == (spec.opcode, spec.path, spec.xattr)


@rows(("spec", "opcode", "flags", "value"), [
        (MutateInSpec.insert("p", {"a": 1}), P.INSERT, F.NONE, b'{"a":1}'),
        (MutateInSpec.insert("p", 1, create_parents=True), P.INSERT, C, b"1"),
        (MutateInSpec.upsert("p", None), P.UPSERT, F.NONE, b"null"),
        (MutateInSpec.upsert("p", "x", xattr=True, create_parents=True), P.UPSERT, X | C, b'"x"'),
        (MutateInSpec.upsert("p", specs.MutationMacro.CAS), P.UPSERT, M, b'"${Mutation.CAS}"'),
        (MutateInSpec.insert("p", specs.MutationMacro.SEQ_NO), P.INSERT, M, b'"${Mutation.seqno}"'),
        (MutateInSpec.replace("p", specs.MutationMacro.VALUE_CRC32C), P.REPLACE, M, b'"${Mutation.value_crc32c}"'),
        (MutateInSpec.replace("p", [1]), P.REPLACE, F.NONE, b"[1]"),
        (MutateInSpec.remove("p"), P.REMOVE, F.NONE, b""),
        (MutateInSpec.remove("p", xattr=True), P.REMOVE, X, b""),
        (MutateInSpec.array_append("p", 1, "2", [3]), P.ARRAY_APPEND, F.NONE, b'1,"2",[3]'),
        (MutateInSpec.array_append("p", specs.MutationMacro.CAS, create_parents=True), P.ARRAY_APPEND, M | C, b'"${Mutation.CAS}"'),
        (MutateInSpec.array_prepend("p", 1, xattr=True), P.ARRAY_PREPEND, X, b"1"),
        (MutateInSpec.array_insert("p[0]", 1, 2), P.ARRAY_INSERT, F.NONE, b"1,2"),
        (MutateInSpec.array_add_unique("p", 1.5, create_parents=True), P.ARRAY_ADD_UNIQUE, C, b"1.5"),
        (MutateInSpec.array_add_unique("p", None), P.ARRAY_ADD_UNIQUE, F.NONE, b"null"),
        (MutateInSpec.increment("p"), P.COUNT_BY, F.NONE, b"1"),
        (MutateInSpec.increment("p", 2**63 - 1, xattr=True), P.COUNT_BY, X, b"9223372036854775807"),
        (MutateInSpec.decrement("p", 5, create_parents=True), P.COUNT_BY, C, b"-5"),
    ])  # fmt: skip
def test_mutations(spec: MutateInSpec, opcode: PathOpcode, flags: PathFlag, value: bytes) -> None:
    """Each mutation method has its opcode and flags; several JSON values are joined by commas."""
    path = "p[0]" if opcode is P.ARRAY_INSERT else "p"

    assert specs.EncodedMutation(opcode, flags, path, value) == spec.encode(JSON_TRANSCODER)


@pytest.mark.parametrize(
    ("spec", "opcode"),
    [
        (MutateInSpec.replace("", {}), P.SET_DOCUMENT),
        (MutateInSpec.remove(""), P.REMOVE_DOCUMENT),
        (MutateInSpec.array_append("", 1), P.ARRAY_APPEND),
        (MutateInSpec.array_prepend("", 1), P.ARRAY_PREPEND),
        (MutateInSpec.array_add_unique("", 1), P.ARRAY_ADD_UNIQUE),
    ],
    ids=lambda value: value.name if isinstance(value, PathOpcode) else "",
)
def test_an_empty_path_is_the_document(spec: MutateInSpec, opcode: PathOpcode) -> None:
    """An empty path means the document; replacing and removing it have separate opcodes (RFC 0053 "MutateIn")."""
    assert (opcode, "", F.NONE) == (spec.opcode, spec.path, spec.flags)


Make = Callable[..., object]
ALL: tuple[Make, ...] = (
    specs.LookupInSpec.get,
    specs.LookupInSpec.exists,
    specs.LookupInSpec.count,
    partial(MutateInSpec.insert, value=1),
    partial(MutateInSpec.upsert, value=1),
    partial(MutateInSpec.replace, value=1),
    MutateInSpec.remove,
    lambda path: MutateInSpec.array_append(path, 1),
    lambda path: MutateInSpec.array_prepend(path, 1),
    lambda path: MutateInSpec.array_insert(path, 1),
    partial(MutateInSpec.array_add_unique, value=1),
    MutateInSpec.increment,
    MutateInSpec.decrement,
)


@rows("make", ALL)
def test_paths(make: Make) -> None:
    """A path of 1024 bytes is accepted; one that is longer, not a string or not valid Unicode is rejected."""
    assert make("x" * 1024)
    for path in (None, 5, b"a", ["a"], "x" * 1025, "é" * 513, "\ud800"):
        refused("path", make, path)


@pytest.mark.parametrize(
    ("make", "arguments"),
    [
        (specs.LookupInSpec.exists, ()),
        (MutateInSpec.insert, (1,)),
        (MutateInSpec.upsert, (1,)),
        (MutateInSpec.array_insert, (1,)),
        (MutateInSpec.increment, ()),
        (MutateInSpec.decrement, ()),
    ],
)
def test_an_empty_path(make: Make, arguments: tuple[object, ...]) -> None:
    """A method that needs a path rejects an empty one."""
    refused("path", make, "", *arguments)


@pytest.mark.parametrize("make", [specs.LookupInSpec.get, specs.LookupInSpec.count, MutateInSpec.remove])
def test_attributes_need_a_path(make: Make) -> None:
    """A spec of an extended attribute is rejected without a path."""
    refused("path", make, "", xattr=True)
    refused("path", MutateInSpec.replace, "", 1, xattr=True)
    refused("path", MutateInSpec.replace, "", specs.MutationMacro.CAS)


@pytest.mark.parametrize("wrong", [None, 0, 1, "yes"], ids=repr)
def test_wrong_flags(wrong: object) -> None:
    """Flags that are not booleans are rejected."""
    refused("xattr", specs.LookupInSpec.get, "a", xattr=wrong)
    refused("xattr", MutateInSpec.remove, "a", xattr=wrong)
    refused("xattr", MutateInSpec.upsert, "a", 1, xattr=wrong)
    refused("create_parents", MutateInSpec.upsert, "a", 1, create_parents=wrong)
    refused("create_parents", MutateInSpec.array_append, "a", 1, create_parents=wrong)
    refused("create_parents", MutateInSpec.increment, "a", create_parents=wrong)


@rows("wrong", [0, -1, 2**63, 1.0, True, "1", None, 10**5000])
@rows("make", [MutateInSpec.increment, MutateInSpec.decrement])
def test_wrong_deltas(make: Make, wrong: object) -> None:
    """A delta is rejected unless it is an integer from 1 to 2**63 - 1."""
    refused("delta", make, "a", wrong)


@pytest.mark.parametrize("make", [MutateInSpec.array_append, MutateInSpec.array_prepend, MutateInSpec.array_insert])
def test_values_of_arrays(make: Make) -> None:
    """An array method rejects a call without values, and a macro beside another value."""
    refused("values", make, "a[0]")
    refused("values", make, "a[0]", 1, specs.MutationMacro.CAS)
    refused("values", make, "a[0]", specs.MutationMacro.CAS, specs.MutationMacro.CAS)


@pytest.mark.parametrize("wrong", [{}, [], (), set(), frozenset(), specs.MutationMacro.CAS], ids=repr)
def test_unique_values_are_scalars(wrong: object) -> None:
    """A value that must be unique in its array is rejected unless it is a scalar."""
    refused("value", MutateInSpec.array_add_unique, "a", wrong)


def test_values_are_encoded_by_the_transcoder() -> None:
    """The transcoder encodes values, leaves JSON unchanged, and raises for a value that it does not support."""
    assert b"[1, 2]" == MutateInSpec.upsert("a", b"[1, 2]").encode(RawJsonTranscoder()).value
    assert b"1,2" == MutateInSpec.array_append("a", "1", b"2").encode(RawJsonTranscoder()).value
    with pytest.raises(errors.EncodingFailureException):
        MutateInSpec.upsert("a", object()).encode(JSON_TRANSCODER)
    with pytest.raises(errors.EncodingFailureException):
        MutateInSpec.upsert("a", b"1").encode(JSON_TRANSCODER)
    with pytest.raises(errors.EncodingFailureException):
        MutateInSpec.array_append("a", 1.5, {"b": math.nan}).encode(JSON_TRANSCODER)


def test_a_transcoder_that_returns_no_document() -> None:
    """If a transcoder returns an invalid value, the error names the transcoder, which the caller has passed."""

    class Forgetful(RawBinaryTranscoder):
        def encode(self, value: object, /) -> EncodedValue:
            return b"no document"  # type: ignore[return-value]

    refused("transcoder.encode(value)", MutateInSpec.upsert("a", b"x").encode, Forgetful())


def test_the_largest_value() -> None:
    """A value of 20 MiB is accepted; a longer value, or several values whose total is longer, are rejected."""
    largest = bytes(VALUE_SIZE_MAX)

    assert largest == MutateInSpec.upsert("a", largest).encode(RawBinaryTranscoder()).value
    for spec in (MutateInSpec.upsert("a", largest + b"x"), MutateInSpec.array_append("a", largest, b"x")):
        with pytest.raises(errors.ValueTooLargeException):
            spec.encode(RawBinaryTranscoder())


@rows(
    ("parameter", "make", "arguments"),
    [
        ("opcode", specs.LookupInSpec, ("get", "a")),
        ("opcode", specs.LookupInSpec, (0xC5, "a")),
        ("xattr", specs.LookupInSpec, (P.GET, "a", "yes")),
        ("opcode", MutateInSpec, ("remove", F.NONE, "a")),
        *(("flags", MutateInSpec, (P.REMOVE, flags, "a")) for flags in (None, 4, F(1 << 40))),
    ],
)
def test_specs_made_by_hand(parameter: str, make: Make, arguments: tuple[object, ...]) -> None:
    """The constructor of a spec rejects invalid fields, as the methods do."""
    refused(parameter, make, *arguments)
