"""KV error map: both versions of the format, schedules, hostile documents, and the store with each node's map."""

from __future__ import annotations

import json
import math
import sys

import pytest
from hypothesis import given, strategies as st

from tests.rows import rows
from triclinium_core.retry import couchbase
from triclinium_core.retry.couchbase.tables.error_map import (
    ERROR_MAP_ENTRIES_MAX,
    ERROR_MAP_SIZE_BYTES_MAX,
    RETRY_ATTRIBUTES,
    Attribute,
    RetryAlgorithm,
    RetrySpecification,
)
from triclinium_core.shown import SERVER_TEXT_MAX, one_line, shown

A = Attribute
CONSTANT, LINEAR, EXPONENTIAL = RetryAlgorithm.CONSTANT, RetryAlgorithm.LINEAR, RetryAlgorithm.EXPONENTIAL

ATTRIBUTES_OF_RFC_0013 = {
    "item-only",
    "invalid-input",
    "fetch-config",
    "conn-state-invalidated",
    "auth",
    "special-handling",
    "support",
    "temp",
    "internal",
    "retry-now",
    "retry-later",
    "subdoc",
    "dcp",
    "auto-retry",
}
ATTRIBUTES_OF_VERSION_2 = {
    "item-deleted",
    "item-locked",
    "no-retry",
    "rate-limit",
    "success",
    "system-constraint",
}


def document(errors: object = None, *, version: object = 2, revision: object = 9, **more: object) -> str:
    """Return an error map in the form that a node sends."""
    return json.dumps({"version": version, "revision": revision, "errors": {} if errors is None else errors, **more})


def row(*attributes: object, **more: object) -> dict[str, object]:
    """Return one entry of a map, as decoded JSON."""
    return {"name": "NEWS", "desc": "Something new.", "attrs": list(attributes), **more}


def retry_of(retry: object) -> RetrySpecification | None:
    """Return the schedule that the parser reads from a ``retry`` object."""
    return couchbase.parse_entry(row("auto-retry", retry=retry)).retry


def test_version_2() -> None:
    """Attributes that only version 2 of the format has are read."""
    errors = {
        "0": {"name": "FINE", "desc": "All is well.", "attrs": ["success"]},
        "9": {"name": "SHUT", "desc": "Somebody holds it.", "attrs": ["item-locked", "item-only", "retry-now"]},
        "35": {"name": "FULL", "desc": "No room.", "attrs": ["system-constraint", "no-retry", "rate-limit"]},
        "d3": {"name": "BURIED", "desc": "It is gone.", "attrs": ["item-deleted", "subdoc", "special-handling"]},
    }
    parsed = couchbase.parse_error_map(document(errors))

    assert (2, 9) == (parsed.version, parsed.revision)
    assert {0x00, 0x09, 0x35, 0xD3} == set(parsed.entries)
    assert frozenset({A.SUCCESS}) == parsed.entries[0x00].attributes
    assert frozenset({A.ITEM_LOCKED, A.ITEM_ONLY, A.RETRY_NOW}) == parsed.entries[0x09].attributes
    assert frozenset({A.SYSTEM_CONSTRAINT, A.NO_RETRY, A.RATE_LIMIT}) == parsed.entries[0x35].attributes
    assert frozenset({A.ITEM_DELETED, A.SUBDOC, A.SPECIAL_HANDLING}) == parsed.entries[0xD3].attributes


def test_the_attributes_are_those_of_both_versions() -> None:
    """The known attributes are exactly the attributes of the RFC and of version 2."""
    assert ATTRIBUTES_OF_RFC_0013 | ATTRIBUTES_OF_VERSION_2 == {str(attribute) for attribute in Attribute}
    assert {"retry-now", "retry-later", "auto-retry"} == set(RETRY_ATTRIBUTES)
    assert 2 == couchbase.ERROR_MAP_VERSION_MAX


@rows("attribute", Attribute)
def test_indicates_retry(attribute: Attribute) -> None:
    """Three attributes permit a retry; ``temp`` does not (decision C13)."""
    expected = attribute in {"retry-now", "retry-later", "auto-retry"}

    assert expected is couchbase.parse_entry(row(attribute, "temp")).indicates_retry


def test_the_examples_of_the_rfc() -> None:
    """The examples of RFC 0013 are parsed; the third has no schedule, because its fields are not inside ``retry``."""
    both = frozenset({A.AUTO_RETRY, A.TEMP})
    attrs = ["auto-retry", "temp"]
    parsed = couchbase.parse_error_map(
        document(
            {
                "fff0": {
                    "name": "DUMMY_ERROR_RETRY_CONSTANT",
                    "desc": "Dummy, constant.",
                    "attrs": attrs,
                    "retry": {"strategy": "constant", "interval": 25, "after": 10, "max-duration": 1500},
                },
                "fff1": {
                    "name": "DUMMY_ERROR_RETRY_LINEAR",
                    "desc": "Dummy, linear.",
                    "attrs": attrs,
                    "retry": {"strategy": "linear", "interval": 10, "after": 10, "max-duration": 1500, "ceil": 200},
                },
                "fff2": {
                    "name": "DUMMY_ERROR_RETRY_EXPONENTIAL",
                    "desc": "Dummy, exponential.",
                    "attrs": attrs,
                    "interval": 2,
                    "after": 10,
                    "max-duration": 1500,
                    "ceil": 500,
                },
            }
        )
    )

    assert {
        0xFFF0: couchbase.ErrorMapEntry(
            "DUMMY_ERROR_RETRY_CONSTANT", "Dummy, constant.", both, RetrySpecification(CONSTANT, 25, 10, 1500)
        ),
        0xFFF1: couchbase.ErrorMapEntry(
            "DUMMY_ERROR_RETRY_LINEAR", "Dummy, linear.", both, RetrySpecification(LINEAR, 10, 10, 1500, 200)
        ),
        0xFFF2: couchbase.ErrorMapEntry("DUMMY_ERROR_RETRY_EXPONENTIAL", "Dummy, exponential.", both, None),
    } == parsed.entries
    assert parsed.entries[0xFFF2].indicates_retry


@rows(
    ("specification", "delays_ms"),
    [
        (RetrySpecification(CONSTANT, 25, 10), [10, 25, 25, 25]),
        (RetrySpecification(CONSTANT, 25, 10, ceil_ms=5), [10, 25, 25]),
        (RetrySpecification(CONSTANT, 0, 0), [0, 0, 0]),
        (RetrySpecification(LINEAR, 10, 3), [3, 10, 20, 30, 40]),
        (RetrySpecification(LINEAR, 10, 3, ceil_ms=25), [3, 10, 20, 25, 25]),
        (RetrySpecification(LINEAR, 10, 300, ceil_ms=25), [300, 10, 20, 25]),
        (RetrySpecification(LINEAR, 10, 3, ceil_ms=0), [3, 0, 0]),
        (RetrySpecification(EXPONENTIAL, 2, 10), [10, 2, 4, 8, 16, 32]),
        (RetrySpecification(EXPONENTIAL, 10, 1, ceil_ms=500), [1, 10, 100, 500, 500]),
        (RetrySpecification(EXPONENTIAL, 1, 7), [7, 1, 1, 1]),
        (RetrySpecification(EXPONENTIAL, 0, 7), [7, 0, 0]),
    ],
)
def test_delays(specification: RetrySpecification, delays_ms: list[int]) -> None:
    """The first delay is ``after``; later ones follow the algorithm, up to ``ceil`` (decision C15)."""
    assert [delay / 1000 for delay in delays_ms] == [specification.delay(r) for r in range(len(delays_ms))]


@rows("algorithm", [LINEAR, EXPONENTIAL])
@rows("retry_attempts", [63, 64, 65, 10**4, 10**9])
def test_schedules_do_not_overflow(algorithm: RetryAlgorithm, retry_attempts: int) -> None:
    """For the largest numbers the delay is one day without a ceiling, and the ceiling if there is one."""
    largest = 2**63 - 1

    assert 86_400.0 == RetrySpecification(algorithm, largest, largest).delay(retry_attempts)
    assert 0.25 == RetrySpecification(algorithm, largest, largest, ceil_ms=250).delay(retry_attempts)
    # The smallest interval that grows reaches the largest ceiling before the exponent is clamped.
    assert largest / 1000 == RetrySpecification(EXPONENTIAL, 2, 0, ceil_ms=largest).delay(retry_attempts)


@rows(
    ("retry", "expected"),
    [
        ({"strategy": "constant", "interval": 1, "after": 2}, RetrySpecification(CONSTANT, 1, 2)),
        ({"strategy": "linear", "interval": 0, "after": 0}, RetrySpecification(LINEAR, 0, 0)),
        (
            {"strategy": "exponential", "interval": 1, "after": 2, "max-duration": 3, "ceil": 4},
            RetrySpecification(EXPONENTIAL, 1, 2, 3, 4),
        ),
        (
            {"strategy": "constant", "interval": 1, "after": 2, "max-duration": 0, "ceil": 0},
            RetrySpecification(CONSTANT, 1, 2, None, 0),
        ),
        (
            {"strategy": "constant", "interval": 1, "after": 2, "max-duration": None, "ceil": None, "floor": "x"},
            RetrySpecification(CONSTANT, 1, 2),
        ),
        (
            {"strategy": "constant", "interval": 2**63 - 1, "after": 2**63 - 1},
            RetrySpecification(CONSTANT, 2**63 - 1, 2**63 - 1),
        ),
    ],
)
def test_retry_objects(retry: object, expected: RetrySpecification) -> None:
    """Optional fields may be missing, a max-duration of 0 means no limit, and ``floor`` is ignored (decision C15)."""
    assert expected == retry_of(retry)


NO_ALGORITHMS: list[object] = [None, 1, True, "", "Linear", "quadratic", [], ["linear"], {}]
NO_DURATIONS: list[object] = [-1, 0.5, 10.0, "10", True, [], {}, 2**63, 10**300, -(10**300)]
GOOD_RETRY = {"strategy": "linear", "interval": 10, "after": 10, "max-duration": 1500, "ceil": 200}


@rows(
    "retry",
    [
        *(None, [], "linear", 1, True, {}, [GOOD_RETRY]),
        *(
            {key: value for key, value in GOOD_RETRY.items() if key != name}
            for name in ("strategy", "interval", "after")
        ),
        *({**GOOD_RETRY, "strategy": value} for value in NO_ALGORITHMS),
        *(
            {**GOOD_RETRY, name: value}
            for name in ("interval", "after", "max-duration", "ceil")
            for value in NO_DURATIONS
        ),
    ],
)
def test_an_invalid_schedule_is_dropped(retry: object) -> None:
    """If one field of a schedule is invalid, the entry has no schedule but keeps its attributes (decision C16)."""
    entry = couchbase.parse_entry(row("auto-retry", retry=retry))

    assert (None, True) == (entry.retry, entry.indicates_retry)


@rows(
    ("retry", "expected"),
    [
        (None, None),
        ({}, None),
        ({"strategy": None}, None),
        ({"strategy": ""}, None),
        ({"strategy": 5}, None),
        ({"strategy": ["fibonacci"]}, None),
        (GOOD_RETRY, None),
        ({"strategy": "linear"}, None),
        ({"strategy": "fibonacci"}, "fibonacci"),
        ({**GOOD_RETRY, "strategy": "Linear"}, "Linear"),
        ({**GOOD_RETRY, "strategy": "a\nb\x1b"}, "a b\\x1b"),
    ],
)
def test_unknown_algorithms(retry: object, expected: str | None) -> None:
    """An unknown algorithm is kept as printable text; a missing or incomplete object gives no name (decision C16)."""
    entry = couchbase.parse_entry(row("auto-retry", retry=retry))

    assert (expected, True) == (entry.unknown_algorithm, entry.indicates_retry)


def test_unknown_things_are_ignored() -> None:
    """A map with unknown attributes and fields is valid."""
    errors = {"7ff0": row("temp", "no-such-attribute", "", "TEMP", more=[1, 2], retry={**GOOD_RETRY, "more": {}})}
    parsed = couchbase.parse_error_map(document(errors, more={"x": None}))

    assert frozenset({A.TEMP}) == parsed.entries[0x7FF0].attributes
    assert RetrySpecification(LINEAR, 10, 10, 1500, 200) == parsed.entries[0x7FF0].retry


def test_optional_parts() -> None:
    """An entry needs only its attributes; a map may be empty, and its text may be bytes."""
    assert couchbase.ErrorMapEntry("", "", frozenset({A.TEMP})) == couchbase.parse_entry({"attrs": ["temp", "temp"]})
    assert couchbase.ErrorMap(1, 4, {}) == couchbase.parse_error_map(document({}, version=1, revision=4).encode())


@rows(
    ("code", "status"),
    [("0", 0), ("00", 0), ("7fff", 0x7FFF), ("8000", 0x8000), ("fff2", 0xFFF2), ("FFF2", 0xFFF2), ("ffff", 0xFFFF)],
)
def test_codes(code: str, status: int) -> None:
    """A code is an unsigned hexadecimal number of at most 16 bits."""
    assert [status] == list(couchbase.parse_error_map(document({code: row()})).entries)


NO_CODES = [
    *("", "10000", "00001", "0x1", "-1", "+1", " 1", "1 ", "1_0", "g", "é", "\u0661", "\uff11", "\ud800", "1\n"),
    "x" * 1000,
]
NO_INTS: list[object] = [None, "2", 2.0, 1.5, True, False, [], [2], {}]
NO_TEXTS: list[object] = [None, 1, 1.5, True, [], ["x"], {}]
NO_OBJECTS: list[object] = [None, [], "x", 1, 1.5, True, [{}]]
NO_ARRAYS: list[object] = [None, "temp", 1, True, {"temp": True}]


def other(**fields: object) -> str:
    """Return an error map with changed fields."""
    return json.dumps({"version": 2, "revision": 9, "errors": {}, **fields})


@rows(
    ("text", "where"),
    [
        *((json.dumps(root), "the document is ") for root in NO_OBJECTS),
        *((other(**{name: value}), f"{name} is ") for name in ("version", "revision") for value in NO_INTS),
        *(
            (json.dumps({"version": 2, "revision": 9, "errors": {}, name: None}), name)
            for name in ("version", "errors")
        ),
        (other(version=1.5), "version is a number, expected a whole number"),
        *((other(version=version), f"version {shown(version)}") for version in (0, 3, -1, 10**4000)),
        *((other(revision=revision), f"revision {shown(revision)}") for revision in (-1, 2**63, 10**4000)),
        *((other(errors=errors), "errors is ") for errors in NO_OBJECTS),
        *((document({"1": row(), code: row()}), repr(one_line(code))) for code in NO_CODES),
        *(
            (document({first: row(), second: row()}), f"status {second} ")
            for first, second in (("1", "01"), ("0001", "1"), ("ab", "AB"), ("fff2", "FFF2"))
        ),
        *((document({"1": row(), "7ff0": entry}), "errors[7ff0] is ") for entry in NO_OBJECTS),
        *(
            (document({"7ff0": {**row(), name: value}}), f"errors[7ff0].{name} is ")
            for name in ("name", "desc")
            for value in NO_TEXTS
        ),
        *((document({"7ff0": {**row(), "attrs": value}}), "errors[7ff0].attrs is ") for value in NO_ARRAYS),
        (document({"7ff0": {"name": "NEWS"}}), "errors[7ff0].attrs is "),
        *((document({"7ff0": row("temp", value)}), "an item of errors[7ff0].attrs is ") for value in NO_TEXTS),
    ],
)
def test_corrupt_maps(text: str, where: str) -> None:
    """A corrupt map is refused completely, and the error has the path or the value in one short line."""
    with pytest.raises(couchbase.MalformedErrorMap) as caught:
        couchbase.parse_error_map(text)

    assert str(caught.value).startswith(where)
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize(
    "text",
    [
        *("", " ", "not json", "{", '{"version": 2', document() + "x", document() + document(), "'", "\ud800"),
        *(b"", b"\x00", b"\xff\xfe\xfa", b"\xff" * 100),
        "[" * 100_000,
        '{"a":' * 25_000,
        "[" * 60_000 + "]" * 60_000,
        '{"version": NaN, "revision": 1, "errors": {}}',
        '{"version": 2, "revision": Infinity, "errors": {}}',
        '{"version": 2, "revision": 1, "errors": {}, "more": -Infinity}',
        '{"version": 2, "revision": ' + "9" * 5000 + ', "errors": {}}',
    ],
    ids=lambda text: repr(text[:20]),
)
def test_not_json(text: str | bytes) -> None:
    """A document that is not JSON, or is nested too deeply, raises MalformedErrorMap, which is a ValueError."""
    with pytest.raises(ValueError, match="^not JSON: ") as caught:
        couchbase.parse_error_map(text)

    assert isinstance(caught.value, couchbase.MalformedErrorMap)


def entries(count: int) -> str:
    """Return an error map with ``count`` statuses."""
    errors = ",".join(f'"{code:x}":{{"attrs":["temp"]}}' for code in range(count))
    return f'{{"version":2,"revision":9,"errors":{{{errors}}}}}'


def test_limits() -> None:
    """A map of the maximum size or number of entries is accepted, and a larger map is refused."""
    padded = document() + " " * (ERROR_MAP_SIZE_BYTES_MAX - len(document()))

    assert couchbase.ErrorMap(2, 9, {}) == couchbase.parse_error_map(padded)
    assert range(ERROR_MAP_ENTRIES_MAX) == range(len(couchbase.parse_error_map(entries(ERROR_MAP_ENTRIES_MAX)).entries))
    for text, size in (
        (padded + " ", f"its length is {ERROR_MAP_SIZE_BYTES_MAX + 1};"),
        (b"[" * 10 * 1024 * 1024, f"its length is {10 * 1024 * 1024};"),
        (entries(ERROR_MAP_ENTRIES_MAX + 1), f"{ERROR_MAP_ENTRIES_MAX + 1} entries"),
    ):
        with pytest.raises(couchbase.MalformedErrorMap, match=f"^{size}"):
            couchbase.parse_error_map(text)


def test_texts_are_cut() -> None:
    """A name, description or unknown algorithm that is too long is shortened."""
    name, text, algorithm = "N" * 10_000, "d" * 10_000, "x" * 10**6
    entry = couchbase.parse_entry({"name": name, "desc": text, "attrs": [], "retry": {"strategy": algorithm}})

    assert (one_line(name), one_line(text)) == (entry.name, entry.description)
    assert SERVER_TEXT_MAX == len(entry.unknown_algorithm or "")


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=10,
)
statuses = st.fixed_dictionaries(
    {"attrs": st.lists(st.sampled_from([*map(str, Attribute), "else"]) | json_values, max_size=4)},
    optional={
        "name": st.text(max_size=5) | json_values,
        "desc": st.text(max_size=5) | json_values,
        "retry": st.fixed_dictionaries(
            {
                "strategy": st.sampled_from(["constant", "linear", "exponential"]) | json_values,
                "interval": st.integers(0, 2**64) | json_values,
                "after": st.integers(0, 2**64) | json_values,
            },
            optional={"max-duration": st.integers(-1) | json_values, "ceil": st.integers(-1) | json_values},
        ),
    },
)
documents = st.fixed_dictionaries(
    {
        "version": st.integers(1, 2) | json_values,
        "revision": st.integers(0, 2**63 - 1) | json_values,
        "errors": st.dictionaries(st.text("0123456789abcdefAFx", max_size=5), statuses | json_values, max_size=4)
        | json_values,
    }
)


@given(documents.map(json.dumps) | json_values.map(json.dumps) | st.text() | st.binary(), st.integers(0, 10**9))
def test_only_documented_errors(text: str | bytes, retry_attempts: int) -> None:
    """Any document is either refused as corrupt or gives a map whose parts are all valid."""
    try:
        parsed = couchbase.parse_error_map(text)
    except couchbase.MalformedErrorMap as error:
        assert str(error)
        return

    assert 1 <= parsed.version <= 2
    for status, entry in parsed.entries.items():
        assert 0 <= status <= 0xFFFF
        assert entry.attributes <= set(Attribute)
        if entry.retry is not None:
            assert 0 <= entry.retry.delay(retry_attempts) < math.inf
            assert entry.retry.max_duration_ms is None or 0 < entry.retry.max_duration_ms <= sys.maxsize


def error_map(revision: int, name: str = "NEWS") -> couchbase.ErrorMap:
    """Return a map with one entry."""
    return couchbase.ErrorMap(2, revision, {0x7FF0: couchbase.ErrorMapEntry(name, "", frozenset())})


def test_store_by_node() -> None:
    """Each node has its own map, and the store looks a status up in the map of the node that sent the status."""
    store = couchbase.ErrorMapStore()
    store.load("a:11210", error_map(1, "of a"))
    store.load("b:11210", error_map(1, "of b"))
    names = [entry.name for node in ("a:11210", "b:11210") if (entry := store.entry(node, 0x7FF0)) is not None]

    assert ["of a", "of b"] == names
    assert store.entry("c:11210", 0x7FF0) is None
    assert store.entry(None, 0x7FF0) is None
    assert store.entry("a:11210", 0x7FF1) is None


@rows(("first", "second", "kept"), [(1, 2, "second"), (2, 1, "first"), (2, 2, "second"), (-1, 0, "second")])
def test_store_by_revision(first: int, second: int, kept: str) -> None:
    """For each node the store keeps the map with the higher revision, or the newer of equal ones (decision C19)."""
    store = couchbase.ErrorMapStore()
    store.load("a:11210", error_map(first, "first"))
    store.load("a:11210", error_map(second, "second"))

    assert error_map(9, kept).entries[0x7FF0] == store.entry("a:11210", 0x7FF0)
