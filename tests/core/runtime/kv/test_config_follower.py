"""Configs of each bucket: the client applies, rejects or requests them."""

from __future__ import annotations

import json
from typing import Any

from tests.core.runtime.kv.simulated import Recorded, get, ready, respond, upsert
from tests.rows import rows
from triclinium_core.contract.neutral import ReportConnection, StreamId
from triclinium_core.kv.wire.constants import Opcode
from triclinium_core.kv.wire.frame import Frame
from triclinium_core.retry.couchbase import Status
from triclinium_core.runtime.kv.destinations import vbucket_of
from triclinium_core.shown import SERVER_TEXT_MAX
from triclinium_core.testing.fakes.faults import status


def config(rev: int, *, name: str | None = "travel") -> bytes:
    """Return a config of one node."""
    document: dict[str, Any] = {"rev": rev, "revEpoch": 1, "nodesExt": []}
    if name is not None:
        document |= {"name": name, "vBucketServerMap": {"serverList": ["$HOST:11210"], "vBucketMap": [[0]] * 64}}
    return json.dumps(document).encode()


def offer(simulation: Recorded, document: bytes) -> Frame:
    """Respond to a read with NOT_MY_VBUCKET and this config, and return the request of the next attempt."""
    _, request = simulation.submit_in_flight(get("ada"))
    simulation.inject(respond(request, Status.NOT_MY_VBUCKET, value=document))
    simulation.live(0.01)
    return [each for each in simulation.requests[StreamId(2)] if each.opcode == Opcode.GET][-1]


def test_embedded_config_spares_the_question() -> None:
    """If a response contains a config, the client applies it before the retry and requests none (decision C10)."""
    simulation = ready()
    before = len(simulation.commands(Opcode.GET_CLUSTER_CONFIG))
    offer(simulation, config(2))
    with_config = len(simulation.commands(Opcode.GET_CLUSTER_CONFIG))
    offer(simulation, b"")

    assert [before, before + 1] == [with_config, len(simulation.commands(Opcode.GET_CLUSTER_CONFIG))]


@rows(
    "document",
    [
        b"{",
        b"\xff",
        b'{"error":{"context":"not mine"}}',
        config(9, name="other"),
        config(9, name=None),
    ],
)
def test_useless_config(document: bytes) -> None:
    """If a config is invalid or of another bucket, the client reports it, does not apply it, and requests another."""
    simulation = ready()
    before = len(simulation.commands(Opcode.GET_CLUSTER_CONFIG))
    request = offer(simulation, document)

    assert (1, 1) == simulation.connection().config_revision
    assert vbucket_of(b"ada", 128) == request.status
    assert before + 1 == len(simulation.commands(Opcode.GET_CLUSTER_CONFIG))
    assert "sent an invalid cluster config" in simulation.log[-1]
    assert [] == simulation.closings()


@rows(
    ("name", "found"),
    [
        ("other", "bucket 'other'"),
        ("n" * 1000, f"bucket '{'n' * (SERVER_TEXT_MAX - 3)}...'"),
        ("other\n", "bucket 'other'"),
        (None, "the cluster"),
    ],
)
def test_a_config_of_another_bucket(name: str | None, found: str) -> None:
    """The report on a config of another bucket or of the cluster names it and the right bucket, on one short line."""
    simulation = ready()
    offer(simulation, config(9, name=name))

    assert simulation.log[-1].endswith(f"sent an invalid cluster config: it is for {found}, not for bucket 'travel'")


def test_a_requested_config() -> None:
    """The client applies a config that it requested, but not one in the body of an error response."""
    simulation = ready()
    simulation.node.set_config_revision(5, simulation.now)
    offer(simulation, b"")
    simulation.flow()
    asked = simulation.connection().config_revision
    simulation.node.faults.next(Opcode.GET_CLUSTER_CONFIG, status(Status.TEMPORARY_FAILURE, config(9)))
    offer(simulation, b"")
    simulation.flow()

    assert [(1, 5)] * 2 == [asked, simulation.connection().config_revision]


@rows(
    ("document", "reason"),
    [
        (b"", "no cluster config"),
        *(
            (document, "sent an invalid cluster config")
            for document in (b"{", config(9, name="other"), config(9, name=None))
        ),
    ],
)
def test_bootstrap_with_a_useless_config(document: bytes, reason: str) -> None:
    """If a bootstrap receives no valid config, the client closes the connection with the reason."""
    simulation = Recorded()
    simulation.flow()
    simulation.node.faults.next(Opcode.GET_CLUSTER_CONFIG, status(Status.SUCCESS, document))
    token = simulation.finish(upsert())

    assert reason in simulation.closings()[0]
    assert token in simulation.results


def test_reconnect_without_a_newer_config() -> None:
    """If a bootstrap receives no config and the client knows one of the bucket, the connection becomes ready."""
    simulation = ready()
    simulation.node.faults.next(Opcode.GET_CLUSTER_CONFIG, status(Status.SUCCESS))
    simulation.lose(StreamId(2))
    simulation.live(1.0)
    simulation.result(upsert())

    assert [] == simulation.closings()


def test_problem_on_a_stream_that_was_closed_already() -> None:
    """If a response closes the stream, a config in a later response is ignored."""
    simulation = ready()
    pairs = [simulation.submit_in_flight(get(key)) for key in "ab"]
    first, second = (request for _, request in pairs)
    simulation.inject(respond(first, Status.AUTH_STALE) + respond(second, Status.NOT_MY_VBUCKET, value=b"{"))
    simulation.run()

    assert pairs[1][0] in simulation.settled_at
    assert not any(
        isinstance(action, ReportConnection) and "invalid cluster config" in action.text
        for action in simulation.actions
    )
