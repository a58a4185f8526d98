"""Command that runs the official client's tests, with small tests in place of the client's."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import msgspec
import pytest

from tests.live.official_suite import report_plugin
from tests.live.official_suite.__main__ import EXPLAINED, main
from tests.live.official_suite.client import REPORT_MODULE
from tests.live.official_suite.explained import Explanation, explain, read_explanations
from tests.live.official_suite.outcomes import FileReport, OfficialResult, Outcome, read_events
from tests.live.official_suite.run import Suite
from tests.live.official_suite.table import TABLE, Failure, SuiteResults, describe, markdown_rows, results_of
from triclinium_core.testing.fakes.unsupported import PAGE, UNSUPPORTED

pytestmark = pytest.mark.native

CONFIG = """
import os
from configparser import ConfigParser

CONFIG_FILE = "theirs"


class CouchbaseConfig:
    def get_connection_string(self):
        raise AssertionError

    def host(self):
        found = ConfigParser()
        found.read(CONFIG_FILE)
        return found["realserver"]["host"]
"""

TESTS = """
import os
import pytest
from tests.couchbase_config import CouchbaseConfig


def test_passes():
    assert CouchbaseConfig().get_connection_string().startswith("couchbase://127.0.0.1:")
    assert CouchbaseConfig().host() == "127.0.0.1"


def test_fails():
    assert 1 == 2


def test_skips():
    pytest.skip("no such server")


@pytest.mark.xfail(reason="known")
def test_expected():
    assert 1 == 2


def test_aborts():
    os.abort()


@pytest.fixture
def broken():
    raise ValueError("no setup")


def test_setup(broken):
    pass


def test_last():
    pass
"""
"""Test file that only the command runs, not this suite.

It skips a test and expects a failure because the command must count both as not applicable, with their reasons.
"""


def test_file_survives_an_abort(tmp_path: Path) -> None:
    """A test that ends the client's process fails with the signal, and the tests after it run in a new process."""
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests/couchbase_config.py").write_text(CONFIG)
    (tmp_path / "a_t.py").write_text(TESTS)
    shutil.copy(report_plugin.__file__, tmp_path / f"{REPORT_MODULE}.py")
    report = Suite(Path(sys.executable), tmp_path, 500.0).run("a_t.py")
    found = {result.test.removeprefix("a_t.py::"): (result.outcome, result.reason) for result in report.results}

    assert {
        "test_passes": (Outcome.PASSED, ""),
        "test_fails": (Outcome.FAILED, "assert 1 == 2"),
        "test_skips": (Outcome.NOT_APPLICABLE, "no such server"),
        "test_expected": (Outcome.NOT_APPLICABLE, "expected to fail: known"),
        "test_aborts": (Outcome.FAILED, "the client ended its process with SIGABRT"),
        "test_setup": (Outcome.FAILED, "setup: ValueError: no setup"),
        "test_last": (Outcome.PASSED, ""),
    } == found


def test_reruns_and_teardowns_count() -> None:
    """Only the last run of a test counts, and a failed teardown replaces a passed test."""
    report = FileReport("a_t.py")
    lines = [
        {"event": "rerun", "test": "a", "phase": "call", "reason": "first"},
        {"event": "passed", "test": "a", "phase": "call"},
        {"event": "passed", "test": "b", "phase": "call"},
        {"event": "failed", "test": "b", "phase": "teardown", "reason": "left"},
    ]
    report.add(read_events([*(msgspec.json.encode(line).decode() for line in lines), '{"event": "pas']))

    assert [
        OfficialResult("a", Outcome.PASSED),
        OfficialResult("b", Outcome.FAILED, "teardown: left"),
    ] == report.results


def test_tests_without_a_result_fail() -> None:
    """After the time limit, each collected test without a result fails; a file without tests fails as a whole."""
    report, empty = FileReport("a_t.py"), FileReport("b_t.py")
    report.add(read_events(['{"event": "collected", "test": "a"}', '{"event": "started", "test": "a"}']))
    report.process_ended("the time limit")
    empty.give_up("pytest ended with status 4")

    assert [OfficialResult("a", Outcome.FAILED, "the time limit")] == report.results
    assert [OfficialResult("b_t.py", Outcome.FAILED, "pytest ended with status 4")] == empty.results


def test_explanations_cover_failures_only() -> None:
    """A failure that matches an explanation gets its row or becomes not applicable; any other result stays as it is."""
    explanations = [
        Explanation(tests=("*::test_x[*]",), reason="no .* service", row="eventing"),
        Explanation(tests=("b_t.py::*",), not_applicable="newer"),
    ]
    failed = OfficialResult("a_t.py::test_x[1]", Outcome.FAILED, "no eventing service")
    others = [OfficialResult("a_t.py::test_x[1]", Outcome.FAILED, "other"), OfficialResult("b_t.py::y", Outcome.PASSED)]

    assert msgspec.structs.replace(failed, row="eventing") == explain(failed, explanations)
    assert others == [explain(each, explanations) for each in others]
    assert OfficialResult("b_t.py::y", Outcome.NOT_APPLICABLE, "newer") == explain(
        OfficialResult("b_t.py::y", Outcome.FAILED, "?"), explanations
    )
    with pytest.raises(ValueError, match="either row or not_applicable"):
        Explanation(tests=("a",), row="eventing", not_applicable="newer")


def test_output_has_every_failure() -> None:
    """The text has the counts of each file, each failure with reason and row, and the number of unexplained ones."""
    results = [
        OfficialResult("a_t.py::b", Outcome.FAILED, "why", "eventing"),
        OfficialResult("a_t.py::a", Outcome.FAILED, "what"),
        OfficialResult("a_t.py::c", Outcome.NOT_APPLICABLE, "old"),
        OfficialResult("a_t.py::d", Outcome.PASSED),
    ]
    suite = SuiteResults("c0ffee", "4.6.3", (results_of("a_t.py", results),))
    text = describe(suite)

    assert [Failure("a_t.py::a", "what", "")] == suite.unexplained
    assert ["a_t.py", "1", "2", "1"] == text.splitlines()[1].split()
    for part in ("  a\n    what", "not supported (eventing): why", "not applicable (1): old", "1 failures", "c0ffee"):
        assert part in text


@pytest.mark.parametrize("arguments", [["."], [str(Path(__file__).parent), "--jobs", "0"], []])
def test_bad_arguments_end_with_status_two(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """A folder that is no checkout, an invalid option or a missing argument gives a message and exit status 2."""
    try:
        status = main(arguments)
    except SystemExit as end:
        assert isinstance(end.code, int)
        status = end.code

    assert 2 == status
    assert capsys.readouterr().err


def test_committed_results_are_explained() -> None:
    """Every failure of the committed run, and every explanation that has a row, names a row of the table."""
    results = msgspec.json.decode(TABLE.read_bytes(), type=SuiteResults)
    names = {row.name for row in UNSUPPORTED}

    assert [] == results.unexplained
    assert {failure.row for file in results.files for failure in file.failures} <= names
    assert {each.row for each in read_explanations(EXPLAINED) if each.row} <= names


def test_page_shows_the_committed_results() -> None:
    """The page has a row for each cause and each file of the committed run, the tests' commit, and the client's version."""
    results = msgspec.json.decode(TABLE.read_bytes(), type=SuiteResults)
    page = (Path(__file__).parents[3] / PAGE).read_text(encoding="utf-8")

    assert [] == [row for row in markdown_rows(results) if row not in page.splitlines()]
    assert results.commit in page
    assert f"client {results.client}" in page
