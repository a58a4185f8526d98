"""Answers of the playground from the native core: stories, errors of the reader, figures of the simulator."""

from __future__ import annotations

import json
import re
from collections import Counter
from html.parser import HTMLParser

import pytest
from click.testing import CliRunner

from docs._ext.playground import meaning, page
from docs._static.playground import cluster, coordinators
from docs._static.playground.answers import OWN, answer
from docs._static.playground.story import STEPS_MAX
from tests.hosts.playground.choices import FLEETS, outage, story, text_of
from tests.rows import rows
from triclinium._cli import main

INVALID = "Invalid choice"

RETRY = "from triclinium_core.retry.couchbase import RetryAction\n"
PATIENT = f"{RETRY}class Patient:\n def retry_after(self, request, reason): return RetryAction.after(0.7)\nstrategy = Patient()"
BUSY = f"{RETRY}class Busy:\n def retry_after(self, request, reason): return RetryAction.after(0)\nstrategy = Busy()"
ASYNCHRONOUS = "class Late:\n async def retry_after(self, request, reason): ...\nstrategy = Late()"
WRITE_TIMEOUT_CLAUSE = "driver's page, onWriteTimeoutVerdict; decisions A3 and A6"
POLICY = """\
from triclinium_core.retry.cassandra import DefaultRetryPolicy, RetryDecision, RetryVerdict

class Stubborn(DefaultRetryPolicy):
    def on_error_response(self, *, error, retry_count):
        return RetryVerdict(RetryDecision.RETRY_SAME)

strategy = Stubborn()
"""


class Form(HTMLParser):
    """Choices in the forms of the page: check boxes by name, the checked ones, and numbers by name."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.boxes: dict[str, list[str]] = {}
        self.checked: list[str] = []
        self.numbers: dict[str, str] = {}
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collect an input."""
        given = dict(attrs)
        if tag == "input" and given.get("type") == "checkbox":
            self.boxes.setdefault(str(given["name"]), []).append(str(given["value"]))
            self.checked += [str(given["value"])] if "checked" in given else []
        elif tag == "input" and given.get("type") == "number":
            self.numbers[str(given["name"])] = str(given["value"])


def test_temporary_failures_are_retried() -> None:
    """A node that is busy three times gets three retries, after 1, 2 and 4 ms, and the clause is that of its status."""
    text = text_of(story("upsert", "temporary_failure x3"))

    assert text.startswith("Success MutationResult(")
    assert ["1", "2", "4"] == re.findall(r"→ retry in (\d+) ms: KV_TEMPORARY_FAILURE", text)
    assert 4 == text.count("sends an attempt")
    assert "Deciding clause : RFC 0049 Response Code Retry List: KV: Temporary Failure 0x86" in text


@rows(
    ("html", "parts"),
    [
        (
            story("increment", "hang_up_after_applying"),
            [
                "RequestCanceledException increment 'visits': the socket was closed before the response",
                "it may have been applied; read the document before writing again",
                "Deciding clause : RFC 0049 Network Time: it may have been applied",
            ],
        ),
        (
            story("get", "temporary_failure", more="locked x1;  not_my_vbucket "),
            ["Success GetResult(", "returns TEMPORARY_FAILURE", "returns LOCKED", "returns NOT_MY_VBUCKET"],
        ),
        (
            story("get", "@1: fail_over"),
            ["Success GetResult(", "sends an attempt to 127.0.0.1:11212", "sends an attempt to 127.0.0.1:11214"],
        ),
        (
            story("upsert", "temporary_failure x9", strategy="StandardRetryStrategy"),
            ["TemporaryFailureException", "attempt 3 was the last of max_attempts=3"],
        ),
        (story("query", "query: hang_up"), ["RequestCanceledException"]),
        (story("readonly query", "query: hang_up"), ['Success {"born":1815}']),
        (
            story("statement", "WriteTimeout(BATCH_LOG)", strategy="DefaultRetryPolicy"),
            ["WriteTimeout BATCH_LOG write: QUORUM needs 2 of the replicas", "Deciding clause : decision A2"],
        ),
        (
            story("idempotent statement", "WriteTimeout(BATCH_LOG)", strategy="DefaultRetryPolicy"),
            ["Success rows", WRITE_TIMEOUT_CLAUSE, "→ same node", WRITE_TIMEOUT_CLAUSE],
        ),
        (story("statement", "Unprepared", strategy="DefaultRetryPolicy"), ["Success", "sends PREPARE to node 1"]),
        (
            story("statement", "DriverTimeout", strategy="DefaultRetryPolicy"),
            ["DriverTimeout no response within 2.0 s", "2000 ms gets DriverTimeout"],
        ),
        (
            story("statement", "Unavailable", strategy="ConsistencyDowngradingRetryPolicy"),
            ["Success", "sends the request to node 1 at ONE"],
        ),
        (
            story("statement", more="NodeUnavailable", strategy="DefaultRetryPolicy"),
            ["Success", "NodeUnavailable: no connection to node 1"],
        ),
        (story("idempotent statement", "Overloaded", strategy=OWN, code=POLICY), ["Success", "→ same node"]),
        (
            story("idempotent statement", "Overloaded", strategy=OWN, code=POLICY.replace("RETRY_SAME", "IGNORE")),
            ["Success no rows, because the policy ignored the error"],
        ),
        (
            story("get", "locked always", strategy=OWN, code=PATIENT),
            ["UnambiguousTimeoutException", *["→ retry in 700 ms: KV_LOCKED"] * 3],
        ),
        (outage([OWN], code=PATIENT), ["", "your own has your code: "]),
    ],
)
def test_answers_have_their_parts(html: str, parts: list[str]) -> None:
    """An answer starts with the outcome, which the other parts follow in order, none more often than listed."""
    text = text_of(html)
    first, *others = parts

    assert text.startswith(first)
    assert re.search(".*".join(map(re.escape, parts)), text)
    assert Counter(others) == {part: text.count(part) for part in others}


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
        (story("get", strategy=OWN, code="1 / 0"), "define strategy: ZeroDivisionError: division by zero"),
        (story("get", strategy=OWN, code="strategy ="), "SyntaxError: invalid syntax"),
        (story("get", strategy=OWN, code="other = 1"), "your code does not define strategy: KeyError"),
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
    """The answer to an invalid choice names what is invalid."""
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
    arguments += ["--clients=200", "--capacity=30", "--outage=20-30", "--seed=1", "--json", "--jobs=1"]
    run = CliRunner().invoke(main, ["simulate", *arguments])
    figures = json.loads(run.output)["strategies"]

    text, done = text_of(outage(clients=200, capacity=30)), [figure["totals"] for figure in figures]

    assert [f"{each['succeeded'] / each['begun']:.1%}" for each in done] == re.findall(r"(\S+%) succeeded", text)
    assert [f"{each['amplification']:.2f}" for each in done] == re.findall(r"(\S+) attempts per operation,", text)
    assert 1 == text.count("does not recover")


def test_offered_faults_strike() -> None:
    """Every fault that the page offers changes the story of some operation, and has a meaning."""
    # The first operation of each kind comes first, because nearly every fault strikes one of them.
    used = {"upsert": "ErrorMapRetryStrategy", "query": "ErrorMapRetryStrategy", "statement": "DefaultRetryPolicy"}
    used |= dict.fromkeys((*cluster.OPERATIONS, *cluster.QUERIES), "ErrorMapRetryStrategy")
    used |= dict.fromkeys(coordinators.OPERATIONS, "DefaultRetryPolicy")
    undisturbed = {name: story(name, strategy=strategy) for name, strategy in used.items()}

    for fault in Form(page()).boxes["fault"]:
        assert meaning(fault)
        answers = ((name, story(name, fault, strategy=strategy)) for name, strategy in used.items())
        assert any(INVALID not in html and html != undisturbed[name] for name, html in answers), fault


def test_every_strategy_gives_a_story() -> None:
    """Every operation of a cluster has a story with every strategy."""
    for name in cluster.STRATEGIES:
        for operation in (*cluster.OPERATIONS, *cluster.QUERIES):
            assert "calls" in story(operation, "temporary_failure", strategy=name)


def test_page_has_recorded_answers() -> None:
    """The page contains the answers to the choices in its forms, from the core that built it, and names no host."""
    html = page()
    form = Form(html)

    assert ["temporary_failure x3", *FLEETS] == form.checked
    assert story("upsert", "temporary_failure x3") in html
    assert outage(**form.numbers) in html
    assert "<noscript>" in html
    assert not re.search(r"""(src|href)=["']?(https?:)?//""", html)


def test_unknown_form_is_refused() -> None:
    """A question that is not JSON raises, because only a defect of the page can cause it."""
    with pytest.raises(ValueError, match="Expecting value"):
        answer("nothing")
