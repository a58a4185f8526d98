"""Requests for collection ids of each bucket: their retries, and the operations that fail with them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.core.runtime.kv.simulated import HOTEL_ID, HOTELS, Recorded, get, ready, respond, upsert
from tests.rows import rows
from triclinium_core import errors
from triclinium_core.client.client_machine import ClientMachine
from triclinium_core.contract.neutral import StreamId, TimePassed
from triclinium_core.kv.operation.document_operations import Keyspace, Noop, Operation
from triclinium_core.kv.operation.results import Done
from triclinium_core.kv.wire.constants import HelloFeature, Opcode
from triclinium_core.kv.wire.frame import Frame
from triclinium_core.retry.couchbase import BestEffortRetryStrategy, FailFastRetryStrategy, RetryReason, Status
from triclinium_core.runtime.kv.collection_ids import REVIEW_MIN
from triclinium_core.testing.fakes.error_map import ErrorMapDocument, ErrorMapRow
from triclinium_core.testing.fakes.faults import delay, drop_response, refuse_connection, status
from triclinium_core.testing.fakes.options import IMPLEMENTED_FEATURES

ASK = Opcode.GET_COLLECTION_ID
NO_COLLECTIONS = IMPLEMENTED_FEATURES - {HelloFeature.COLLECTIONS}
NOWHERE = Keyspace("travel", "inventory", "nowhere")
NO_SCOPE = Keyspace("travel", "nowhere", "hotel")


def respond_with(status: Status, **parts: Any) -> Callable[[Frame], bytes]:
    """Return a function that responds to a request with this status."""
    return lambda request: respond(request, status, **parts)


def questions(simulation: Recorded) -> list[bytes]:
    """Return the path of the collection in each id request."""
    return [request.value for requests in simulation.requests.values() for request in requests if request.opcode == ASK]


def wire_keys(simulation: Recorded, opcode: Opcode) -> list[bytes]:
    """Return the key in each request with this opcode."""
    return [
        request.key for requests in simulation.requests.values() for request in requests if request.opcode == opcode
    ]


# Prefixes, and servers without collections.


def test_no_prefix_without_collections() -> None:
    """If the server does not support collections, keys have no prefix."""
    simulation = ready(features=NO_COLLECTIONS)
    simulation.finish(upsert("ada"))

    assert [b"ada"] == wire_keys(simulation, Opcode.SET)


@pytest.mark.parametrize("operation", [get("k", HOTELS), upsert("k", HOTELS), Noop(HOTELS)], ids=lambda op: op.name)
def test_no_collections_without_the_feature(operation: Operation) -> None:
    """If the server does not support collections, an operation on a named collection fails unsent."""
    simulation = ready(features=NO_COLLECTIONS)
    sent = len(simulation.requests[StreamId(2)])
    error = simulation.failure(errors.FeatureNotAvailableException, operation)

    assert "inventory.hotel" in str(error)
    assert sent == len(simulation.requests[StreamId(2)])


def test_noop_has_no_prefix() -> None:
    """An operation without a key does not cause an id request."""
    simulation = ready()

    assert Done() == simulation.result(Noop(HOTELS))
    assert [] == questions(simulation)
    assert {b""} == set(wire_keys(simulation, Opcode.NOOP))


def test_the_id_stands_before_the_key() -> None:
    """An id request has the path as value and no key; afterwards the id precedes the key of the document."""
    simulation = ready()
    simulation.result(upsert("ada", HOTELS))
    (question,) = (request for request in simulation.requests[StreamId(2)] if request.opcode == ASK)

    assert (b"inventory.hotel", b"", b"", 0) == (question.value, question.key, question.extras, question.status)
    assert [bytes([HOTEL_ID]) + b"ada"] == wire_keys(simulation, Opcode.SET)


def test_large_ids_take_more_bytes() -> None:
    """If an id is large, its LEB128 form has more bytes, and a key of the maximum length still fits."""
    simulation = ready(collections={"_default": {"_default": 0}, "inventory": {"hotel": 0xFFFF_FFFF}})
    simulation.result(upsert("k" * 246, HOTELS))

    assert [b"\xff\xff\xff\xff\x0f" + b"k" * 246] == wire_keys(simulation, Opcode.SET)


# Requests for ids and manifests, and dropped collections.


def test_one_request_for_many_operations() -> None:
    """While an id request is pending, operations on the collection wait; its response releases them in order."""
    simulation = ready()
    tokens = [simulation.submit(upsert(key, HOTELS)) for key in "abcde"]
    simulation.run()

    assert [b"inventory.hotel"] == questions(simulation)
    assert set(tokens) <= set(simulation.results)
    assert [b"\x08" + key.encode() for key in "abcde"] == wire_keys(simulation, Opcode.SET)


def test_abandoned_waiters_cause_one_request() -> None:
    """While an id request is pending, operations that are submitted and abandoned cause no other request."""
    simulation = ready()
    simulation.node.faults.next(ASK, delay(0.3))
    for position in range(100):
        simulation.abandon(simulation.submit(upsert(f"k{position}", HOTELS)))
    simulation.flow()

    assert 1 == len(questions(simulation))


def test_each_bucket_has_its_own_ids() -> None:
    """If two buckets have the same collection path, the client requests an id for each bucket."""
    simulation = Recorded(buckets=("travel", "other"))
    for bucket in ("travel", "other"):
        simulation.result(upsert("k", Keyspace(bucket, "inventory", "hotel")))

    assert 2 == len(questions(simulation))


def test_outdated_id() -> None:
    """After status 0x88, the client requests the id again and sends the key with the new id (decision C9)."""
    simulation = ready()
    simulation.result(upsert("ada", HOTELS))
    simulation.node.collections.drop("inventory", "hotel")
    new_id = simulation.node.collections.create("inventory", "hotel")
    token = simulation.finish(upsert("ada", HOTELS))

    assert token in simulation.results
    assert [b"inventory.hotel"] * 2 == questions(simulation)
    assert [bytes([prefix]) + b"ada" for prefix in (HOTEL_ID, HOTEL_ID, new_id)] == wire_keys(simulation, Opcode.SET)
    assert [RetryReason.KV_COLLECTION_OUTDATED] == [retry.reason for retry in simulation.retries]


def test_default_collection_that_was_dropped() -> None:
    """If the default collection was dropped, an operation is retried until its deadline; the error has the reason."""
    simulation = ready()
    simulation.node.collections.drop("_default", "_default")
    error = simulation.failure(errors.UnambiguousTimeoutException, upsert("ada"))

    assert frozenset({"KV_COLLECTION_OUTDATED"}) == error.context.retry_reasons
    assert [] == questions(simulation)


def test_dropped_collection() -> None:
    """If the id request after status 0x88 fails with 0x88 too, the operation fails (decision C8)."""
    simulation = ready()
    simulation.result(upsert("ada", HOTELS))
    simulation.node.collections.drop("inventory", "hotel")
    error = simulation.failure(errors.CollectionNotFoundException, upsert("ada", HOTELS))

    assert 1 == error.context.retry_attempts
    assert "COLLECTION_NOT_FOUND" == error.context.refused_reason
    assert "inventory.hotel" in (error.context.last_dispatch_error or "")


def job(number: int) -> Keyspace:
    """Return the keyspace of a collection that a program uses for one job only."""
    return Keyspace("travel", "inventory", f"job{number}")


def known_ids(simulation: Recorded) -> int:
    """Return how many collection ids of the bucket the client knows or has requested."""
    machine = simulation.machine
    assert isinstance(machine, ClientMachine)
    return len(machine._operations._dispatcher._collections._collections["travel"])


def test_ids_of_dropped_collections_are_dropped() -> None:
    """Of many short-lived collections, the client keeps few ids; of existing collections, it keeps all ids."""
    simulation = ready()
    simulation.result(upsert("ada", HOTELS))
    for number in range(5 * REVIEW_MIN):
        simulation.node.collections.create("inventory", f"job{number}")
        simulation.result(upsert("ada", job(number)))
        simulation.node.collections.drop("inventory", f"job{number}")
    before = len(questions(simulation))
    simulation.result(upsert("ada", HOTELS))

    assert known_ids(simulation) <= REVIEW_MIN
    assert 5 == len(simulation.commands(Opcode.GET_COLLECTIONS_MANIFEST))
    assert before == len(questions(simulation))


def test_ids_of_collections_that_exist_are_kept() -> None:
    """The client requests the id of each of many collections once, and a manifest only when their number doubles."""
    count = 4 * REVIEW_MIN
    names = {f"job{number}": number + 8 for number in range(count)}
    simulation = ready(collections={"_default": {"_default": 0}, "inventory": names})
    for _ in range(2):
        for number in range(count):
            simulation.result(upsert("ada", job(number)))

    assert count == known_ids(simulation) == len(questions(simulation))
    assert 3 == len(simulation.commands(Opcode.GET_COLLECTIONS_MANIFEST))


def test_no_manifest_is_requested_on_a_closed_stream() -> None:
    """If a stream is closing, an id that arrives on it requests no manifest; the next id does on the new stream."""
    names = {f"job{number}": number + 8 for number in range(REVIEW_MIN + 1)}
    simulation = ready(collections={"_default": {"_default": 0}, "inventory": names})
    for number in range(REVIEW_MIN - 1):
        simulation.result(upsert("ada", job(number)))
    closing, first = simulation.submit_in_flight(upsert("ada"))
    asking, question = simulation.submit_in_flight(upsert("ada", job(REVIEW_MIN - 1)))
    answer = respond(question, extras=bytes(8) + names[f"job{REVIEW_MIN - 1}"].to_bytes(4, "big"))
    simulation.inject(respond(first, Status.AUTH_STALE) + answer, StreamId(2))
    simulation.run()
    on_closed = [each for each in simulation.requests[StreamId(2)] if each.opcode == Opcode.GET_COLLECTIONS_MANIFEST]
    simulation.result(upsert("ada", job(REVIEW_MIN)))

    simulation.error(errors.AuthenticationFailureException, closing)
    assert ASK == question.opcode
    assert asking in simulation.results
    assert [] == on_closed
    assert 1 == len(simulation.closings()) == len(simulation.commands(Opcode.GET_COLLECTIONS_MANIFEST))


@rows(
    "answer",
    [
        respond_with(Status.NO_ACCESS),
        respond_with(Status.SUCCESS, value=b"{"),
        respond_with(Status.SUCCESS, value=b'{"uid": "1", "scopes": []}'),
    ],
)
def test_a_manifest_that_does_not_help(answer: Callable[[Frame], bytes]) -> None:
    """If a manifest request is refused or its response is malformed or empty, the next operation succeeds."""
    simulation = ready()
    for number in range(REVIEW_MIN):
        simulation.node.collections.create("inventory", f"job{number}")
        simulation.node.faults.always(Opcode.GET_COLLECTIONS_MANIFEST, drop_response())
        simulation.result(upsert("ada", job(number)))
    (question,) = [each for each in simulation.requests[StreamId(2)] if each.opcode == Opcode.GET_COLLECTIONS_MANIFEST]
    simulation.inject(answer(question), StreamId(2))
    simulation.result(upsert("ada", job(0)))

    assert [] == simulation.closings()


# Refusals.


@pytest.mark.parametrize(
    ("keyspace", "kind", "reason"),
    [
        (NOWHERE, errors.CollectionNotFoundException, "COLLECTION_NOT_FOUND"),
        (NO_SCOPE, errors.ScopeNotFoundException, "SCOPE_NOT_FOUND"),
    ],
)
def test_missing(keyspace: Keyspace, kind: type[errors.CouchbaseException], reason: str) -> None:
    """If a collection or scope is missing, the default strategy fails all operations on it immediately (C8)."""
    simulation = ready()
    tokens = [simulation.submit(upsert(key, keyspace)) for key in "ab"]
    simulation.run()

    assert 0.0 == simulation.now
    for token in tokens:
        error = simulation.error(kind, token)
        assert reason == error.context.refused_reason
        assert (keyspace.scope, keyspace.collection) == (error.context.scope, error.context.collection)
    assert 1 == len(questions(simulation))


@pytest.mark.parametrize("keyspace", [NOWHERE, NO_SCOPE])
def test_missing_under_best_effort(keyspace: Keyspace) -> None:
    """If a collection is missing, best effort retries the operation until someone creates the collection."""
    simulation = ready()
    token = simulation.submit(upsert("ada", keyspace), retry_strategy=BestEffortRetryStrategy())
    simulation.live(0.5)
    simulation.node.collections.create(keyspace.scope, keyspace.collection)
    simulation.run()

    assert token in simulation.results
    assert len(questions(simulation)) > 2


def test_missing_collection_explains_a_lost_connection() -> None:
    """If a collection was missing and the connection is lost, operations on the collection still fail as not found
    (C6).
    """
    simulation = ready()
    simulation.failure(errors.CollectionNotFoundException, upsert("ada", NOWHERE))
    simulation.node.faults.always(None, refuse_connection())
    simulation.lose(StreamId(2))
    error = simulation.failure(errors.CollectionNotFoundException, upsert("ada", NOWHERE))

    assert 0 == error.context.retry_attempts
    simulation.failure(errors.UnambiguousTimeoutException, upsert("ada", HOTELS))


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (Status.NO_ACCESS, errors.AuthenticationFailureException),
        (Status.INVALID_ARGUMENTS, errors.InvalidArgumentException),
        (Status.UNKNOWN_COMMAND, errors.UnsupportedOperationException),
        (0xABCD, errors.CouchbaseException),
    ],
)
def test_an_error_status_of_an_id_request(answer: int, kind: type[errors.CouchbaseException]) -> None:
    """If an id request gets an error status, the queued operations fail with its exception; the connection stays."""
    simulation = ready()
    simulation.node.faults.next(ASK, status(answer))
    tokens = [simulation.submit(upsert(key, HOTELS)) for key in ("ada", "bob")]
    simulation.run()

    assert all(f"0x{answer:02x}" in str(simulation.error(kind, token)) for token in tokens)
    assert [] == simulation.closings()
    simulation.result(upsert("ada", HOTELS))


def test_an_id_request_under_fail_fast() -> None:
    """If an id request fails temporarily, fail fast fails the operation with the exception of the status (C32)."""
    simulation = ready()
    simulation.node.faults.next(ASK, status(Status.TEMPORARY_FAILURE))
    error = simulation.failure(
        errors.TemporaryFailureException, upsert("ada", HOTELS), retry_strategy=FailFastRetryStrategy()
    )

    assert "KV_TEMPORARY_FAILURE" == error.context.refused_reason


ODD = ErrorMapDocument(
    revision=3,
    rows=(
        ErrorMapRow(0x7FF0, "LATER", "temp retry-later", "Later"),
        ErrorMapRow(0x7FF1, "GONE", "conn-state-invalidated auth", "Gone"),
    ),
)


def test_unknown_status_that_the_map_retries() -> None:
    """If an id request gets an unknown status, the node's error map decides whether it is retried (decision C13)."""
    simulation = ready(error_map=ODD)
    simulation.node.faults.next(ASK, status(0x7FF0))
    token = simulation.finish(upsert("ada", HOTELS))

    assert token in simulation.results
    assert [RetryReason.KV_ERROR_MAP_RETRY_INDICATED] == [retry.reason for retry in simulation.retries]


@rows(("code", "words"), [(0x7FF1, "conn-state-invalidated"), (Status.AUTH_STALE, "invalidates the connection")])
def test_status_that_closes_the_connection(code: int, words: str) -> None:
    """If a status invalidates the connection, the queued operations fail before it is closed (decision C31)."""
    simulation = ready(error_map=ODD)
    simulation.node.faults.next(ASK, status(code))
    simulation.failure(errors.AuthenticationFailureException, upsert("ada", HOTELS))

    assert [True] == [words in reason for reason in simulation.closings()]


@pytest.mark.parametrize("code", [Status.NOT_MY_VBUCKET, Status.LOCKED, Status.SYNC_WRITE_IN_PROGRESS])
def test_statuses_of_documents_fail_a_lookup(code: Status) -> None:
    """If an id request gets a status that applies only to documents, the operation fails without a retry."""
    simulation = ready()
    simulation.node.faults.next(ASK, status(code))
    token = simulation.finish(upsert("ada", HOTELS))

    assert [] == simulation.retries
    assert isinstance(simulation.errors[token], errors.CouchbaseException)


# Invalid, repeated, missing and late responses.


@pytest.mark.parametrize(
    ("answer", "extras"),
    [(0, b""), (0, bytes(11)), (0, bytes(13)), (0xA6, bytes(12)), (0xCD, b"")],
)
def test_impossible_answers(answer: int, extras: bytes) -> None:
    """If the response to an id request is invalid, the client reports it and repeats the request."""
    simulation = ready()
    token = simulation.submit(upsert("ada", HOTELS))
    simulation.swallow(StreamId(2))
    question = simulation.requests[StreamId(2)][-1]
    simulation.inject(respond(question, answer, extras=extras))
    simulation.run()

    assert any("get_collection_id" in line for line in simulation.log)
    assert (True, []) == (token in simulation.results, simulation.closings())


def test_a_second_answer() -> None:
    """If an id request gets two responses, the first one counts, and other operations are not affected."""
    simulation = ready()
    asking = simulation.submit(upsert("ada", HOTELS))
    question = simulation.requests[StreamId(2)][-1]
    writing, request = simulation.submit_in_flight(upsert("grace"))
    simulation.inject(respond(question, Status.UNKNOWN_COLLECTION) + respond(question, extras=bytes(11) + b"\x08"))
    simulation.inject(respond(request, cas=7))

    simulation.error(errors.CollectionNotFoundException, asking)
    assert writing in simulation.results
    assert (1, []) == (simulation.machine.statistics().orphans, simulation.closings())


def test_no_answer() -> None:
    """Without an id response, the operation times out and names the collection; the next one repeats the request."""
    simulation = ready()
    simulation.node.faults.next(ASK, drop_response(), times=5)
    error = simulation.failure(errors.UnambiguousTimeoutException, upsert("ada", HOTELS))

    assert "has not sent the id of collection inventory.hotel" in str(error)
    assert 5 == len(questions(simulation))
    simulation.result(upsert("ada", HOTELS))
    assert 6 == len(questions(simulation))


def test_lost_answer() -> None:
    """If an id request gets no response, the client repeats it while operations wait, so that they succeed in time."""
    simulation = ready()
    simulation.node.faults.next(ASK, drop_response())
    first = simulation.submit(upsert("ada", HOTELS))
    simulation.flow()
    second = simulation.submit(upsert("bob", HOTELS))
    simulation.run()

    assert {first, second} <= set(simulation.results)
    assert 2 == len(questions(simulation))
    assert 0.5 == simulation.now


def test_a_lost_response_without_waiters() -> None:
    """If an id request gets no response and no operation waits, the client does not repeat it."""
    simulation = ready()
    simulation.node.faults.next(ASK, drop_response())
    simulation.abandon(simulation.submit(upsert("ada", HOTELS)))
    simulation.live(5.0)

    assert 1 == len(questions(simulation))


def test_lost_answer_on_a_lost_connection() -> None:
    """If an id request is lost with its stream, the client sends it once on the next stream."""
    simulation = ready()
    simulation.node.faults.next(ASK, drop_response())
    token = simulation.submit(upsert("ada", HOTELS))
    simulation.live(0.499)
    simulation.lose(StreamId(2))
    simulation.run()

    assert token in simulation.results
    assert 2 == len(questions(simulation))


@rows("start", [3.860968566208492, *(number / 7 for number in range(40))])
def test_lost_question_at_any_time(start: float) -> None:
    """When the timer of an id request is due, the client repeats the request, however the time was rounded."""
    simulation = ready()
    simulation.live(start)
    simulation.node.faults.next(ASK, drop_response())
    token = simulation.finish(upsert("ada", HOTELS))

    assert token in simulation.results


def test_late_answer() -> None:
    """If an id arrives after its operation has timed out, the client stores the id."""
    simulation = ready()
    simulation.node.faults.always(ASK, delay(3.0))
    simulation.failure(errors.UnambiguousTimeoutException, upsert("ada", HOTELS))
    simulation.live(1.0)
    simulation.result(upsert("ada", HOTELS))

    assert 5 == len(questions(simulation))
    assert 0 == simulation.machine.statistics().orphans


def test_the_last_of_two_answers_counts() -> None:
    """If a collection is recreated between two requests for its id, the client uses the id in the later response."""
    simulation = ready()
    _, first = simulation.submit_in_flight(get("a", HOTELS))
    simulation.now += 0.5
    simulation.feed(TimePassed())
    bucket = StreamId(2)
    simulation.swallow(bucket)
    second = simulation.requests[bucket][-1]
    for question, collection_id in ((first, 8), (second, 9)):
        simulation.inject(respond(question, extras=bytes(8) + collection_id.to_bytes(4, "big")), bucket)
        simulation.submit(get("b", HOTELS))

    assert [b"\x08a", b"\x08b", b"\x09b"] == wire_keys(simulation, Opcode.GET)


def test_connection_lost_and_deadline_passed() -> None:
    """After an operation has timed out, a response or a lost connection does not release it again."""
    simulation = ready()
    simulation.node.faults.always(ASK, delay(3.0))
    token = simulation.submit(upsert("ada", HOTELS))
    simulation.live(2.6)
    simulation.lose(StreamId(2))
    simulation.live(5.0)

    simulation.error(errors.UnambiguousTimeoutException, token)
