"""The RFC map names only existing things, and has a row for every covered section."""

from __future__ import annotations

import json
import re

import pytest

from tests.docs.named_tests import TEST_FOLDERS, exists, named
from tests.docs.pages import DOCS, ROOT, decisions_of, rows_of
from tests.rows import rows

PAGE = DOCS / "rfc_map.md"
DECISIONS = "explanation/decisions"
CASES = ("tests/data/decisions.jsonl", "tests/data/failures.jsonl")

SOURCE_FOLDERS = (ROOT / "core" / "triclinium_core", ROOT / "trio_client" / "triclinium")

ROWS = [row for row in rows_of(PAGE) if row[0] != "section"]

SECTIONS_OF_0049 = """
    (No) Reordering Guarantees; Best Effort Retry vs. Fail Fast; Client Dispatch; Network Time; Response Received;
    Request Annotation; Retry Strategies; Accessible Context in the RetryStrategy; Best Effort; Fail Fast (Strict);
    Fail Fast (Terminal Errors); RetryReason; Retry Orchestration; Controlled Backoff for Always Retry; Capping the
    Retry Duration; KV Error Map Handling; Idempotent Operation List; Response Code Retry List, KV; Response Code
    Retry List, Query and Analytics; Response Code Retry List, Search and View
"""
SECTIONS_OF_0013 = """
    Control Flow; Negotiation; Getting the Error Map; Parsing the Error Map; Handling Error Attributes; Error
    Attributes; Retry Intervals; Example Definition; Processing Order Example; Reserved Ranges
"""
SECTIONS_OF_CASSANDRA = """
    Built-in retry policies; Behavior; onUnavailableVerdict; onReadTimeoutVerdict; onWriteTimeoutVerdict;
    onRequestAbortedVerdict; onErrorResponseVerdict; Hard-coded rules: before a network write; Hard-coded rules:
    re-preparing a statement; Hard-coded rules: a node that is bootstrapping; Hard-coded rules: errors that are
    always rethrown; Using multiple policies
"""
SECTIONS_OF_SMITHY = """
    Specification: RetryToken; Specification: acquire_initial_retry_token; Specification:
    refresh_retry_token_for_retry; Specification: record_success; Specification: backoff_strategy, max_attempts;
    Error Classification; Backoff Strategy; Example Usage
"""


@rows("row", ROWS)
def test_sources_and_tests_of_a_row_exist(row: list[str]) -> None:
    """Every source and test of a row exists; a row with sources has tests, and one without sources has a reason."""
    _, sources, tests, _, deviation = row

    assert named(tests) if named(sources) else deviation
    assert [] == [name for name in named(sources) if not exists(name, SOURCE_FOLDERS)]
    assert [] == [name for name in named(tests) if not exists(name, TEST_FOLDERS)]


@rows("row", ROWS)
def test_a_row_links_user_pages(row: list[str]) -> None:
    """A row with sources links to at least one page for users, and every linked page exists."""
    _, sources, _, pages, _ = row
    linked = re.findall(r"\{doc\}`/([^`]+)`", pages)

    assert [] == [page for page in linked if not (DOCS / f"{page}.md").is_file()]
    assert [] == [page for page in linked if page.startswith("internals") or page == DECISIONS]
    assert linked or not named(sources)


def test_named_decisions_exist() -> None:
    """Every decision that a deviation names has its heading on the page of decisions."""
    decisions = {decision.number for decision in decisions_of(DOCS / f"{DECISIONS}.md")}
    mentioned = {number for *_, deviation in ROWS for number in re.findall(r"\b[ACDRST][1-9]\d?\b", deviation)}

    assert mentioned
    assert set() == mentioned - decisions


def test_the_introduction_lists_every_rfc() -> None:
    """The introduction lists each SDK-RFC that a heading or a section names."""
    introduction, _, rest = PAGE.read_text(encoding="utf-8").partition("\n## ")
    sections = "\n".join([*re.findall(r"^## .*", rest, re.MULTILINE), *(row[0] for row in ROWS)])

    assert set(re.findall(r"\b00\d\d\b", sections)) <= set(re.findall(r"RFC (00\d\d)", introduction))


def test_the_number_of_cases_is_correct() -> None:
    """The number of cases for the two RFCs is that of the files."""
    lines = [line for name in CASES for line in (ROOT / name).read_text(encoding="utf-8").splitlines()]
    count = sum("couchbase" == json.loads(line)["family"] for line in lines)

    assert f"{count} cases" in PAGE.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("heading", "sections"),
    [
        ("RFC 0049", SECTIONS_OF_0049),
        ("RFC 0013", SECTIONS_OF_0013),
        ("The Cassandra Java driver", SECTIONS_OF_CASSANDRA),
        ("The Smithy Python retry design", SECTIONS_OF_SMITHY),
    ],
)
def test_every_section_has_a_row(heading: str, sections: str) -> None:
    """Each section of a source that states a rule has a row under the heading of the source."""
    (part,) = re.findall(rf"^## {heading}.*?(?=^## |\Z)", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)

    listed = [" ".join(section.split()) for section in sections.split(";")]

    assert [] == [section for section in listed if f"\n| {section} |" not in part]
