"""What has come of an answer: the rows, who waits for them, and when reading pauses."""

from __future__ import annotations

import pytest

from tests.rows import rows
from triclinium_core import errors
from triclinium_core.services.answer import incoming_answer
from triclinium_core.services.service_request import Acknowledged

ROW = b'"%s"' % (b"x" * 1000)


def begun(status: int = incoming_answer.HTTP_OK, rows_of: str | None = "results") -> incoming_answer.IncomingAnswer:
    """Return an answer of which the body begins."""
    answer = incoming_answer.IncomingAnswer()
    answer.begin(status, rows_of=rows_of)
    answer.receive(b'{"results":[' if rows_of is not None else b"")
    return answer


def read(answer: incoming_answer.IncomingAnswer) -> incoming_answer.IncomingAnswer:
    """Return an answer whose reader has had the first row, and has not asked for more."""
    answer.receive(b"1,")
    assert [b"1"] == answer.take()
    return answer


def hold(answer: incoming_answer.IncomingAnswer, size: int) -> None:
    """Have so many bytes of rows come that nobody takes."""
    answer.receive((ROW + b",") * (size // len(ROW) + 1))


def test_rows_are_handed_out_once_and_the_end_behind_them() -> None:
    """Whoever waits gets what has come; whoever reads gets nothing until more is wanted."""
    answer = begun()
    answer.receive(b"1,2,")

    assert [b"1", b"2"] == answer.take()
    answer.receive(b"3,")
    answer.outcome = Acknowledged()
    assert answer.take() is None
    assert (True, False) == (answer.want(), answer.want())
    assert [b"3"] == answer.take()
    assert answer.want()
    assert Acknowledged() == answer.take()


def test_many_rows_are_handed_out_in_parts() -> None:
    """More rows than a reader gets together are handed out in parts, in order, and the end follows them."""
    answer = begun()
    answer.receive(b",".join(b"%d" % number for number in range(2 * incoming_answer.ROWS_AT_ONCE_MAX + 1)) + b"]}")
    answer.outcome = Acknowledged()
    parts: list[list[bytes]] = []
    while isinstance(given := answer.take(), list):
        parts.append(given)
        answer.want()

    assert Acknowledged() == given
    assert [incoming_answer.ROWS_AT_ONCE_MAX, incoming_answer.ROWS_AT_ONCE_MAX, 1] == [*map(len, parts)]
    assert [b"%d" % number for number in range(2 * incoming_answer.ROWS_AT_ONCE_MAX + 1)] == [
        row for part in parts for row in part
    ]
    assert not answer.pauses()


def test_nothing_is_retried_once_rows_were_handed_out() -> None:
    """An error without rows before it is handed out at once."""
    fresh, taken = begun(), read(begun())
    fresh.outcome = error = errors.CouchbaseException("no")

    assert (False, True) == (fresh.has_given_rows, taken.has_given_rows)
    assert error is fresh.take()


def test_reading_pauses_and_goes_on() -> None:
    """Once each: when too much is held, and when that was taken."""
    answer = read(begun())
    hold(answer, incoming_answer.HELD_SIZE_BYTES)

    assert [True, False, False] == [answer.pauses(), answer.pauses(), answer.resumes()]
    answer.want()
    answer.take()
    assert [True, False] == [answer.resumes(), answer.resumes()]


def test_the_next_answer_on_the_stream_is_read() -> None:
    """Whatever is held of one that has ended."""
    answer = read(begun())
    hold(answer, incoming_answer.HELD_SIZE_BYTES)
    answer.pauses()

    assert [True, False] == [answer.resumes(is_whole=True), answer.resumes(is_whole=True)]


def test_what_comes_all_the_same_is_bounded() -> None:
    """A driver that does not pause, and a body without an end."""
    paused = read(begun())
    hold(paused, incoming_answer.HELD_SIZE_BYTES)
    paused.pauses()
    hold(paused, incoming_answer.HELD_SIZE_BYTES_MAX)

    with pytest.raises(incoming_answer.UnreadableAnswer, match="were not requested"):
        paused.pauses()
    with pytest.raises(incoming_answer.UnreadableAnswer, match="more than"):
        begun(rows_of=None).receive(bytes(incoming_answer.BODY_SIZE_BYTES_MAX + 1))


def test_the_rows_of_an_error_are_not_held() -> None:
    """Nobody takes them."""
    answer = begun(status=400)
    hold(answer, 2 * incoming_answer.HELD_SIZE_BYTES)

    assert not answer.pauses()
    assert answer.take() is None


@pytest.mark.parametrize(("rows_of", "end"), [(None, b"whole"), ("results", b"]}")])
def test_the_body_without_its_rows(rows_of: str | None, end: bytes) -> None:
    """An answer without rows is kept as it came; in place of rows stands an empty array."""
    answer = begun(rows_of=rows_of)
    answer.receive(end)

    assert (b"whole" if rows_of is None else b'{"results":[]}') == answer.whole()


def test_another_attempt_begins_with_nothing() -> None:
    """What came of the answer before it is forgotten."""
    answer = begun(rows_of=None)
    answer.receive(b"first")
    answer.begin(incoming_answer.HTTP_OK, rows_of=None)
    answer.receive(b"second")

    assert b"second" == answer.whole()


def test_every_state_of_a_reader_hears_one_event() -> None:
    """Whoever waits is given rows, and whoever reads wants them."""
    heard = {state: set(following) for state, following in incoming_answer.READER_TRANSITIONS.items()}

    given, wanted = {incoming_answer.ReaderEvent.ROWS_GIVEN}, {incoming_answer.ReaderEvent.ROWS_WANTED}
    assert {
        incoming_answer.ReaderState.NEW: given,
        incoming_answer.ReaderState.WAITING: given,
        incoming_answer.ReaderState.READING: wanted,
    } == heard


def identified(
    rows_of: str | None, context_id: str = "ours", status: int = incoming_answer.HTTP_OK
) -> incoming_answer.IncomingAnswer:
    """Return an answer without any bytes yet, to a request with a client context id."""
    answer = incoming_answer.IncomingAnswer()
    answer.context_id = context_id
    answer.begin(status, rows_of=rows_of)
    return answer


def receive_in_two(answer: incoming_answer.IncomingAnswer, body: bytes, cut: int) -> None:
    """Feed an answer in two pieces."""
    answer.receive(body[:cut])
    answer.receive(body[cut:])


@rows(
    ("body", "status"),
    [
        (b'{"clientContextID":"theirs","results":[1,2]}', 200),  # in front of the rows
        (b'{"client\\u0043ontextID":"their\\u0073","results":[1,2]}', 200),  # escaped
        (b'{"results":[1,2],"clientContextID":"theirs"}', 200),  # behind the rows
        (b'{"clientContextID":"theirs","errors":[{"code":3000}],"status":"fatal"}', 400),  # of an error
        (b'{"clientContextID":"theirs","results":[1,,', 200),  # of no list of rows
    ],
)
def test_rows_of_another_request_are_never_handed_out(body: bytes, status: int) -> None:
    """An answer with the id of another request is refused however it is split, and its rows are dropped."""
    for cut in range(len(body) + 1):
        answer = identified("results", status=status)
        with pytest.raises(incoming_answer.ForeignAnswer, match="theirs"):
            receive_in_two(answer, body, cut)

        assert answer.take() is None


def test_an_id_behind_rows_that_were_handed_out() -> None:
    """If rows were handed out before the id of another request arrives, the answer is refused from the id on."""
    answer = identified("results")
    answer.receive(b'{"results":[1,')
    assert [b"1"] == answer.take()

    with pytest.raises(incoming_answer.ForeignAnswer):
        answer.receive(b'2],"clientContextID":"theirs"}')
    assert answer.has_given_rows


@rows(
    "body",
    [
        b'{"clientContextID":"ours","results":[1]}',  # ours
        b'{"clientContextID":"\\u006furs","results":[1]}',  # escaped
        b'{"results":[1]}',  # none
        b'{"clientContextID":null,"results":[1]}',  # null
        b'{"a":{"clientContextID":"theirs"},"results":[1]}',  # deeper within
    ],
)
def test_rows_of_our_request(body: bytes) -> None:
    """An answer with the id of the request, or without an id, hands out its rows however it is split."""
    for cut in range(len(body) + 1):
        answer = identified("results")
        receive_in_two(answer, body, cut)

        assert [b"1"] == answer.take()


def test_a_whole_answer_to_another_request() -> None:
    """The id of an answer that is read whole is checked when the answer has ended."""
    for body, is_foreign in (
        (b'{"clientContextID":"theirs"}', True),
        (b'{"clientContextID":"ours"}', False),
        (b"", False),
    ):
        answer = identified(None)
        answer.receive(body)
        try:
            answer.check_whole()
        except incoming_answer.ForeignAnswer:
            assert is_foreign
        else:
            assert not is_foreign


def test_a_retry_is_answered_under_its_own_id() -> None:
    """The answer to the next attempt is compared with the id of that attempt."""
    answer = identified("results", "first")
    answer.context_id = "second"
    answer.begin(incoming_answer.HTTP_OK, rows_of="results")

    with pytest.raises(incoming_answer.ForeignAnswer, match="first"):
        answer.receive(b'{"clientContextID":"first","results":[1]}')
