"""``triclinium explain``: one case in words and as data, errors for wrong input, and files of questions."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from io import StringIO
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from rich.console import Console

from tests.rows import rows
from tests.trio_client._cli.refusals import assert_refused
from triclinium._cli import main
from triclinium._cli.explain import couchbase, explanation_text
from triclinium._cli.explain.explain_command import FAMILIES
from triclinium_core.explain.couchbase.explain import CouchbaseCase, explain as explain_case
from triclinium_core.explain.couchbase.happenings import KvAnswer
from triclinium_core.retry.couchbase import RETRYABLE_STATUSES, HandedOver, Service, SocketClosed, Status
from triclinium_core.retry.couchbase.tables.idempotency import IDEMPOTENCY

ROOT = Path(__file__).parents[4]
DECISIONS = ROOT / "tests" / "data" / "decisions.jsonl"
COMMAND = (sys.executable, "-c", "from triclinium._cli import main; main()", "explain")
QUESTIONS = DECISIONS.read_bytes().splitlines(keepends=True)
BATCH_LINES = 25_000
BATCH_GROWTH_MAX = 4_000_000
"""Maximum growth of the process in bytes during a batch. The lines of the batch have more than twice as many bytes."""

READ_TIMEOUT = "cassandra read-timeout --received 2 --block-for 2"
ENTRY = '{"name": "BUSY", "desc": "try later", "attrs": ["retry-later", "fetch-config"]}'


def explain(*arguments: str, stdin: bytes | None = None) -> Result:
    """Run the command in this process."""
    return CliRunner().invoke(main, ["explain", *arguments], input=stdin)


def explain_as_json(*arguments: str) -> dict[str, object]:
    """Return the object that ``--json`` prints."""
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
        ("kv get-and-lock --status 0x09", {"reason": "KV_LOCKED", "operation": "get_and_lock"}),
        ("kv dcp_mutation --status 0x09", {"reason": None, "operation": "dcp_mutation"}),
        ("kv upsert --event socket-closed", {"action": "fail", "error": "RequestCanceledException"}),
        (
            "kv upsert --event socket-closed --handed-over nothing",
            {"reason": "SOCKET_NOT_AVAILABLE", "action": "retry"},
        ),
        ("query --event dispatch-failed --reason service-not-available", {"reason": "SERVICE_NOT_AVAILABLE"}),
        ("kv get --event dispatch-failed --reason KV_TEMPORARY_FAILURE", {"reason": "KV_TEMPORARY_FAILURE"}),
        (
            "kv get --event dispatch-failed --reason AUTHENTICATION_ERROR --strategy best-effort",
            {"action": "retry", "strategy": "BestEffortRetryStrategy"},
        ),
        ("query --code 4040", {"reason": "QUERY_PREPARED_STATEMENT_FAILURE", "operation": "request"}),
        ("query query --code 5000 --message queryport.indexNotFound", {"reason": "QUERY_INDEX_NOT_FOUND"}),
        ("query Request --code 5", {"operation": "request", "message": "request: the server responded with error 5"}),
        ("management HTTP --http-status 500", {"operation": "http"}),
        ("query --code 4040 --http-status 503", {"reason": "QUERY_PREPARED_STATEMENT_FAILURE"}),
        ("query --event socket-closed", {"idempotent": False, "action": "fail"}),
        ("query --event socket-closed --readonly", {"idempotent": True, "action": "retry"}),
        ("management --event socket-closed --method get", {"idempotent": True, "action": "retry"}),
        ("search --http-status 429 --body busy", {"reason": "SEARCH_TOO_MANY_REQUESTS", "idempotent": True}),
        ('views --http-status 404 --body {"reason":"missing"}', {"reason": "VIEWS_TEMPORARY_FAILURE"}),
        ("kv upsert --status 0X86 --attempt 5", {"delay_ms": 32, "decided_by": "strategy"}),
        ("kv upsert --status 0x86 --elapsed-ms 2499 --attempt 5 --timeout-ms 9000", {"dispatches": True}),
        ("query --code 4040 --elapsed-ms 74000", {"action": "retry"}),
        ("query --code 4040 --elapsed-ms 75000", {"action": "fail"}),
        ("query --code 4040 --elapsed-ms 1e9 --timeout-ms inf", {"action": "retry"}),
        ("kv get --status 0x07 --strategy fail-fast", {"action": "retry", "decided_by": "controlled backoff"}),
    ],
)
def test_a_case_as_data(arguments: str, expected: dict[str, object]) -> None:
    """``--json`` prints the decision for the case that the options describe."""
    actual = explain_as_json(*arguments.split())

    assert expected == {key: actual[key] for key in expected}


def test_an_entry_of_the_error_map(tmp_path: Path) -> None:
    """An entry of the error map may be given on the command line or in a file."""
    file = tmp_path / "entry.json"
    file.write_text(ENTRY, encoding="utf-8")

    inline = explain_as_json("kv", "get", "--status", "0x7ff5", "--error-map-entry", ENTRY)
    from_file = explain_as_json("kv", "get", "--status", "0x7ff5", "--error-map-entry", f"@{file}")

    assert inline == from_file
    assert "KV_ERROR_MAP_RETRY_INDICATED" == inline["reason"]
    assert "cluster map" in str(inline["orders"])


def test_a_case_in_words() -> None:
    """Without colours, each sentence of the explanation is one line; attempts, age and timeout have sentences, too."""
    case = CouchbaseCase(
        service=Service.KV, operation="upsert", happened=KvAnswer(0x86), attempt=1, elapsed=0.0005, timeout=math.inf
    )
    result = explain(
        *["kv", "upsert", "--status", "0x86", "--attempt", "1", "--elapsed-ms", "0.5", "--timeout-ms", "inf"]
    )

    happened, *steps = explain_case(case).sentences()
    circumstances = couchbase.circumstances(case)
    assert [happened, circumstances, *steps] == result.output.splitlines()
    assert all(fact in circumstances for fact in ("1 retry,", "0.5 ms", "timeout"))
    assert "2500 ms" in explain("kv", "get", "--status", "0x86").output


@rows("width", [40, 120])
def test_a_case_on_a_terminal(monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    """On a terminal, the steps are numbered, no line is wider than the screen, and no text is lost."""
    output = StringIO()
    console = Console(file=output, force_terminal=True, width=width, color_system=None, highlight=False)
    monkeypatch.setattr(explanation_text, "Console", lambda **_: console)

    result = explain("kv", "upsert", "--event", "socket-closed")

    assert 0 == result.exit_code
    lines = output.getvalue().splitlines()
    assert max(map(len, lines)) <= min(width, explanation_text.READABLE_WIDTH)
    words = " ".join(output.getvalue().split())
    closed = SocketClosed(HandedOver.ALL)
    happened, *steps = explain_case(
        CouchbaseCase(service=Service.KV, operation="upsert", happened=closed, timeout=2.5)
    ).sentences()
    assert words.startswith(happened)
    assert words.endswith(" ".join(f"{number} {step}" for number, step in enumerate(steps, start=1)))


@pytest.mark.parametrize(
    ("arguments", "outcome", "clause"),
    [
        (
            "kv upsert --status 0x86",
            "1;32mSo the request is sent again in 1 ms.",
            "RFC 0049 Response Code Retry List: KV: Temporary Failure 0x86",
        ),
        (READ_TIMEOUT, "1;32mSo the request is sent to the same node again.", "decision A2"),
        (f"{READ_TIMEOUT} --data-present", "1;31mSo the caller gets ReadTimeout.", "decision A2"),
        (
            "cassandra write-timeout --received 1 --block-for 2 --idempotent --policy downgrading",
            "1;33mSo the request succeeds",
            "decision A2",
        ),
    ],
)
def test_the_outcome_is_highlighted(monkeypatch: pytest.MonkeyPatch, arguments: str, outcome: str, clause: str) -> None:
    """On a terminal, the command prints the outcome in colour and the clauses dimmed."""
    output = StringIO()
    console = Console(file=output, force_terminal=True, width=300, color_system="standard", highlight=False)
    monkeypatch.setattr(explanation_text, "Console", lambda **_: console)
    monkeypatch.setattr(explanation_text, "READABLE_WIDTH", 300)

    explain(*arguments.split())

    assert f"\x1b[{outcome}" in output.getvalue()
    assert f"\x1b[2m{clause}\x1b[0m" in output.getvalue()


def test_explain_follows_the_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    """A changed table changes the explanation, because the command itself contains no rules."""
    monkeypatch.delitem(RETRYABLE_STATUSES, Status.TEMPORARY_FAILURE)
    monkeypatch.delitem(IDEMPOTENCY, (Service.KV, "get"))

    actual = explain_as_json("kv", "get", "--status", "0x86")

    assert (None, False, "fail") == (actual["reason"], actual["idempotent"], actual["action"])


@rows(
    ("arguments", "words"),
    [
        ("", "--batch"),
        ("kb get --status 0x1", "kv, query, analytics, search, views, management, cassandra, smithy"),
        ("kv --status 0x1", "OPERATION"),
        ("kv upser --status 0x1", "did you mean upsert?"),
        ("kv get", "one of --status, --event, --code, --http-status"),
        ("kv get --status 0x1 --event socket-closed", "--status and --event"),
        ("kv get --status 0x1 --http-status 404", "--status and --http-status"),
        ("kv get --status 9", "write 0x09"),
        ("kv get --status 134", "write 0x134, or 0x86 if 134 is decimal"),
        ("kv get --status 10000", "write 0x2710 if 10000 is decimal"),
        ("kv get --status ff", "write 0xff"),
        ("kv get --status 0xyz", "'0xyz'"),
        ("kv get --status 0x", "'0x'"),
        ("kv get --status 9\u0668", "--status '9"),
        ("kv get --status 0x10000", "0xffff"),
        (f"kv get --status {'1' * 9999}", f"{'1' * 60}'... has more than 16 bits"),
        ("kv get --status temp", "write its number, such as 0x86"),
        ("kv get --status lockd", "did you mean LOCKED or NOT_LOCKED?"),
        ("kv get --status 0x1 --body x", "--body "),
        ("kv get --event closed", "did you mean socket-closed?"),
        ("kv get --event dispatch-failed --reason NODE_UNAVAILABLE", "did you mean NODE_NOT_AVAILABLE or SOCKET"),
        ("kv get --event dispatch-failed --handed-over all", "--handed-over "),
        ("kv get --event socket-closed --reason KV_LOCKED", "--handed-over nothing"),
        ("kv get --event dispatch-failed --reason kv_locked", "kv --status LOCKED"),
        ("query --event dispatch-failed --reason QUERY_INDEX_NOT_FOUND", "query --code 5000"),
        ("kv get --event dispatch-failed --reason SEARCH_TOO_MANY_REQUESTS", "search --http-status 429"),
        ("kv get --event dispatch-failed --reason SOCKET_CLOSED_WHILE_IN_FLIGHT", "--event socket-closed"),
        (
            "search --event dispatch-failed --reason SCOPE_NOT_FOUND",
            "one of SOCKET_NOT_AVAILABLE, AUTHENTICATION_ERROR",
        ),
        (
            "search --event socket-closed --handed-over nothing --reason NODE_NOT_AVAILABLE",
            "one of SOCKET_NOT_AVAILABLE, AUTHENTICATION_ERROR, TLS_ERROR",
        ),
        ("kv get --event socket-closed --handed-over half", "nothing, part, all"),
        ("query bogus --code 5", "'bogus'"),
        ("management get --http-status 500", "http, create_bucket, "),
        ("kv get --status 0x86 --readonly", "query and analytics"),
        ("query --code 5 --method POST", "search and management"),
        ("management --http-status 500 --method XYZ", "DELETE, GET, HEAD, PATCH, POST, PUT"),
        ("query --status 0x1", "--status "),
        ("search --code 4040", "query and analytics"),
        ("kv get --http-status 404", "every service but kv"),
        (
            "kv get --status 0x1 --strategy best",
            "best_effort, fast_fail_on_terminal_error, fail_fast, error_map",
        ),
        ("kv get --status 0x1 --elapsed-ms inf", "'--elapsed-ms': inf"),
        ("kv get --status 0x1 --timeout-ms nan", "'--timeout-ms': nan"),
        ("kv get --status 0x1 --error-map-entry {", "--error-map-entry is not JSON"),
        (f"kv get --status 0x1 --error-map-entry {'[' * 100_000}", "--error-map-entry is not JSON"),
        ("kv get --status 0x1 --error-map-entry @nowhere", "@nowhere: No such file or directory"),
        ("kv get --status 0x1 --error-map-entry {}", f"write it like {couchbase.EXAMPLE_OF_ENTRY}"),
        ("kv get --status 0x1 --error-map-entry []", "is an array, expected an object"),
        (
            'kv get --status 0x1 --error-map-entry {"attrs":"temp"}',
            "--error-map-entry.attrs is a string, expected an array",
        ),
        (
            'kv get --status 0x1 --error-map-entry {"attrs":["temp",1]}',
            "an item of --error-map-entry.attrs is a number",
        ),
        ('kv get --status 0x1 --error-map-entry {"attrs":[],"name":null}', "--error-map-entry.name is null"),
        ("kv get --status 0x1 --batch -", "service"),
        ("--readonly --batch -", "omit --readonly"),
        ("--batch nowhere", "'nowhere': No such file or directory"),
        ("--batch /", "Is a directory"),
        ("--batch /proc/self/mem", "/proc/self/mem cannot be read: Input/output error"),
        ("casandra unavailable", "did you mean cassandra?"),
        ("--json smithy", "triclinium explain smithy --help"),
    ],
)
def test_wrong_input_is_one_line(arguments: str, words: str) -> None:
    """Wrong input exits with status 2, no output, and one line on stderr that names the mistake or the correction."""
    assert_refused(explain(*arguments.split()), words)


# -- Cassandra and Smithy.


@pytest.mark.parametrize("family", [*FAMILIES, "Cassandra"])
def test_the_first_word_may_name_a_tradition(family: str) -> None:
    """If the first argument is "cassandra" or "smithy", in any case, the options and the help of that command apply."""
    result = explain(family, "--help")

    assert 0 == result.exit_code
    assert result.output.startswith(f"Usage: main explain {family.lower()} [OPTIONS]")


# -- Batches of questions.


def test_a_batch_answers_every_decision_as_expected() -> None:
    """A batch of all decisions in the shared data file prints the expected answers in order."""
    result = explain("--batch", "-", stdin=b"".join(QUESTIONS))

    answers = [json.loads(line) for line in result.stdout.splitlines()]
    assert len(QUESTIONS) == len(answers)
    for line, answer in zip(QUESTIONS, answers, strict=True):
        question = json.loads(line)
        assert {"id": question["id"], **question["expect"]} == {key: answer[key] for key in ("id", *question["expect"])}
    assert (0, "") == (result.exit_code, result.stderr)


def test_a_batch_continues_after_an_invalid_line(tmp_path: Path) -> None:
    """An invalid line gets an error, the other lines get their answers, and the exit status is 2."""
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
    """The example question in the help, copied unchanged, gets an answer."""
    (line,) = [line for line in explain("--help").output.splitlines() if line.lstrip().startswith("{")]
    result = explain("--batch", "-", stdin=line.encode())

    assert (0, "KV_TEMPORARY_FAILURE") == (result.exit_code, json.loads(result.output)["reason"])


def test_an_empty_batch() -> None:
    """An empty batch prints nothing and exits with status 0."""
    result = explain("--batch", "-", "--json", stdin=b"")

    assert (0, "") == (result.exit_code, result.output)


def test_a_batch_answers_each_line_immediately() -> None:
    """Each answer is printed before the next question is read."""
    pipe = subprocess.PIPE
    with subprocess.Popen([*COMMAND, "--batch", "-"], stdin=pipe, stdout=pipe, stderr=pipe) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for question in QUESTIONS[:5]:
            process.stdin.write(question)
            process.stdin.flush()

            assert json.loads(question)["id"] == json.loads(process.stdout.readline())["id"]
        process.stdin.close()

        assert (b"", 0) == (process.stdout.read(), process.wait())


@pytest.mark.long
def test_batch_memory_does_not_grow() -> None:
    """A large batch accumulates neither questions nor answers in memory."""
    program = """
import resource, sys
import triclinium._cli.explain.explain_command
from triclinium._cli import main
def peak_bytes():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
before = peak_bytes()
main(["explain", "--batch", "-"], standalone_mode=False)
print(peak_bytes() - before, file=sys.stderr)
"""
    questions = b"".join(QUESTIONS[number % len(QUESTIONS)] for number in range(BATCH_LINES))
    run = subprocess.run([sys.executable, "-c", program], input=questions, capture_output=True, check=True)

    assert BATCH_LINES == run.stdout.count(b"\n")
    assert int(run.stderr) < BATCH_GROWTH_MAX < len(questions) / 2
