"""Scripted nodes on loopback for ``cassandra-driver``, with the part of CQL v4 that the tests need.

A script responds to the statements. In response to a query of a system table, a node describes itself or all others.
"""

from __future__ import annotations

import socket
import socketserver
import struct
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from enum import IntEnum
from types import TracebackType
from typing import Any, NamedTuple, Self
from uuid import UUID

from triclinium_core.retry.cassandra import ConsistencyLevel, errors

HOST = "127.0.0.1"

HEADER = struct.Struct(">BBhBI")
"""Format of a header: version, flags, stream, opcode, and the size of the body."""
RESPONSE_V4 = 0x84


class Opcode(IntEnum):
    """Opcodes of the messages that the nodes receive and send."""

    ERROR = 0x00
    STARTUP = 0x01
    READY = 0x02
    OPTIONS = 0x05
    SUPPORTED = 0x06
    QUERY = 0x07
    RESULT = 0x08
    PREPARE = 0x09
    EXECUTE = 0x0A
    REGISTER = 0x0B


ROWS, PREPARED = 2, 4
"""Kinds of RESULT frames that a node sends: rows, and a prepared statement."""
GLOBAL_TABLE = 1
VARCHAR, INT, UUID_TYPE, INET = 0x0D, 0x09, 0x0C, 0x10

SUPPORTED_OPTIONS = b"\0\2\0\13CQL_VERSION\0\1\0\0053.4.7\0\13COMPRESSION\0\0"
"""Body of a SUPPORTED frame: the CQL version, and no compression."""

STATEMENT_ID = b"statement"
SCHEMA_VERSION = UUID(int=1)

Cell = str | int | UUID | bytes
"""Value of a cell; bytes are an IPv4 address."""


class Asked(NamedTuple):
    """A request that a node received; a PREPARE has no consistency level."""

    node: int
    consistency: ConsistencyLevel | None


Answer = errors.CassandraError | None
"""Response of a node: None for a RESULT frame, ``ClosedConnection`` to close the connection, else an ERROR frame."""
Script = Callable[[Asked], Answer]


class CqlCluster:
    """Several nodes. Leaving the context manager stops them and closes the connections that clients have left open.

    Args:
        script: returns the response to a statement.
    """

    def __init__(self, script: Script, *, nodes: int = 3) -> None:
        self.script: Script = script
        self.asked: list[Asked] = []
        self._servers = [_Server(self, index) for index in range(nodes)]
        self._threads = [threading.Thread(target=server.serve_forever, args=(0.01,)) for server in self._servers]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for server, thread in zip(self._servers, self._threads, strict=True):
            server.shutdown()
            thread.join()
            server.close_connections()
            server.server_close()

    @property
    def ports(self) -> Sequence[int]:
        """Listening ports of the nodes, in order."""
        return [server.port for server in self._servers]

    def answer(self, asked: Asked) -> Answer:
        """Record a request and return the script's response."""
        self.asked.append(asked)
        return self.script(asked)


class _Server(socketserver.ThreadingTCPServer):
    """One node, which handles each connection in its own thread."""

    def __init__(self, cluster: CqlCluster, index: int) -> None:
        super().__init__((HOST, 0), _Connection)
        self.cluster = cluster
        self.index = index
        self.port: int = self.server_address[1]
        self._open = set[socket.socket]()

    def process_request(self, request: Any, client_address: Any) -> None:
        self._open.add(request)
        super().process_request(request, client_address)

    def close_request(self, request: Any) -> None:
        self._open.discard(request)
        super().close_request(request)

    def close_connections(self) -> None:
        """End the reads of all connections; ``server_close`` waits for these reads."""
        for connection in self._open.copy():
            # Ignore the error if the client has closed the connection in the meantime.
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)


class _Connection(socketserver.StreamRequestHandler):
    @property
    def _node(self) -> _Server:
        assert isinstance(self.server, _Server)
        return self.server

    def handle(self) -> None:
        while len(header := self.rfile.read(HEADER.size)) == HEADER.size:
            _, _, stream, opcode, size = HEADER.unpack(header)
            answer = self._answer(opcode, self.rfile.read(size))
            if answer is None:
                return
            reply, body = answer
            self.wfile.write(HEADER.pack(RESPONSE_V4, 0, stream, reply, len(body)) + body)

    def _answer(self, opcode: int, body: bytes) -> tuple[int, bytes] | None:
        match opcode:
            case Opcode.OPTIONS:
                return Opcode.SUPPORTED, SUPPORTED_OPTIONS
            case Opcode.STARTUP | Opcode.REGISTER:
                return Opcode.READY, b""
            case Opcode.QUERY:
                (size,) = struct.unpack_from(">I", body)
                statement = body[4 : 4 + size].decode()
                if "system." in statement:
                    return Opcode.RESULT, self._system_rows(statement)
                return self._scripted(_level(body, 4 + size), _rows([("name", "ada")]))
            case Opcode.PREPARE:
                metadata = struct.pack(">III", 0, 0, 0) + struct.pack(">II", 4, 0)
                return self._scripted(None, struct.pack(">I", PREPARED) + _short_bytes(STATEMENT_ID) + metadata)
            case Opcode.EXECUTE:
                (size,) = struct.unpack_from(">H", body)
                return self._scripted(_level(body, 2 + size), _rows([("name", "ada")]))
        raise AssertionError(f"the scripted node does not respond to opcode {opcode}")

    def _scripted(self, consistency: ConsistencyLevel | None, result: bytes) -> tuple[int, bytes] | None:
        answer = self._node.cluster.answer(Asked(self._node.index, consistency))
        if answer is None:
            return Opcode.RESULT, result
        if isinstance(answer, errors.ClosedConnection):
            return None
        assert isinstance(answer, errors.CoordinatorError)
        return Opcode.ERROR, error_body(answer)

    def _system_rows(self, statement: str) -> bytes:
        own = self._node.index
        if "system.local" in statement:
            return _rows(_description(own, self._node.port))
        ports = self._node.cluster.ports
        return _rows(*(_description(index, port) for index, port in enumerate(ports) if index != own))


def _description(index: int, port: int) -> Sequence[tuple[str, Cell]]:
    address = bytes(map(int, HOST.split(".")))
    return [
        ("key", "local"),
        ("cluster_name", "scripted"),
        ("data_center", "datacenter1"),
        ("rack", "rack1"),
        ("partitioner", "org.apache.cassandra.dht.Murmur3Partitioner"),
        ("release_version", "5.0.6"),
        ("schema_version", SCHEMA_VERSION),
        ("host_id", UUID(int=100 + index)),
        ("peer", address),
        ("peer_port", 7000),
        ("rpc_address", address),
        ("native_address", address),
        ("native_port", port),
    ]


def error_body(error: errors.CoordinatorError) -> bytes:
    """Return the body of an ERROR frame."""
    return struct.pack(">I", error.code) + _text(str(error)) + _figures(error)


def _figures(error: errors.CoordinatorError) -> bytes:
    match error:
        case errors.Unavailable():
            return struct.pack(">Hii", error.consistency, error.required, error.alive)
        case errors.ReadTimeout():
            return struct.pack(">Hii?", error.consistency, error.received, error.block_for, error.data_present)
        case errors.WriteTimeout():
            return struct.pack(">Hii", error.consistency, error.received, error.block_for) + _text(error.write_type)
        case errors.ReadFailure():
            return struct.pack(">Hiii?", ConsistencyLevel.QUORUM, 1, 2, 1, False)
        case errors.WriteFailure():
            return struct.pack(">Hiii", ConsistencyLevel.QUORUM, 1, 2, 1) + _text("SIMPLE")
        case errors.FunctionFailure():
            return _text("travel") + _text("throws") + struct.pack(">H", 0)
        case errors.AlreadyExists():
            return _text("travel") + _text("people")
        case errors.Unprepared():
            return _short_bytes(STATEMENT_ID)
    return b""


def _level(body: bytes, offset: int) -> ConsistencyLevel:
    return ConsistencyLevel(struct.unpack_from(">H", body, offset)[0])


def _rows(*rows: Sequence[tuple[str, Cell]]) -> bytes:
    columns = rows[0] if rows else ()
    head = struct.pack(">III", ROWS, GLOBAL_TABLE, len(columns)) + _text("travel") + _text("people")
    names = b"".join(_text(name) + struct.pack(">H", _type(cell)) for name, cell in columns)
    cells = b"".join(_cell(cell) for row in rows for _, cell in row)
    return head + names + struct.pack(">I", len(rows)) + cells


def _type(cell: Cell) -> int:
    return {str: VARCHAR, int: INT, UUID: UUID_TYPE, bytes: INET}[type(cell)]


def _cell(cell: Cell) -> bytes:
    match cell:
        case str():
            return _bytes(cell.encode())
        case int():
            return _bytes(struct.pack(">i", cell))
        case UUID():
            return _bytes(cell.bytes)
        case bytes():
            return _bytes(cell)


def _bytes(data: bytes) -> bytes:
    return struct.pack(">i", len(data)) + data


def _text(text: str) -> bytes:
    return _short_bytes(text.encode())


def _short_bytes(data: bytes) -> bytes:
    return struct.pack(">H", len(data)) + data
