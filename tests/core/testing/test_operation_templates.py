"""Templates of operations in random histories."""

from __future__ import annotations

from msgspec.structs import replace

from tests.core.testing.asked import HOTELS, TRAVEL, exists, get, lock, prepend, remove, touch, upsert
from tests.core.testing.callers import NEW_CAS, OLD_CAS, two_versions
from tests.rows import rows
from triclinium_core.kv.operation import document_operations
from triclinium_core.kv.operation.durability import DurabilityLevel
from triclinium_core.testing.operation_templates import OperationTemplate, choices_of, draw_template
from triclinium_core.testing.oracle.model import Model
from triclinium_core.testing.oracle.submissions import Place
from triclinium_core.testing.oracle.unique_values import COUNTERS_MAX
from triclinium_core.transcoding.flags import BINARY_FLAGS

TEXT, COUNTER = Place(TRAVEL, "ada"), Place(HOTELS, "hits")
MAJORITY = DurabilityLevel.MAJORITY


@rows(
    ("template", "operation"),
    [
        (OperationTemplate("get", TEXT), get()),
        (OperationTemplate("exists", TEXT), exists()),
        (OperationTemplate("get_and_touch", TEXT, expiry=3), document_operations.GetAndTouch(TRAVEL, "ada", 3)),
        (OperationTemplate("get_and_lock", TEXT, lock_time=3), lock(3)),
        (OperationTemplate("unlock", TEXT, cas=0), document_operations.Unlock(TRAVEL, "ada", NEW_CAS)),
        (OperationTemplate("touch", TEXT, expiry=3), touch(3)),
        (OperationTemplate("remove", TEXT), remove()),
        (OperationTemplate("remove", TEXT, cas=0), remove(NEW_CAS)),
        (OperationTemplate("remove", TEXT, cas=1), remove(OLD_CAS)),
        (OperationTemplate("remove", TEXT, cas=2), remove(NEW_CAS)),
        (OperationTemplate("remove", TEXT, durability=MAJORITY), replace(remove(), durability=MAJORITY)),
        (OperationTemplate("get", TEXT, durability=MAJORITY), get()),
        (OperationTemplate("upsert", TEXT, durability=MAJORITY), replace(upsert(b"<3>"), durability=MAJORITY)),
        (
            OperationTemplate("insert", TEXT, expiry=3, flag=True),
            document_operations.Insert(TRAVEL, "ada", b"<3>", BINARY_FLAGS, 3),
        ),
        (OperationTemplate("upsert", TEXT, expiry=3), upsert(b"<3>", 3)),
        (OperationTemplate("upsert", TEXT, flag=True), upsert(b"<3>", preserve_expiry=True)),
        (
            OperationTemplate("replace", TEXT, cas=0, expiry=3, flag=True),
            document_operations.Replace(TRAVEL, "ada", b"<3>", BINARY_FLAGS, 3, True, NEW_CAS),
        ),
        (OperationTemplate("append", TEXT, cas=0), document_operations.Append(TRAVEL, "ada", b"<3>", NEW_CAS)),
        (OperationTemplate("prepend", TEXT), prepend(b"<3>")),
        (
            OperationTemplate("increment", COUNTER, flag=True, expiry=3),
            document_operations.Increment(HOTELS, "hits", 1, 1 << 48, 3),
        ),
        (OperationTemplate("decrement", COUNTER), document_operations.Decrement(HOTELS, "hits", 1)),
    ],
)
def test_making_an_operation(template: OperationTemplate, operation: document_operations.Operation) -> None:
    """A template makes an operation with its drawn choices, a new unique value and a known CAS."""
    assert operation == template.make(two_versions())


def test_making_without_a_known_cas() -> None:
    """Without a known CAS, an unlock becomes a read, and a write gets no CAS."""
    assert document_operations.Get(TRAVEL, "ada") == OperationTemplate("unlock", TEXT, cas=0).make(Model())
    assert document_operations.Get(HOTELS, "hits") == OperationTemplate("unlock", COUNTER, cas=0).make(two_versions())
    assert document_operations.Remove(TRAVEL, "ada") == OperationTemplate("remove", TEXT, cas=0).make(Model())


@rows("kind", [document_operations.Increment, document_operations.Decrement])
def test_making_without_unique_counts(kind: type[document_operations.Count]) -> None:
    """An increment or decrement becomes a read once the distinguishable counts run out."""
    model = Model()
    made = [OperationTemplate(kind.name, COUNTER).make(model) for _ in range(COUNTERS_MAX + 1)]

    assert {kind} == {type(operation) for operation in made[:-1]}
    assert document_operations.Get(HOTELS, "hits") == made[-1]
    assert document_operations.Touch(HOTELS, "hits", 0) == OperationTemplate("touch", COUNTER).make(model)


def test_drawing_a_template() -> None:
    """Only the fields that a kind can vary are drawn."""
    assert OperationTemplate("get", TEXT) == draw_template("get", TEXT, lambda choices: choices[-1])
    assert OperationTemplate("upsert", TEXT, expiry=3600, flag=True) == draw_template(
        "upsert", TEXT, lambda choices: choices[-1]
    )
    assert {"expiry", "flag", "cas"} == set(choices_of("replace"))
