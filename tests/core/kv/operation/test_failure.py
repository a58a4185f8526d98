"""Failures that the codec reads from error responses for the retry machine."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, strategies as st

from tests.core.kv.operation.test_operation_codec import mutations, response
from tests.rows import rows
from triclinium_core import errors
from triclinium_core.kv.operation.codec_parts import MalformedResponse
from triclinium_core.kv.operation.document_operations import Get, Keyspace, Operation
from triclinium_core.kv.operation.failure import BODY_SIZE_BYTES_MAX, ErrorDetails, parse_error_body, read_failure
from triclinium_core.kv.operation.subdocument.specs import MutateInSpec, StoreSemantics
from triclinium_core.kv.operation.subdocument.subdocument_requests import MutateIn
from triclinium_core.retry.couchbase import FailedPath, KvResponse
from triclinium_core.shown import SERVER_TEXT_MAX, one_line

TRAVEL = Keyspace("travel")
SPECS = mutations(MutateInSpec.upsert("body", 1), MutateInSpec.upsert("attribute", 1, xattr=True))
MUTATION = MutateIn(TRAVEL, "ada", SPECS)
INSERTION = MutateIn(TRAVEL, "ada", SPECS, store_semantics=StoreSemantics.INSERT)
BODY = b'{"error":{"context":"words","ref":"7"}}'


@pytest.mark.parametrize("operation", [Get(TRAVEL, "ada"), MUTATION], ids=lambda operation: operation.name)
def test_a_failure_of_the_operation(operation: Operation) -> None:
    """A failure has the status and the texts of the response, and the address of the node."""
    failure = read_failure(operation, response(status=0x86, value=BODY), "h:1")

    assert KvResponse(0x86, "h:1", "words", "7") == failure


@pytest.mark.parametrize("status", [0xCC, 0xD3])
@pytest.mark.parametrize(("index", "place"), [(0, 1), (1, 0)])
def test_a_failure_at_a_path(status: int, index: int, place: int) -> None:
    """If one path fails, the failure has the index of that path in the caller's order."""
    failure = read_failure(MUTATION, response(status=status, value=bytes((index, 0, 0xC0))), "h:1")
    path = FailedPath(place, SPECS[place].path, 0xC0)

    assert KvResponse(status, "h:1", failed_path=path, error=errors.PathNotFoundException) == failure


@pytest.mark.parametrize("body", [b"", b"\0\0", b"\0\0\xc0\0", b"\2\0\xc0", b"\0\0\0", BODY])
def test_a_malformed_path_failure(body: bytes) -> None:
    """A body with an unknown path index, a success status or another length raises MalformedResponse."""
    with pytest.raises(MalformedResponse, match="status 0xcc, but "):
        read_failure(MUTATION, response(status=0xCC, value=body), "h:1")


def test_key_exists() -> None:
    """KEY_EXISTS after an insertion is DocumentExistsException; after another mutation it has no error of its own."""
    exists = response(status=0x02)

    assert errors.DocumentExistsException is read_failure(INSERTION, exists, "h:1").error
    assert read_failure(MUTATION, exists, "h:1").error is None
    assert read_failure(INSERTION, response(status=0x01), "h:1").error is None


@pytest.mark.parametrize(("status", "body"), [(0x86, BODY), (0xCC, b"\0\0\xc0")])
def test_the_server_duration(status: int, body: bytes) -> None:
    """A failure has the server duration of its response, even if only one path failed."""
    reported = read_failure(MUTATION, response(status=status, value=body, framing_extras=b"\x02\x00\x64"), "h:1")

    assert pytest.approx(0.00150998, rel=1e-5) == reported.server_duration
    assert read_failure(MUTATION, response(status=status, value=body), "h:1").server_duration is None


@rows(
    ("body", "expected"),
    [
        (b'{"error":{"context":"no room","ref":"1f2e"}}', ErrorDetails("no room", "1f2e")),
        (b'{"error":{"context":"no room"}}', ErrorDetails("no room", None)),
        (b'{"error":{"ref":"1f2e"},"more":[1]}', ErrorDetails(None, "1f2e")),
        *(
            (body, ErrorDetails())
            for body in (
                b'{"error":{"context":null,"ref":null}}',
                b'{"error":{}}',
                b'{"manifest_uid":"1f"}',
                b"{}",
                b"",
                b"Not found",
                b"[]",
                b"null",
                b"{",
                b' {"error":{"ref":"x"}}',
                b'{"error":{"ref":"x"}}trailing',
                b'{"error":null}',
                b'{"error":"text"}',
                b'{"error":[]}',
                b'{"error":{"context":5,"ref":"x"}}',
                b'{"error":{"context":{"a":1}}}',
                b'{"error":{"ref":"\xff"}}',
                b'{"error":' + b'{"x":' * 100_000,
                b'{"x":' + b"[" * 100_000,
                b'{"error":{"ref":"x"}}' + b" " * BODY_SIZE_BYTES_MAX,
            )
        ),
    ],
)
def test_texts(body: bytes, expected: ErrorDetails) -> None:
    """The context and the reference in an error body are optional; any other body yields no texts."""
    assert expected == parse_error_body(body)


def test_long_texts_are_cut() -> None:
    """Long texts are cut, so that a server cannot fill the log."""
    context, ref = "ä" * 5_000, "r" * 10_000

    assert ErrorDetails(one_line(context), one_line(ref)) == parse_error_body(
        json.dumps({"error": {"context": context, "ref": ref}}).encode()
    )


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda children: (
        st.lists(children, max_size=3)
        | st.dictionaries(st.sampled_from(["error", "context", "ref", "x"]), children, max_size=3)
    ),
    max_leaves=8,
)


@given(st.binary() | json_values.map(lambda value: json.dumps(value).encode()))
def test_hostile_bodies(body: bytes) -> None:
    """Arbitrary bodies yield texts of limited length."""
    details = parse_error_body(body)

    for text in (details.context, details.ref):
        assert text is None or len(text) <= SERVER_TEXT_MAX
