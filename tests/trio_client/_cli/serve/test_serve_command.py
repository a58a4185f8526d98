"""``triclinium serve`` as a process: its output, its clients, and its end."""

from __future__ import annotations

import errno
import json
import signal
import socket
import ssl
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any, NoReturn

import httpx
import pytest
import trio
import trustme
from click.testing import CliRunner

import triclinium
from tests.rows import rows
from tests.trio_client._cli.refusals import assert_refused
from tests.trio_client.testing.raw_client import RawClient, get
from triclinium._cli import main
from triclinium._cli.serve.description import triclinium_program
from triclinium.testing import open_tcp_cluster
from triclinium_core.kv.wire.constants import Opcode
from triclinium_core.kv.wire.frame import encode_request
from triclinium_core.kv.wire.frame_buffer import CLIENT_ACCEPTS, FrameBuffer
from triclinium_core.testing import FakeNode, FakeNodeOptions

COMMAND = (sys.executable, "-c", "from triclinium._cli import main; main()", "serve")
PATIENT = triclinium.TimeoutOptions(kv=60.0)


class Process:
    """Server process."""

    def __init__(self, process: trio.Process) -> None:
        self._process = process
        self._said = b""

    async def read_until(self, end: bytes) -> str:
        """Return the output up to and including ``end``."""
        assert self._process.stdout is not None
        while end not in self._said:
            data = await self._process.stdout.receive_some()
            assert data, f"it ended and said {self._said!r}"
            self._said += bytes(data)
        said, _, self._said = self._said.partition(end)
        return (said + end).decode()

    async def write(self, data: bytes | None) -> None:
        """Write to standard input; None closes it."""
        assert self._process.stdin is not None
        if data is None:
            await self._process.stdin.aclose()
        else:
            await self._process.stdin.send_all(data)

    @property
    def memory_at_most(self) -> int:
        """Peak memory of the process in bytes."""
        status = Path(f"/proc/{self._process.pid}/status").read_text(encoding="ascii")
        (line,) = [line for line in status.splitlines() if line.startswith("VmHWM:")]
        return int(line.split()[1]) * 1024

    async def end(self, how: signal.Signals) -> tuple[int, str]:
        """Send a signal, and return the exit status and the rest of the output."""
        assert self._process.stdout is not None
        self._process.send_signal(how)
        while data := await self._process.stdout.receive_some():
            self._said += bytes(data)
        return await self._process.wait(), self._said.decode()

    async def end_unread(self, how: signal.Signals) -> int:
        """Send a signal, and return the exit status without reading the output."""
        self._process.send_signal(how)
        return await self._process.wait()


@asynccontextmanager
async def running(*arguments: str) -> AsyncIterator[Process]:
    """Yield a server process, and kill it at the end of the block."""
    process = await trio.lowlevel.open_process([*COMMAND, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        async with process.stdin, process.stdout:
            yield Process(process)
    finally:
        process.kill()
        with trio.CancelScope(shield=True):
            await process.wait()


@asynccontextmanager
async def serving(*arguments: str) -> AsyncIterator[tuple[Process, dict[str, Any]]]:
    """Yield a server process with output for programs, and its connection data."""
    async with running("--json", *arguments) as server:
        yield server, json.loads(await server.read_until(b"\n"))


def open_client(served: Mapping[str, Any]) -> AbstractAsyncContextManager[triclinium.Cluster]:
    """Return the block of a client of a server with this connection data."""
    authenticator = triclinium.PasswordAuthenticator(served["username"], served["password"])
    return triclinium.open_cluster(served["connection_string"], authenticator, timeouts=PATIENT)


async def open_stream(served: Mapping[str, Any]) -> trio.SocketStream:
    """Open a connection to the only node."""
    return await trio.open_tcp_stream("127.0.0.1", int(served["connection_string"].rpartition(":")[2]))


async def test_a_client_uses_the_served_node(safety_net: None) -> None:
    """One JSON line has the connection data from the options; Ctrl-C stops the server with clients connected."""
    async with (
        serving("--username", "app", "--password", 'se"cret', "--bucket", "travel") as (server, served),
        open_client(served) as cluster,
    ):
        people = cluster.bucket("travel").default_collection()
        await people.upsert("ada", {"born": 1815})
        found = await people.get("ada")
        ending = await server.end(signal.SIGINT)

    assert ["bucket", "connection_string", "control", "endpoints", "password", "seed", "username"] == sorted(served)
    assert ("app", 'se"cret', "travel") == (served["username"], served["password"], served["bucket"])
    assert {"born": 1815} == found.content
    assert (0, "") == ending


@pytest.mark.skipif(sys.platform != "linux", reason="the memory of a process is read from /proc")
async def test_a_client_that_never_reads_fills_no_memory(safety_net: None) -> None:
    """Unread responses of one client stay in bounded memory, other clients are served, and signals still work."""
    document, gets = bytes(2**20), 64
    async with serving() as (server, served), open_client(served) as cluster, await open_stream(served) as stream:
        people = cluster.bucket(served["bucket"]).default_collection()
        await people.upsert("ada", document, transcoder=triclinium.RawBinaryTranscoder())
        client = RawClient(stream)
        await client.get_ready()
        before = server.memory_at_most
        await stream.send_all(gets * get("ada"))
        for _ in range(3):
            await people.get("ada", transcoder=triclinium.RawBinaryTranscoder())
        grown = server.memory_at_most - before
        replies = [await client.hear() for _ in range(gets)]
        await stream.send_all(gets * get("ada"))
        ending = await server.end(signal.SIGTERM)

    assert grown < 32 * len(document)
    assert gets * [len(document)] == [len(reply.value) for reply in replies if reply]
    assert (0, "") == ending


async def test_services_respond_as_scripted(safety_net: None, tmp_path: Path) -> None:
    """Only the listed services listen, and they respond with the rows of the script file."""
    script = tmp_path / "answers.json"
    script.write_text(json.dumps([{"statement": "SELECT t.* FROM t", "rows": [{"a": 1}]}]), encoding="utf-8")
    async with serving("--services", "kv,query", "--script", str(script)) as (server, served):
        (endpoint,) = served["endpoints"]["query"]
        async with httpx.AsyncClient(auth=(served["username"], served["password"])) as client:
            answers = [
                await client.post(f"{endpoint}/query/service", json={"statement": statement})
                for statement in ("SELECT t.* FROM t", "SELECT 1 AS one", "SELECT nothing FROM t")
            ]
        ending = await server.end(signal.SIGTERM)

    assert ["query"] == list(served["endpoints"])
    assert [[{"a": 1}], [{"one": 1}], []] == [answer.json()["results"] for answer in answers]
    assert [200, 200, 400] == [answer.status_code for answer in answers]
    assert (0, "") == ending


async def test_faults_strike_and_are_logged(safety_net: None) -> None:
    """An HTTP client meets the injected fault, the triclinium client retries, and each line of the log is JSON."""
    faults = ["query: http_status(503, body='later')", "upsert: temporary_failure x2", "get: delay(0.01)"]
    async with serving("--log", *(part for fault in faults for part in ("--fault", fault))) as (server, served):
        async with httpx.AsyncClient(auth=(served["username"], served["password"])) as client:
            (endpoint,) = served["endpoints"]["query"]
            answers = [
                await client.post(f"{endpoint}/query/service", json={"statement": "SELECT 1 AS one"}) for _ in range(2)
            ]
        async with open_client(served) as cluster:
            people = cluster.bucket(served["bucket"]).default_collection()
            await people.upsert("ada", 1)
            await people.get("ada")
        ended, rest = await server.end(signal.SIGTERM)
    lines = [json.loads(line) for line in rest.splitlines()]

    assert 0 == ended
    assert [(503, "later"), (200, None)] == [
        (answer.status_code, answer.text if answer.is_error else None) for answer in answers
    ]
    assert [(503, {"kind": "http_status", "code": 503, "body": "later"}), (200, None)] == [
        (line["status"], line["fault"]) for line in lines if line["event"] == "request"
    ]
    assert [
        ("set", "TEMPORARY_FAILURE", {"kind": "status", "code": 134}),
        ("set", "TEMPORARY_FAILURE", {"kind": "status", "code": 134}),
        ("set", "SUCCESS", None),
        ("get", "SUCCESS", {"kind": "delay", "seconds": 0.01}),
    ] == [
        (line["command"], line["status_name"], line["fault"]) for line in lines if line.get("command") in ("get", "set")
    ]


async def test_a_node_learns_of_collections_late(safety_net: None) -> None:
    """With ``learn_late``, creating a collection takes until every node knows it."""
    async with serving("--nodes", "2", "--fault", "@1: learn_late(0.6)") as (_, served), open_client(served) as cluster:
        collections = cluster.bucket(served["bucket"]).collections()
        began = trio.current_time()
        await collections.create_collection("_default", "people")
        took = trio.current_time() - began

    assert 0.6 <= took < 30


async def test_an_unread_log_blocks_nothing(safety_net: None) -> None:
    """A log that is not read delays neither clients nor the end of the server."""
    question = encode_request(Opcode.SASL_LIST_MECHS, opaque=1)
    async with serving("--log") as (server, served):
        async with await open_stream(served) as stream:
            for _ in range(20):
                await stream.send_all(question * 100)
                missing, frames = 100, FrameBuffer(CLIENT_ACCEPTS)
                while missing:
                    missing -= len(frames.receive(bytes(await stream.receive_some())))
        status = await server.end_unread(signal.SIGTERM)

    assert 0 == status


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    """Return the authority that signed all certificates."""
    return trustme.CA()


def pem(path: Path, *blobs: trustme.Blob) -> str:
    """Write a file in PEM format, and return its path."""
    path.write_bytes(b"".join(blob.bytes() for blob in blobs))
    return str(path)


@pytest.mark.parametrize("demands", [False, True], ids=["token", "certificate"])
async def test_tls_is_served(safety_net: None, tmp_path: Path, authority: trustme.CA, demands: bool) -> None:
    """All nodes serve TLS next to their plain ports; a client authenticates with a token or a required certificate."""
    of_the_nodes, of_ada = authority.issue_cert("127.0.0.1"), authority.issue_cert("ada@example.org")
    arguments = ["--tls-cert", pem(tmp_path / "cert.pem", *of_the_nodes.cert_chain_pems)]
    arguments += ["--tls-key", pem(tmp_path / "key.pem", of_the_nodes.private_key_pem), "--token", "a.b.c"]
    if demands:
        arguments += ["--client-ca", pem(tmp_path / "ca.pem", authority.cert_pem)]
    ada = triclinium.CertificateAuthenticator(pem(tmp_path / "ada.pem", of_ada.private_key_and_cert_chain_pem))
    trusting = ssl.create_default_context()
    authority.configure_trust(trusting)
    authenticator = ada if demands else triclinium.JwtAuthenticator("a.b.c")
    async with (
        serving("--nodes", "3", "--replicas", "2", *arguments) as (_, served),
        triclinium.open_cluster(
            served["tls_connection_string"], authenticator, timeouts=PATIENT, ssl_context=trusting
        ) as cluster,
    ):
        people = cluster.bucket(served["bucket"]).default_collection()
        await people.upsert("ada", 1)
        async with people.get_all_replicas("ada") as found:
            copies = [copy.is_replica async for copy in found]

    addresses = [served[name].partition("://")[2].split(",") for name in served if name.endswith("connection_string")]
    assert served["tls_connection_string"].startswith("couchbases://127.0.0.1:")
    assert [3, 3] == [len(each) for each in addresses]
    assert 6 == len({*addresses[0], *addresses[1]})
    assert 5 * [3] == [len(each) for each in served["endpoints"].values()]
    assert [False, True, True] == sorted(copies)


async def test_the_printed_program_runs(safety_net: None) -> None:
    """The printed program can be copied, and writes and reads a document."""
    async with open_tcp_cluster(FakeNode(FakeNodeOptions(password="it's \"\\{0}"))) as fake:
        program = await trio.run_process([sys.executable, "-c", triclinium_program(fake)], capture_stdout=True)

    assert b"{'born': 1815}\n" == program.stdout


def test_a_port_that_is_taken(tmp_path: Path, authority: trustme.CA) -> None:
    """A port that is in use is an error of one line with the port and the next step."""
    cert = pem(tmp_path / "cert.pem", authority.issue_cert("127.0.0.1").private_key_and_cert_chain_pem)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = str(listener.getsockname()[1])
        for arguments in (["--port", port], ["--tls-cert", cert, "--tls-port", port], ["--control-port", port]):
            result = CliRunner().invoke(main, ["serve", *arguments])

            assert_refused(result, f"cannot listen on 127.0.0.1:{port}: Address already in use", "port 0", status=1)


def test_no_free_port(monkeypatch: pytest.MonkeyPatch) -> None:
    """If the system gives no free port, the error does not advise a free port."""

    async def fail(*args: object, **named: object) -> NoReturn:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(trio, "open_tcp_listeners", fail)
    result = CliRunner().invoke(main, ["serve"])

    assert_refused(result, "cannot listen on a free port of 127.0.0.1: Too many open files", status=1)
    assert "port 0" not in result.output


@rows(
    ("arguments", "words"),
    [
        (["--port", "65536"], "65536"),
        (["--port", "-1"], "-1"),
        (["--port", "http"], "http"),
        (["--bucket", ""], "bucket"),
        (["--username", ""], "username"),
        (["--nodes", "0"], "nodes"),
        (["--nodes", "many"], "nodes"),
        (["--replicas", "2"], "--nodes 3"),
        (["--nodes", "2", "--replicas", "2"], "--nodes 3"),
        (["--nodes", "3", "--port", "65535"], "65531"),
        (["--token", "not a token"], "tokens"),
        (["--tls-cert", "nowhere.pem"], "nowhere.pem"),
        (["--tls-cert", __file__], __file__),
        (["--tls-cert", __file__, "--tls-key", __file__], f"{__file__} and {__file__}"),
        (["--tls-key", __file__], "--tls-key has no effect without --tls-cert"),
        (["--client-ca", __file__], "--client-ca has no effect without --tls-cert"),
        (["--services", "kv,sql"], "sql"),
        (["--services", "query"], "lacks kv"),
        (["--script", "nowhere.json"], "nowhere.json"),
        (["--script", __file__], "the script is not a JSON"),
        (["--fault", "gett: garble"], "did you mean get?"),
        (["--fault", "get@1: garble"], "node 1"),
        (["--fault", "garble", "--fault", "query: locked"], "--fault 'query: locked'"),
        (["--tls-port", "11207"], "--tls-port has no effect without --tls-cert"),
        (["--fault", "@1: kill"], "the last node is 0"),
        (["--fault", "kill at soon seconds"], "at_seconds='soon'"),
        (["--fault", "get: hang_up with probability 2"], "probability=2"),
        (["--fault", "@0: fail_over for 1 second"], "for_seconds"),
        (["--seed", "-1"], "--seed"),
        (["--control-port", "70000"], "--control-port"),
        (["--control-port", "7000", "--no-control"], "has no effect"),
    ],
)
def test_wrong_options_are_refused(arguments: list[str], words: str) -> None:
    """An invalid option is refused with one line before anything is served."""
    assert_refused(CliRunner().invoke(main, ["serve", *arguments]), words)


def test_a_client_ca_file_without_certificates(tmp_path: Path, authority: trustme.CA) -> None:
    """A ``--client-ca`` file without a certificate is refused."""
    cert = pem(tmp_path / "cert.pem", authority.issue_cert("127.0.0.1").private_key_and_cert_chain_pem)
    result = CliRunner().invoke(main, ["serve", "--tls-cert", cert, "--client-ca", __file__])

    assert_refused(result, "CA certificate")
