"""Error map of a fake node, compared with the map of a real node, and parsed by our parser."""

from __future__ import annotations

import json

import pytest

from tests.rows import rows
from triclinium_core import errors
from triclinium_core.retry.couchbase import Status, parse_error_map
from triclinium_core.retry.couchbase.tables.error_map import Attribute, RetryAlgorithm, RetrySpecification
from triclinium_core.testing.fakes.error_map import ERROR_MAP, V2_ATTRIBUTES, ErrorMapDocument, ErrorMapRow

CODES_BY_ATTRIBUTE = {
    Attribute.RETRY_NOW: {0x09, 0x0D, 0x51, 0x85, 0x86},
    Attribute.RETRY_LATER: {0x0C, 0x30, 0x31, 0x33, 0x82, 0xA2, 0xA4},
    Attribute.NO_RETRY: {0x28, 0x29, 0x35, 0x36, 0x37, 0x38},
    Attribute.CONN_STATE_INVALIDATED: {0x08, 0x0A, 0x0B, 0x1F, 0x20, 0x25, 0x32, 0x84},
    Attribute.SPECIAL_HANDLING: {0x21, 0x23, 0x26, 0x27, 0xCC, 0xD3},
    Attribute.FETCH_CONFIG: {0x07, 0x0D},
    Attribute.AUTH: {0x1F, 0x20},
    Attribute.TEMP: {0x0C, 0x30, 0x31, 0x33, 0x82, 0x85, 0x86, 0x7FF0, 0x7FF1, 0x7FF2},
    Attribute.SUCCESS: {0x00, 0xA5, 0xA6, 0xA7, 0xCD},
    Attribute.AUTO_RETRY: {0x7FF0, 0x7FF1, 0x7FF2},
}
"""Statuses by attribute that affects decisions: those in the protocol's documentation, and three invented ones."""


@rows(("attribute", "codes"), CODES_BY_ATTRIBUTE.items())
def test_attributes_match_a_real_map(attribute: Attribute, codes: set[int]) -> None:
    """Exactly the statuses of a real map, and the invented ones, have the attribute."""
    entries = parse_error_map(ERROR_MAP.encode(2)).entries

    assert codes == {code for code, entry in entries.items() if attribute in entry.attributes}


def test_covers_every_status_that_servers_send() -> None:
    """The map has all statuses of the protocol, except one that only clients know, and three invented ones."""
    entries = parse_error_map(ERROR_MAP.encode(2)).entries

    assert set(Status) - {Status.SCOPE_SIZE_LIMIT_EXCEEDED} | {0x7FF0, 0x7FF1, 0x7FF2} == set(entries)
    assert all(entry.name and entry.description for entry in entries.values())


@pytest.mark.parametrize(
    ("code", "retry"),
    [
        (0x7FF0, RetrySpecification(RetryAlgorithm.CONSTANT, 10, 50, 500)),
        (0x7FF1, RetrySpecification(RetryAlgorithm.LINEAR, 2, 50, 500, 50)),
        (0x7FF2, RetrySpecification(RetryAlgorithm.EXPONENTIAL, 2, 50, 500, 200)),
    ],
)
@pytest.mark.parametrize("version", [1, 2])
def test_plans_retries_for_made_up_statuses(version: int, code: int, retry: RetrySpecification) -> None:
    """Each retry algorithm of RFC 0013 has a status, in both versions."""
    entry = parse_error_map(ERROR_MAP.encode(version)).entries[code]

    assert retry == entry.retry
    assert entry.indicates_retry


def test_version_1_lacks_the_newer_attributes() -> None:
    """Version 1 omits the attributes that it does not define, and is otherwise equal."""
    newer, older = (json.loads(ERROR_MAP.encode(version))["errors"] for version in (2, 1))

    assert newer.keys() == older.keys()
    for code, entry in newer.items():
        expected = [attribute for attribute in entry["attrs"] if attribute not in V2_ATTRIBUTES]
        assert {**entry, "attrs": expected} == older[code]
    assert ["temp", "retry-later", "rate-limit"] == newer["c"]["attrs"]
    assert ["temp", "retry-later"] == older["c"]["attrs"]


@pytest.mark.parametrize("codes", [(1, 1), (-1,), (0x10000,)], ids=str)
def test_refuses_impossible_rows(codes: tuple[int, ...]) -> None:
    """A duplicate row, or one that is not a status, raises InvalidArgumentException."""
    with pytest.raises(errors.InvalidArgumentException):
        ErrorMapDocument(revision=1, rows=tuple(ErrorMapRow(code, "NAME", "temp", "text") for code in codes))
