"""The RFC map names only what is there, and has a place for every section it claims to cover."""

from __future__ import annotations

import re

import pytest

from tests.docs.named_tests import TEST_FOLDERS, exists, named
from tests.docs.pages import DOCS, ROOT, rows_of
from tests.rows import rows

PAGE = DOCS / "rfc_map.md"

SOURCE_FOLDERS = (ROOT / "core" / "triclinium_core", ROOT / "trio_client" / "triclinium")

ROWS = [row for row in rows_of(PAGE) if row[0] != "section"]

SECTIONS_OF_0049 = (
    "(No) Reordering Guarantees",
    "Best Effort Retry vs. Fail Fast",
    "Client Dispatch",
    "Network Time",
    "Response Received",
    "Request Annotation",
    "Retry Strategies",
    "Accessible Context in the RetryStrategy",
    "Best Effort",
    "Fail Fast (Strict)",
    "Fail Fast (Terminal Errors)",
    "RetryReason",
    "Retry Orchestration",
    "Controlled Backoff for Always Retry",
    "Capping the Retry Duration",
    "KV Error Map Handling",
    "Idempotent Operation List",
    "Response Code Retry List, KV",
)
SECTIONS_OF_0013 = (
    "Control Flow",
    "Negotiation",
    "Getting the Error Map",
    "Parsing the Error Map",
    "Handling Error Attributes",
    "Error Attributes",
    "Retry Intervals",
    "Example Definition",
    "Processing Order Example",
    "Reserved Ranges",
)


@rows("row", ROWS)
def test_names_what_is_there(row: list[str]) -> None:
    """Every source and every test of the row exists."""
    _, sources, tests, _ = row

    assert [] == [name for name in named(sources) if not exists(name, SOURCE_FOLDERS)]
    assert [] == [name for name in named(tests) if not exists(name, TEST_FOLDERS)]


@rows("row", ROWS)
def test_what_is_carried_out_is_tested(row: list[str]) -> None:
    """A row with sources has tests, and a row without any says why."""
    _, sources, tests, deviation = row

    assert not named(sources) or named(tests)
    assert named(sources) or deviation


@pytest.mark.parametrize(("rfc", "sections"), [("0049", SECTIONS_OF_0049), ("0013", SECTIONS_OF_0013)])
def test_covers_every_section(rfc: str, sections: tuple[str, ...]) -> None:
    """Each section that says what to do has its row, under its RFC."""
    (part,) = re.findall(rf"^## RFC {rfc}.*?(?=^## |\Z)", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)

    assert [] == [section for section in sections if f"\n| {section} |" not in part]
