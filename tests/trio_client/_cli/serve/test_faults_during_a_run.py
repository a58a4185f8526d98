"""Commands to a running ``triclinium serve``, from its command line, its standard input and its control API."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable, Mapping
from typing import Any

import httpx
import pytest
import trio
from click.testing import CliRunner

from tests.trio_client._cli.serve.test_serve_command import Process, open_client, open_stream, running, serving
from triclinium._cli import main
from triclinium._cli.serve import serve_command


async def event_of(server: Process, **wanted: object) -> dict[str, Any]:
    """Return the next line of the log with these fields."""
    while True:
        event: dict[str, Any] = json.loads(await server.read_until(b"\n"))
        if wanted.items() <= event.items():
            return event


async def write(served: Mapping[str, Any]) -> None:
    """Write and read a document."""
    async with open_client(served) as cluster:
        people = cluster.bucket(served["bucket"]).default_collection()
        await people.upsert("ada", 1)
        assert 1 == (await people.get("ada")).content


async def test_standard_input_controls_nodes(safety_net: None) -> None:
    """Lines change the nodes, a bad line is reported with its field, and the end of the input stops nothing."""
    async with serving("--log", "--nodes", "2") as (server, served):
        await server.write(b"@1: kill\n\n# a comment\n@2: kill\n@1: revive\n\xff\n")
        inputs = [await event_of(server, event="input") for _ in range(4)]
        await server.write(None)
        await write(served)
        ended, rest = await server.end(signal.SIGTERM)

    assert [(1, None), (4, "node"), (5, None), (6, "command")] == [
        (each["line"], each["error"] and each["error"]["field"]) for each in inputs
    ]
    assert ["0", "1"] == inputs[1]["error"]["allowed"]
    assert '"set"' in rest
    assert 0 == ended


async def test_text_output_reports_lines(safety_net: None) -> None:
    """Without ``--json``, a valid line is confirmed on standard output, and an invalid one is not."""
    async with running() as server:
        await server.read_until(b"Stop it with Control-C.\n")
        await server.write(b"nonsense\n@0: restart\n")
        said = await server.read_until(b"restart\n")
        ending = await server.end(signal.SIGINT)

    assert "done: @0: restart\n" == said
    assert (0, "") == ending


async def test_planned_kill_closes_ports(safety_net: None) -> None:
    """A kill of the command line closes the ports at its time; a revival opens the same ports for clients."""
    async with serving("--log", "--fault", "@0: kill at 0.1 seconds") as (server, served):
        killed = await event_of(server, event="change")
        with pytest.raises(OSError, match="failed"):
            await open_stream(served)
        await server.write(b"@0: revive\n")
        await event_of(server, event="input", error=None)
        await write(served)

    assert ("kill", 0, None) == (killed["command"], killed["node"], killed["error"])
    assert killed["seconds"] >= 0.1


async def test_control_api_of_a_process(safety_net: None) -> None:
    """Address and token control the process; ``--fault`` is set on each node; failures are printed without ``--log``."""
    async with serving("--nodes", "2", "--seed", "5", "--fault", "unlock: hang_up") as (server, served):
        headers = {"Authorization": f"Bearer {served['control']['token']}"}
        async with httpx.AsyncClient(base_url=served["control"]["url"], headers=headers) as client:
            planned = {"command": "fail_over", "node": 1, "after_requests": 1}
            statuses = [
                (await client.post("/commands", json=command)).status_code
                for command in (planned, {"command": "remove_node", "node": 1}, "@1: kill", "@1: revive")
            ]
            # The ports are open again as soon as the response has arrived.
            async with await trio.open_tcp_stream("127.0.0.1", int(served["endpoints"]["query"][1].rpartition(":")[2])):
                pass
            state = (await client.get("/state")).json()
            await client.get(f"{served['endpoints']['management'][0]}/pools")
        failure = await event_of(server, event="change")
        ended, _ = await server.end(signal.SIGTERM)

    assert [200, 200, 200, 200] == statuses
    assert (5, 5) == (served["seed"], state["seed"])
    assert [1, 1] == [len(node["faults"]) for node in state["nodes"]]
    assert ("fail_over", 1) == (failure["command"], failure["node"])
    assert "not in the cluster" in failure["error"]
    assert 0 == ended


async def test_control_and_input_can_be_off(safety_net: None) -> None:
    """With ``--no-control`` no API is served, and with ``--no-stdin`` no input is read."""
    async with serving("--no-control", "--no-stdin") as (server, served):
        await server.write(b"kill\n")
        await server.write(None)
        await write(served)
        ended, rest = await server.end(signal.SIGTERM)

    assert "control" not in served
    assert (0, "") == (ended, rest)


async def test_same_seed_draws_the_same_faults(safety_net: None) -> None:
    """Two servers with one seed fail the same requests, and the seed is printed."""
    runs, seeds = [], []
    for _ in range(2):
        async with serving("--seed", "11", "--fault", "query: http_status(503) with probability 0.5") as (_, served):
            seeds.append(served["seed"])
            async with httpx.AsyncClient(auth=(served["username"], served["password"])) as client:
                url = f"{served['endpoints']['query'][0]}/query/service"
                runs.append([(await client.post(url, json={"statement": "SELECT 1"})).status_code for _ in range(20)])

    assert runs[0] == runs[1]
    assert {200, 503} == set(runs[0])
    assert [11, 11] == seeds


def test_line_that_arrives_with_the_signal(monkeypatch: pytest.MonkeyPatch) -> None:
    """A line that is carried out when the command is already interrupted is still reported, and the status is 0."""

    async def follow(_: object, print_line: Callable[[str], None], *, as_json: bool) -> None:
        signal.raise_signal(signal.SIGTERM)
        try:
            await trio.sleep_forever()
        finally:
            print_line("done: kill")

    monkeypatch.setattr(serve_command, "follow_standard_input", follow)
    result = CliRunner().invoke(main, ["serve", "--json"])

    assert (0, "done: kill") == (result.exit_code, result.output.splitlines()[-1])
