"""Documents with a list of unique values, and their histories in the model."""

from __future__ import annotations

import pytest

from tests.core.testing.asked import TRAVEL, get
from tests.core.testing.callers import Callers, found
from tests.rows import rows
from triclinium_core.error_context import ErrorContext
from triclinium_core.kv.operation.document_operations import JSON_TRANSCODER, DocumentOperation, Upsert
from triclinium_core.kv.operation.results import LookupInResult, MutateInResult
from triclinium_core.kv.operation.subdocument.specs import EncodedMutation, LookupInSpec, MutateInSpec, StoreSemantics
from triclinium_core.kv.operation.subdocument.subdocument_requests import LookupIn, MutateIn
from triclinium_core.testing.oracle.submissions import Violation
from triclinium_core.testing.oracle.unique_lists import list_append, list_document, read_list, written_by
from triclinium_core.testing.oracle.unique_values import Unreadable
from triclinium_core.transcoding.flags import JSON_FLAGS

SPECS = (LookupInSpec.get("parts"), LookupInSpec.count("parts"), LookupInSpec.get(""))


def mutation(*specs: EncodedMutation) -> MutateIn:
    """Return a mutation that creates a missing document."""
    return MutateIn(TRAVEL, "ada", specs, store_semantics=StoreSemantics.UPSERT)


def append(callers: Callers) -> None:
    """Append a value to the list, successfully."""
    token = callers.ask(mutation(list_append(callers.model.unique_values.fragment())))
    callers.hear(token, MutateInResult(callers.new_cas(), (None,), JSON_TRANSCODER))


def look_up(callers: Callers, data: bytes) -> None:
    """Look the list up, and find ``data``."""
    outcomes = ((0, data), (0, b"1"), (0, b'{"parts":%b}' % data))
    token = callers.ask(LookupIn(TRAVEL, "ada", SPECS))
    callers.hear(
        token,
        LookupInResult(
            callers.new_cas(), SPECS, outcomes, JSON_TRANSCODER, ErrorContext(service="kv", operation="lookup_in")
        ),
    )


def test_reading_a_list() -> None:
    """A document and its list give the same values, and a document of one value is what a store writes."""
    assert [b"<3>", b"<7>"] == read_list(b'{"parts":["<3>","<7>"]}') == read_list(b'["<3>","<7>"]')
    assert [b"<3>"] == read_list(list_document(b"<3>"))


@pytest.mark.parametrize("data", [b"", b"{}", b"[]", b'["x"]', b"[1]", b'{"parts":["<1>"],"more":1}', b'["<1>","<1>"]'])
def test_reading_an_impossible_list(data: bytes) -> None:
    """Content that is not a list of different unique values is unreadable."""
    with pytest.raises(Unreadable):
        read_list(data)


@rows(
    ("operation", "fragment"),
    [
        (Upsert(TRAVEL, "ada", b"<3>", 0), b"<3>"),
        (Upsert(TRAVEL, "ada", list_document(b"<3>"), JSON_FLAGS), b"<3>"),
        (Upsert(TRAVEL, "ada", b"3", JSON_FLAGS), None),
        (mutation(list_append(b"<3>")), b"<3>"),
        (mutation(MutateInSpec.upsert("parts", "<3>").encode(JSON_TRANSCODER)), None),
        (mutation(MutateInSpec.array_append("parts", 3).encode(JSON_TRANSCODER)), None),
        (get(), None),
    ],
)
def test_written_value(operation: DocumentOperation, fragment: bytes | None) -> None:
    """A stored unique value, or one that is appended to the list, is recognised; other operations write none."""
    assert fragment == written_by(operation)


def test_complete_list_is_accepted() -> None:
    """A read or a lookup that finds every acknowledged value, in order, is correct, whatever created the document."""
    callers = Callers()
    append(callers)
    append(callers)
    callers.find(b'{"parts":["<1>","<2>"]}')
    look_up(callers, b'["<1>","<2>"]')
    callers.change(Upsert(TRAVEL, "ada", list_document(callers.model.unique_values.fragment()), JSON_FLAGS))
    append(callers)
    look_up(callers, b'["<3>","<4>"]')

    assert [] == callers.model.open


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b'["<1>"]', "did not find"),
        (b'["<1>","<2>","<2>"]', "a write twice"),
        (b'["<1>","<2>","<9>"]', "never written"),
        (b'["<2>","<1>"]', "impossible order"),
        (b"[]", "not a list"),
    ],
    ids=["lost", "applied twice", "invented", "reordered", "empty"],
)
def test_wrong_list_is_a_violation(data: bytes, message: str) -> None:
    """A read or lookup that lacks an acknowledged value, or has one twice, unknown or out of order, is a violation."""
    callers = Callers()
    callers.change(Upsert(TRAVEL, "ada", list_document(callers.model.unique_values.fragment()), JSON_FLAGS))
    append(callers)

    with pytest.raises(Violation, match=message):
        look_up(callers, data)
    with pytest.raises(Violation, match=message):
        callers.hear(callers.ask(get()), found(b'{"parts":%b}' % data))
