"""``triclinium ping``: the report on a node, and the errors for other servers."""

from __future__ import annotations

import json
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio
import trustme
from click.testing import CliRunner, Result

from tests.rows import rows
from tests.trio_client._cli import listeners
from tests.trio_client._cli.refusals import assert_refused
from triclinium._cli import _target, main
from triclinium._cli.ping.pinging import NOOPS
from triclinium.testing import FakeCluster, open_tcp_cluster
from triclinium_core.kv.wire.constants import HelloFeature, Opcode
from triclinium_core.retry.couchbase import Service
from triclinium_core.runtime.kv.connection.bootstrap import COMPRESSION_FEATURES, WANTED_FEATURES
from triclinium_core.testing import FakeNode, FakeNodeOptions, drop_response
from triclinium_core.testing.fakes.services.faults import http_status

OPTIONS = FakeNodeOptions(vbuckets=128)
CREDENTIALS = ("--username", OPTIONS.username, "--password", OPTIONS.password)
SOON = ("--timeout", "3")

FEATURES = sorted(feature.name for feature in (*WANTED_FEATURES, *COMPRESSION_FEATURES, HelloFeature.XERROR))


async def ping(*arguments: str) -> Result:
    """Run the command in a thread, next to the servers of the test."""
    return await trio.to_thread.run_sync(lambda: CliRunner().invoke(main, ["ping", *arguments]))


@pytest.fixture
async def fake() -> AsyncIterator[FakeCluster]:
    """Serve a node without TLS."""
    async with open_tcp_cluster(FakeNode(OPTIONS)) as fake:
        yield fake


@asynccontextmanager
async def secure_cluster(certificate: trustme.LeafCert) -> AsyncIterator[FakeCluster]:
    """Serve a node with TLS and plain ports."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    certificate.configure_cert(context)
    async with open_tcp_cluster(FakeNode(OPTIONS), ssl_context=context) as fake:
        yield fake


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    """Return an authority that no system trusts."""
    return trustme.CA()


@pytest.fixture
def ca_file(authority: trustme.CA, tmp_path: Path) -> str:
    """Return the path of the authority's certificate."""
    path = tmp_path / "authority.pem"
    authority.cert_pem.write_to_path(path)
    return str(path)


# -- Nodes, services, options and the password prompt.


async def test_ping_reports_negotiated_features(fake: FakeCluster) -> None:
    """The JSON document lists each connection with everything that was negotiated."""
    result = await ping(fake.connection_string, *CREDENTIALS, "--bucket", "default", "--service", "kv", "--json")

    assert (0, "") == (result.exit_code, result.stderr)
    (line,) = result.output.splitlines()
    document = json.loads(line)
    (node,) = document["nodes"]
    measured = [found.pop(name) for found in node["connections"] for name in ("ready_ms", "noop_ms")]
    negotiated = {
        "tls": None,
        "features": FEATURES,
        "error_map_version": 2,
        "error_map_revision": 9,
        "mechanisms_offered": ["SCRAM-SHA512", "SCRAM-SHA256", "SCRAM-SHA1", "PLAIN"],
        "mechanism": "SCRAM-SHA512",
        "config_epoch": 1,
        "config_revision": 1,
    }
    assert {"ok": True, "nodes": [node], "services": {}} == document
    assert {
        "node": f"127.0.0.1:{fake.node.options.port}",
        "error": None,
        "connections": [{"bucket": None, **negotiated}, {"bucket": "default", **negotiated}],
    } == node
    assert 4 == len(measured)
    assert all(milliseconds > 0 for milliseconds in measured)
    # Ping sends one NOOP to open the connection, and then the NOOPs whose median it reports.
    noops = [command.bucket for command in fake.node.command_log if command.opcode == Opcode.NOOP]
    assert [None] * (NOOPS + 1) + ["default"] * (NOOPS + 1) == noops


async def test_every_service_is_pinged(fake: FakeCluster) -> None:
    """All services are pinged by default; one that fails gets a line on stderr, and the exit status is 1."""
    everything = await ping(fake.connection_string, *CREDENTIALS, "--json")
    fake.node.faults.always(Service.SEARCH, http_status(503))
    some = await ping(fake.connection_string, *CREDENTIALS, "--service", "query", "--service", "search")

    services = json.loads(everything.stdout)["services"]
    ports = {service: [f"127.0.0.1:{port}"] for service, port in fake.node.options.service_ports.items()}
    assert ports == {name: [found["endpoint"] for found in reports] for name, reports in services.items()}
    assert {"ok"} == {found["state"] for reports in services.values() for found in reports}
    assert 1 == some.exit_code
    assert some.stdout.startswith(f"127.0.0.1:{fake.node.options.service_ports[Service.QUERY]}, query: answered in ")
    (line,) = some.stderr.splitlines()
    assert line.startswith(f"Error: 127.0.0.1:{fake.node.options.service_ports[Service.SEARCH]}: search: ")
    assert "503" in line


async def test_a_failed_node_does_not_hide_others(fake: FakeCluster) -> None:
    """A healthy node is reported although the node before it closed the connection."""
    async with listeners.listening(listeners.hang_up) as port:
        result = await ping(f"couchbase://127.0.0.1:{port},{fake.connection_string[12:]}", *CREDENTIALS, "--json")

    bad, good = json.loads(result.stdout)["nodes"]
    assert 1 == result.exit_code
    assert ([], 1) == (bad["connections"], len(good["connections"]))
    assert f"Error: {bad['error']}\n" == result.stderr
    assert bad["error"].startswith(f"127.0.0.1:{port}: closed by the server before it responded to HELLO; ")


async def test_options_of_the_connection_string_hold(fake: FakeCluster) -> None:
    """A timeout in the connection string applies to the NOOP."""
    fake.node.faults.always(Opcode.NOOP, drop_response())

    result = await ping(f"{fake.connection_string}?kv_timeout=3s", *CREDENTIALS)

    node = f"127.0.0.1:{fake.node.options.port}"
    assert (1, f"Error: {node}: within 3 s it did not answer a NOOP\n") == (result.exit_code, result.stderr)


async def test_ping_prompts_for_the_password(fake: FakeCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a terminal, a missing password is read from a prompt without echo."""
    monkeypatch.setattr(_target, "is_interactive", lambda: True)
    arguments = ["ping", fake.connection_string, *CREDENTIALS[:2]]
    result = await trio.to_thread.run_sync(lambda: CliRunner().invoke(main, arguments, input=f"{OPTIONS.password}\n"))

    assert 0 == result.exit_code
    assert result.stderr.startswith("Password: ")
    assert OPTIONS.password not in result.stderr


# -- TLS.


async def test_a_node_that_speaks_tls(authority: trustme.CA, ca_file: str) -> None:
    """With ``--ca-file``, ping connects over TLS, authenticates with PLAIN and reports the TLS version."""
    async with secure_cluster(authority.issue_cert("127.0.0.1")) as fake:
        result = await ping(str(fake.tls_connection_string), *CREDENTIALS, "--ca-file", ca_file, "--json")

    (node,) = json.loads(result.output)["nodes"]
    (found,) = node["connections"]
    assert 0 == result.exit_code
    assert ("TLSv1.3", "PLAIN") == (found["tls"], found["mechanism"])


@rows(
    ("name", "scheme", "trusts", "parts"),
    [
        ("127.0.0.1", "couchbases", False, ["CERTIFICATE_VERIFY_FAILED", "--ca-file"]),
        ("node.example", "couchbases", True, ["IP address mismatch", "host name"]),
        ("127.0.0.1", "couchbase", False, ["; this port speaks TLS; connect with couchbases://"]),
    ],
)
async def test_a_wrong_use_of_tls(
    authority: trustme.CA, ca_file: str, *, name: str, scheme: str, trusts: bool, parts: list[str]
) -> None:
    """The error of a certificate, or of a TLS port without TLS, suggests the option, the name or the scheme."""
    async with secure_cluster(authority.issue_cert(name)) as fake:
        trusted = ("--ca-file", ca_file) if trusts else ()
        result = await ping(f"{scheme}://127.0.0.1:{fake.node.options.tls_port}", *CREDENTIALS, *trusted)

    assert_refused(result, *parts, status=1)


# -- Failures to connect.


@rows(
    ("handler", "scheme", "parts"),
    [
        (listeners.speak_http, "couchbase", ["HTTP port", "11210", "11207 with TLS"]),
        (listeners.speak_text_memcached, "couchbase", ["memcached", "text protocol"]),
        (listeners.refuse_hello, "couchbase", ["does not know HELLO", "memcached:// instead"]),
        (listeners.hang_up, "couchbase", ["closed by the server", "HELLO", "with couchbases://"]),
        (listeners.stay_silent, "couchbase", ["within 3 s", "HELLO", "memcached://", "couchbases://"]),
        (listeners.stay_silent, "couchbases", ["within 3 s", "connect with couchbase://"]),
        (listeners.shake_hands, "couchbase", ["before it responded to HELLO", "couchbases://"]),
    ],
)
async def test_a_server_that_is_not_a_node(
    authority: trustme.CA, handler: listeners.Handler, scheme: str, parts: list[str]
) -> None:
    """The error describes the other server and gives the next step."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    async with listeners.listening(handler, context if handler is listeners.shake_hands else None) as port:
        limit = SOON if handler is listeners.stay_silent else ()
        result = await ping(f"{scheme}://127.0.0.1:{port}", *CREDENTIALS, *limit)

    assert_refused(result, f"Error: 127.0.0.1:{port}: ", *parts, status=1)


async def test_the_port_of_the_web_console() -> None:
    """The error for port 8091 names it as a port of the web console, even if the host name does not resolve."""
    result = await ping("couchbase://a..b:8091", *CREDENTIALS)

    assert_refused(
        result, "host name not resolved", "8091 and 18091 are ports of the web console", "check the host name", status=1
    )


async def test_an_address_is_reported_once() -> None:
    """If both addresses of a host refuse the connection, the error names the host once, with reason and next step."""
    async with listeners.listening(listeners.hang_up) as port:
        pass
    result = await ping(f"couchbase://localhost:{port}", *CREDENTIALS)

    expected = f"localhost:{port}: connection refused; nothing listens there; KV is on 11210, or 11207 with TLS"
    assert (1, f"Error: {expected}\n") == (result.exit_code, result.stderr)


async def test_a_bucket_that_is_not_there(fake: FakeCluster) -> None:
    """A missing bucket is an error; the connection without a bucket is still reported."""
    result = await ping(fake.connection_string, *CREDENTIALS, "--bucket", "travel")

    assert 1 == result.exit_code
    assert "no bucket: ready in" in result.stdout
    assert result.stderr.endswith(f": bucket 'travel' does not exist, or user '{OPTIONS.username}' may not open it\n")


@rows(
    ("scheme", "password", "parts"),
    [
        ("couchbase", "nonsense", [f"'{OPTIONS.username}'", "password"]),
        ("couchbases", OPTIONS.password, ["TLS failed", "connect with couchbase://"]),
        ("memcached", OPTIONS.password, ["closed by the server", "connect with couchbase://"]),
    ],
)
async def test_a_node_that_refuses_the_client(fake: FakeCluster, scheme: str, password: str, parts: list[str]) -> None:
    """The error of a wrong password names the user and not the password; that of a wrong scheme suggests another."""
    result = await ping(fake.connection_string.replace("couchbase", scheme), *CREDENTIALS[:3], password)

    assert_refused(result, *parts, status=1)
    assert "nonsense" not in result.output


# -- Wrong arguments.


async def test_a_user_name_with_a_colon() -> None:
    """A user name with a colon is a wrong argument."""
    result = await ping("couchbase://localhost", "--username", "app:x", "--password", "secret")

    assert_refused(result, "Error: the user name")


@rows(
    ("arguments", "words"),
    [
        (["http://127.0.0.1"], "'http' is not one of couchbase, couchbases, memcached"),
        (["couchbase:/h:1"], "write couchbase://h:1"),
        (["couchbases:h"], "write couchbases://h"),
        (["Memcached//h"], "write memcached://h"),
        (["http:/h"], "write couchbase://h"),
        (["couchbase:11210"], "write couchbase://couchbase:11210"),
        (["h"], "write couchbase://h"),
        (["couchbase://h", "--timeout", "nan"], "'--timeout': nan"),
        (["couchbase://h", "--username", "app"], "TRICLINIUM_PASSWORD"),
        (["couchbase://h"], "TRICLINIUM_USERNAME"),
        (["couchbase://h", *CREDENTIALS, "--bucket", "no/name"], "bucket='no/name'"),
        (["couchbase://h", *CREDENTIALS, "--ca-file", __file__], "use couchbases://"),
        (["couchbases://h", *CREDENTIALS, "--ca-file", __file__], f"--ca-file {__file__}"),
        (["memcached://h", "--bucket", "default"], "use couchbase://"),
        (["memcached://h", "--service", "query"], "use couchbase://"),
        (["couchbase://h", *CREDENTIALS, "--service", "n1ql"], "n1ql"),
        (["couchbase://h", "--timeout", "0"], "x>0"),
        (["couchbases://h", "--ca-file", "nowhere"], "'nowhere' does not exist"),
        ([], "CONNSTR"),
    ],
)
def test_wrong_arguments(arguments: list[str], words: str) -> None:
    """A wrong or missing argument ends the command with status 2 and one line."""
    assert_refused(CliRunner().invoke(main, ["ping", *arguments]), words)
