"""Replay of recorded clients: agreement, the first difference, and user code that is answered from the tape."""

from __future__ import annotations

import json
import random
import re
import typing
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.core.event_tape.tapes import PLANTED, Fickle, lines_of, small_tape
from tests.rows import rows
from triclinium_core import __version__
from triclinium_core.contract import couchbase
from triclinium_core.decision_tape.reading import TapeError
from triclinium_core.event_tape import digest, lines, recording
from triclinium_core.event_tape.replay import replay
from triclinium_core.event_tape.user_code import recorded_strategy, stand_in
from triclinium_core.event_tape.values import UserObject
from triclinium_core.kv.operation.document_operations import Get, Keyspace
from triclinium_core.options import ClientOptions, PasswordAuthenticator
from triclinium_core.retry.backoff import ConstantRandom
from triclinium_core.retry.couchbase import ErrorMapRetryStrategy, RetryAction, RetryReason, RetryRequest
from triclinium_core.retry.invalid_event import InvalidEvent
from triclinium_core.testing import FakeNodes, temporary_failure
from triclinium_core.testing.simulation import simulation
from triclinium_core.testing.simulation.history import play
from triclinium_core.testing.tapes import Tapes

HISTORIES = (3, 4, 7, 21)
"""Seeds of histories with services, several clients, and synchronous and asynchronous token strategies."""


@pytest.mark.parametrize("seed", HISTORIES)
def test_histories_of_the_simulation_agree(seed: int) -> None:
    """Recording changes nothing in a history with faults, and the replay of every client agrees."""
    recorded_by = Tapes()
    plain = play(seed)
    recorded = play(seed, make_machine=recorded_by.make_machine)
    tapes = lines_of(recorded_by)

    assert (None, plain.timeline) == (recorded.law, recorded.timeline)
    calls = [sum(not line.startswith(b'{"line":"permit"') for line in tape) - 1 for tape in tapes]
    assert calls == [replay(tape).calls for tape in tapes]


def test_user_code_is_answered_from_the_tape() -> None:
    """A user's strategy sees itself in each request; the tape has its answers and exceptions, and agrees with them."""
    strategy = Fickle()
    tape = small_tape(strategy)
    answers = [answer for line in tape for answer in json.loads(line).get("answers", ())]
    of_strategy = [answer for answer in answers if answer["of"].endswith(" retry_after")]
    delayed, raised, refused = of_strategy
    result = replay(tape)

    assert (len(tape) - 1, None) == (result.calls, result.difference)
    assert [strategy] * len(of_strategy) == [request.retry_strategy for request in strategy.asked]
    assert (True, "enough") == (0.01 < delayed["gave"]["delay"] < 0.02, refused["gave"]["because"])
    assert ["LookupError", "Exception", "no decision"] == raised["raised"]["$error"]
    assert 3 == sum(answer["of"].endswith(" backoff") for answer in answers)


def test_digests_have_no_document() -> None:
    """No value of a document occurs in a digest, and every kind of action has one."""
    tape = small_tape()

    assert 0 < sum(b"rows " in line for line in tape)
    assert [] == [line for line in tape if PLANTED.encode() in re.sub(rb'^.*"digest":', b"", line)]
    assert set(typing.get_args(couchbase.Action)) == digest._DIGESTS.keys()


@rows(
    ("field", "edit", "shown"),
    [
        ("answers", lambda answers: [], "instead of nothing"),
        ("answers", lambda answers: [*answers, {"of": "9 abandon"}], "no call of 9 abandon"),
        ("answers", lambda answers: [{**answers[0], "of": "9 abandon"}], "instead of 9 abandon"),
        ("random", lambda drawn: [*drawn, 0.5], "1 random numbers fewer"),
        ("random", lambda drawn: [], "a further random number"),
        ("now", lambda now: -1.0, "raised InvalidArgumentException"),
    ],
)
def test_differences_name_their_cause(field: str, edit: Callable[[Any], object], shown: str) -> None:
    """A difference names the call of user code or random number that is missing or left over, or the exception."""
    tape = [json.loads(line) for line in small_tape()]
    at = next(at for at, line in enumerate(tape) if at > 1 and line.get(field))
    tape[at][field] = edit(tape[at][field])
    difference = replay(json.dumps(line).encode() + b"\n" for line in tape).difference

    assert difference is not None
    assert (at + 1, f"line {at + 1}") == (difference.line, str(difference).partition(",")[0])
    assert shown in " ".join(difference.replayed)


class Interrupted(Fickle):
    """Strategy of a user that Control-C interrupts."""

    def retry_after(self, request: RetryRequest, reason: RetryReason, /) -> RetryAction:
        """Raise KeyboardInterrupt."""
        raise KeyboardInterrupt


def test_an_interrupt_ends_the_recording() -> None:
    """After a KeyboardInterrupt inside a strategy, the tape ends with the reason, and the calls before it agree."""
    tapes, nodes = Tapes(), FakeNodes()
    run = simulation.Simulation(nodes, rng=random.Random(1), make_machine=tapes.make_machine)
    run.tick()
    for node in nodes:
        node.faults.next(None, temporary_failure())
    run.submit(Get(Keyspace("default"), "k"), retry_strategy=Interrupted())
    with pytest.raises(KeyboardInterrupt):
        run.run()
    run.tick()
    (tape,) = lines_of(tapes)
    result = replay(tape)

    assert (len(tape) - 2, None) == (result.calls, result.difference)
    assert "KeyboardInterrupt" in str(result.ending)


def test_a_strategy_sees_what_was_passed() -> None:
    """A strategy inside a strategy of the core sees the outer one in the request, as without a tape."""
    inner = Fickle()
    outer = ErrorMapRetryStrategy(ErrorMapRetryStrategy(inner))
    tape = small_tape(outer)

    assert ({outer}, None) == ({request.retry_strategy for request in inner.asked}, replay(tape).difference)


def test_errors_name_the_users_class() -> None:
    """The class of a stand-in has the name of the user's class, which errors and timelines show."""
    book = recording._Recorder(ConstantRandom(0.5))
    recorded = recorded_strategy(Fickle(), book)

    assert ("Fickle", "Fickle") == (type(recorded).__name__, type(recorded).__qualname__)
    assert (True, "Mine") == (isinstance(recorded, UserObject), type(stand_in(book, "Mine", 1, "strategy")).__name__)


def test_exceptions_of_handle_agree() -> None:
    """A submission that the machine refuses is on the tape with its exception, and the replay refuses it too."""
    tape: list[bytes] = []
    options = ClientOptions(connection_string="couchbase://127.0.0.1", authenticator=PasswordAuthenticator("u", "p"))
    machine = recording.RecordedMachine(options, rng=ConstantRandom(0.5), write=tape.append)
    submitted = couchbase.OperationSubmitted(1, Get(Keyspace("travel"), "k"))  # type: ignore[arg-type]
    machine.handle(submitted, 1.0)
    with pytest.raises(InvalidEvent):
        machine.handle(submitted, 1.0)
    machine.error_context(1, 1.5)  # type: ignore[arg-type]
    machine.last_reports(2.0)

    assert b"raised InvalidEvent" in tape[2]
    assert (4, None) == (replay(tape).calls, replay(tape).difference)


def test_a_large_event_ends_the_recording(monkeypatch: pytest.MonkeyPatch) -> None:
    """After an event that is too large for a line, the tape ends with the reason; the calls before it agree."""
    monkeypatch.setattr(lines, "LINE_SIZE_MAX", 4_000)
    tape = small_tape()
    result = replay(tape)

    assert (len(tape) - 2, None) == (result.calls, result.difference)
    assert "too large" in str(result.ending)


@rows("parts", [b"[]," * 1_000, b"[" * 900 + b"]" * 900 + b",0" * 100, b"{}," * 1_000])
def test_a_line_of_many_parts_is_refused(parts: bytes) -> None:
    """A line whose objects would need much more memory than its text is refused before it is decoded."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(lines, "PARTS_MAX", 1_000)
        tape = small_tape()
        line = b'{"line":"event","now":1.0,"digest":[],"event":[' + parts + b"0]}\n"

        with pytest.raises(TapeError, match=r"line 2: .* 1000 commas and opening brackets"):
            replay([tape[0], line])


def test_other_versions_of_the_core_are_reported() -> None:
    """A tape of another core version is replayed; the result names that version."""
    tape = small_tape()
    other = [tape[0].replace(f'"core":"{__version__}"'.encode(), b'"core":"9.9"'), *tape[1:]]

    assert ("9.9", None) == (replay(other).core, replay(other).difference)


@rows(
    ("header", "named"),
    [
        (b"", "the header"),
        (b"{}", "the header"),
        (b'{"tape":"decisions","version":1}', "'decisions'"),
        (b'{"tape":"events","version":2}', "version 2"),
        (b'{"tape":"events","version":1}', "the header"),
        (
            b'{"tape":"events","version":1,"core":"1","notice":"","options":{"$":"Keyspace","bucket":"b"}}',
            "ClientOptions",
        ),
        (b'{"tape":"events","version":1,"core":"1","notice":"","options":{"$":"ClientOptions"}}', "ClientOptions"),
    ],
)
def test_bad_headers_are_refused(header: bytes, named: str) -> None:
    """A header of another kind, of a newer format or without valid options raises TapeError for line 1."""
    with pytest.raises(TapeError, match=rf"line 1: .*{re.escape(named)}"):
        replay([header + b"\n"])


def test_long_lines_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A line beyond the maximum is refused before its end is read."""
    monkeypatch.setattr(lines, "LINE_SIZE_MAX", 100_000)
    tape = small_tape()
    read = 0

    def endless() -> Iterator[bytes]:
        nonlocal read
        yield tape[0]
        while True:
            read += 1
            yield b"x" * 10_000

    with pytest.raises(TapeError, match="line 2: "):
        replay(endless())

    assert read < 15
