"""TLS and rows through the asyncio driver."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import trustme

from docs.howto.examples.asyncio_driver import AsyncioClient
from tests.docs.serving import serving
from tests.hosts.event_loops.clients import SECONDS_MAX, Server, Step, through_asyncio, through_trio
from triclinium_core.contract.couchbase import DrivenClient
from triclinium_core.contract.neutral import PauseReading
from triclinium_core.services.query.query_request import QueryRequest

pytestmark = [pytest.mark.hosts, pytest.mark.native]

ROWS = [{"number": number, "text": "x" * 80} for number in range(20_000)]
"""Rows of about 2 MB, more than the client buffers."""
MANY = "SELECT many rows"


def secured(served: Mapping[str, Any], authority: trustme.CA) -> Server:
    """Return the server with TLS for clients that trust an authority."""
    tls = ssl.create_default_context()
    authority.configure_trust(tls)
    return replace(Server.of(served), connection_string=served["tls_connection_string"], tls=tls)


@pytest.fixture(scope="module")
def secure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Yield three nodes with TLS and scripted queries."""
    folder, authority = tmp_path_factory.mktemp("tls"), trustme.CA()
    certificate, script = folder / "node.pem", folder / "script.json"
    authority.issue_cert("127.0.0.1").private_key_and_cert_chain_pem.write_to_path(str(certificate))
    script.write_text(json.dumps([{"statement": MANY, "rows": ROWS}]), encoding="utf-8")
    with serving("--nodes", "3", "--tls-cert", str(certificate), "--script", str(script)) as served:
        yield secured(served, authority)


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
    with serving("--tls-cert", str(path)) as served:
        refused = secured(served, authority if is_trusted else trustme.CA())
        endings = [program(refused, [Step("upsert", "ada", b"1")]) for program in (through_trio, through_asyncio)]

    assert [["TlsException after [TLS_ERROR]"]] * 2 == endings
    assert 1 == len(set(caplog.messages))
    assert reason in caplog.text


class ReportsPauses(AsyncioClient):
    """Client with an event that is set once the machine has paused a stream."""

    def __init__(self, machine: DrivenClient, tls: ssl.SSLContext | None = None) -> None:
        super().__init__(machine, tls)
        self.paused = asyncio.Event()

    def _pause(self, action: PauseReading) -> None:
        super()._pause(action)
        self.paused.set()


def test_rows_come_as_they_are_read(secure: Server) -> None:
    """While the caller does not read, the driver stops reading from the node; then all rows arrive, over TLS."""

    async def main() -> list[bytes]:
        async with asyncio.timeout(SECONDS_MAX):
            with ReportsPauses(secure.machine(), secure.tls) as client:
                async with client.request(QueryRequest(statement=MANY, readonly=True)) as rows:
                    found = [await anext(aiter(rows))]
                    await client.paused.wait()
                    assert len(rows.arrived) < len(ROWS) / 2
                    return found + [row async for row in rows]

    assert ROWS == [json.loads(row) for row in asyncio.run(main())]
