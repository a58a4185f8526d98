"""Statistics of a client."""

from __future__ import annotations

from dataclasses import FrozenInstanceError

import pytest

from tests.core.runtime.kv.connection.peer import features_value
from tests.core.runtime.kv.simulated import Recorded, client_options, get, ready
from triclinium_core import errors
from triclinium_core.kv.wire.constants import HelloFeature, Opcode
from triclinium_core.options import PasswordAuthenticator
from triclinium_core.retry.couchbase import Status
from triclinium_core.testing.fakes.faults import delay, refuse_connection, status
from triclinium_core.testing.fakes.options import IMPLEMENTED_FEATURES


def test_negotiated_values() -> None:
    """The statistics of a connection have its features by name or number, SASL mechanisms, error map and config."""
    simulation = Recorded(config_epoch=3, config_revision=7)
    granted = features_value(0x12, 0x07, 0x7FFF, 0x04)
    simulation.node.faults.next(Opcode.HELLO, status(Status.SUCCESS, granted))
    simulation.flow()
    described = simulation.connection(None)

    assert ("READY", ("0x7fff", "COLLECTIONS", "MUTATION_SEQNO", "XERROR")) == (described.state, described.features)
    assert ("SCRAM-SHA512", "SCRAM-SHA256", "SCRAM-SHA1") == described.sasl_mechanisms[:3]
    assert ("SCRAM-SHA512", 2, 7, (3, 7)) == (
        described.sasl_mechanism,
        described.error_map_version,
        described.error_map_revision,
        described.config_revision,
    )


def test_last_error() -> None:
    """The statistics of a lost connection have its last error; those of a ready connection have no error."""
    simulation = Recorded()
    simulation.node.faults.next(None, refuse_connection())
    simulation.flow()
    refused = simulation.connection(None)
    simulation.live(1.0)
    back = simulation.connection(None)

    assert ("LOST", "127.0.0.1:11210: connection refused") == (refused.state, refused.last_error)
    assert ("READY", None) == (back.state, back.last_error)


def test_passwords_are_not_part_of_it() -> None:
    """The repr of the statistics does not contain the password."""
    options = client_options(authenticator=PasswordAuthenticator("Administrator", "password"))
    simulation = ready(options=options)

    assert "password" not in repr(simulation.machine.statistics())


def test_time_of_the_server() -> None:
    """The statistics of a connection have the count, the sum and the maximum of the server's processing times."""
    simulation = ready()
    before = simulation.connection().server_time
    simulation.node.faults.next(Opcode.GET, delay(0.5))
    simulation.finish(get())
    after = simulation.connection().server_time

    assert before is not None
    assert after is not None
    assert 1 == after.answers - before.answers
    assert pytest.approx(0.5, rel=0.01) == after.longest
    assert pytest.approx(0.5, rel=0.01) == after.total - before.total > before.longest


def test_a_server_without_durations() -> None:
    """If a server sends no durations, its connection has no server time."""
    simulation = ready(features=IMPLEMENTED_FEATURES - {HelloFeature.TRACING})
    simulation.finish(get())

    assert simulation.connection().server_time is None


def test_snapshots_do_not_change() -> None:
    """Statistics are a snapshot: later events do not change them, and their reader cannot."""
    simulation = Recorded()
    simulation.node.faults.always(None, refuse_connection())
    simulation.flow()
    before = simulation.machine.statistics()
    retries = dict(before.retries_by_reason)
    simulation.failure(errors.UnambiguousTimeoutException, get())

    assert retries == before.retries_by_reason != simulation.machine.statistics().retries_by_reason
    with pytest.raises(FrozenInstanceError):
        before.orphans = 5  # type: ignore[misc]


def test_waiting_operations() -> None:
    """The statistics of a connection count the operations that wait for it."""
    simulation = Recorded()
    simulation.advance(0)
    simulation.submit(get())
    simulation.submit(get("other"))
    statistics = simulation.machine.statistics()

    assert [(None, 0), ("travel", 2)] == [(each.bucket, each.waiting) for each in statistics.connections]
    assert (2, 0) == (statistics.open_operations, statistics.in_flight)

    simulation.run()

    assert [0, 0] == [each.waiting for each in simulation.machine.statistics().connections]


def test_topologies() -> None:
    """The statistics list the nodes and the revision of each bucket and of the cluster."""
    simulation = Recorded()
    before = simulation.machine.statistics().topologies
    simulation.finish(get())
    simulation.nodes.set_config_revision(9, epoch=4)
    simulation.flow()
    topologies = simulation.machine.statistics().topologies

    assert () == before
    assert {None: (4, 9), "travel": (4, 9)} == {found.bucket: found.revision for found in topologies}
    assert {"127.0.0.1:11210"} == {node.name for found in topologies for node in found.nodes}
