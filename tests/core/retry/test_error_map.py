"""The KV error map: both versions, schedules, hostile documents, and the store of all nodes' maps."""

from __future__ import annotations

import json
import math
import sys
from typing import Any

import pytest
from hypothesis import given, strategies as st

from tests.rows import rows
from triclinium_core.errors import InvalidArgumentException
from triclinium_core.retry import error_map as module
from triclinium_core.retry.error_map import (
    ERROR_MAP_ENTRIES_MAX,
    ERROR_MAP_SIZE_BYTES_MAX,
    ERROR_MAP_VERSION_MAX,
    RETRY_ATTRIBUTES,
    Attribute,
    ErrorMap,
    ErrorMapEntry,
    ErrorMapStore,
    MalformedErrorMap,
    RetryAlgorithm,
    RetrySpecification,
    parse_entry,
    parse_error_map,
)
from triclinium_core.shown import cut

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
    """Return a map as a node sends it."""
    return json.dumps({"version": version, "revision": revision, "errors": {} if errors is None else errors, **more})


def row(*attributes: object, **more: object) -> dict[str, object]:
    """Return one entry of a map as decoded JSON."""
    return {"name": "NEWS", "desc": "Something new.", "attrs": list(attributes), **more}


def retry_of(retry: object) -> RetrySpecification | None:
    """Return what is made of a ``retry`` object."""
    return parse_entry(row("auto-retry", retry=retry)).retry


def malformed(text: str | bytes) -> str:
    """Return what is said of a corrupt map."""
    with pytest.raises(MalformedErrorMap) as caught:
        parse_error_map(text)
    return str(caught.value)


def test_version_1() -> None:
    """The format of RFC 0013."""
    errors = {
        "1": {"name": "GONE", "desc": "There is no such thing.", "attrs": ["item-only"]},
        "86": {"name": "WAIT", "desc": "Not now.", "attrs": ["temp", "retry-now"]},
    }
    expected = ErrorMap(
        1,
        4,
        {
            0x01: ErrorMapEntry("GONE", "There is no such thing.", frozenset({A.ITEM_ONLY})),
            0x86: ErrorMapEntry("WAIT", "Not now.", frozenset({A.TEMP, A.RETRY_NOW})),
        },
    )

    assert expected == parse_error_map(document(errors, version=1, revision=4))
    assert expected == parse_error_map(document(errors, version=1, revision=4).encode())


def test_version_2() -> None:
    """The newer format adds attributes."""
    errors = {
        "0": {"name": "FINE", "desc": "All is well.", "attrs": ["success"]},
        "9": {"name": "SHUT", "desc": "Somebody holds it.", "attrs": ["item-locked", "item-only", "retry-now"]},
        "35": {"name": "FULL", "desc": "No room.", "attrs": ["system-constraint", "no-retry", "rate-limit"]},
        "d3": {"name": "BURIED", "desc": "It is gone.", "attrs": ["item-deleted", "subdoc", "special-handling"]},
    }
    parsed = parse_error_map(document(errors))

    assert (2, 9) == (parsed.version, parsed.revision)
    assert {0x00, 0x09, 0x35, 0xD3} == set(parsed.entries)
    assert frozenset({A.SUCCESS}) == parsed.entries[0x00].attributes
    assert frozenset({A.ITEM_LOCKED, A.ITEM_ONLY, A.RETRY_NOW}) == parsed.entries[0x09].attributes
    assert frozenset({A.SYSTEM_CONSTRAINT, A.NO_RETRY, A.RATE_LIMIT}) == parsed.entries[0x35].attributes
    assert frozenset({A.ITEM_DELETED, A.SUBDOC, A.SPECIAL_HANDLING}) == parsed.entries[0xD3].attributes


def test_the_attributes_are_those_of_both_versions() -> None:
    """The known attributes are the RFC's and version 2's, and no more."""
    assert ATTRIBUTES_OF_RFC_0013 | ATTRIBUTES_OF_VERSION_2 == {str(attribute) for attribute in Attribute}
    assert {"retry-now", "retry-later", "auto-retry"} == set(RETRY_ATTRIBUTES)
    assert 2 == ERROR_MAP_VERSION_MAX


@rows("attribute", Attribute)
def test_indicates_retry(attribute: Attribute) -> None:
    """Three attributes permit a retry, and ``temp`` is not among them (decision C13)."""
    expected = attribute in {"retry-now", "retry-later", "auto-retry"}

    assert expected is parse_entry(row(attribute, "temp")).indicates_retry


def test_the_examples_of_the_rfc() -> None:
    """RFC 0013 "Example Definition", its third one malformed: the fields stand outside ``retry``."""
    both = frozenset({A.AUTO_RETRY, A.TEMP})
    attrs = ["auto-retry", "temp"]
    parsed = parse_error_map(
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
        0xFFF0: ErrorMapEntry(
            "DUMMY_ERROR_RETRY_CONSTANT", "Dummy, constant.", both, RetrySpecification(CONSTANT, 25, 10, 1500)
        ),
        0xFFF1: ErrorMapEntry(
            "DUMMY_ERROR_RETRY_LINEAR", "Dummy, linear.", both, RetrySpecification(LINEAR, 10, 10, 1500, 200)
        ),
        0xFFF2: ErrorMapEntry("DUMMY_ERROR_RETRY_EXPONENTIAL", "Dummy, exponential.", both, None),
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
    """First ``after``, then ``interval``, ``interval * r`` or ``interval ** r``, at most ``ceil`` (decision C15)."""
    assert [delay / 1000 for delay in delays_ms] == [specification.delay(r) for r in range(len(delays_ms))]


@rows("algorithm", [LINEAR, EXPONENTIAL])
@rows("retry_attempts", [63, 64, 65, 10**4, 10**9])
def test_schedules_do_not_overflow(algorithm: RetryAlgorithm, retry_attempts: int) -> None:
    """The largest numbers give a day where there is no ceiling, else the ceiling, and no endless computation."""
    largest = 2**63 - 1

    assert 86_400.0 == RetrySpecification(algorithm, largest, largest).delay(retry_attempts)
    assert 0.25 == RetrySpecification(algorithm, largest, largest, ceil_ms=250).delay(retry_attempts)


def test_the_clamped_exponent_changes_nothing() -> None:
    """Even the smallest interval that grows has passed the largest ceiling before the exponent is clamped."""
    specification = RetrySpecification(EXPONENTIAL, 2, 0, ceil_ms=2**63 - 1)

    assert 2**62 / 1000 == specification.delay(62)
    assert (2**63 - 1) / 1000 == specification.delay(63) == specification.delay(64) == specification.delay(1000)


@pytest.mark.parametrize(
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
    """Optional fields may be missing, 0 for max-duration means none, and ``floor`` is ignored (decision C15)."""
    assert expected == retry_of(retry)


GOOD_RETRY = {"strategy": "linear", "interval": 10, "after": 10, "max-duration": 1500, "ceil": 200}


@pytest.mark.parametrize("retry", [None, [], "linear", 1, True, {}, [GOOD_RETRY]])
def test_a_retry_that_is_no_object(retry: object) -> None:
    """What is no object is no schedule; the attributes hold all the same (decision C16)."""
    entry = parse_entry(row("auto-retry", retry=retry))

    assert (None, True) == (entry.retry, entry.indicates_retry)


@pytest.mark.parametrize("name", ["strategy", "interval", "after"])
def test_a_retry_without_a_required_field(name: str) -> None:
    """Three fields are required."""
    assert retry_of(GOOD_RETRY) is not None
    assert retry_of({key: value for key, value in GOOD_RETRY.items() if key != name}) is None


@rows("value", [-1, 0.5, 10.0, "10", True, [], {}, 2**63, 10**300, -(10**300)])
@rows("name", ["interval", "after", "max-duration", "ceil"])
def test_a_retry_with_a_nonsensical_number(name: str, value: object) -> None:
    """One nonsensical number makes the whole schedule unusable: half of one would be a guess."""
    assert retry_of({**GOOD_RETRY, name: value}) is None


@pytest.mark.parametrize("value", [None, 1, True, "", "Linear", "quadratic", [], ["linear"], {}])
def test_a_retry_with_an_unknown_algorithm(value: object) -> None:
    """An algorithm that is not known makes no schedule."""
    assert retry_of({**GOOD_RETRY, "strategy": value}) is None


def test_unknown_things_are_ignored() -> None:
    """Unknown attributes and fields, wherever they stand, are no reason to give a map up."""
    errors = {"7ff0": row("temp", "no-such-attribute", "", "TEMP", more=[1, 2], retry={**GOOD_RETRY, "more": {}})}
    parsed = parse_error_map(document(errors, more={"x": None}))

    assert frozenset({A.TEMP}) == parsed.entries[0x7FF0].attributes
    assert RetrySpecification(LINEAR, 10, 10, 1500, 200) == parsed.entries[0x7FF0].retry


def test_name_and_description_may_be_missing() -> None:
    """The attributes are what counts."""
    assert ErrorMapEntry("", "", frozenset({A.TEMP})) == parse_entry({"attrs": ["temp", "temp"]})


def test_no_entries() -> None:
    """A map may be empty."""
    assert ErrorMap(2, 9, {}) == parse_error_map(document({}))


@pytest.mark.parametrize(
    ("code", "status"),
    [("0", 0), ("00", 0), ("7fff", 0x7FFF), ("8000", 0x8000), ("fff2", 0xFFF2), ("FFF2", 0xFFF2), ("ffff", 0xFFFF)],
)
def test_codes(code: str, status: int) -> None:
    """Codes are hexadecimal and unsigned: the upper half is as good as the lower."""
    assert [status] == list(parse_error_map(document({code: row()})).entries)


@rows(
    "code",
    [
        "",
        "10000",
        "00001",
        "0x1",
        "-1",
        "+1",
        " 1",
        "1 ",
        "1_0",
        "g",
        "é",
        "\u0661",
        "\uff11",
        "\ud800",
        "1\n",
        "x" * 1000,
    ],
)
def test_impossible_codes(code: str) -> None:
    """A status that no response can carry makes the map corrupt; the text repeats it, but not at any length."""
    text = malformed(document({"1": row(), code: row()}))

    assert f"{cut(code)!r} is not a 16-bit status in hexadecimal" == text


@pytest.mark.parametrize(("first", "second"), [("1", "01"), ("0001", "1"), ("ab", "AB"), ("fff2", "FFF2")])
def test_codes_that_stand_twice(first: str, second: str) -> None:
    """Two spellings of one status contradict each other."""
    assert f"status {second} stands twice" == malformed(document({first: row(), second: row()}))


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "not json",
        "{",
        '{"version": 2',
        document() + "x",
        document() + document(),
        "'",
        "\ud800",
        b"",
        b"\x00",
        b"\xff\xfe\xfa",
        b"\xff" * 100,
        "[" * 100_000,
        '{"a":' * 25_000,
        # How deep is too deep differs from one interpreter to the next.
        pytest.param("[" * 60_000 + "]" * 60_000, marks=pytest.mark.native),
        '{"version": NaN, "revision": 1, "errors": {}}',
        '{"version": 2, "revision": Infinity, "errors": {}}',
        '{"version": 2, "revision": 1, "errors": {}, "more": -Infinity}',
        '{"version": 2, "revision": ' + "9" * 5000 + ', "errors": {}}',
    ],
    ids=lambda text: repr(text[:20]),
)
def test_not_json(text: str | bytes) -> None:
    """What no JSON reader takes, or takes only to exhaust itself, is corrupt."""
    assert malformed(text).startswith("not JSON: ")


@pytest.mark.parametrize("root", [None, [], "map", 1, 1.5, True, [{}]])
def test_wrong_roots(root: object) -> None:
    """The document is an object."""
    assert f"the document is {type(root).__name__}, expected dict" == malformed(json.dumps(root))


NOT_WHOLE: list[object] = [None, "2", 2.0, 1.5, True, False, [], [2], {}]
NOT_TEXT: list[object] = [None, 1, 1.5, True, [], ["x"], {}]


@rows("value", NOT_WHOLE)
@rows("name", ["version", "revision"])
def test_wrong_numbers(name: str, value: object) -> None:
    """Version and revision are whole numbers; a bool or a float is none."""
    fields = {"version": 2, "revision": 9, name: value}

    assert f"{name} is {type(value).__name__}, expected int" == malformed(json.dumps({**fields, "errors": {}}))


@pytest.mark.parametrize("name", ["version", "revision", "errors"])
def test_missing_fields(name: str) -> None:
    """All three fields are required, and the text names the one that is missing."""
    fields = {"version": 2, "revision": 9, "errors": {}}
    del fields[name]

    assert malformed(json.dumps(fields)).startswith(f"{name} is NoneType, expected ")


@pytest.mark.parametrize("version", [0, 3, -1, 10**4000])
def test_versions_that_were_not_asked_for(version: int) -> None:
    """A version beyond the newest that was asked for may mean anything."""
    assert f"version {version}; asked for at most 2" == malformed(document(version=version))


@pytest.mark.parametrize("errors", [[], "x", 1, True, [{"1": {}}]])
def test_wrong_errors(errors: object) -> None:
    """The entries are an object, keyed by code."""
    assert f"errors is {type(errors).__name__}, expected dict" == malformed(document(errors))


@pytest.mark.parametrize("entry", [None, [], "x", 1, True, [row()]])
def test_wrong_entries(entry: object) -> None:
    """An entry is an object; the text names its code."""
    text = malformed(document({"1": row(), "7ff0": entry}))

    assert f"errors[7ff0] is {type(entry).__name__}, expected dict" == text


@rows("value", NOT_TEXT)
@rows("name", ["name", "desc"])
def test_wrong_texts(name: str, value: object) -> None:
    """Name and description are strings where they are there."""
    text = malformed(document({"7ff0": {**row(), name: value}}))

    assert f"errors[7ff0].{name} is {type(value).__name__}, expected str" == text


@pytest.mark.parametrize("value", [None, "temp", 1, True, {"temp": True}])
def test_wrong_attributes(value: object) -> None:
    """The attributes are an array, and required."""
    text = malformed(document({"7ff0": {**row(), "attrs": value}}))

    assert f"errors[7ff0].attrs is {type(value).__name__}, expected list" == text


@pytest.mark.parametrize("value", NOT_TEXT)
def test_wrong_attribute(value: object) -> None:
    """Every attribute is a string, also one after good ones."""
    text = malformed(document({"7ff0": row("temp", value)}))

    assert f"an item of errors[7ff0].attrs is {type(value).__name__}, expected str" == text


def test_attributes_must_be_there() -> None:
    """An entry without attributes says nothing, and is no entry."""
    with pytest.raises(MalformedErrorMap, match=r"^the entry\.attrs is NoneType, expected list$"):
        parse_entry({"name": "NEWS", "desc": "Something new."})


def test_ten_megabytes() -> None:
    """A map that is too large is refused before it is read."""
    size = 10 * 1024 * 1024

    assert f"{size} bytes; at most {ERROR_MAP_SIZE_BYTES_MAX} make sense" == malformed(b"[" * size)
    assert f"{size} bytes; at most {ERROR_MAP_SIZE_BYTES_MAX} make sense" == malformed("[" * size)


def test_the_largest_size() -> None:
    """The limit itself is still permitted, and one byte more is not."""
    text = document()
    padded = text + " " * (ERROR_MAP_SIZE_BYTES_MAX - len(text))

    assert ErrorMap(2, 9, {}) == parse_error_map(padded)
    assert malformed(padded + " ").startswith(f"{ERROR_MAP_SIZE_BYTES_MAX + 1} bytes")


def entries(count: int) -> str:
    """Return a map of so many statuses."""
    errors = ",".join(f'"{code:x}":{{"attrs":["temp"]}}' for code in range(count))
    return f'{{"version":2,"revision":9,"errors":{{{errors}}}}}'


def test_the_most_entries() -> None:
    """The limit itself is still permitted, and one more is not."""
    assert range(ERROR_MAP_ENTRIES_MAX) == range(len(parse_error_map(entries(ERROR_MAP_ENTRIES_MAX)).entries))
    assert malformed(entries(ERROR_MAP_ENTRIES_MAX + 1)).startswith(f"{ERROR_MAP_ENTRIES_MAX + 1} entries;")


def test_texts_are_cut() -> None:
    """What a server calls a status stands in errors."""
    entry = parse_entry({"name": "N" * 10_000, "desc": "d" * 10_000, "attrs": []})

    assert (cut("N" * 10_000), cut("d" * 10_000)) == (entry.name, entry.description)


def test_a_malformed_map_is_a_value_error() -> None:
    """Whoever parses a map from elsewhere may catch what parsers raise."""
    assert issubclass(MalformedErrorMap, ValueError)


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
        "revision": st.integers() | json_values,
        "errors": st.dictionaries(st.text("0123456789abcdefAFx", max_size=5), statuses | json_values, max_size=4)
        | json_values,
    }
)


@given(documents.map(json.dumps) | json_values.map(json.dumps) | st.text() | st.binary(), st.integers(0, 10**9))
def test_only_documented_errors(text: str | bytes, retry_attempts: int) -> None:
    """Any document is either refused as corrupt or gives a map that is well-formed in every part."""
    try:
        parsed = parse_error_map(text)
    except MalformedErrorMap as error:
        assert str(error)
        return

    assert 1 <= parsed.version <= 2
    for status, entry in parsed.entries.items():
        assert 0 <= status <= 0xFFFF
        assert entry.attributes <= set(Attribute)
        if entry.retry is not None:
            assert 0 <= entry.retry.delay(retry_attempts) < math.inf
            assert entry.retry.max_duration_ms is None or 0 < entry.retry.max_duration_ms <= sys.maxsize


def error_map(revision: int, name: str = "NEWS") -> ErrorMap:
    """Return a map with one entry."""
    return ErrorMap(2, revision, {0x7FF0: ErrorMapEntry(name, "", frozenset())})


def test_store_by_node() -> None:
    """Each node has its own map, and a status is looked up in the map of the node that sent it."""
    store = ErrorMapStore()
    store.load("a:11210", error_map(1, "of a"))
    store.load("b:11210", error_map(1, "of b"))
    names = [entry.name for node in ("a:11210", "b:11210") if (entry := store.entry(node, 0x7FF0)) is not None]

    assert ["of a", "of b"] == names
    assert error_map(1, "of a") == store.map_of("a:11210")
    assert store.map_of("c:11210") is None
    assert store.entry("c:11210", 0x7FF0) is None
    assert store.entry(None, 0x7FF0) is None
    assert store.entry("a:11210", 0x7FF1) is None


@pytest.mark.parametrize(
    ("first", "second", "kept"), [(1, 2, "second"), (2, 1, "first"), (2, 2, "second"), (-1, 0, "second")]
)
def test_store_by_revision(first: int, second: int, kept: str) -> None:
    """Of two maps of one node the higher revision counts, and of equals the newer (decision C19)."""
    store = ErrorMapStore()
    store.load("a:11210", error_map(first, "first"))
    store.load("a:11210", error_map(second, "second"))

    assert error_map({"first": first, "second": second}[kept], kept) == store.map_of("a:11210")


def test_revisions_of_other_nodes_do_not_count() -> None:
    """A node with an older map is believed for itself (RFC 0013: per node, not per cluster)."""
    store = ErrorMapStore()
    store.load("a:11210", error_map(9))
    store.load("b:11210", error_map(1))

    assert error_map(1) == store.map_of("b:11210")


def test_forget() -> None:
    """A node that left the cluster is forgotten; when it comes back, its revisions start anew."""
    store = ErrorMapStore()
    store.load("a:11210", error_map(9))
    store.forget("a:11210")
    store.forget("never seen")

    assert store.map_of("a:11210") is None

    store.load("a:11210", error_map(1))

    assert error_map(1) == store.map_of("a:11210")


def test_the_limits_have_room_for_every_status() -> None:
    """The size limit does not contradict the limit of entries."""
    assert module.ERROR_MAP_SIZE_BYTES_MAX == module.ERROR_MAP_ENTRIES_MAX * 128


@pytest.mark.parametrize("document", [5, None, ["{}"]])
def test_what_is_no_document(document: Any) -> None:
    """A caller's mistake, not a server's."""
    with pytest.raises(InvalidArgumentException) as caught:
        parse_error_map(document)

    assert "document" == caught.value.parameter
