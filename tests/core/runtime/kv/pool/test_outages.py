"""Outages of nodes: each loss is reported once at WARNING, and each return with the number of failed attempts."""

from __future__ import annotations

from tests.core.runtime.kv import simulated
from tests.core.runtime.kv.pool.pool_cases import ONE, refused
from triclinium_core.contract import neutral
from triclinium_core.kv.operation.document_operations import Get, Keyspace
from triclinium_core.kv.wire.constants import Opcode
from triclinium_core.testing.fakes.faults import hang_up, refuse_connection


def reports(simulation: simulated.Recorded) -> list[tuple[str, neutral.ReportLevel]]:
    """Return the text and the level of each report about a connection."""
    return [
        (action.text, action.level) for action in simulation.actions if isinstance(action, neutral.ReportConnection)
    ]


def test_an_outage_is_reported_once() -> None:
    """A loss is reported at WARNING, each failed attempt at DEBUG, and the return at INFO with their number."""
    simulation = simulated.Recorded()
    simulation.flow()
    simulation.node.faults.always(None, refuse_connection())
    simulation.lose(simulation.newest)
    simulation.live(3.0)
    simulation.node.faults.clear()
    simulation.live(2.0)
    losses = len(simulation.opened_at) - 1

    assert losses > 5
    assert [
        ("ready", neutral.ReportLevel.INFO),
        ("connection reset", neutral.ReportLevel.WARNING),
        *[("connection refused", neutral.ReportLevel.DEBUG)] * (losses - 1),
        (f"ready, after {losses} failures", neutral.ReportLevel.INFO),
    ] == reports(simulation)


def test_an_outage_of_several_connections() -> None:
    """If a node loses several connections, one warning reports the loss, and one INFO line the return."""
    simulation = simulated.Recorded()
    simulation.finish(simulated.get())
    before = len(reports(simulation))
    simulation.node.faults.always(None, refuse_connection())
    streams = sorted(simulation.links)
    for stream in streams:
        simulation.lose(stream)
    simulation.live(3.0)
    simulation.node.faults.clear()
    simulation.live(2.0)
    reported = reports(simulation)[before:]
    levels = [level for _, level in reported]
    failures = levels.index(neutral.ReportLevel.INFO)

    assert failures > len(streams) > 1
    assert [neutral.ReportLevel.WARNING, *[neutral.ReportLevel.DEBUG] * (failures - 1)] == levels[:failures]
    assert all(text.startswith("connection re") for text, _ in reported[:failures])
    assert f"ready, after {failures} failures" == reported[failures][0]
    assert (1, 1) == (levels.count(neutral.ReportLevel.WARNING), levels.count(neutral.ReportLevel.INFO))
    assert len(streams) == sum(text.startswith("ready") for text, _ in reported)


def test_a_second_loss_is_a_warning() -> None:
    """A second loss of a node is a warning, even if one of its connections has not returned since the first."""
    simulation = simulated.Recorded()
    simulation.finish(simulated.get())
    simulation.node.faults.always(Opcode.SELECT_BUCKET, hang_up())
    before = len(reports(simulation))
    for _ in range(2):
        for stream in sorted(simulation.links):
            simulation.lose(stream)
        simulation.live(0.5)
    levels = [(text.partition(",")[0], level) for text, level in reports(simulation)[before:]]

    assert 2 == [level for _, level in levels].count(neutral.ReportLevel.WARNING)
    assert 2 == levels.count(("ready", neutral.ReportLevel.INFO))


def test_a_denied_bucket_does_not_hide_an_outage() -> None:
    """One warning reports a denied bucket, and another one a later outage of its node."""
    simulation = simulated.Recorded()
    simulation.flow()
    simulation.submit(Get(Keyspace("nobody_may"), "k"))
    simulation.live(3.0)
    denied = [level for _, level in reports(simulation)].count(neutral.ReportLevel.WARNING)
    simulation.lose(ONE)
    simulation.live(1.0)

    assert 1 == denied
    assert 2 == [level for _, level in reports(simulation)].count(neutral.ReportLevel.WARNING)


def test_an_unreachable_node_is_reported_once() -> None:
    """If a node never accepts a connection, one warning reports it."""
    simulation = refused()
    simulation.live(3.0)
    levels = [level for _, level in reports(simulation)]

    assert [neutral.ReportLevel.WARNING, neutral.ReportLevel.DEBUG] == levels[:2]
    assert 1 == levels.count(neutral.ReportLevel.WARNING)
