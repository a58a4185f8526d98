"""TLS and queries through the asyncio driver, compared with the trio client."""

from __future__ import annotations

import asyncio
import json
import signal
import ssl
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import trustme

from docs.howto.examples.asyncio_driver import AsyncioClient
from docs.howto.examples.control_through_http import ask
from tests.hosts.event_loops.clients import (
    PATIENT,
    SECONDS_MAX,
    Kind,
    Server,
    Step,
    query_through_asyncio,
    query_through_trio,
    through_asyncio,
    through_trio,
)
from tests.live.line_process import SERVE, LineProcess
from triclinium_core import TimeoutOptions
from triclinium_core.contract.couchbase import DrivenClient
from triclinium_core.contract.neutral import PauseReading
from triclinium_core.services.query.query_request import QueryRequest

pytestmark = [pytest.mark.hosts, pytest.mark.native]

ROWS = [{"number": number, "text": "x" * 80} for number in range(20_000)]
"""Rows of about 2 MB, more than the client buffers."""
MANY = "SELECT many rows"
FEW = "SELECT RAW 1"

HASTY = TimeoutOptions(kv=1.0, query=1.0)
"""Timeouts for faults that outlast every retry."""

QUERY_FAULTS: Mapping[str, TimeoutOptions] = {
    "query: http_status(503) x2": PATIENT,
    "query: hang_up": PATIENT,
    "query: drop_response x3": HASTY,
    "query: cut_body(bytes_sent=20)": PATIENT,
    "query: garble": HASTY,
    "query: hang_up_mid_reply(bytes_sent=12)": PATIENT,
    "query: answer_twice": PATIENT,
    "query: close_announced": PATIENT,
}
"""Faults of a query, each with the timeouts of the client."""


class Secure(NamedTuple):
    """Nodes with TLS, and the authority of their certificates."""

    said: Mapping[str, Any]
    authority: trustme.CA

    def server(self, authority: trustme.CA) -> Server:
        """Return the server for clients that trust an authority."""
        tls = ssl.create_default_context()
        authority.configure_trust(tls)
        plain = Server.served(self.said)
        return replace(plain, connection_string=self.said["tls_connection_string"], tls=tls)


@pytest.fixture(scope="module")
def secure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secure]:
    """Yield three nodes with TLS and scripted queries."""
    folder, authority = tmp_path_factory.mktemp("tls"), trustme.CA()
    certificate, script = folder / "node.pem", folder / "script.json"
    authority.issue_cert("127.0.0.1").private_key_and_cert_chain_pem.write_to_path(str(certificate))
    script.write_text(json.dumps([{"statement": MANY, "rows": ROWS}]), encoding="utf-8")
    command = [*SERVE, "--nodes", "3", "--tls-cert", str(certificate), "--script", str(script)]
    with LineProcess(command, end_with=signal.SIGTERM) as server:
        yield Secure(server.hear(), authority)


def test_documents_over_tls(secure: Secure, key: str) -> None:
    """Over verified TLS, the asyncio driver reads a large value that it has written."""
    value = bytes(range(256)) * 4096
    steps = [Step(Kind.UPSERT, key, value), Step(Kind.GET, key)]

    assert ["done", f"read {value!r}"] == through_asyncio(secure.server(secure.authority), steps)


@pytest.mark.parametrize(
    ("host", "is_trusted", "reason"),
    [("127.0.0.1", False, "unable to get local issuer"), ("elsewhere.invalid", True, "IP address mismatch")],
    ids=["authority", "host"],
)
def test_wrong_certificates_are_refused(
    host: str, is_trusted: bool, reason: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A certificate of another authority or for another host fails through both clients with the same reason."""
    authority, path = trustme.CA(), tmp_path / "node.pem"
    authority.issue_cert(host).private_key_and_cert_chain_pem.write_to_path(str(path))
    with LineProcess([*SERVE, "--tls-cert", str(path)], end_with=signal.SIGTERM) as server:
        refused = Secure(server.hear(), authority).server(authority if is_trusted else trustme.CA())
        endings = [program(refused, [Step(Kind.UPSERT, "ada", b"1")]) for program in (through_trio, through_asyncio)]

    assert [["TlsException after [TLS_ERROR]"]] * 2 == endings
    assert 1 == len(set(caplog.messages))
    assert reason in caplog.text


@pytest.mark.parametrize("fault", QUERY_FAULTS)
def test_faults_of_a_query(fault: str, secure: Secure) -> None:
    """A query with a fault ends through the asyncio driver as through the trio client."""
    server = Server.served(secure.said, QUERY_FAULTS[fault])
    found = list[Sequence[object]]()
    for program in (query_through_trio, query_through_asyncio):
        ask(secure.said["control"], "/commands", "clear_faults")
        ask(secure.said["control"], "/commands", fault)
        found.append(program(server, FEW))
    ask(secure.said["control"], "/commands", "clear_faults")

    assert [found[0]] * 2 == found


class ReportsPauses(AsyncioClient):
    """Client with an event that is set once the machine has paused a stream."""

    def __init__(self, machine: DrivenClient, tls: ssl.SSLContext | None = None) -> None:
        super().__init__(machine, tls)
        self.paused = asyncio.Event()

    def _pause(self, action: PauseReading) -> None:
        super()._pause(action)
        self.paused.set()


def test_rows_come_as_they_are_read(secure: Secure) -> None:
    """While the caller does not read, the driver stops reading from the node; then all rows arrive, over TLS."""
    server = secure.server(secure.authority)

    async def main() -> list[bytes]:
        async with asyncio.timeout(SECONDS_MAX):
            with ReportsPauses(server.machine(), server.tls) as client:
                async with client.request(QueryRequest(statement=MANY, readonly=True)) as rows:
                    found = [await anext(aiter(rows))]
                    await client.paused.wait()
                    assert len(rows.arrived) < len(ROWS) / 2
                    return found + [row async for row in rows]

    assert ROWS == [json.loads(row) for row in asyncio.run(main())]
