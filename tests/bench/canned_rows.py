"""``python -m tests.bench.canned_rows``: a node whose query service has every response prepared.

It responds to a statement with as many rows as its ``LIMIT``, and performs almost no work for them: it finds the end of
the request and writes prepared blocks. For a statement with ``CHUNKED`` the response has no length and is sent in
chunks of ``CHUNK_SIZE``, like a server that does not know the end in advance.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from functools import cache

import trio

from triclinium.testing import open_tcp_cluster
from triclinium_core.retry.couchbase import Service
from triclinium_core.testing import FakeNode, FakeNodeOptions

ROW_SIZE = 100
CHUNK_SIZE = 4096
BLOCK_ROWS = 1_000
"""Number of rows in a block that is written repeatedly, so that memory need not hold a million rows."""
CHUNKED = "CHUNKED"
BEGIN = b'{\n"requestID": "0f7e1d7c-6fbd-4e6a-8d0a-0a1d2b3c4d5e",\n"signature": {"*":"*"},\n"results": [\n'
END = (
    b'\n],\n"status": "success",\n"metrics": {"elapsedTime": "1.2ms","executionTime": "1.1ms",'
    b'"resultCount": 0,"resultSize": 0}\n}\n'
)
SEPARATOR = b",\n"

_find_length = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE).search
_find_limit = re.compile(rb"LIMIT (\d+)").search


def statement(rows: int, *, chunked: bool = False) -> str:
    """Return a statement with this number of rows."""
    return " ".join(["SELECT p.* FROM people p LIMIT", str(rows), *([f"/* {CHUNKED} */"] if chunked else [])])


def block(rows: int) -> bytes:
    """Return the text of ``rows`` rows of ``ROW_SIZE`` bytes each, with separators."""

    def row(number: int) -> str:
        text = f'{{"id":{number},"name":"Ada {number % 97}","age":{number % 90},"active":true,"score":{number / 8},"bio":""}}'
        return f'{text[:-2]}{"b" * (ROW_SIZE - len(text))}"}}'

    return SEPARATOR.join(row(number).encode() for number in range(rows))


@cache
def pieces(rows: int) -> tuple[bytes, ...]:
    """Return the pieces of a body with ``rows`` rows. Equal pieces of a long body are one object."""
    whole, rest = divmod(rows, BLOCK_ROWS)
    blocks = [block(BLOCK_ROWS) + SEPARATOR] * whole + [block(rest)]
    if whole and not rest:
        blocks[-2:] = [block(BLOCK_ROWS)]
    return (BEGIN, *blocks, END)


@cache
def answer(rows: int, *, chunked: bool) -> tuple[bytes, ...]:
    """Return the complete response with ``rows`` rows in pieces."""
    body = pieces(rows)
    framing = b"Transfer-Encoding: chunked" if chunked else b"Content-Length: %d" % sum(map(len, body))
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json; version=1.0.0\r\n%b\r\n\r\n" % framing
    if not chunked:
        # Join a small response, so that it is sent in one piece.
        return (head + b"".join(body),) if rows <= BLOCK_ROWS else (head, *body)
    in_chunks = cache(as_chunks)
    return (head, *(in_chunks(piece) for piece in body), b"0\r\n\r\n")


def as_chunks(piece: bytes) -> bytes:
    """Return a piece in HTTP chunks, for a response without a length."""
    parts = (piece[start : start + CHUNK_SIZE] for start in range(0, len(piece), CHUNK_SIZE))
    return b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in parts)


def requests(data: bytearray) -> Iterator[bytes]:
    """Yield the bodies of complete requests, and remove them from ``data``."""
    while (end := data.find(b"\r\n\r\n")) >= 0:
        length = _find_length(data, 0, end)
        whole = end + 4 + (int(length[1]) if length is not None else 0)
        if len(data) < whole:
            return
        yield bytes(data[end + 4 : whole])
        del data[:whole]


async def serve(stream: trio.SocketStream) -> None:
    """Respond to one client until it closes the connection."""
    received = bytearray()
    try:
        async for data in stream:
            received += data
            for body in requests(received):
                limit = _find_limit(body)
                for piece in answer(int(limit[1]) if limit is not None else 0, chunked=CHUNKED.encode() in body):
                    await stream.send_all(piece)
    except trio.BrokenResourceError:
        pass
    finally:
        await trio.aclose_forcefully(stream)


async def main() -> None:
    """Serve until the process ends, and print the addresses as one line of JSON."""
    node = FakeNode(FakeNodeOptions(services=frozenset({Service.KV, Service.QUERY})))
    async with open_tcp_cluster(node) as fake, trio.open_nursery() as nursery:
        (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
        nursery.start_soon(trio.serve_listeners, serve, [listener])
        port = listener.socket.getsockname()[1]
        node.set_ports(node.options.port, services={Service.QUERY: port})
        said = {
            "connection_string": fake.connection_string,
            "username": fake.authenticator.username,
            "password": fake.authenticator.password,
            "query_port": port,
        }
        sys.stdout.write(json.dumps(said) + "\n")
        sys.stdout.flush()
        await trio.sleep_forever()


if __name__ == "__main__":
    trio.run(main)
