"""Replaced credentials: the connections get the newest ones, and a refusal of replaced ones fails no operation."""

from __future__ import annotations

import pytest

from tests.core.runtime.kv.pool.credentials import ADMINISTRATOR, NEXT_TOKEN, ONE, SAME, TOKEN, WRONG, change
from tests.core.runtime.kv.simulated import Recorded, client_options, get, ready, respond, upsert
from triclinium_core import errors
from triclinium_core.contract import neutral
from triclinium_core.kv.wire.constants import Opcode
from triclinium_core.options import (
    PasswordAuthenticator,
)
from triclinium_core.retry import couchbase
from triclinium_core.testing import delay, drop_response, refuse_connection, status
from triclinium_core.testing.fakes.cluster.nodes import FakeNodes
from triclinium_core.testing.fakes.options import FakeNodeOptions


def test_during_an_exchange() -> None:
    """After an exchange, the newest credentials follow immediately; those that they replaced are never sent."""
    simulation = ready(tokens=(TOKEN.token, NEXT_TOKEN.token))
    change(simulation, SAME)
    change(simulation, TOKEN)
    change(simulation, NEXT_TOKEN)
    simulation.result(upsert())
    shown = [request.value for request in simulation.requests[simulation.newest] if request.opcode == Opcode.SASL_AUTH]

    assert [b"n,,\x01auth=Bearer d.e.f\x01\x01"] == shown[2:]


@pytest.mark.parametrize("steps", range(1, 5))
def test_a_refusal_of_replaced_credentials(steps: int) -> None:
    """A refusal fails operations unless newer credentials were set before, which are tried on the same stream."""
    simulation = ready()
    stream = simulation.newest
    simulation.nodes.set_credentials(password="newest")
    change(simulation, WRONG)
    token = simulation.submit(upsert())
    for step in range(steps):
        (simulation.hand_over, simulation.deliver)[step % 2](stream)
    change(simulation, PasswordAuthenticator("Administrator", "newest"))
    simulation.flow()

    if steps < 4:
        assert token in simulation.results
        assert stream == simulation.newest
        assert [] == simulation.retries
        # One exchange each for the bootstrap, the wrong password and the newest password.
        assert 3 == [request.opcode for request in simulation.requests[stream]].count(Opcode.SASL_AUTH)
    else:
        # The refusal arrived first, so the credentials were still current.
        simulation.error(errors.AuthenticationFailureException, token)


def test_a_refusal_of_replaced_credentials_while_bootstrapping() -> None:
    """If a bootstrap fails with replaced credentials, the connection reopens, and the refusal is no retry reason."""
    simulation = Recorded(options=client_options(authenticator=WRONG))
    token = simulation.submit(upsert())
    simulation.tick()
    for stream in [*simulation.links]:
        simulation.open(stream)
        simulation.hand_over(stream)
    change(simulation, ADMINISTRATOR)
    simulation.run()

    assert token in simulation.results
    assert frozenset({"SOCKET_NOT_AVAILABLE"}) == frozenset(report.reason.name for report in simulation.retries)


@pytest.mark.parametrize("steps", range(6))
def test_during_a_bootstrap(steps: int) -> None:
    """If credentials are replaced at any step of a bootstrap, the connection ends up with the newest ones."""
    simulation = Recorded(tokens=(TOKEN.token,))
    simulation.tick()
    if steps:
        simulation.open(ONE)
    for _ in range(1, steps):
        simulation.hand_over(ONE)
        simulation.deliver(ONE)
    change(simulation, TOKEN)
    simulation.result(upsert())

    assert {"OAUTHBEARER"} == {each.sasl_mechanism for each in simulation.machine.statistics().connections}
    assert [] == simulation.closings()


def test_new_credentials_end_the_backoff() -> None:
    """New credentials end the backoff of an unreachable node, because the old ones may have been the cause."""
    simulation = ready()
    simulation.node.faults.always(None, refuse_connection())
    for stream in [*simulation.links]:
        simulation.lose(stream)
    simulation.live(0.5)
    before = len(simulation.opened_at)
    change(simulation, SAME)

    assert before + 2 == len(simulation.opened_at)


def test_a_bucket_that_was_denied() -> None:
    """After new credentials, the client opens a denied bucket again only with the next operation."""
    simulation = ready()
    simulation.node.faults.next(Opcode.SELECT_BUCKET, status(couchbase.Status.NO_ACCESS))
    simulation.lose(simulation.newest)
    simulation.live(0.02)
    before = len(simulation.opened_at)
    change(simulation, SAME)
    simulation.flow()

    assert before == len(simulation.opened_at)

    simulation.result(upsert())

    assert before + 1 == len(simulation.opened_at)


def two_nodes() -> tuple[Recorded, FakeNodes, str]:
    """Return a simulation that is ready on two nodes, the nodes, and a key of the second node."""
    nodes = FakeNodes(FakeNodeOptions(buckets=("travel",)), 2)
    simulation = Recorded(nodes, client_options())
    key = next(f"k{number}" for number in range(99) if nodes.owner_of(f"k{number}") == 1)
    simulation.result(upsert(key))
    return simulation, nodes, key


def test_a_node_that_leaves() -> None:
    """If a node is removed during an exchange, requests in flight get their responses before its connections close."""
    simulation, nodes, key = two_nodes()
    nodes[1].faults.next(Opcode.GET, delay(0.5))
    token = simulation.submit(get(key))
    simulation.flow()
    nodes[1].faults.always(Opcode.SASL_AUTH, delay(0.2))
    change(simulation, SAME)
    nodes.remove_node(1)
    simulation.flow()

    assert token not in simulation.settled_at

    simulation.run()

    assert token in simulation.results
    assert [] == simulation.retries
    assert 0 == nodes[1].connections


def leave_during_an_exchange() -> tuple[Recorded, FakeNodes, str, neutral.StreamId]:
    """Start an exchange to which the second node does not respond; return ``two_nodes()`` and the node's stream."""
    simulation, nodes, key = two_nodes()
    nodes[1].faults.always(Opcode.SASL_AUTH, drop_response())
    change(simulation, SAME)
    (stream,) = (name for name, link in simulation.links.items() if link.node is nodes[1])
    return simulation, nodes, key, stream


def test_a_refusal_of_a_node_that_leaves() -> None:
    """If a removed node refuses the credentials, operations on the current nodes do not report the refusal (C6)."""
    simulation, nodes, key, stream = leave_during_an_exchange()
    nodes.remove_node(1)
    simulation.flow()
    simulation.inject(respond(simulation.requests[stream][-1], couchbase.Status.AUTH_ERROR), stream)
    nodes.kill(0)
    simulation.flow()
    error = simulation.failure(errors.UnambiguousTimeoutException, upsert(key))

    assert frozenset({"SOCKET_NOT_AVAILABLE"}) == error.context.retry_reasons


def test_operations_queued_for_a_removed_node() -> None:
    """If a node is removed during an exchange, the operations queued for it immediately go to their new node."""
    simulation, nodes, key, stream = leave_during_an_exchange()
    token = simulation.submit(upsert(key), retry_strategy=couchbase.FailFastRetryStrategy())
    nodes.remove_node(1)
    simulation.flow()

    assert token in simulation.results
    assert simulation.links[stream].is_open


def test_a_bucket_denied_to_the_old_user() -> None:
    """If a node denied the bucket to the old user, an operation waits for the node after a change of credentials."""
    simulation, nodes, key = two_nodes()
    nodes[1].faults.next(Opcode.SELECT_BUCKET, status(couchbase.Status.NO_ACCESS))
    simulation.lose(max(name for name, link in simulation.links.items() if link.node is nodes[1]))
    simulation.live(0.02)
    change(simulation, SAME)
    nodes.kill(1)
    error = simulation.failure(errors.UnambiguousTimeoutException, upsert(key))

    assert "BUCKET_ACCESS_ERROR" not in error.context.retry_reasons


def test_new_credentials_discard_the_refusal() -> None:
    """New credentials clear the refusal of the old ones, even if the node that refused is unreachable (decision C6)."""
    simulation, nodes, key = two_nodes()
    change(simulation, WRONG)
    simulation.failure(errors.AuthenticationFailureException, upsert(key))
    nodes.kill(1)
    simulation.live(1.0)
    change(simulation, ADMINISTRATOR)
    error = simulation.failure(errors.UnambiguousTimeoutException, upsert(key))

    assert frozenset({"SOCKET_NOT_AVAILABLE"}) == error.context.retry_reasons
