"""Query service of a fake node: constants, parameters, scripted answers, prepared statements, plans and profiles."""

from __future__ import annotations

from typing import Any

import pytest

from tests.core.testing.http_client import HttpClient
from tests.rows import rows
from triclinium_core import errors
from triclinium_core.testing import FakeAnswer, FakeNode
from triclinium_core.testing.fakes.unsupported import PAGE


@pytest.fixture
def client() -> HttpClient:
    """Return a connection to the query service of a lone node."""
    return HttpClient(FakeNode())


@rows(
    ("statement", "parameters", "expected"),
    [
        ("SELECT 1 AS one", {}, [{"one": 1}]),
        ('SELECT RAW "x"', {}, ["x"]),
        ("select raw 'it''s';", {}, ["it's"]),
        ("SELECT RAW [1, -2.5, true, null, {'a': \"b\\n\"}]", {}, [[1, -2.5, True, None, {"a": "b\n"}]]),
        ("SELECT $name AS a, $1, ? b", {"$name": {"x": 1}, "args": [7, 8]}, [{"a": {"x": 1}, "$2": 7, "b": 7}]),
        ("SELECT ?, ? two", {"args": [1, 2]}, [{"$1": 1, "two": 2}]),
        ("SELECT RAW 1 = 1 AND NOT (1 != 1 OR NULL IS NOT NULL)", {}, [True]),
        ("SELECT RAW (1 IS NULL) = FALSE", {}, [True]),
        (
            "SELECT RAW [NOT NULL, NOT TRUE, NOT 0, NOT 'x', NOT (NULL AND TRUE)]",
            {},
            [[None, False, True, False, None]],
        ),
        ("SELECT RAW [NULL AND 1, NULL AND FALSE, NULL OR TRUE, NULL OR '']", {}, [[None, False, True, None]]),
        ("SELECT NOT MISSING a, MISSING AND NULL b, MISSING OR NULL c, MISSING OR FALSE d", {}, [{"c": None}]),
        ("SELECT RAW $a == MISSING", {"$a": 1}, []),
        ("SELECT {'a': 1, \"b\": []} AS `it`", {}, [{"it": {"a": 1, "b": []}}]),
        ("SELECT {a: 1}", {}, None),
        ("SELECT -'a'", {}, None),
        ("SELECT 1e999", {}, None),
        ("SELECT -1e999", {}, None),
        ("SELECT " + "9" * 5000, {}, None),
        ("SELECT 1 IS 2", {}, None),
        ("SELECT MISSING AS gone, 1 kept", {}, [{"kept": 1}]),
        ("SELECT RAW MISSING", {}, []),
        ("SELECT 1 WHERE", {}, None),
        ("SELECT * FROM travel", {}, None),
        ("SELECT 1 + 1", {}, None),
        ("SELECT 'open", {}, None),
        ("SELECT RAW " + "(" * 1000 + "1" + ")" * 1000, {}, None),
        ("", {}, None),
        ("UPSERT INTO travel VALUES ('a', 1)", {}, None),
    ],
)
def test_constants(client: HttpClient, statement: str, parameters: dict[str, object], expected: object) -> None:
    """The service evaluates simple statements without documents; its error for others refers to scripted answers."""
    answered = client.query(statement, **parameters)

    if expected is None:
        assert (400, [3000]) == (answered.status, answered.codes)
        assert "nodes.script.answer" in answered.body.decode()
    else:
        assert (200, expected) == (answered.status, answered.rows)
        assert "success" == answered.document["status"]


@rows("statement", ["CREATE PRIMARY INDEX ON default", "  upsert INTO travel VALUES ('a', 1)", "DROP INDEX a ON b"])
def test_readonly_write_is_refused(client: HttpClient, statement: str) -> None:
    """A read-only request for a write is refused even if the write is scripted or prepared; preparing it is allowed."""
    client.node.script.answer(statement, FakeAnswer(rows=[1]))
    refused = [
        client.query(statement, readonly=True),
        client.query(f"PREPARE p FROM {statement}", readonly=True, auto_execute=True),
    ]
    prepared = client.query(f"PREPARE p FROM {statement}", readonly=True)
    refused.append(client.query(None, prepared="p", readonly=True))
    done = client.query(None, prepared="p")

    assert [(403, [1000])] * 3 == [(answered.status, answered.codes) for answered in refused]
    assert (200, 200, [1]) == (prepared.status, done.status, done.rows)


@rows("statement", ["SELECT $nobody", "SELECT $1", "SELECT ?"])
def test_a_parameter_without_a_value(client: HttpClient, statement: str) -> None:
    """A parameter without a value gets the service's own error, not that of an unknown statement."""
    assert [5010] == client.query(statement).codes


@rows(("levels", "is_returned"), [(1, True), (400, True), (800, False)])
def test_deep_parameters(client: HttpClient, levels: int, is_returned: bool) -> None:
    """A query parameter is returned, unless its nesting exceeds the maximum; then the request counts as empty."""
    deep: list[object] = []
    for _ in range(levels):
        deep = [deep]
    answered = client.query("SELECT RAW $1", args=[deep])

    assert (is_returned, [] if is_returned else [1050]) == ([deep] == answered.rows, answered.codes)


def test_scripted_answer(client: HttpClient) -> None:
    """A scripted answer has its rows and metadata in the order of a real service, and the client's context id."""
    scripted = FakeAnswer(rows=[{"a": 1}, {"a": 2}], metadata={"warnings": [{"code": 1, "msg": "w"}], "status": "odd"})
    client.node.script.answer("SELECT t.* FROM t", scripted)
    answered = client.query("  SELECT   t.*\nFROM t ; ", client_context_id="mine", metrics=True)
    document = answered.document

    assert [{"a": 1}, {"a": 2}] == answered.rows
    assert ["requestID", "clientContextID", "signature", "results", "status", "metrics", "warnings"] == list(document)
    assert ("mine", "odd") == (document["clientContextID"], document["status"])
    assert document["metrics"]["resultCount"] == 2  # type: ignore[index]
    assert "metrics" not in client.query("SELECT t.* FROM t", metrics=False).document


def test_errors_after_rows(client: HttpClient) -> None:
    """A failure after rows has HTTP status 200 and errors in the body; a failure without rows has another status."""
    error = {"code": 5000, "msg": "gone", "retry": True}
    client.node.script.answer("half", FakeAnswer(rows=[1], errors=[error]))
    client.node.script.answer("none", FakeAnswer(errors=[error], http_status=500))
    half, none = client.query("half"), client.query("none")

    assert (200, [1], [error], "errors") == (half.status, half.rows, half.document["errors"], half.document["status"])
    assert (500, [], [error], "fatal") == (none.status, none.rows, none.document["errors"], none.document["status"])


def test_statements_are_prepared(client: HttpClient) -> None:
    """A prepared statement is executed by its name with new parameters, or immediately on request."""
    prepared = client.query("PREPARE mine FROM SELECT $1 AS one")
    wrong = client.query("PREPARE SELECT 1 AS it FROM", auto_execute=True)
    once = client.query("PREPARE SELECT ? AS it", auto_execute=True, args=[2])
    executed = client.query(prepared="mine", args=["x"])

    assert [("mine", "SELECT $1 AS one")] == [(row["name"], row["text"]) for row in prepared.rows]
    assert [3000] == wrong.codes
    assert [{"it": 2}] == once.rows
    assert [{"it": 3}] == client.query(prepared=once.document["prepared"], args=[3]).rows
    assert [{"one": "x"}] == executed.rows == client.query("EXECUTE mine", args=["x"]).rows
    assert "SELECT $1 AS one" == client.node.request_log[3].statement


@rows(
    ("question", "logged"),
    [
        ({"prepared": "mine"}, "SELECT\n  1 AS one"),
        ({"statement": "execute `mine`"}, "SELECT\n  1 AS one"),
        ({"statement": "PREPARE yours AS SELECT  2;", "auto_execute": True}, "SELECT  2;"),
        ({"statement": "PREPARE yours AS SELECT  2;"}, "PREPARE yours AS SELECT  2;"),
        ({"statement": "PREPARE", "auto_execute": True}, "PREPARE"),
        ({"statement": "EXECUTE"}, "EXECUTE"),
        ({"statement": "EXECUTE theirs"}, "EXECUTE theirs"),
        ({"prepared": "theirs"}, None),
        ({"prepared": "mine", "statement": "EXECUTE theirs"}, "SELECT\n  1 AS one"),
        ({"statement": " SELECT\t1 "}, " SELECT\t1 "),
    ],
)
def test_log_has_the_executed_statement(client: HttpClient, question: dict[str, Any], logged: str | None) -> None:
    """The log has the text of a prepared statement that is executed, and otherwise the statement of the request."""
    client.query("PREPARE mine FROM SELECT\n  1 AS one")
    client.query(**question)

    assert logged == client.node.request_log[-1].statement


def test_name_of_a_plan_depends_on_words(client: HttpClient) -> None:
    """Statements that differ only in white space have the same plan, and other statements have others."""
    statements = "PREPARE SELECT 1", "PREPARE  SELECT\n1", "PREPARE SELECT 2"
    first, again, other = (client.query(statement).rows[0]["name"] for statement in statements)

    assert (first, True) == (again, first != other)


@rows("code", [4040, 4050, 4070])
def test_plans_go_stale(client: HttpClient, code: int) -> None:
    """A stale plan gives the code until its statement is prepared again."""
    before = client.node.plans.prepared
    client.query("PREPARE mine FROM SELECT 1 AS one")
    client.node.plans.go_stale(code)
    stale = [client.query(prepared="mine").codes for _ in range(2)]
    client.query("PREPARE mine FROM SELECT 1 AS one")

    assert [[code], [code]] == stale
    assert [{"one": 1}] == client.query(prepared="mine").rows
    assert before + 2 == client.node.plans.prepared


def test_invalid_stale_code_is_refused(client: HttpClient) -> None:
    """A code other than those of stale plans is refused, with a list of these; PREPARE alone gets status 400."""
    with pytest.raises(errors.InvalidArgumentException, match="4070"):
        client.node.plans.go_stale(3000)

    assert 400 == client.query("PREPARE").status


def test_forgotten_plans(client: HttpClient) -> None:
    """A forgotten plan gives the error of a plan that was never prepared."""
    client.query("PREPARE mine FROM SELECT 1 AS one")
    client.node.plans.forget()
    forgotten, unknown = client.query(prepared="mine"), client.query(prepared="theirs")

    assert [(404, [4040])] * 2 == [(answered.status, answered.codes) for answered in (forgotten, unknown)]


def test_form_is_accepted(client: HttpClient) -> None:
    """A form with parameters in JSON is accepted, as curl sends it; an invalid request is refused."""
    form = client.ask("POST", "/query/service", b"statement=SELECT+%241+AS+one&args=%5B%22x%22%5D")
    nothing = client.ask("POST", "/query/service", b"[]")

    assert [{"one": "x"}] == form.rows == client.ask("GET", "/query/service?statement=SELECT+'x'+one").rows
    assert [1050] == nothing.codes
    # The service refuses a JSON body with invalid UTF-8 or deep nesting, and ignores a deeply nested form parameter.
    assert [1050] == client.ask("POST", "/query/service", b'{"statement": "\xff"}').codes
    deep = b"[" * 20_000
    assert [1050] == client.ask("POST", "/query/service", b'{"args": ' + deep).codes
    assert [{"one": 1}] == client.ask("POST", "/query/service", b"statement=SELECT+1+AS+one&args=" + deep).rows
    assert 404 == client.ask("GET", "/elsewhere").status
    assert 200 == client.ask("GET", "/admin/ping").status


def test_durations_are_above_zero(client: HttpClient) -> None:
    """Every statement takes some time, and the delays of a scripted answer are added to it."""
    client.node.script.answer("slow", FakeAnswer(rows=[1, 2], seconds=1.5, seconds_between_rows=0.5))
    client.send(client.encode_query("slow"))
    client.wait(1.5)
    client.wait(2.0)
    metrics = [each.document["metrics"] for each in (client.answered(), client.query("SELECT 1"))]

    assert [("2000.100000ms", "2000.080000ms"), ("0.100000ms", "0.080000ms")] == [
        (each["elapsedTime"], each["executionTime"])  # type: ignore[index]
        for each in metrics
    ]


def test_scripted_statements_are_explained(client: HttpClient) -> None:
    """EXPLAIN returns a plan of a scripted statement or of a SELECT, and uses up no scripted answer."""
    client.node.script.answer("SELECT * FROM people", FakeAnswer(rows=[1]), FakeAnswer(rows=[2]))
    scripted = client.query("EXPLAIN  SELECT *\nFROM people")
    constant = client.query("EXPLAIN SELECT 1 AS one")
    listing = client.query("EXPLAIN SELECT name FROM system:indexes WHERE name = 'a' ORDER BY name")
    executed = client.query("SELECT * FROM people")

    assert [("Sequence", "SELECT * FROM people")] == [(row["plan"]["#operator"], row["text"]) for row in scripted.rows]
    assert [
        ["ValueScan", "Stream"],
        ["DummyScan", "InitialProject", "Stream"],
        ["PrimaryScan", "Filter", "InitialProject", "Order", "Stream"],
    ] == [
        [each["#operator"] for each in answered.rows[0]["plan"]["~children"]]
        for answered in (scripted, constant, listing)
    ]
    assert [1] == executed.rows


@rows("statement", ["EXPLAIN", "EXPLAIN SELECT * FROM people", "EXPLAIN CREATE PRIMARY INDEX ON `default`"])
def test_other_statements_are_not_explained(client: HttpClient, statement: str) -> None:
    """EXPLAIN of nothing, or of anything but a scripted statement or a supported SELECT, is refused without effect."""
    assert [3000] == client.query(statement).codes
    assert [] == client.query("SELECT RAW name FROM system:indexes").rows


@rows(("profile", "has_timings"), [("timings", True), ("phases", False), ("off", None), (7, None)])
def test_profile_on_request(client: HttpClient, profile: object, has_timings: bool | None) -> None:
    """``phases`` gives the phases of a scripted statement, ``timings`` also its plan, and other values no profile."""
    client.node.script.answer("SELECT * FROM people", FakeAnswer(rows=[1]))
    found = client.query("SELECT * FROM people", profile=profile).document.get("profile")

    if has_timings is None:
        assert found is None
    else:
        assert isinstance(found, dict)
        assert {"valuescan": 1, "stream": 1} == found["phaseOperators"]
        assert has_timings == ("executionTimings" in found)


def test_unsupported_requests_name_the_page(client: HttpClient) -> None:
    """The errors of an unsupported statement, an administrative request and an unknown path name the page."""
    answered = [client.query("SELECT * FROM people"), client.ask("GET", "/admin/vitals"), client.ask("GET", "/nowhere")]

    assert [400, 501, 404] == [each.status for each in answered]
    assert all(PAGE in each.body.decode() for each in answered)
    assert "query-administration" in answered[1].body.decode()
