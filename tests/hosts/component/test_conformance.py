"""Program of the page "Conformance", which compares the decisions of another client."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.docs.pages import DOCS, blocks_of
from tests.hosts.component.preparing import CONFORMANCE, ENVIRONMENT, PYTHON, python_host
from tests.hosts.component.recorded import QUESTIONS
from tests.hosts.folders import HOSTS

pytestmark = pytest.mark.hosts

QUESTION = {"family": "couchbase", "ask": "reason", "service": "kv", "op": "get", "status": "0x86"}
IDEMPOTENT = {"family": "couchbase", "ask": "idempotent", "service": "kv", "op": "upsert"}
CAP = {"family": "couchbase", "ask": "cap", "requested_delay_ms": 9, "elapsed_ms": 0, "timeout_ms": 10}


def compare(*arguments: str | Path, text: bytes = b"") -> tuple[int, str, str]:
    """Return the status, the output and the errors of the program for these arguments and this standard input."""
    python_host()
    done = subprocess.run(
        (*PYTHON, CONFORMANCE, *arguments), input=text, env=ENVIRONMENT, capture_output=True, check=False
    )
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def test_recorded_decisions_agree(component: Path, tmp_path: Path) -> None:
    """All recorded decisions agree, and the status is 0."""
    decisions = tmp_path / "decisions.jsonl"
    decisions.write_text("\ufeff" + "\n\n".join(QUESTIONS), encoding="utf-8")

    assert (0, f"{len(QUESTIONS)} decisions compared, 0 differ\n", "") == compare(component, decisions)


def test_the_comparison_on_the_page_is_current(component: Path) -> None:
    """The decisions on the page have the differences that the page shows below them."""
    blocks = list(blocks_of(DOCS / "howto" / "conformance.md"))
    (decisions,) = [block.text for block in blocks if block.language == "json"]
    shown = next(block.text for block in blocks if block.language == "text")

    assert (1, shown, "") == compare(component, "-", text=decisions.encode())


def test_differences_are_listed_by_clause(component: Path) -> None:
    """Differences, also between numbers and booleans, are listed by clause, most frequent first; the status is 1."""
    lines = [
        QUESTION | {"expect": {"reason": "KV_TEMPORARY_FAILURE"}},
        CAP | {"expect": {"delay_ms": 10, "dispatches": False}},
        QUESTION | {"expect": {"reason": None}},
        CAP | {"expect": {"delay_ms": 9.0, "dispatched": True}},
        *(IDEMPOTENT | {"expect": {"idempotent": value}} for value in (0, 0.0, False)),
    ]
    expected = """\
RFC 0049 Capping the Retry Duration; RFC 0013 Retry Intervals, max-duration
  line 2: delay_ms is 10, expected 9
  line 2: dispatches is false, expected true
  line 4: dispatched is true, expected nothing
RFC 0049 Idempotent Operation List: not listed
  line 5: idempotent is 0, expected false
  line 6: idempotent is 0.0, expected false
RFC 0049 Response Code Retry List: KV: Temporary Failure 0x86
  line 3: reason is null, expected "KV_TEMPORARY_FAILURE"
7 decisions compared, 5 differ
"""

    assert (1, expected, "") == compare(component, "-", text="\n".join(map(json.dumps, lines)).encode())


def test_invalid_lines_are_named(component: Path) -> None:
    """Each invalid line is named with its fault, the others are compared, and the status is 2."""
    deep = "[" * 800 + "]" * 800
    lines = [
        json.dumps(QUESTION | {"expect": {"reason": "KV_LOCKED"}}),
        "{",
        "[]",
        json.dumps(QUESTION),
        json.dumps(QUESTION | {"expect": 1}),
        '{"expect": {}}',
        f'{{"expect": {{"a": {deep}}}}}',
    ]
    form = 'expected an object whose "expect" is also an object, the answer of the other client'

    status, output, errors = compare(component, "-", text="\n".join(lines).encode())

    assert 2 == status
    assert output.endswith("1 decisions compared, 1 differ\n")
    assert [
        "line 2: not JSON: Expecting property name enclosed in double quotes: line 2 column 1 (char 2)",
        f"line 3: {form}",
        f"line 4: {form}",
        f"line 5: {form}",
        "line 6: family is missing",
        "line 7: not JSON: it is nested too deeply to be decoded; the maximum is 512 levels",
    ] == errors.splitlines()


@pytest.mark.parametrize("is_file", [True, False])
def test_lines_end_at_line_feeds(component: Path, tmp_path: Path, is_file: bool) -> None:
    """A byte order mark, CRLF and separators in texts are accepted; a line that is not UTF-8 is named."""
    line = json.dumps(
        QUESTION | {"id": "a\u2028b\x85c", "expect": {"reason": "KV_TEMPORARY_FAILURE"}}, ensure_ascii=False
    )
    text = b"\xef\xbb\xbf" + line.encode() + b'\r\n{"id": "\xff"}\r\n' + line.encode()
    decisions = tmp_path / "decisions.jsonl"
    decisions.write_bytes(text)

    status, output, errors = compare(component, decisions if is_file else "-", text=text)

    assert (2, "2 decisions compared, 0 differ\n") == (status, output)
    assert errors.startswith("line 2: not JSON: 'utf-8' codec can't decode byte 0xff")


@pytest.mark.parametrize(
    ("component_path", "decisions", "message"),
    [
        (None, "missing.jsonl", "No such file or directory: 'missing.jsonl'"),
        ("missing.wasm", "-", "No such file or directory: 'missing.wasm'"),
        (HOSTS / "component" / "retry.wit", "-", "expected"),
        (None, "-", "0 decisions compared"),
    ],
    ids=["decisions", "component", "interface", "empty"],
)
def test_bad_input_has_status_two(
    component: Path, component_path: Path | str | None, decisions: str, message: str
) -> None:
    """A missing file, empty input, or a file that is no component ends the program with status 2 and a message."""
    status, output, errors = compare(Path(component_path or component), decisions)

    assert 2 == status
    assert message in output + errors
    assert "Traceback" not in errors


def test_missing_arguments_show_the_usage() -> None:
    """Without arguments, the program prints its usage and ends with status 2."""
    status, output, errors = compare()

    assert (2, "") == (status, output)
    assert errors.startswith("usage: conformance.py COMPONENT DECISIONS")
