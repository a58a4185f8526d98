"""Operations that ``lookup_in`` and ``mutate_in`` submit, and their results."""

from __future__ import annotations

import triclinium
from tests.rows import rows
from tests.trio_client._collection.test_collection import CAS, HOUR, PEOPLE, Call, submit
from triclinium_core.error_context import ErrorContext
from triclinium_core.kv.operation.document_operations import JSON_TRANSCODER, Operation
from triclinium_core.kv.operation.subdocument.specs import EncodedMutation
from triclinium_core.kv.operation.subdocument.subdocument_requests import LookupIn, MutateIn
from triclinium_core.kv.wire.subdocument import PathFlag, PathOpcode

RAW = triclinium.RawJsonTranscoder()
GET = triclinium.subdocument.LookupInSpec.get("address.city")
FOUND = triclinium.subdocument.LookupInResult(CAS, (GET,), ((0, b'"London"'),), JSON_TRANSCODER, ErrorContext())
CHANGED = triclinium.subdocument.MutateInResult(CAS, (None,), JSON_TRANSCODER)
UPSERT = EncodedMutation(PathOpcode.UPSERT, PathFlag.CREATE_PARENTS, "a.b", b'{"c":1}')
SPEC = triclinium.subdocument.MutateInSpec.upsert("a.b", {"c": 1}, create_parents=True)
RAW_SPEC = triclinium.subdocument.MutateInSpec.upsert("a.b", b'{"c":1}', create_parents=True)


@rows(
    ("expected", "call"),
    [
        (LookupIn(PEOPLE, "ada", (GET,)), lambda c: c.lookup_in("ada", [GET])),
        (LookupIn(PEOPLE, "ada", (GET, GET), True, RAW), lambda c: c.lookup_in("ada", (GET, GET), access_deleted=True, transcoder=RAW)),
        (MutateIn(PEOPLE, "ada", (UPSERT,)), lambda c: c.mutate_in("ada", [SPEC])),
        (MutateIn(PEOPLE, "ada", (UPSERT,), transcoder=RAW), lambda c: c.mutate_in("ada", [RAW_SPEC], transcoder=RAW)),
        (MutateIn(PEOPLE, "ada", (UPSERT,), CAS, 3600), lambda c: c.mutate_in("ada", (SPEC,), cas=CAS, expiry=HOUR)),
        (
            MutateIn(PEOPLE, "ada", (UPSERT,), preserve_expiry=True, access_deleted=True),
            lambda c: c.mutate_in("ada", [SPEC], preserve_expiry=True, access_deleted=True),
        ),
        (
            MutateIn(PEOPLE, "ada", (UPSERT,), durability=triclinium.DurabilityLevel.MAJORITY),
            lambda c: c.mutate_in("ada", [SPEC], durability=triclinium.DurabilityLevel.MAJORITY),
        ),
        *(
            (
                MutateIn(PEOPLE, "ada", (UPSERT,), store_semantics=semantics),
                lambda c, semantics=semantics: c.mutate_in("ada", [SPEC], store_semantics=semantics),
            )
            for semantics in triclinium.subdocument.StoreSemantics
        ),
    ],
)  # fmt: skip
async def test_a_method_submits_its_operation(expected: Operation, call: Call) -> None:
    """Every argument is a field of the submitted operation, and values are encoded by the transcoder."""
    result = FOUND if isinstance(expected, LookupIn) else CHANGED
    (submitted,), returned = await submit(call, result)

    assert (expected, result) == (submitted.operation, returned)


async def test_later_changes_of_the_specs_are_ignored() -> None:
    """A change to the list of specs after the call does not affect the operation."""
    specs = [GET]
    (submitted,), _ = await submit(lambda c: c.lookup_in("ada", specs), FOUND)
    specs.clear()

    assert LookupIn(PEOPLE, "ada", (GET,)) == submitted.operation
