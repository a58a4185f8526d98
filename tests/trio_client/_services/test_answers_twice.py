"""Services that repeat responses, over real sockets or in pieces of any size; no later request gets a copy."""

from __future__ import annotations

import json
import socket
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

import pytest
import trio
from trio.testing import MockClock

import triclinium
from tests.trio_client._services.substitute import client_of
from tests.trio_client.pair import PATIENCE
from triclinium import errors
from triclinium.search import TermQuery
from triclinium.testing import FakeAnswer, Service, answer_twice, open_fake_cluster

Outcome = Sequence[object] | type[errors.CouchbaseException]


def http(body: bytes, status: bytes = b"200 OK", headers: bytes = b"") -> bytes:
    """Return a complete HTTP response."""
    return b"HTTP/1.1 %b\r\n%bContent-Length: %d\r\n\r\n%b" % (status, headers, len(body), body)


class TalkativeService:
    """Service that responds to each request with the next prepared response, and repeats the last one on ``repeat``.

    Args:
        greeting: bytes that it sends on the first connection before any request.
    """

    def __init__(self, *answers: bytes, greeting: bytes = b"") -> None:
        self._answers = list(answers)
        self._greeting = greeting
        self._newest: socket.socket | None = None
        self._last = b""
        self.answered: int = 0
        self.requests: list[bytes] = []
        """All received bytes of each connection."""

    async def serve(self, stream: trio.SocketStream) -> None:
        """Respond to the requests of one connection."""
        index = len(self.requests)
        self.requests.append(b"")
        async with stream:
            greeting, self._greeting = self._greeting, b""
            try:
                await stream.send_all(greeting)
                while await self._read_request(stream, index):
                    self._last = self._answers.pop(0)
                    self._newest = stream.socket._sock  # type: ignore[attr-defined]  # sends without a pass of the loop
                    await stream.send_all(self._last)
            except trio.BrokenResourceError:
                pass

    def repeat(self) -> None:
        """Send the last response again. It has arrived when this returns."""
        assert self._newest is not None
        self._newest.send(self._last)

    async def _read_request(self, stream: trio.SocketStream, index: int) -> bytes:
        """Return one request, or no bytes at the end of the stream."""
        request = b""
        while b"\r\n\r\n" not in request or len(request) < _size_of(request):
            if not (data := await stream.receive_some()):
                return b""
            request += data
            self.requests[index] += data
        return request


class LateService(TalkativeService):
    """Service whose responses have a number and the request's id. Before the second, it sends the first again."""

    async def serve(self, stream: trio.SocketStream) -> None:
        """Respond to the requests of one connection."""
        index = len(self.requests)
        self.requests.append(b"")
        async with stream:
            try:
                while request := await self._read_request(stream, index):
                    self.answered += 1
                    late = self._last if self.answered == 2 else b""
                    context_id = json.loads(request.partition(b"\r\n\r\n")[2])["client_context_id"]
                    answer = {"clientContextID": context_id, "results": [self.answered], "status": "success"}
                    self._last = http(json.dumps(answer).encode())
                    await stream.send_all(late + self._last)
            except trio.BrokenResourceError:
                pass


def _size_of(request: bytes) -> int:
    head, _, _ = request.partition(b"\r\n\r\n")
    lengths = [line.split(b":")[1] for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
    return len(head) + 4 + sum(map(int, lengths))


async def query(cluster: triclinium.Cluster, statement: str) -> Sequence[object]:
    """Return the rows of a query with a client context id of the caller."""
    async with cluster.query(statement, client_context_id="mine") as result:
        return await result.rows()


async def analyze(cluster: triclinium.Cluster, statement: str) -> Sequence[object]:
    """Return the rows of an analytics query with a client context id of the caller."""
    async with cluster.analytics_query(statement, client_context_id="mine") as result:
        return await result.rows()


async def search(cluster: triclinium.Cluster, index: str) -> Sequence[object]:
    """Return the ids that a search finds."""
    async with cluster.search(index, TermQuery("inn")) as result:
        return [row.id for row in await result.rows()]


async def view(cluster: triclinium.Cluster, name: str) -> Sequence[object]:
    """Return the keys of a view."""
    async with cluster.bucket("default").view_query(name, "v") as result:
        return [row.key for row in await result.rows()]


async def read_buckets(cluster: triclinium.Cluster, _: str) -> Sequence[object]:
    """Return all buckets."""
    return await cluster.buckets().get_all_buckets()


async def drop_user(cluster: triclinium.Cluster, name: str) -> Sequence[object]:
    """Delete a user."""
    await cluster.users().drop_user(name)
    return []


Call = Callable[[triclinium.Cluster, str], Awaitable[Sequence[object]]]


async def outcome_of(call: Call, cluster: triclinium.Cluster, name: str) -> Outcome:
    """Return the result of a call, or its exception type."""
    try:
        return await call(cluster, name)
    except errors.CouchbaseException as error:
        return type(error)


class Case(NamedTuple):
    """Two calls of one service, the responses that the service sends, and the expected outcomes of the calls."""

    service: Service
    calls: tuple[Call, Call]
    answers: tuple[bytes, bytes]
    outcomes: tuple[Outcome, Outcome]


SIZES = (1, 2, 4, 8, 64)
"""Sizes of pieces in bytes. With at least one of them, a piece ends where the first copy of a response ends.

``tests/core/runtime/services/test_foreign_answers.py`` tries every size.
"""

DELETE_FAILED = b'{"results":[],"errors":[{"code":12009,"msg":"DML Error"}],"status":"errors"}'

CASES: Sequence[Case] = [
    Case(
        Service.QUERY,
        (query, query),
        (http(b'{"results":[1],"status":"success"}'), http(DELETE_FAILED)),
        ([1], errors.DmlFailureException),
    ),
    Case(
        Service.ANALYTICS,
        (analyze, analyze),
        (http(b'{"results":[1],"status":"success"}'), http(b'{"results":[2],"status":"success"}')),
        ([1], [2]),
    ),
    Case(
        Service.SEARCH,
        (search, search),
        (
            http(b'{"status":{},"hits":[{"index":"i","id":"a","score":1}],"total_hits":1}'),
            http(b'{"status":{},"hits":[{"index":"i","id":"b","score":1}],"total_hits":1}'),
        ),
        (["a"], ["b"]),
    ),
    Case(
        Service.VIEWS,
        (view, view),
        (
            http(b'{"total_rows":1,"rows":[{"id":"d","key":1,"value":0}]}'),
            http(b'{"total_rows":1,"rows":[{"id":"d","key":2,"value":0}]}'),
        ),
        ([1], [2]),
    ),
    Case(
        Service.MANAGEMENT,
        (read_buckets, drop_user),
        (http(b"[]"), http(b'"Unknown user."', b"404 Object Not Found")),
        ([], errors.UserNotFoundException),
    ),
]


@pytest.mark.native
@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case.service))
async def test_a_second_copy_in_the_socket(case: Case) -> None:
    """If a second copy waits in the socket, the next request uses another connection and gets its own response."""
    talkative = TalkativeService(*case.answers)
    async with client_of(talkative.serve, case.service) as cluster:
        first = await outcome_of(case.calls[0], cluster, "first")
        one = len(talkative.requests[0])
        talkative.repeat()
        second = await outcome_of(case.calls[1], cluster, "second")

    assert case.outcomes == (first, second)
    assert [one, True] == [len(talkative.requests[0]), bool(talkative.requests[1])]


@pytest.mark.native
@pytest.mark.parametrize(
    "behind",
    [http(b"[]")[:1], b"\r\n", b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 103 Early Hints\r\n\r\n", b"\x15\x03\x01"],
)
async def test_unread_bytes_in_the_socket(behind: bytes) -> None:
    """If part of a response, an interim response or other bytes wait on a connection, the next request uses another."""
    case = CASES[1]
    talkative = TalkativeService(*case.answers)
    async with client_of(talkative.serve, case.service) as cluster:
        first = await outcome_of(case.calls[0], cluster, "first")
        talkative._last = behind
        talkative.repeat()
        second = await outcome_of(case.calls[1], cluster, "second")

    assert case.outcomes == (first, second)
    assert 2 == len(talkative.requests)


@pytest.mark.native
@pytest.mark.parametrize("version", [b"HTTP/1.0", b"HTTP/1.1"])
async def test_the_last_response_of_a_connection(version: bytes) -> None:
    """After a response of HTTP/1.0, or with ``Connection: close``, the client uses another connection."""
    case = CASES[1]
    header = b"Connection: close\r\n" if version == b"HTTP/1.1" else b""
    answers = (
        http(body, headers=header).replace(b"HTTP/1.1", version)
        for body in (b'{"results":[1],"status":"success"}',) * 2
    )
    talkative = TalkativeService(*answers)
    async with client_of(talkative.serve, case.service) as cluster:
        for _ in range(2):
            assert [1] == await outcome_of(analyze, cluster, "any")

    assert 2 == len(talkative.requests)


@pytest.mark.parametrize("call", [query, analyze, search, view], ids=lambda call: call.__name__)
async def test_a_repeated_response_in_every_piece_size(call: Call, autojump_clock: MockClock) -> None:
    """Several requests each get their own rows after a repeated response, for every piece size."""
    with trio.fail_after(PATIENCE):
        for size in SIZES:
            async with open_fake_cluster(piece_sizes=[size]) as fake, fake.open_client() as cluster:
                for name in ("a", "b", "c"):
                    script(fake.nodes.script.answer, call, name, twice=name == "b")
                got = [await outcome_of(call, cluster, name) for name in ("a", "b", "c")]

            assert [["a"], ["b"], ["c"]] == got, f"in pieces of {size} bytes"


def script(answer: Callable[..., None], call: Call, name: str, *, twice: bool) -> None:
    """Script the fake's response to ``call`` with this name."""
    fault = answer_twice() if twice else None
    if call is search:
        answer(name, FakeAnswer(rows=[{"index": "i", "id": name, "score": 1.0}], fault=fault), service=Service.SEARCH)
    elif call is view:
        answer(f"{name}/v", FakeAnswer(rows=[{"id": "d", "key": name, "value": 0}], fault=fault), service=Service.VIEWS)
    else:
        service = Service.QUERY if call is query else Service.ANALYTICS
        answer(name, FakeAnswer(rows=[name], fault=fault), service=service)


@pytest.mark.native
async def test_a_response_before_the_first_request() -> None:
    """A response that waits on a new connection is not used for the first request."""
    case = CASES[1]
    talkative = TalkativeService(case.answers[1], greeting=case.answers[0])
    async with client_of(talkative.serve, case.service, waits=True) as cluster:
        outcome = await outcome_of(case.calls[1], cluster, "second")

    assert [2] == outcome
    assert [False, True] == [bool(requests) for requests in talkative.requests]


@pytest.mark.native
@pytest.mark.parametrize(("readonly", "outcome"), [(True, [3]), (False, errors.RequestCanceledException)])
async def test_a_second_copy_after_the_next_request(readonly: bool, outcome: Outcome) -> None:
    """A query that gets a copy with another id is sent again if it is read-only, and otherwise fails."""

    async def ask(cluster: triclinium.Cluster, statement: str) -> Sequence[object]:
        async with cluster.query(statement, readonly=readonly) as result:
            return await result.rows()

    async with client_of(LateService().serve, Service.QUERY) as cluster:
        got = [await outcome_of(ask, cluster, "SELECT 1") for _ in range(2)]

    assert [[1], outcome] == got
