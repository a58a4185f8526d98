"""``triclinium explain``: one case in words and as data, what it says to nonsense, and whole files of questions."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from io import StringIO
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from rich.console import Console

from tests.rows import rows
from triclinium._cli import _explanation, _telling, main
from triclinium._cli._case import EXAMPLE_OF_ENTRY
from triclinium._cli.explain import FAMILIES
from triclinium_core.retry.events import HandedOver, SocketClosed
from triclinium_core.retry.explain import Case, ErrorCode, KvAnswer, explain as explain_case
from triclinium_core.retry.idempotency import IDEMPOTENCY
from triclinium_core.retry.kv_responses import RETRYABLE_STATUSES
from triclinium_core.retry.kv_status import Status
from triclinium_core.retry.service import Service

ROOT = Path(__file__).parents[3]
DECISIONS = ROOT / "tests" / "data" / "decisions.jsonl"
COMMAND = (sys.executable, "-c", "from triclinium._cli import main; main()", "explain")
QUESTIONS = DECISIONS.read_bytes().splitlines(keepends=True)
BATCH_LINES = 25_000
BATCH_GROWTH_MAX = 4_000_000
"""Bytes by which a process may grow while it answers; the lines themselves are twice as many."""

ENTRY = '{"name": "BUSY", "desc": "try later", "attrs": ["retry-later", "fetch-config"]}'


def explain(*arguments: str, stdin: bytes | None = None) -> Result:
    """Run the command in this process."""
    return CliRunner().invoke(main, ["explain", *arguments], input=stdin)


def explain_as_json(*arguments: str) -> dict[str, object]:
    """Return what ``--json`` prints."""
    result = explain(*arguments, "--json")
    assert (0, "") == (result.exit_code, result.stderr)
    (line,) = result.output.splitlines()
    answer: dict[str, object] = json.loads(line)
    return answer


# -- One case.


@rows(
    ("arguments", "expected"),
    [
        ("kv upsert --status 0x86", {"reason": "KV_TEMPORARY_FAILURE", "action": "retry", "delay_ms": 1}),
        ("KV Upsert --status temporary-failure", {"reason": "KV_TEMPORARY_FAILURE", "operation": "upsert"}),
        ("kv unlock --status 0x09", {"reason": None, "action": "fail", "error": "CasMismatchException"}),
        ("kv get-and-lock --status 0x09", {"reason": "KV_LOCKED", "operation": "get_and_lock"}),
        ("kv dcp_mutation --status 0x09", {"reason": None, "operation": "dcp_mutation"}),
        ("kv get --event socket-closed", {"reason": "SOCKET_CLOSED_WHILE_IN_FLIGHT", "action": "retry"}),
        ("kv upsert --event socket-closed", {"action": "fail", "error": "RequestCanceledException"}),
        ("kv upsert --event socket-closed --handed-over part", {"action": "fail"}),
        (
            "kv upsert --event socket-closed --handed-over nothing",
            {"reason": "SOCKET_NOT_AVAILABLE", "action": "retry"},
        ),
        (
            "kv get --event socket-closed --handed-over nothing --reason tls_error",
            {"reason": "TLS_ERROR", "error": "CouchbaseException"},
        ),
        ("kv get --event dispatch-failed", {"reason": "SOCKET_NOT_AVAILABLE", "action": "retry"}),
        ("query --event dispatch-failed --reason service-not-available", {"reason": "SERVICE_NOT_AVAILABLE"}),
        ("kv get --event dispatch-failed --reason KV_TEMPORARY_FAILURE", {"reason": "KV_TEMPORARY_FAILURE"}),
        (
            "kv get --event dispatch-failed --reason AUTHENTICATION_ERROR",
            {
                "reason": "AUTHENTICATION_ERROR",
                "error": "AuthenticationFailureException",
                "strategy_answer": "refuses: AUTHENTICATION_ERROR is one of the five terminal reasons",
            },
        ),
        (
            "kv get --event dispatch-failed --reason AUTHENTICATION_ERROR --strategy best-effort",
            {"action": "retry", "strategy": "BestEffortRetryStrategy"},
        ),
        ("query --code 4040", {"reason": "QUERY_PREPARED_STATEMENT_FAILURE", "operation": "request"}),
        ("query --code 5000", {"reason": None, "action": "fail"}),
        ("query query --code 5000 --message queryport.indexNotFound", {"reason": "QUERY_INDEX_NOT_FOUND"}),
        ("query Request --code 5", {"operation": "request", "message": "request: the server answered error 5"}),
        ("management HTTP --http-status 500", {"operation": "http"}),
        ("query --code 4040 --http-status 503", {"reason": "QUERY_PREPARED_STATEMENT_FAILURE"}),
        ("query --event socket-closed", {"idempotent": False, "action": "fail"}),
        ("query --event socket-closed --readonly", {"idempotent": True, "action": "retry"}),
        ("management --event socket-closed --method POST", {"idempotent": False, "action": "fail"}),
        ("management --event socket-closed --method get", {"idempotent": True, "action": "retry"}),
        ("search --http-status 429 --body busy", {"reason": "SEARCH_TOO_MANY_REQUESTS", "idempotent": True}),
        ("views --http-status 404 --body {}", {"reason": None}),
        ('views --http-status 404 --body {"reason":"missing"}', {"reason": "VIEWS_TEMPORARY_FAILURE"}),
        ("kv upsert --status 0X86 --attempt 5", {"delay_ms": 32, "strategy_answer": "wants a retry in 32 ms"}),
        ("kv upsert --status 0x86 --elapsed-ms 2499 --attempt 5", {"delay_ms": 1, "dispatches": False}),
        ("kv upsert --status 0x86 --elapsed-ms 2499 --attempt 5 --timeout-ms 9000", {"dispatches": True}),
        ("kv upsert --status 0x86 --elapsed-ms 2500", {"error": "UnambiguousTimeoutException"}),
        ("query --code 4040 --elapsed-ms 1e9", {"action": "retry"}),
        ("kv get --status 0x07 --strategy fail-fast", {"action": "retry", "decided_by": "controlled backoff"}),
        ("kv get --status 0x00", {"action": "complete", "reason": None}),
    ],
)
def test_a_case_as_data(arguments: str, expected: dict[str, object]) -> None:
    """What the options say is what is explained."""
    actual = explain_as_json(*arguments.split())

    assert expected == {key: actual[key] for key in expected}


def test_an_entry_of_the_error_map(tmp_path: Path) -> None:
    """It stands in the command line, or in a file."""
    file = tmp_path / "entry.json"
    file.write_text(ENTRY, encoding="utf-8")

    inline = explain_as_json("kv", "get", "--status", "0x7ff5", "--error-map-entry", ENTRY)
    from_file = explain_as_json("kv", "get", "--status", "0x7ff5", "--error-map-entry", f"@{file}")

    assert inline == from_file
    assert "KV_ERROR_MAP_RETRY_INDICATED" == inline["reason"]
    assert ["bring its cluster map up to date"] == inline["orders"]


@pytest.mark.parametrize(
    ("case", "arguments"),
    [
        (Case(service=Service.KV, operation="upsert", happened=KvAnswer(0x86), timeout=2.5), "kv upsert --status 0x86"),
        (Case(service=Service.QUERY, operation="request", happened=ErrorCode(4040)), "query --code 4040"),
    ],
)
def test_a_case_in_words(case: Case, arguments: str) -> None:
    """Where nobody sees colours, the sentences of the core stand one to a line."""
    result = explain(*arguments.split())

    happened, *steps = explain_case(case).sentences()
    assert 0 == result.exit_code
    assert [happened, _explanation.circumstances(case), *steps] == result.output.splitlines()


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("--status 0x86", "Until then: no retry, and 0 ms of 2500 ms have passed."),
        ("--status 0x86 --attempt 1 --elapsed-ms 0.5", "Until then: 1 retry, and 0.5 ms of 2500 ms have passed."),
        (
            "--status 0x86 --attempt 2 --timeout-ms inf",
            "Until then: 2 retries, and 0 ms have passed; no timeout ends it.",
        ),
    ],
)
def test_how_far_the_request_had_come(arguments: str, expected: str) -> None:
    """The numbers that went into the decision are told with it."""
    result = explain("kv", "get", *arguments.split())

    assert expected == result.output.splitlines()[1]


def test_an_error_code_is_told_and_no_http_status_that_nobody_said() -> None:
    """In what happened, and in the message at the end."""
    result = explain("query", "--code", "5")

    happened, *_, outcome = result.output.splitlines()
    assert "query request: the service answered error 5." == happened
    assert "So the request fails with CouchbaseException: request: the server answered error 5." == outcome


def test_an_entry_for_a_known_status_is_not_passed_over_in_silence() -> None:
    """The map has no say there, and that is said."""
    result = explain("kv", "get", "--status", "0x86", "--error-map-entry", ENTRY)

    assert "The node's error map has no say in this, for the client knows the status" in result.output


def test_help_tells_what_a_decision_is() -> None:
    """For clauses name it, where the RFCs do not say enough."""
    result = explain("--help")

    assert '"decision C24" is the row C24' in " ".join(result.output.split())
    assert (ROOT / "docs" / "explanation" / "decisions.md").is_file()


@pytest.mark.parametrize("width", [40, 80, 120])
def test_a_case_on_a_terminal(monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    """The steps are numbered and wrapped, no line is wider than the screen, and nothing is lost."""
    output = StringIO()
    console = Console(file=output, force_terminal=True, width=width, color_system=None, highlight=False)
    monkeypatch.setattr(_telling, "Console", lambda **_: console)

    result = explain("kv", "upsert", "--event", "socket-closed")

    assert 0 == result.exit_code
    lines = output.getvalue().splitlines()
    assert max(map(len, lines)) <= min(width, _telling.READABLE_WIDTH)
    words = " ".join(output.getvalue().split())
    closed = SocketClosed(HandedOver.ALL)
    happened, *steps = explain_case(
        Case(service=Service.KV, operation="upsert", happened=closed, timeout=2.5)
    ).sentences()
    assert words.startswith(happened)
    assert words.endswith(" ".join(f"{number} {step}" for number, step in enumerate(steps, start=1)))


def test_the_outcome_stands_out_and_clauses_recede() -> None:
    """Colours carry the eye to what the client does."""
    output = StringIO()
    case = Case(service=Service.KV, operation="upsert", happened=KvAnswer(0x86), timeout=2.5)
    console = Console(file=output, force_terminal=True, width=200, color_system="standard", highlight=False)

    console.print(_telling.numbered(_explanation.telling_of(case, explain_case(case))))

    assert "\x1b[1;32mSo the request is sent again in 1 ms." in output.getvalue()
    assert "\x1b[2mRFC 0049 Response Code Retry List: KV: Temporary Failure 0x86\x1b[0m" in output.getvalue()


def test_a_changed_table_changes_the_explanation(monkeypatch: pytest.MonkeyPatch) -> None:
    """The command holds no rule of its own."""
    monkeypatch.delitem(RETRYABLE_STATUSES, Status.TEMPORARY_FAILURE)
    monkeypatch.delitem(IDEMPOTENCY, (Service.KV, "get"))

    actual = explain_as_json("kv", "get", "--status", "0x86")

    assert (None, False, "fail") == (actual["reason"], actual["idempotent"], actual["action"])


@rows(
    ("arguments", "expected"),
    [
        ("", "name a service (kv, query, analytics, search, views, management), or a file of questions with --batch"),
        (
            "kb get --status 0x1",
            "there is no service 'kb'; there is kv, query, analytics, search, views, management, cassandra, smithy",
        ),
        ("kv --status 0x1", "name an operation of kv, such as get or upsert; --help lists them"),
        ("kv upser --status 0x1", "there is no operation of kv 'upser'; did you mean upsert?"),
        ("kv get", "say what happened, with one of --status, --event, --code, --http-status"),
        (
            "kv get --status 0x1 --event socket-closed",
            "--status and --event are two happenings; give one of --status, --event, --code, --http-status",
        ),
        ("kv get --status 0", "--status '0' does not begin with 0x; write 0x00"),
        ("kv get --status 9", "--status '9' does not begin with 0x; write 0x09"),
        ("kv get --status 134", "--status '134' does not begin with 0x; write 0x134, or 0x86 if 134 is decimal"),
        ("kv get --status 10000", "--status '10000' does not begin with 0x; write 0x2710 if 10000 is decimal"),
        ("kv get --status 7ff0", "--status '7ff0' does not begin with 0x; write 0x7ff0"),
        ("kv get --status ff", "--status 'ff' does not begin with 0x; write 0xff"),
        ("kv get --status 0xyz", "--status '0xyz' is not 0x and hexadecimal digits, such as 0x86"),
        ("kv get --status 0x", "--status '0x' is not 0x and hexadecimal digits, such as 0x86"),
        ("kv get --status 9\u0668", "--status '9\u0668' is not 0x and hexadecimal digits, such as 0x86"),
        ("kv get --status 0x10000", "--status '0x10000' has more than 16 bits; the largest is 0xffff"),
        ("kv get --status 99999", "--status '99999' has more than 16 bits; the largest is 0xffff"),
        (f"kv get --status {'1' * 9999}", f"--status '{'1' * 60}'... has more than 16 bits; the largest is 0xffff"),
        ("kv get --status temp", "there is no status 'temp'; write its number, such as 0x86"),
        ("kv get --status lockd", "there is no status 'lockd'; did you mean LOCKED or NOT_LOCKED?"),
        ("kv get --status 0x1 --body x", "--body says nothing about --status; leave it out"),
        ("kv get --status 0x1 --http-status 404", None),
        ("kv get --event closed", "there is no event 'closed'; did you mean socket-closed?"),
        (
            "kv get --event dispatch-failed --reason NODE_UNAVAILABLE",
            "there is no retry reason 'NODE_UNAVAILABLE'; did you mean NODE_NOT_AVAILABLE or SOCKET_NOT_AVAILABLE?",
        ),
        (
            "kv get --event dispatch-failed --handed-over all",
            "--handed-over says nothing about --event dispatch-failed, where nothing is; leave it out",
        ),
        (
            "kv get --event socket-closed --reason KV_LOCKED",
            "--reason says why nothing was sent; with --event socket-closed it needs --handed-over nothing",
        ),
        (
            "kv get --event dispatch-failed --reason kv_locked",
            "--reason KV_LOCKED does not keep a request from being sent; it comes of kv --status LOCKED",
        ),
        (
            "query --event dispatch-failed --reason KV_TEMPORARY_FAILURE",
            (
                "--reason KV_TEMPORARY_FAILURE does not keep a request from being sent; it comes of kv --status "
                "TEMPORARY_FAILURE"
            ),
        ),
        (
            "query --event dispatch-failed --reason QUERY_INDEX_NOT_FOUND",
            "--reason QUERY_INDEX_NOT_FOUND does not keep a request from being sent; it comes of query --code 5000",
        ),
        (
            "kv get --event dispatch-failed --reason SEARCH_TOO_MANY_REQUESTS",
            (
                "--reason SEARCH_TOO_MANY_REQUESTS does not keep a request from being sent; it comes of search "
                "--http-status 429"
            ),
        ),
        (
            "kv get --event dispatch-failed --reason SOCKET_CLOSED_WHILE_IN_FLIGHT",
            (
                "--reason SOCKET_CLOSED_WHILE_IN_FLIGHT does not keep a request from being sent; it comes of --event "
                "socket-closed"
            ),
        ),
        (
            "search --event dispatch-failed --reason SCOPE_NOT_FOUND",
            (
                "--reason SCOPE_NOT_FOUND is out of place; a dispatch to search fails for one of SOCKET_NOT_AVAILABLE, "
                "AUTHENTICATION_ERROR, TLS_ERROR, NODE_NOT_AVAILABLE, SERVICE_NOT_AVAILABLE, CIRCUIT_BREAKER_OPEN, UNKNOWN"
            ),
        ),
        (
            "search --event socket-closed --handed-over nothing --reason NODE_NOT_AVAILABLE",
            (
                "--reason NODE_NOT_AVAILABLE is out of place; a socket to search that closes before anything is handed "
                "over to it gives one of SOCKET_NOT_AVAILABLE, AUTHENTICATION_ERROR, TLS_ERROR"
            ),
        ),
        ("kv get --event socket-closed --handed-over half", "there is no share 'half'; there is nothing, part, all"),
        ("query bogus --code 5", "there is no operation of query 'bogus'; there is query, and it may be left out"),
        (
            "management get --http-status 500",
            "there is no operation of management 'get'; there is http, and it may be left out",
        ),
        (
            "kv get --status 0x86 --readonly",
            "--readonly says nothing about kv get, only about query and analytics; leave it out",
        ),
        (
            "search --http-status 429 --readonly",
            "--readonly says nothing about search, only about query and analytics; leave it out",
        ),
        (
            "kv upsert --status 0x86 --method GET",
            "--method says nothing about kv upsert, only about management; leave it out",
        ),
        ("query --code 5 --method POST", "--method says nothing about query, only about management; leave it out"),
        (
            "management --http-status 500 --method XYZ",
            "there is no HTTP method 'XYZ'; there is DELETE, GET, HEAD, PATCH, POST, PUT",
        ),
        ("query --status 0x1", "--status cannot happen to query; it happens to kv"),
        ("search --code 4040", "--code cannot happen to search; it happens to query and analytics"),
        ("kv get --http-status 404", "--http-status cannot happen to kv; it happens to every service but kv"),
        (
            "kv get --status 0x1 --strategy best",
            "there is no strategy 'best'; there is best_effort, fast_fail_on_terminal_error, fail_fast, error_map",
        ),
        ("kv get --status 0x1 --elapsed-ms nan", "Invalid value for '--elapsed-ms': nan is not a finite number."),
        ("kv get --status 0x1 --elapsed-ms inf", "Invalid value for '--elapsed-ms': inf is not a finite number."),
        ("kv get --status 0x1 --timeout-ms nan", "Invalid value for '--timeout-ms': nan is not a number."),
        ("kv get --status 0x1 --timeout-ms soon", "Invalid value for '--timeout-ms': 'soon' is not a valid number."),
        ("kv get --status 0x1 --timeout-ms -1", "Invalid value for '--timeout-ms': -1.0 is not in the range x>=0."),
        ("kv get --status 0x1 --error-map-entry {", None),
        ("kv get --status 0x1 --error-map-entry @nowhere", "--error-map-entry @nowhere: No such file or directory"),
        (
            "kv get --status 0x1 --error-map-entry {}",
            f"--error-map-entry has no attrs; write it like {EXAMPLE_OF_ENTRY}",
        ),
        (
            "kv get --status 0x1 --error-map-entry []",
            f"--error-map-entry is an array, expected an object such as {EXAMPLE_OF_ENTRY}",
        ),
        (
            'kv get --status 0x1 --error-map-entry {"attrs":"temp"}',
            "attrs in --error-map-entry is a string, expected an array of strings",
        ),
        (
            'kv get --status 0x1 --error-map-entry {"attrs":["temp",1]}',
            "an item of attrs in --error-map-entry is a number, expected a string",
        ),
        (
            'kv get --status 0x1 --error-map-entry {"attrs":[],"name":null}',
            "name in --error-map-entry is null, expected a string",
        ),
        (
            'kv get --status 0x1 --error-map-entry {"attrs":[],"desc":true}',
            "desc in --error-map-entry is a boolean, expected a string",
        ),
        ("kv get --status 0x1 --batch -", "--batch reads whole questions, and does not go with service"),
        ("--readonly --batch -", "--batch reads whole questions, and does not go with readonly"),
        ("--batch nowhere", "Invalid value for '--batch': 'nowhere': No such file or directory"),
    ],
)
def test_wrong_input_is_told_in_one_line(arguments: str, expected: str | None) -> None:
    """Exit status 2, nothing on standard output, and on the other one what is wrong and what to write instead."""
    result = explain(*arguments.split())

    assert (2, "") == (result.exit_code, result.stdout)
    (line,) = result.stderr.splitlines()
    assert line.startswith("Error: ")
    assert expected in (None, line.removeprefix("Error: "))


def test_a_deep_error_map_entry() -> None:
    """It is no JSON that anybody means, and no crash."""
    result = explain("kv", "get", "--status", "0x1", "--error-map-entry", "[" * 100_000)

    assert 2 == result.exit_code
    assert result.stderr.startswith("Error: --error-map-entry is not JSON: ")


# -- The other traditions.


@pytest.mark.parametrize("family", [*FAMILIES, "Cassandra"])
def test_the_first_word_may_name_a_tradition(family: str) -> None:
    """Then what follows is its own, and so is the help."""
    result = explain(family, "--help")

    assert 0 == result.exit_code
    assert result.output.startswith(f"Usage: main explain {family.lower()} [OPTIONS]")


@pytest.mark.parametrize("family", FAMILIES)
def test_the_help_leads_to_the_traditions(family: str) -> None:
    """With an example each, and where the rest stands."""
    output = explain("--help").output

    assert 2 <= output.count(f"triclinium explain {family} ")


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("casandra unavailable", "there is no service 'casandra'; did you mean cassandra?"),
        (
            "--json smithy",
            "write smithy first, and its options behind it: triclinium explain smithy --help",
        ),
    ],
)
def test_a_tradition_in_the_wrong_place(arguments: str, expected: str) -> None:
    """One line says where it belongs."""
    result = explain(*arguments.split())

    assert (2, f"Error: {expected}\n") == (result.exit_code, result.stderr)


def test_a_tradition_is_imported_when_it_is_asked_about() -> None:
    """Who asks about one does not wait for the other's command."""
    program = (
        "import sys; from triclinium._cli import main; "
        "main(['explain', 'smithy', '--responses', 'ok'], standalone_mode=False); "
        "print([name for name in sys.modules if name.startswith('triclinium._cli') and 'cassandra' in name])"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert "[]" == run.stdout.splitlines()[-1]


# -- Files of questions.


def test_a_batch_answers_every_decision_as_expected() -> None:
    """A process of its own, given the couchbase family of the decisions, gives all the answers in order."""
    run = subprocess.run([*COMMAND, "--batch", "-"], input=b"".join(QUESTIONS), capture_output=True, check=True)

    answers = [json.loads(line) for line in run.stdout.splitlines()]
    assert len(QUESTIONS) == len(answers)
    for line, answer in zip(QUESTIONS, answers, strict=True):
        question = json.loads(line)
        assert {"id": question["id"], **question["expect"]} == {key: answer[key] for key in ("id", *question["expect"])}
    assert b"" == run.stderr


def test_a_batch_goes_on_after_a_line_that_it_cannot_understand(tmp_path: Path) -> None:
    """That line gets an error, the others their answers, and the exit status tells."""
    file = tmp_path / "questions.jsonl"
    file.write_bytes(QUESTIONS[0] + b'{"id": 7, "family": "couchbase", "ask": "nothing"}\n\nnonsense\n' + QUESTIONS[1])

    result = explain("--batch", str(file))

    first, second, third, fourth = map(json.loads, result.output.splitlines())
    assert (2, "") == (result.exit_code, result.stderr)
    assert (True, True) == (first["idempotent"], fourth["idempotent"])
    assert (7, None) == (second["id"], third["id"])
    assert second["error"].startswith("line 2: ask 'nothing' is not known")
    assert third["error"].startswith("line 4: not JSON")


def test_the_question_that_the_help_shows() -> None:
    """Whoever copies the line has an answer."""
    (line,) = [line for line in explain("--help").output.splitlines() if line.lstrip().startswith("{")]
    result = explain("--batch", "-", stdin=line.encode())

    assert (0, "KV_TEMPORARY_FAILURE") == (result.exit_code, json.loads(result.output)["reason"])


def test_an_empty_batch() -> None:
    """Nothing was asked, so nothing is answered."""
    result = explain("--batch", "-", "--json", stdin=b"")

    assert (0, "") == (result.exit_code, result.output)


@contextmanager
def answering(*arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """Give the block a process that answers questions."""
    pipe = subprocess.PIPE
    with subprocess.Popen([*COMMAND, "--batch", *arguments], stdin=pipe, stdout=pipe, stderr=pipe) as process:
        try:
            yield process
        finally:
            process.kill()


def test_a_batch_answers_before_it_is_asked_on() -> None:
    """Whoever waits for each answer before the next question does not wait for ever."""
    with answering("-") as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for question in QUESTIONS[:5]:
            process.stdin.write(question)
            process.stdin.flush()

            assert json.loads(question)["id"] == json.loads(process.stdout.readline())["id"]
        process.stdin.close()

        assert (b"", 0) == (process.stdout.read(), process.wait())


def many_questions() -> bytes:
    """Return as many lines as a large batch has."""
    return b"".join(QUESTIONS[number % len(QUESTIONS)] for number in range(BATCH_LINES))


def test_a_batch_survives_a_reader_that_leaves(tmp_path: Path) -> None:
    """As ``head`` does: no traceback, and a status that is not success."""
    file = tmp_path / "questions.jsonl"
    file.write_bytes(many_questions())
    with answering(str(file)) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()

        assert (141, b"") == (process.wait(), process.stderr.read())


def test_a_large_batch_takes_no_more_memory_than_a_line() -> None:
    """Neither questions nor answers pile up."""
    program = """
import resource, sys
import triclinium._cli.explain
from triclinium._cli import main
def peak_bytes():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
before = peak_bytes()
main(["explain", "--batch", "-"], standalone_mode=False)
print(peak_bytes() - before, file=sys.stderr)
"""
    questions = many_questions()
    run = subprocess.run([sys.executable, "-c", program], input=questions, capture_output=True, check=True)

    assert BATCH_LINES == run.stdout.count(b"\n")
    assert int(run.stderr) < BATCH_GROWTH_MAX < len(questions) / 2
