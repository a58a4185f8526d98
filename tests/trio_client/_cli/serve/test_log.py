"""Log lines of ``triclinium serve --log`` for commands, requests and changes of nodes."""

from __future__ import annotations

import json

import pytest
import trio
from msgspec.structs import replace
from trio.testing import MockClock

from triclinium import open_cluster
from triclinium._cli.serve.log import ServeLog, json_line, line
from triclinium.testing import open_fake_cluster
from triclinium_core.kv.wire.constants import Opcode
from triclinium_core.retry.couchbase import Service, Status
from triclinium_core.testing import LoggedCommand, LoggedRequest, delay, drop_response, http_status
from triclinium_core.testing.fakes.faults import CommandFault, ServiceFault

COMMAND = LoggedCommand(
    connection=4,
    opcode=Opcode.GET,
    key=b"ada",
    opaque=1,
    cas=2**63,
    now=0.0125,
    fault=None,
    status=Status.SUCCESS,
    applied=False,
    bucket="travel",
    collection_id=0,
    vbucket=7,
)
REQUEST = LoggedRequest(
    connection=5,
    service=Service.QUERY,
    method="POST",
    target="/query/service",
    statement="SELECT 1",
    body=b"{}",
    now=1.0,
    fault=None,
    status=200,
    applied=True,
)


def test_a_line_for_people() -> None:
    """A line gives time, node, connection, command and response, and the fault if there was one."""
    late, lost = delay(0.5), drop_response()
    assert isinstance(late, CommandFault)
    assert isinstance(lost, CommandFault)

    assert "0.013 node 0 connection 4: get 'ada' -> SUCCESS" == line(0, COMMAND)
    assert "1.000 node 0 connection 5: query POST /query/service 'SELECT 1' -> 200" == line(0, REQUEST)
    for changed, ending in (
        (replace(COMMAND, opcode=0x09, status=0x7FFF), " connection 4: 0x09 'ada' -> 0x7fff"),
        (replace(COMMAND, opcode=Opcode.NOOP, key=b""), ": noop -> SUCCESS"),
        (replace(COMMAND, collection_id=8), "get 'ada' in collection 0x8 -> SUCCESS"),
        (replace(COMMAND, fault=late), "-> SUCCESS, not applied: delay(seconds=0.5)"),
        (replace(COMMAND, status=None, fault=lost, applied=True), "get 'ada' -> no answer, applied: drop_response"),
    ):
        assert line(2, changed).startswith("0.013 node 2 ")
        assert line(2, changed).endswith(ending)


def test_a_key_cannot_forge_a_line() -> None:
    """A key with a line break stays on one line, and a long key is cut."""
    assert 1 == len(line(0, replace(COMMAND, key=b"a\nb\r\x85\xff")).splitlines())
    assert 1 == len(json_line(0, replace(COMMAND, key=b"a\nb\r\xe2\x80\xa8")).splitlines())
    assert len(line(0, replace(COMMAND, key=b"k" * 250))) < 160


def test_a_line_of_json() -> None:
    """JSON has the same facts as fields, and a fault with the name and arguments of its option."""
    late, refused = delay(0.5), http_status(503)
    assert isinstance(late, CommandFault)
    assert isinstance(refused, ServiceFault)

    assert {
        "event": "command",
        "seconds": 0.0125,
        "node": 1,
        "connection": 4,
        "command": "get",
        "bucket": "travel",
        "collection_id": 0,
        "key": "ada",
        "vbucket": 7,
        "cas": "9223372036854775808",
        "status": 1,
        "status_name": "KEY_NOT_FOUND",
        "applied": False,
        "fault": {"kind": "delay", "seconds": 0.5},
    } == json.loads(json_line(1, replace(COMMAND, status=1, fault=late)))
    assert {
        "event": "request",
        "seconds": 1.0,
        "node": 0,
        "connection": 5,
        "service": "query",
        "method": "POST",
        "target": "/query/service",
        "statement": "SELECT 1",
        "status": 503,
        "applied": False,
        "fault": {"kind": "http_status", "code": 503},
    } == json.loads(json_line(0, replace(REQUEST, status=503, fault=refused, applied=False)))


@pytest.mark.parametrize("as_json", [False, True])
async def test_lines_are_in_order_of_processing(
    as_json: bool, autojump_clock: MockClock, capsys: pytest.CaptureFixture[str]
) -> None:
    """The log has each command once, even before a delayed response, and no command after the end of the log."""
    async with open_fake_cluster() as fake:
        log = ServeLog(fake.nodes, as_json=as_json)
        async with open_cluster(fake.connection_string, fake.authenticator, connector=fake.connector) as cluster:
            people = cluster.bucket(fake.node.options.buckets[0]).default_collection()
            fake.node.faults.next(Opcode.SET, delay(1))
            async with trio.open_nursery() as nursery:
                nursery.start_soon(people.upsert, "ada", {})
                await trio.sleep(0.5)
                nursery.start_soon(people.get, "ada")
            log.end()
            await people.remove("ada")
        await log.print_lines()
    lines = capsys.readouterr().out.splitlines()
    reported = [json.loads(each)["command"] if as_json else each for each in lines]

    assert ["set", "get"] == [
        name for each in reported for name in ("set", "get", "delete") if each == name or f": {name} '" in each
    ]


async def test_changes_of_nodes_are_logged(autojump_clock: MockClock, capsys: pytest.CaptureFixture[str]) -> None:
    """A change has a line for people and an object; a log of failures has only changes without effect."""
    outputs = []
    for as_json, failures_only in ((False, False), (True, False), (False, True)):
        async with open_fake_cluster(nodes=2) as fake:
            log = ServeLog(fake.nodes, as_json=as_json, failures_only=failures_only)
            fake.nodes.kill(1, for_seconds=2)
            fake.nodes.fail_over(1, at_seconds=3)
            fake.nodes.remove_node(1)
            fake.nodes.rebalance()
            await trio.sleep(4)
            log.end()
            fake.nodes.kill(1)
            await log.print_lines()
        outputs.append(capsys.readouterr().out.splitlines())
    people, objects, failures = outputs

    assert ["0.000 node 1: kill", "0.000 node 1: remove_node", "0.000 cluster: rebalance"] == people[:3]
    assert "2.000 node 1: end of kill" == people[3]
    assert people[4].startswith("3.000 node 1: fail_over has no effect: node 1 is not in the cluster")
    assert people[4:] == failures
    assert {
        "event": "change",
        "seconds": 2.0,
        "node": 1,
        "command": "kill",
        "is_end": True,
        "error": None,
    } == json.loads(objects[3])


@pytest.mark.parametrize(("limit", "value"), [("LINES_WAITING_MAX", 1), ("LINES_WAITING_SIZE_MAX", 300)])
async def test_lost_lines_are_counted(
    autojump_clock: MockClock,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    limit: str,
    value: int,
) -> None:
    """If waiting lines exceed the limit of lines or characters, the log keeps the first and counts the lost ones."""
    monkeypatch.setattr(f"triclinium._cli.serve.log.{limit}", value)
    async with open_fake_cluster() as fake:
        log = ServeLog(fake.nodes, as_json=True)
        async with open_cluster(fake.connection_string, fake.authenticator, connector=fake.connector) as cluster:
            await cluster.bucket(fake.node.options.buckets[0]).default_collection().upsert("ada", {})
        log.end()
        await log.print_lines()
    first, lost = map(json.loads, capsys.readouterr().out.splitlines())

    assert "command" == first["event"]
    assert "lines_lost" == lost["event"]
    assert 0 < lost["lines"]
