"""CouchbaseMock: the Java test server of Couchbase's own clients, started locally and ended with its test.

It comes from Maven and is cached by the gate, or in ``.cache`` next to the sources. Its nodes listen on loopback; each
bucket has its own nodes, and the name of the bucket is the user name. Commands use a connection that the mock opens to
the test, and the mock ends some time after that connection is lost. The mock also has an HTTP side, of which the tests
use the query service and the views; that side cannot be bound to an address, so it listens on all addresses.

Limits: no collections, no durability, no pushed configs, no GET_META. A failed node keeps its connections open and does
not respond.
"""

from __future__ import annotations

import json
import socket
import subprocess
import zipfile
from base64 import b64encode
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, closing
from http import HTTPStatus
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, Self, Unpack

from tests.environment import CACHE
from tests.live.maven import JavaProgram, fetched, run_maven
from tests.live.waiting import PATIENT
from triclinium import Cluster, ClusterArguments, Collection, PasswordAuthenticator, open_cluster
from triclinium_core.kv.wire.constants import Opcode
from triclinium_core.retry.couchbase import ErrorMap, parse_error_map

ARTIFACT = "com.couchbase.mock:CouchbaseMock:1.5.27"
JAR_NAME = "CouchbaseMock-1.5.27.jar"
ERROR_MAP_IN_JAR = "errmap/errmap_v1.json"

WAIT_SECONDS = 300.0
"""Seconds after which a silent mock is broken, and its test fails."""

JAVA_OPTIONS = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
"""Options of Java for a small heap and a quick start, so that the mock uses few resources."""

ANY_OPERATION = 0xFF
"""Opcode with which OPFAIL applies to every opcode."""


def find_program() -> JavaProgram:
    """Return the server; its path is that of its jar."""

    def fetch(folder: Path) -> Path:
        run_maven("copy", f"-Dartifact={ARTIFACT}", f"-DoutputDirectory={folder}", artifact=ARTIFACT)
        return folder / JAR_NAME

    return fetched(CACHE / "couchbase_mock" / JAR_NAME, fetch)


class CouchbaseMock:
    """Context manager that starts one mock and ends it.

    Args:
        nodes: number of nodes; each document has a replica on all other nodes, so that none is lost if a node fails.
        bucket: name of the only bucket and of its user.
    """

    def __init__(
        self, program: JavaProgram, *, nodes: int = 3, bucket: str = "travel", password: str = "secret"
    ) -> None:
        self._command = [
            program.java,
            *JAVA_OPTIONS,
            "-jar",
            str(program.path),
            "--host",
            "127.0.0.1",
            "--port",
            "0",
            "--cccp",
        ]
        self._command += ["--nodes", str(nodes), "--replicas", str(nodes - 1), "--vbuckets", "64"]
        self._command += ["--buckets", f"{bucket}:{password}:couchbase"]
        self._process: subprocess.Popen[bytes]
        self._control: socket.socket
        self._http_port: int
        self.nodes: range = range(nodes)
        self.bucket: str = bucket
        self.authenticator: PasswordAuthenticator = PasswordAuthenticator(bucket, password)
        with zipfile.ZipFile(program.path) as archive:
            self.error_map: ErrorMap = parse_error_map(archive.read(ERROR_MAP_IN_JAR))
            """Error map of the mock, read from its jar."""

    def __enter__(self) -> Self:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            listener.settimeout(WAIT_SECONDS)
            address = f"127.0.0.1:{listener.getsockname()[1]}"
            self._process = subprocess.Popen([*self._command, "--harakiri-monitor", address], stdin=subprocess.DEVNULL)
            try:
                self._control, _ = listener.accept()
                self._control.settimeout(WAIT_SECONDS)
                self._http_port = int(self._hear(b"\0"))
            except BaseException:
                self._end()
                raise
        return self

    def __exit__(self, *_: object) -> None:
        # Kill the process, because it would end only some time after this connection is lost.
        self._control.close()
        self._end()

    def _end(self) -> None:
        self._process.kill()
        self._process.wait(WAIT_SECONDS)

    def _hear(self, end: bytes) -> bytes:
        received = b""
        while not received.endswith(end):
            piece = self._control.recv(65536)
            assert piece, "CouchbaseMock ended"
            received += piece
        return received.removesuffix(end)

    @property
    def connection_string(self) -> str:
        """Connection string for all nodes."""
        return "couchbase://" + ",".join(f"127.0.0.1:{port}" for port in self.ports)

    @asynccontextmanager
    async def open_client(self, **arguments: Unpack[ClusterArguments]) -> AsyncIterator[tuple[Cluster, Collection]]:
        """Yield a client, patient unless ``arguments`` have timeouts, and its only collection."""
        arguments.setdefault("timeouts", PATIENT)
        async with open_cluster(self.connection_string, self.authenticator, **arguments) as cluster:
            yield cluster, cluster.bucket(self.bucket).default_collection()

    @property
    def ports(self) -> list[int]:
        """Ports of all nodes, including failed ones."""
        ports = self.do("GET_MCPORTS", bucket=self.bucket)
        assert isinstance(ports, list)
        return ports

    def ask(self, command: str, **payload: Any) -> Mapping[str, Any]:
        """Return the response to a command."""
        line = json.dumps({"command": command, "payload": payload})
        self._control.sendall(line.encode() + b"\n")
        answer = json.loads(self._hear(b"\n"))
        assert isinstance(answer, dict)
        return answer

    def do(self, command: str, **payload: Any) -> Any:
        """Execute a command and return its result."""
        answer = self.ask(command, **payload)
        assert "ok" == answer["status"], answer
        return answer.get("payload")

    def create_view(self, design_document: str, name: str, *, map_function: str, reduce: str = "") -> None:
        """Create a design document with one view.

        Args:
            map_function: source in JavaScript.
            reduce: name of a built-in function, such as ``_count``.
        """
        view = {"map": map_function, **({"reduce": reduce} if reduce else {})}
        path = f"/{self.bucket}/_design/{design_document}"
        connection = HTTPConnection("127.0.0.1", self._http_port, timeout=WAIT_SECONDS)
        with closing(connection):
            credentials = b64encode(f"{self.bucket}:{self.authenticator.password}".encode()).decode()
            headers = {"Authorization": f"Basic {credentials}", "Content-Type": "application/json"}
            connection.request("PUT", path, json.dumps({"views": {name: view}}), headers)
            answer = connection.getresponse()
            assert HTTPStatus.CREATED == answer.status, answer.read()

    def fail(self, code: int, *, opcode: int = ANY_OPERATION, count: int = -1) -> None:
        """Make all nodes respond with a status instead of executing commands; this replaces an earlier order.

        Args:
            opcode: only for these commands.
            count: how often each node does so; -1 for always.
        """
        self.do("OPFAIL", code=code, count=count, operation=opcode, servers=[])

    def fail_queries(self, code: int, message: str, *, prepared: bool) -> None:
        """Make the query service respond with an error, either to prepared plans or to all other requests."""
        self.do("SET_QUERY_ERROR_STATE", code=code, message=message, fail_prepared=prepared, fail_regular=not prepared)

    def drop_indexes(self) -> None:
        """Make every existing plan miss its index."""
        self.do("RESET_QUERYSTATE")

    def hiccup(self, milliseconds: int) -> None:
        """Make each node sleep after the first byte of each of its responses; 0 ends that."""
        # Sleep after the first byte: the mock sleeps after ``offset`` bytes, and loses a response that is shorter.
        self.do("HICCUP", msecs=milliseconds, offset=1 if milliseconds else 0)

    def truncate(self, limit: int) -> None:
        """Drop responses of fewer than ``limit`` bytes, and hold back all others until the limit is 0."""
        self.do("TRUNCATE", limit=limit)

    def fail_over(self, node: int) -> None:
        """Make a node silent, and move its vbuckets to the other nodes. Nearly all other vbuckets move, too."""
        self.do("FAILOVER", idx=node, bucket=self.bucket)

    def respawn(self, node: int) -> None:
        """Add a failed node again. Nearly all vbuckets move."""
        self.do("RESPAWN", idx=node, bucket=self.bucket)

    def travel(self, seconds: int) -> None:
        """Advance the mock's clock."""
        self.do("TIME_TRAVEL", Offset=seconds)

    def owner_of(self, key: str) -> int:
        """Return the node of a document."""
        copies = self.do("KEYINFO", Bucket=self.bucket, Key=key)
        return next(node for node, copy in enumerate(copies) if copy is not None and copy["Conf"]["Type"] == "master")

    def stored(self, key: str) -> Mapping[str, Any]:
        """Return ``Value``, ``CAS`` and ``Snappy`` of a document from its node."""
        copies = self.do("KEYINFO", Bucket=self.bucket, Key=key)
        found = next(copy["Cache"] for copy in copies if copy is not None and copy["Conf"]["Type"] == "master")
        assert isinstance(found, dict)
        return found

    def log_commands(self) -> None:
        """Make all nodes log their commands."""
        self.forget_commands()
        for node in self.nodes:
            self.do("START_CMDLOG", idx=node, bucket=self.bucket)

    def forget_commands(self) -> None:
        """Make all nodes stop logging commands."""
        for node in self.nodes:
            self.do("STOP_CMDLOG", idx=node, bucket=self.bucket)

    def commands(self, opcode: Opcode) -> list[int]:
        """Return the number of these commands on each node since ``log_commands``."""
        logs = [self.do("GET_CMDLOG", idx=node, bucket=self.bucket) for node in self.nodes]
        return [sum(entry["opcode"] == opcode for entry in log) for log in logs]

    def restore(self) -> None:
        """Reset all faults, settings and logs."""
        self.fail(0, count=0)
        self.truncate(0)
        self.hiccup(0)
        self.forget_commands()
        self.do("SET_QUERY_ERROR_STATE", code=0, message="", fail_prepared=False, fail_regular=False)
        self.do("SET_CCCP", enabled=True)
        self.do("SET_ENHANCED_ERRORS", enabled=False)
        self.do("SET_COMPRESSION", mode="disabled")
        self.do("SET_SASL_MECHANISMS", mechs=["SCRAM-SHA512", "SCRAM-SHA256", "SCRAM-SHA1", "PLAIN"])
