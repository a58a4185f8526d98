"""Connection instructions of ``triclinium serve``."""

from __future__ import annotations

import json

import pytest
from trio.testing import MockClock

from triclinium._cli.serve.control_server import Control
from triclinium._cli.serve.description import describe, describe_as_json
from triclinium.testing import FakeNodeOptions, open_fake_cluster


@pytest.mark.parametrize(
    ("nodes", "tls_port", "listens"),
    [(1, None, "A fake Couchbase node listens"), (2, 11207, "2 fake Couchbase nodes listen")],
)
async def test_json_and_text_have_the_same_facts(
    nodes: int, tls_port: int | None, listens: str, autojump_clock: MockClock, capsys: pytest.CaptureFixture[str]
) -> None:
    """JSON and text give the addresses, with TLS too, the user, the bucket and each endpoint; no line is cut."""
    options = FakeNodeOptions(username="ada", password="x" * 200, buckets=("travel",), tls_port=tls_port)
    async with open_fake_cluster(options=options, nodes=nodes) as fake:
        control = Control("http://127.0.0.1:5", "secret")
        reported = json.loads(describe_as_json(fake, 17, control))
        describe(fake, 17, control)
    said = capsys.readouterr().out

    assert (fake.connection_string, "ada", "travel") == (
        reported["connection_string"],
        reported["username"],
        reported["bucket"],
    )
    assert said.startswith(f"{listens} on {fake.connection_string}; ")
    assert (tls_port is not None) == (f"\nOver TLS: {fake.tls_connection_string}\n" in said) == ("Over TLS" in said)
    assert f"    authenticator = PasswordAuthenticator('ada', '{'x' * 200}')\n" in said
    assert [nodes] * len(reported["endpoints"]) == [len(addresses) for addresses in reported["endpoints"].values()]
    assert [] == [each for addresses in reported["endpoints"].values() for each in addresses if each not in said]
    assert (17, {"url": "http://127.0.0.1:5", "token": "secret"}) == (reported["seed"], reported["control"])
    assert "http://127.0.0.1:5/commands -H 'Authorization: Bearer secret' \\\n        -H" in said
    assert "seed is 17" in said
    assert "await people.upsert" in said
    assert "from couchbase.cluster import Cluster\n" in said
    assert "Cluster.connect" in said
