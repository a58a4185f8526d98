"""``triclinium query``: rows on stdout, and one line on stderr for an error."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping

import pytest
import trio
from click.testing import CliRunner, Result

from tests.rows import rows
from tests.trio_client._cli.refusals import assert_refused
from triclinium._cli import main
from triclinium._cli.query.query_command import read_parameters
from triclinium.testing import FakeAnswer, FakeCluster, Service, drop_response, hang_up, open_tcp_cluster

STATEMENT = "SELECT p.* FROM people p"


@pytest.fixture
async def fake() -> AsyncIterator[FakeCluster]:
    """Serve a node with a query service."""
    with trio.fail_after(60):
        async with open_tcp_cluster() as fake:
            yield fake


async def query(fake: FakeCluster, statement: str, *options: str) -> Result:
    """Run the command in a thread, next to the node."""
    arguments = ["query", fake.connection_string, statement, *options]
    known = {"TRICLINIUM_USERNAME": fake.node.options.username, "TRICLINIUM_PASSWORD": fake.node.options.password}
    return await trio.to_thread.run_sync(lambda: CliRunner().invoke(main, arguments, env=known))


def asked(fake: FakeCluster) -> list[Mapping[str, object]]:
    """Return the JSON bodies of the requests that the node received."""
    return [json.loads(request.body) for request in fake.node.request_log]


async def test_rows(fake: FakeCluster) -> None:
    """Rows are printed as indented JSON, or one per line with ``--json``; a parameter is JSON or else text."""
    for options, expected in (
        ((), '{\n  "a": [\n    30\n  ],\n  "b": "ada"\n}\n'),
        (("--json",), '{"a":[30],"b":"ada"}\n'),
    ):
        done = await query(fake, "SELECT $a AS a, $b AS b", "--param", "a=[30]", "--param", "$b=ada", *options)

        assert (0, expected, "") == (done.exit_code, done.stdout, done.stderr)


async def test_terminal_controls_in_rows_are_escaped(fake: FakeCluster) -> None:
    """Control characters and bidirectional marks in rows become equivalent JSON escapes, and other letters stay."""
    row = "\x9b31mred \u202e\u2066\x7f\x1b\u2028 träge 日本"
    fake.nodes.script.answer(STATEMENT, FakeAnswer(rows=[{row: row}]))
    for options in ((), ("--json",)):
        done = await query(fake, STATEMENT, *options)

        assert done.stdout.replace("\n", "").isprintable()
        assert "träge 日本" in done.stdout
        assert {row: row} == json.loads(done.stdout)


async def test_terminal_controls_in_errors_are_escaped(fake: FakeCluster) -> None:
    """A hostile error of the service, or a hostile argument, is printed as one printable line."""
    evil = "\x9b31m\u202e\x1b[2J\n"
    fake.nodes.script.answer(STATEMENT, FakeAnswer(errors=[{"code": 5000, "msg": evil}]))
    answered, mistyped = await query(fake, STATEMENT), await query(fake, STATEMENT, "--param", evil)

    assert (1, 2) == (answered.exit_code, mistyped.exit_code)
    assert [True] * 2 == [done.stderr.removesuffix("\n").isprintable() for done in (answered, mistyped)]


async def test_positional_parameters(fake: FakeCluster) -> None:
    """Arguments after the statement are positional parameters in order; after ``--`` they may begin with a dash."""
    done = await query(fake, "SELECT $1 AS a, $2 AS b, $c AS c", "[30]", "ada", "--param", "c=1", "--json")
    dashed = await query(fake, "SELECT ? AS a", "--json", "--", "-5")

    assert (0, '{"a":[30],"b":"ada","c":1}\n', "") == (done.exit_code, done.stdout, done.stderr)
    assert (0, '{"a":-5}\n', "") == (dashed.exit_code, dashed.stdout, dashed.stderr)


async def test_options_reach_the_service(fake: FakeCluster) -> None:
    """The timeout and the readonly flag are sent to the service."""
    done = await query(fake, "SELECT 1 AS one", "--readonly", "--timeout", "5")
    (sent,) = asked(fake)

    assert (0, True) == (done.exit_code, sent["readonly"])
    assert 0 < int(str(sent["timeout"]).removesuffix("ms")) <= 5000


async def test_a_failure_after_some_rows(fake: FakeCluster) -> None:
    """If the query fails after some rows, those are printed and the exit status is 1."""
    error = {"code": 5000, "msg": "out of\nmemory"}
    fake.nodes.script.answer(STATEMENT, FakeAnswer(rows=[1, 2], errors=[error]))
    done = await query(fake, STATEMENT, "--json")

    assert (1, "1\n2\n", 1) == (done.exit_code, done.stdout, done.stderr.count("\n"))
    assert "5000" in done.stderr
    assert 1 == len(fake.node.request_log)


async def test_a_statement_with_a_syntax_error(fake: FakeCluster) -> None:
    """A syntax error is printed on one line and is not retried."""
    assert_refused(await query(fake, "SELEC 1"), "3000", status=1)
    assert 1 == len(fake.node.request_log)


async def test_a_lost_connection_is_an_error(fake: FakeCluster) -> None:
    """If the connection is lost, even a readonly statement is not sent again."""
    fake.node.faults.next(Service.QUERY, hang_up())
    assert_refused(await query(fake, "SELECT 1", "--readonly"), "closed", status=1)
    assert 1 == len(fake.node.request_log)


async def test_a_silent_service_is_an_error(fake: FakeCluster) -> None:
    """A service that does not respond within the timeout is an error."""
    fake.node.faults.always(Service.QUERY, drop_response())
    assert_refused(await query(fake, "SELECT 1", "--timeout", "0.3"), status=1)


async def test_a_wrong_password_fails_immediately(fake: FakeCluster) -> None:
    """A wrong password ends the command with status 1 and one line that names the user."""
    done = await query(fake, "SELECT 1", "--username", "nobody", "--password", "wrong")

    assert_refused(done, "nobody", status=1)


@rows(
    ("arguments", "named"),
    [
        (("memcached://127.0.0.1", "SELECT 1"), "memcached"),
        (("couchbase://127.0.0.1:x", "SELECT 1"), "127.0.0.1:x"),
        (("couchbase://127.0.0.1", " "), "statement"),
        (("couchbase://127.0.0.1", "SELECT 1", "--param", "age"), "age"),
        (("couchbase://127.0.0.1", "SELECT 1", "--param", "=5"), "=5"),
        (("couchbase://127.0.0.1", "SELECT $1", "--param", "$=1"), "$=1"),
        (("couchbase://127.0.0.1", "SELECT 1", "--param", "a=1"), "$a is not in"),
        (("couchbase://127.0.0.1", "SELECT $a", "--param", "a=1", "--param", "$a=2"), "a is given twice"),
        (("couchbase://127.0.0.1", "SELECT $age", "--param", "ag=1"), "$ag is not in the statement"),
        (("couchbase://127.0.0.1", "SELECT $a", "--param", "a=\udcff"), "not UTF-8 text"),
        (("couchbase://127.0.0.1", "SELECT $1", "\udcff"), "not UTF-8 text"),
        (("couchbase://127.0.0.1", "SELECT 1", "--timeout", "0"), "timeout"),
        (("couchbase://127.0.0.1", "SELECT 1", "--ca-file", __file__), "ca-file"),
    ],
)
def test_wrong_arguments(arguments: tuple[str, ...], named: str) -> None:
    """A wrong argument ends the command with status 2 and one line that names it."""
    credentials = {"TRICLINIUM_USERNAME": "ada", "TRICLINIUM_PASSWORD": "secret"}
    done = CliRunner().invoke(main, ["query", *arguments], env=credentials)

    assert_refused(done, named)


@rows(
    ("params", "expected"),
    [
        ((), {}),
        (("age=30", "name=ada", 'quoted="30"', "none=null"), {"age": 30, "name": "ada", "quoted": "30", "none": None}),
        (("$of=a=b", "empty="), {"of": "a=b", "empty": ""}),
        (("deep=" + "[" * 100_000,), {"deep": "[" * 100_000}),
        (("zip=01234",), {"zip": "01234"}),
    ],
)
def test_parameters(params: tuple[str, ...], expected: Mapping[str, object]) -> None:
    """A value that is not JSON is text; only the first equals sign separates name and value."""
    statement = " ".join(f"${name}" for name in expected)

    assert expected == read_parameters(params, statement)
