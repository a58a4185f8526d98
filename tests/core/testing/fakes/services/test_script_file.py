"""A script of answers from a file."""

from __future__ import annotations

import json

import pytest

from tests.rows import rows
from triclinium_core import errors
from triclinium_core.retry.couchbase import Service
from triclinium_core.testing import FakeAnswer, FakeScript, cut_body, http_status
from triclinium_core.testing.fakes.services.script_file import ANSWER_FAULTS, load_script


def test_file_fills_the_script() -> None:
    """A file gives answers in order, patterns, services, and faults with their arguments."""
    script = FakeScript()
    objects: list[dict[str, object]] = [
        {"statement": "SELECT  1;", "rows": [1], "repeat": 2},
        {"statement": "SELECT 1", "errors": [{"code": 5000}], "fault": {"kind": "cut_body", "bytes_sent": 7}},
        {"pattern": "b.sy", "http_status": 503, "body": "", "fault": {"kind": "http_status", "code": 503, "body": "x"}},
        {"service": "search", "statement": "names", "rows": [{"id": "ada"}], "seconds_between_rows": 0.5},
    ]
    load_script(script, json.dumps(objects))

    taken = [script.take(Service.QUERY, "SELECT 1") for _ in range(3)]
    second = FakeAnswer(errors=[{"code": 5000}], fault=cut_body(bytes_sent=7))
    assert [FakeAnswer(rows=[1], repeat=2), second, second] == taken
    assert FakeAnswer(http_status=503, body="", fault=http_status(503, b"x")) == script.take(Service.QUERY, "busy")
    assert FakeAnswer(rows=[{"id": "ada"}], seconds_between_rows=0.5) == script.take(Service.SEARCH, "names")
    assert script.take(Service.QUERY, "names") is None


@rows(
    ("text", "word"),
    [
        ("", "list"),
        ("{}", "list"),
        ('[{"rows": [1]}]', "statement"),
        ('[{"statement": "a", "pattern": "a"}]', "statement"),
        ('[{"statement": "a"}, {"pattern": "("}]', "object 2"),
        ('[{"statement": "a", "row": []}]', "row"),
        ('[{"statement": "a", "rows": 1}]', "rows"),
        ('[{"statement": "a", "service": "sql"}]', "service"),
        ('[{"statement": "a", "http_status": 99}]', "http_status"),
        ('[{"statement": "a", "fault": {"kind": "locked"}}]', "locked"),
        ('[{"statement": "a", "fault": {"kind": "cut_body"}}]', "bytes_sent"),
        ('[{"statement": "a", "fault": {"kind": "cut_body", "bytes_sent": -1}}]', "bytes_sent"),
        ('[{"statement": "a", "fault": {}}]', "kind"),
        ("[" * 100_000, "list"),
        ("\ud800", "list"),
        ('[{"pattern": "a{99999999999999999999}"}]', "pattern"),
        ('[{"pattern": "' + "(" * 20_000 + '"}]', "pattern"),
        ('[{"statement": "a", "headers": {"a": "b\\r\\nc: d"}}]', "headers"),
        ('[{"statement": "a", "headers": {"a b": "c"}}]', "headers"),
        ('[{"statement": "a", "headers": {"Content-Length": "1"}}]', "headers"),
        ('[{"statement": "a", "content_type": "\u00e9"}]', "content_type"),
    ],
)
def test_invalid_file_is_refused(text: str, word: str) -> None:
    """An invalid file is refused completely; the error names the reason."""
    script = FakeScript()

    with pytest.raises(errors.InvalidArgumentException, match=word):
        load_script(script, text)

    assert script.take(Service.QUERY, "a") is None


def test_answers_exclude_early_faults() -> None:
    """A fault that strikes before the request is read cannot belong to an answer."""
    assert "http_status" in ANSWER_FAULTS
    assert "hang_up_mid_request" not in ANSWER_FAULTS
