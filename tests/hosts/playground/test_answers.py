"""Answers of the playground from the native core: stories, errors of the reader, figures of the simulator."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser

import pytest
from click.testing import CliRunner

from docs._ext.playground import meaning, page
from docs._static.playground import cluster, coordinators
from docs._static.playground.answers import OWN
from docs._static.playground.story import STEPS_MAX
from tests.hosts.playground.choices import FLEETS, outage, story, text_of
from tests.rows import rows
from triclinium._cli import main

INVALID = "Invalid choice"

RETRY = "from triclinium_core.retry.couchbase import RetryAction\n"
PATIENT = f"{RETRY}class Patient:\n def retry_after(self, request, reason): return RetryAction.after(0.7)\nstrategy = Patient()"
BUSY = f"{RETRY}class Busy:\n def retry_after(self, request, reason): return RetryAction.after(0)\nstrategy = Busy()"
ASYNCHRONOUS = "class Late:\n async def retry_after(self, request, reason): ...\nstrategy = Late()"
POLICY = """\
from triclinium_core.retry.cassandra import DefaultRetryPolicy, RetryDecision, RetryVerdict

class Stubborn(DefaultRetryPolicy):
    def on_error_response(self, *, error, retry_count):
        return RetryVerdict(RetryDecision.RETRY_SAME)

strategy = Stubborn()
"""


class Form(HTMLParser):
    """Choices in the forms of the page: the values of check boxes by name, and of options."""

    def __init__(self) -> None:
        super().__init__()
        self.boxes: dict[str, list[str]] = {}
        self.checked: list[str] = []
        self.numbers: dict[str, str] = {}
        self.feed(page())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collect an input."""
        given = dict(attrs)
        if tag == "input" and given.get("type") == "checkbox":
            self.boxes.setdefault(str(given["name"]), []).append(str(given["value"]))
            self.checked += [str(given["value"])] if "checked" in given else []
        elif tag == "input" and given.get("type") == "number":
            self.numbers[str(given["name"])] = str(given["value"])


def test_temporary_failures_are_retried() -> None:
    """A node that is busy three times gets four requests, after 1, 2 and 4 ms, and the clause is that of its status."""
    text = text_of(story("upsert", "temporary_failure x3"))

    assert text.startswith("Success MutationResult(")
    assert ["1", "2", "4"] == re.findall(r"→ retry in (\d+) ms: KV_TEMPORARY_FAILURE", text)
    assert 4 == text.count("sends an attempt")
    assert "Deciding clause : RFC 0049 Response Code Retry List: KV: Temporary Failure 0x86" in text


def test_lost_increment_fails() -> None:
    """An increment whose response is lost fails, because it may have been applied; the clause is that of the loss."""
    text = text_of(story("increment", "hang_up_after_applying"))

    assert text.startswith("RequestCanceledException increment 'visits': the socket was closed before the response")
    assert "it may have been applied; read the document before writing again" in text
    assert "Deciding clause : RFC 0049 Network Time: it may have been applied" in text


def test_faults_strike_in_turn() -> None:
    """Several faults, some written by the reader, strike one request after the other."""
    text = text_of(story("get", "temporary_failure", more="locked x1;  not_my_vbucket "))

    assert ["TEMPORARY_FAILURE", "LOCKED", "NOT_MY_VBUCKET"] == re.findall(r"returns (\w+)", text)
    assert text.startswith("Success GetResult(")


def test_failover_redirects_the_request() -> None:
    """A request to a node that was failed over is sent to the new node of the document."""
    text = text_of(story("get", "@1: fail_over"))

    assert ["127.0.0.1:11212", "127.0.0.1:11214"] == re.findall(r"sends an attempt to (\S+)", text)


def test_quota_strategy_limits_attempts() -> None:
    """A Smithy strategy ends a request after three attempts, and the error gives the reason."""
    text = text_of(story("upsert", "temporary_failure x9", strategy="StandardRetryStrategy"))

    assert text.startswith("TemporaryFailureException")
    assert "attempt 3 was the last of max_attempts=3" in text


def test_queries_depend_on_idempotency() -> None:
    """A query whose connection is lost is sent again only if it is readonly."""
    assert text_of(story("query", "query: hang_up")).startswith("RequestCanceledException")
    assert text_of(story("readonly query", "query: hang_up")).startswith('Success {"born":1815}')


def test_statements_follow_the_policy() -> None:
    """A statement whose batch log was not written is retried on the same node if it is idempotent."""
    again = text_of(story("idempotent statement", "WriteTimeout(BATCH_LOG)", strategy="DefaultRetryPolicy"))
    failed = text_of(story("statement", "WriteTimeout(BATCH_LOG)", strategy="DefaultRetryPolicy"))

    assert "→ same node" in again
    assert "driver's page, onWriteTimeoutVerdict; decisions A3 and A6" in again
    assert again.startswith("Success rows")
    assert failed.startswith("WriteTimeout BATCH_LOG write: QUORUM needs 2 of the replicas")
    assert "Deciding clause : decision A2" in failed


def test_other_ends_of_statements() -> None:
    """A forgotten statement is prepared again, a late one times out, and a policy may lower the level."""
    prepared = text_of(story("statement", "Unprepared", strategy="DefaultRetryPolicy"))
    late = text_of(story("statement", "DriverTimeout", strategy="DefaultRetryPolicy"))
    lower = text_of(story("statement", "Unavailable", strategy="ConsistencyDowngradingRetryPolicy"))
    missed = text_of(story("statement", more="NodeUnavailable", strategy="DefaultRetryPolicy"))
    own = text_of(story("idempotent statement", "Overloaded", strategy=OWN, code=POLICY))

    assert "sends PREPARE to node 1" in prepared
    assert late.startswith("DriverTimeout no response within 2.0 s")
    assert "2000 ms gets DriverTimeout" in late
    assert "sends the request to node 1 at ONE" in lower
    assert "NodeUnavailable: no connection to node 1" in missed
    assert "→ same node" in own


def test_ignored_error_gives_no_rows() -> None:
    """A policy that ignores an error completes the request without rows."""
    code = POLICY.replace("RETRY_SAME", "IGNORE")

    text = text_of(story("idempotent statement", "Overloaded", strategy=OWN, code=code))

    assert text.startswith("Success no rows, because the policy ignored the error")


def test_own_strategy_decides() -> None:
    """Code of the reader decides about retries of requests and of the clients in the simulator."""
    text = text_of(story("get", "locked always", strategy=OWN, code=PATIENT))

    assert 3 == text.count("→ retry in 700 ms: KV_LOCKED")
    assert text.startswith("UnambiguousTimeoutException")
    assert "your own has your code: " in text_of(outage([OWN], code=PATIENT))


def test_long_stories_are_cut() -> None:
    """A picture has a maximum number of events, and its caption gives their total."""
    html = story("get", "locked always", strategy=OWN, code=BUSY)

    assert STEPS_MAX == html.count("<tr>")
    assert f"the first {STEPS_MAX} of " in html


@rows(
    ("given", "expected"),
    [
        (story("fetch"), "'fetch' is unknown; choose from upsert, get,"),
        (story("get", strategy="none"), "'none' is unknown; choose from FastFailOnTerminalErrorRetryStrategy,"),
        (story("get", more="explode"), "unknown fault: 'explode'; choose from drop_response,"),
        (story("get", "@7: kill"), "node 7 does not exist"),
        (story("statement", "Explode", strategy="DefaultRetryPolicy"), "'Explode' is not known; an answer is rows,"),
        (story("get", strategy=OWN, code="1 / 0"), "it raises ZeroDivisionError: division by zero"),
        (story("get", strategy=OWN, code="strategy ="), "SyntaxError: invalid syntax"),
        (story("get", strategy=OWN, code="other = 1"), "your code must define strategy, but it raises KeyError"),
        (story("get", strategy=OWN, code="strategy = 3"), "strategy=3 must be an object with a method retry_after"),
        (story("get", "locked", strategy=OWN, code=ASYNCHRONOUS), "write its methods without async"),
        (story("statement", strategy=OWN, code="strategy = 3"), "policy=3"),
        (outage(clients="many"), "clients='many' must be a number"),
        (outage(clients="1.5"), "Expected `int`, got `str` - at `$.fleet.clients`"),
        (outage(clients=0), "clients=0"),
        (outage(end=10), "end=10"),
        (outage(end=99), "the outage ends at 99 s, after the duration of 60 s"),
        (outage(seed="x"), "seed='x' must be a number"),
        (outage(kind="melts"), "melts"),
        (outage([OWN], code="strategy = 3"), "strategy=3 must be an object with a method retry_after"),
        (outage([OWN], code=POLICY), "must be an object with a method retry_after"),
        (outage([OWN], code=ASYNCHRONOUS), "is asynchronous; write its methods without async"),
        (outage(["nothing"]), "'nothing' is unknown; choose from none, best_effort,"),
    ],
)
def test_invalid_choices_are_named(given: str, expected: str) -> None:
    """The answer to an invalid choice names the value, and what is allowed."""
    text = text_of(given)

    assert text.startswith(INVALID)
    assert expected in text


def test_texts_are_escaped() -> None:
    """Markup in a text of the reader is text in the answer."""
    html = story("get", strategy=OWN, code="raise ValueError('<img src=x onerror=alert(1)>')")

    assert "<img" not in html
    assert "&lt;img src=x onerror=alert(1)&gt;" in html


def test_simulator_has_the_figures_of_the_command() -> None:
    """The simulator gives the same figures as ``triclinium simulate``."""
    arguments = [f"--strategy={name}" for name in FLEETS]
    arguments += ["--clients=500", "--capacity=75", "--outage=20-30", "--seed=1", "--json", "--jobs=1"]
    run = CliRunner().invoke(main, ["simulate", *arguments])
    figures = json.loads(run.output)["strategies"]

    text, done = text_of(outage()), [figure["totals"] for figure in figures]

    assert [f"{each['succeeded'] / each['begun']:.1%}" for each in done] == re.findall(r"(\S+%) succeeded", text)
    assert [f"{each['amplification']:.2f}" for each in done] == re.findall(r"(\S+) attempts per operation,", text)
    assert 1 == text.count("does not recover")


def test_offered_faults_strike() -> None:
    """Every fault that the page offers changes the story of some operation, and has a meaning."""
    undisturbed = {name: story(name) for name in (*cluster.OPERATIONS, *cluster.QUERIES)}
    undisturbed |= {name: story(name, strategy="DefaultRetryPolicy") for name in coordinators.OPERATIONS}

    for fault in Form().boxes["fault"]:
        assert meaning(fault)
        answers = {
            name: story(
                name,
                fault,
                strategy="DefaultRetryPolicy" if name in coordinators.OPERATIONS else "ErrorMapRetryStrategy",
            )
            for name in undisturbed
        }
        valid = {name for name, html in answers.items() if INVALID not in html}
        assert any(answers[name] != undisturbed[name] for name in valid), fault


def test_every_strategy_gives_a_story() -> None:
    """Every operation of a cluster has a story with every strategy."""
    for name in cluster.STRATEGIES:
        for operation in (*cluster.OPERATIONS, *cluster.QUERIES):
            assert "calls" in story(operation, "temporary_failure", strategy=name)


def test_page_has_recorded_answers() -> None:
    """The page contains the answers to the choices in its forms, from the core that built it, and names no host."""
    form, html = Form(), page()

    assert ["temporary_failure x3", *FLEETS] == form.checked
    assert story("upsert", "temporary_failure x3") in html
    assert outage(**form.numbers) in html
    assert "<noscript>" in html
    assert not re.search(r"""(src|href)=["']?(https?:)?//""", html)


def test_unknown_form_is_refused() -> None:
    """A question that is not JSON raises, because only a defect of the page can cause it."""
    with pytest.raises(ValueError, match="Expecting value"):
        story.__globals__["answer"]("nothing")
