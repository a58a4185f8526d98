"""An incoming response: its rows, the state of its reader, and when reading from the socket pauses."""

from __future__ import annotations

import pytest

from tests.rows import rows
from triclinium_core import errors
from triclinium_core.services.answer import incoming_answer
from triclinium_core.services.service_request import Acknowledged

ROW = b'"%s"' % (b"x" * 1000)


def begun(status: int = incoming_answer.HTTP_OK, rows_of: str | None = "results") -> incoming_answer.IncomingAnswer:
    """Return a response whose body has started."""
    answer = incoming_answer.IncomingAnswer()
    answer.begin(status, rows_of=rows_of)
    answer.receive(b'{"results":[' if rows_of is not None else b"")
    return answer


def read(answer: incoming_answer.IncomingAnswer) -> incoming_answer.IncomingAnswer:
    """Pass the first row of a response to its reader, which does not request more rows; return the response."""
    answer.receive(b"1,")
    assert [b"1"] == answer.take()
    return answer


def hold(answer: incoming_answer.IncomingAnswer, size: int) -> None:
    """Receive more than ``size`` bytes of rows, which the reader does not take."""
    answer.receive((ROW + b",") * (size // len(ROW) + 1))


def test_rows_are_delivered_once_before_the_end() -> None:
    """A waiting reader gets the received rows, and no more rows until it requests them; the end follows the rows."""
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
    """If more rows than the maximum are held, the reader gets them in parts and in order, and then the end."""
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


def test_delivered_rows_are_recorded() -> None:
    """The response records whether it has delivered rows; a reader without rows gets an error immediately."""
    fresh, taken = begun(), read(begun())
    fresh.outcome = error = errors.CouchbaseException("no")

    assert (False, True) == (fresh.has_given_rows, taken.has_given_rows)
    assert error is fresh.take()


def test_reading_pauses_and_resumes() -> None:
    """Reading pauses once if the response holds too many bytes, and resumes once after the reader has taken rows."""
    answer = read(begun())
    hold(answer, incoming_answer.HELD_SIZE_BYTES)

    assert [True, False, False] == [answer.pauses(), answer.pauses(), answer.resumes()]
    answer.want()
    answer.take()
    assert [True, False] == [answer.resumes(), answer.resumes()]


def test_reading_resumes_at_the_end() -> None:
    """Reading resumes once when the response is complete, even if the response still holds rows."""
    answer = read(begun())
    hold(answer, incoming_answer.HELD_SIZE_BYTES)
    answer.pauses()

    assert [True, False] == [answer.resumes(is_whole=True), answer.resumes(is_whole=True)]


def test_sizes_are_limited() -> None:
    """If the driver does not pause, or the body is too large, the response raises UnreadableAnswer."""
    paused = read(begun())
    hold(paused, incoming_answer.HELD_SIZE_BYTES)
    paused.pauses()
    hold(paused, incoming_answer.HELD_SIZE_BYTES_MAX)

    with pytest.raises(incoming_answer.UnreadableAnswer, match="the caller has not read"):
        paused.pauses()
    with pytest.raises(incoming_answer.UnreadableAnswer, match="more than"):
        begun(rows_of=None).receive(bytes(incoming_answer.BODY_SIZE_BYTES_MAX + 1))


def test_the_rows_of_an_error_are_not_held() -> None:
    """The rows of an error response are dropped, so reading does not pause."""
    answer = begun(status=400)
    hold(answer, 2 * incoming_answer.HELD_SIZE_BYTES)

    assert not answer.pauses()
    assert answer.take() is None


@pytest.mark.parametrize(("rows_of", "end"), [(None, b"whole"), ("results", b"]}")])
def test_the_body_without_its_rows(rows_of: str | None, end: bytes) -> None:
    """The remaining body has an empty array in place of the rows; a body without rows is kept unchanged."""
    answer = begun(rows_of=rows_of)
    answer.receive(end)

    assert (b"whole" if rows_of is None else b'{"results":[]}') == answer.whole()


def test_another_attempt_begins_with_nothing() -> None:
    """A new attempt starts without the data of the previous response."""
    answer = begun(rows_of=None)
    answer.receive(b"first")
    answer.begin(incoming_answer.HTTP_OK, rows_of=None)
    answer.receive(b"second")

    assert b"second" == answer.whole()


def test_each_reader_state_accepts_one_event() -> None:
    """The table permits a new or waiting reader to get rows, and a reading reader to request rows."""
    received = {state: set(following) for state, following in incoming_answer.READER_TRANSITIONS.items()}

    given, wanted = {incoming_answer.ReaderEvent.ROWS_GIVEN}, {incoming_answer.ReaderEvent.ROWS_WANTED}
    assert {
        incoming_answer.ReaderState.NEW: given,
        incoming_answer.ReaderState.WAITING: given,
        incoming_answer.ReaderState.READING: wanted,
    } == received


def identified(
    rows_of: str | None, context_id: str = "ours", status: int = incoming_answer.HTTP_OK
) -> incoming_answer.IncomingAnswer:
    """Return a response without data, to a request with a client context id."""
    answer = incoming_answer.IncomingAnswer()
    answer.context_id = context_id
    answer.begin(status, rows_of=rows_of)
    return answer


def receive_in_two(answer: incoming_answer.IncomingAnswer, body: bytes, cut: int) -> None:
    """Receive the body in two pieces."""
    answer.receive(body[:cut])
    answer.receive(body[cut:])


@rows(
    ("body", "status"),
    [
        (b'{"clientContextID":"theirs","results":[1,2]}', 200),  # the id precedes the rows
        (b'{"client\\u0043ontextID":"their\\u0073","results":[1,2]}', 200),  # escaped
        (b'{"results":[1,2],"clientContextID":"theirs"}', 200),  # the id follows the rows
        (b'{"clientContextID":"theirs","errors":[{"code":3000}],"status":"fatal"}', 400),  # an error response
        (b'{"clientContextID":"theirs","results":[1,,', 200),  # an invalid list of rows
    ],
)
def test_rows_of_another_request_are_refused(body: bytes, status: int) -> None:
    """A response with the id of another request is refused and its rows are dropped, wherever the body is split."""
    for cut in range(len(body) + 1):
        answer = identified("results", status=status)
        with pytest.raises(incoming_answer.ForeignAnswer, match="theirs"):
            receive_in_two(answer, body, cut)

        assert answer.take() is None


def test_a_foreign_id_after_delivered_rows() -> None:
    """If rows were delivered before the id of another request arrives, the response is refused when the id arrives."""
    answer = identified("results")
    answer.receive(b'{"results":[1,')
    assert [b"1"] == answer.take()

    with pytest.raises(incoming_answer.ForeignAnswer):
        answer.receive(b'2],"clientContextID":"theirs"}')
    assert answer.has_given_rows


@rows(
    "body",
    [
        b'{"clientContextID":"ours","results":[1]}',  # the id of the request
        b'{"clientContextID":"\\u006furs","results":[1]}',  # escaped
        b'{"results":[1]}',  # no id
        b'{"clientContextID":null,"results":[1]}',  # null
        b'{"a":{"clientContextID":"theirs"},"results":[1]}',  # in a nested object
    ],
)
def test_rows_of_the_own_request(body: bytes) -> None:
    """A response with the id of the request, or without an id, delivers its rows, wherever the body is split."""
    for cut in range(len(body) + 1):
        answer = identified("results")
        receive_in_two(answer, body, cut)

        assert [b"1"] == answer.take()


def test_a_complete_response_to_another_request() -> None:
    """If the body has no rows, its id is checked when the response is complete."""
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


def test_a_retry_has_its_own_id() -> None:
    """The response to the next attempt is compared with the id of that attempt."""
    answer = identified("results", "first")
    answer.context_id = "second"
    answer.begin(incoming_answer.HTTP_OK, rows_of="results")

    with pytest.raises(incoming_answer.ForeignAnswer, match="first"):
        answer.receive(b'{"clientContextID":"first","results":[1]}')
