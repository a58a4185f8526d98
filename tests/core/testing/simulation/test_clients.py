"""Several clients behind the interface of a single client."""

from __future__ import annotations

from tests.core.runtime.kv.simulated import ADDRESS, client_options, get, upsert
from triclinium_core.contract.couchbase import AuthenticatorChanged
from triclinium_core.contract.neutral import Token
from triclinium_core.options import PasswordAuthenticator
from triclinium_core.testing.fakes.cluster.node import FakeNode
from triclinium_core.testing.fakes.options import FakeNodeOptions
from triclinium_core.testing.simulation import Simulation
from triclinium_core.testing.simulation.clients import Clients


def two_clients() -> Simulation:
    """Return a simulation of one node whose two clients have started."""
    node = FakeNode(FakeNodeOptions(buckets=("travel",), vbuckets=128))
    simulation = Simulation(node, client_options(ADDRESS), clients=2)
    simulation.tick()
    simulation.flow()
    return simulation


def test_streams_and_tokens_name_their_client() -> None:
    """The remainder of a stream or token modulo the number of clients identifies the client."""
    simulation = two_clients()
    tokens = [simulation.submit(upsert("ada", value=b"%d" % number)) for number in (1, 2)]
    simulation.run()

    assert isinstance(simulation.machine, Clients)
    assert {0, 1} == {token % len(simulation.clients) for token in tokens}
    assert set(tokens) == set(simulation.results)
    assert [{0, 1}, 4] == [{stream % 2 for stream in simulation.links}, len(simulation.links)]


def test_one_client_loses_its_stream() -> None:
    """If one client loses its stream, the other client continues undisturbed."""
    simulation = two_clients()
    first, second = (simulation.submit(upsert("ada")) for _ in range(2))
    simulation.flow()
    second = simulation.submit(get("ada"))
    simulation.lose(max(stream for stream in simulation.links if stream % 2 == second % 2))
    third = simulation.submit(get("ada"))
    simulation.flow()

    assert {first, third} <= set(simulation.results)
    assert second not in simulation.results
    assert simulation.machine.statistics().open_operations == 1


def test_ambiguity_of_the_right_client() -> None:
    """A sent write is ambiguous for its own client; another client's token is not."""
    simulation = two_clients()
    simulation.submit(get("ada"))
    simulation.submit(get("ada"))
    simulation.run()
    token = simulation.submit(upsert("ada"))
    stream = max(stream for stream in simulation.links if stream % 2 == token % 2)
    simulation.hand_over(stream)

    assert simulation.machine.is_ambiguous(token)
    assert not simulation.machine.is_ambiguous(Token(token + 1))


def test_statistics_are_added_up() -> None:
    """Statistics list the connections of all clients and sum their numbers."""
    simulation = two_clients()
    for _ in range(3):
        simulation.submit(get("ada"))
    simulation.lose(max(simulation.links))
    statistics = simulation.machine.statistics()
    alone = [client.statistics() for client in simulation.clients]

    assert len(statistics.connections) == sum(len(one.connections) for one in alone)
    assert 3 == statistics.open_operations
    assert statistics.in_flight == sum(one.in_flight for one in alone)
    assert 0 == statistics.orphans
    assert sum(statistics.retries_by_reason.values()) == sum(sum(one.retries_by_reason.values()) for one in alone)


def test_new_credentials_reach_all_clients() -> None:
    """All clients authenticate again with the new credentials."""
    simulation = two_clients()
    before = len(simulation.node.command_log)
    simulation.feed(
        AuthenticatorChanged(PasswordAuthenticator("Administrator", "password"), "a-nonce-of-24-characters")
    )
    simulation.flow()
    again = {command.connection % 2 for command in simulation.node.command_log[before:]}

    assert {0, 1} == again


def test_operations_submitted_together_are_distributed() -> None:
    """Operations that are submitted together are distributed over the clients in turn."""
    simulation = two_clients()
    simulation.submit_together([(upsert("ada", value=b"1"), None), (get("ada"), None), (get("bob"), None)])
    alone = [client.statistics().open_operations for client in simulation.clients]
    simulation.submit_together([(get("ada"), None)])

    assert [1, 2] == alone
    assert [2, 2] == [client.statistics().open_operations for client in simulation.clients]
