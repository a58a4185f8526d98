"""``triclinium ping``: the report on a node, and the errors for other servers."""

from __future__ import annotations

import json
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio
import trustme
from click.testing import CliRunner, Result

from tests.rows import rows
from tests.trio_client._cli import listeners
from triclinium._cli import _target, main
from triclinium._cli.ping.pinging import NOOPS
from triclinium.testing import FakeCluster, open_tcp_cluster
from triclinium_core.kv.wire.constants import Opcode
from triclinium_core.retry.couchbase import Service
from triclinium_core.testing import FakeNode, FakeNodeOptions, drop_response
from triclinium_core.testing.fakes.services.faults import http_status

OPTIONS = FakeNodeOptions(vbuckets=128)
CREDENTIALS = ("--username", OPTIONS.username, "--password", OPTIONS.password)
SOON = ("--timeout", "0.5")

FEATURES = [
    "ALT_REQUEST",
    "CLUSTERMAP_NOTIFICATION_BRIEF",
    "COLLECTIONS",
    "DEDUPE_NOT_MY_VBUCKET_CLUSTERMAP",
    "DUPLEX",
    "GET_CLUSTER_CONFIG_WITH_KNOWN_VERSION",
    "JSON",
    "MUTATION_SEQNO",
    "PRESERVE_TTL",
    "SELECT_BUCKET",
    "SNAPPY",
    "SNAPPY_EVERYWHERE",
    "SUBDOC_CREATE_AS_DELETED",
    "SUBDOC_REPLICA_READ",
    "SYNC_REPLICATION",
    "TCP_NODELAY",
    "TRACING",
    "UNORDERED_EXECUTION",
    "XATTR",
    "XERROR",
]


async def ping(*arguments: str, env: Mapping[str, str] | None = None) -> Result:
    """Run the command in a thread, next to the servers of the test."""
    return await trio.to_thread.run_sync(lambda: CliRunner().invoke(main, ["ping", *arguments], env=env))


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


# -- A node.


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
    """All services are pinged by default. A service that fails gets a line on stderr, and the exit status is 1."""
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
    """A timeout in the connection string applies to each NOOP."""
    fake.node.faults.always(Opcode.NOOP, drop_response())

    result = await ping(f"{fake.connection_string}?kv_timeout=500ms", *CREDENTIALS)

    node = f"127.0.0.1:{fake.node.options.port}"
    assert (1, f"Error: {node}: within 0.5 s it did not answer a NOOP\n") == (result.exit_code, result.stderr)


async def test_credentials_may_come_from_the_environment(fake: FakeCluster) -> None:
    """User name and password are read from the environment; without a bucket there is one connection."""
    env = {"TRICLINIUM_USERNAME": OPTIONS.username, "TRICLINIUM_PASSWORD": OPTIONS.password}

    result = await ping(fake.connection_string, "--service", "kv", env=env)

    assert 0 == result.exit_code
    assert {1} == {command.connection for command in fake.node.command_log}


async def test_ping_prompts_for_the_password(fake: FakeCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a terminal, a missing password is read from a prompt without echo."""
    monkeypatch.setattr(_target, "is_interactive", lambda: True)
    answers = f"{OPTIONS.password}\n"

    result = await trio.to_thread.run_sync(
        lambda: CliRunner().invoke(main, ["ping", fake.connection_string, *CREDENTIALS[:2]], input=answers)
    )

    assert 0 == result.exit_code
    assert result.stderr.startswith("Password: ")
    assert OPTIONS.password not in result.stderr


# -- A node that speaks TLS.


async def test_a_node_that_speaks_tls(authority: trustme.CA, ca_file: str) -> None:
    """With ``--ca-file``, ping connects over TLS, authenticates with PLAIN and reports the TLS version."""
    async with secure_cluster(authority.issue_cert("127.0.0.1")) as fake:
        result = await ping(str(fake.tls_connection_string), *CREDENTIALS, "--ca-file", ca_file, "--json")

    (node,) = json.loads(result.output)["nodes"]
    (found,) = node["connections"]
    assert 0 == result.exit_code
    assert ("TLSv1.3", "PLAIN") == (found["tls"], found["mechanism"])


async def test_an_untrusted_certificate(authority: trustme.CA) -> None:
    """The error of an untrusted certificate names the option that trusts its authority."""
    async with secure_cluster(authority.issue_cert("127.0.0.1")) as fake:
        result = await ping(str(fake.tls_connection_string), *CREDENTIALS)

    assert_problem(result, "CERTIFICATE_VERIFY_FAILED", "--ca-file")


async def test_a_certificate_for_another_name(authority: trustme.CA, ca_file: str) -> None:
    """The error of a certificate for another name suggests connecting under a name of the certificate."""
    async with secure_cluster(authority.issue_cert("node.example")) as fake:
        result = await ping(str(fake.tls_connection_string), *CREDENTIALS, "--ca-file", ca_file)

    assert_problem(result, "IP address mismatch", "host name")


async def test_tls_is_needed(authority: trustme.CA) -> None:
    """A TLS port is recognised by its response to a plain connection, and the error suggests couchbases://."""
    async with secure_cluster(authority.issue_cert("127.0.0.1")) as fake:
        result = await ping(f"couchbase://127.0.0.1:{fake.node.options.tls_port}", *CREDENTIALS)

    assert_problem(result, "; this port speaks TLS; connect with couchbases://")


async def test_tls_is_needed_by_some_other_server(authority: trustme.CA) -> None:
    """A TLS server that is not a Couchbase node also leads to the suggestion of couchbases://."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    async with listeners.listening(listeners.shake_hands, context) as port:
        result = await ping(f"couchbase://127.0.0.1:{port}", *CREDENTIALS)

    assert_problem(result, "before it responded to HELLO", "couchbases://")


async def test_tls_is_not_spoken(fake: FakeCluster) -> None:
    """The error of a TLS connection to a plain port suggests couchbase://."""
    result = await ping(fake.connection_string.replace("couchbase:", "couchbases:"), *CREDENTIALS)

    assert_problem(result, "TLS failed", "connect with couchbase://")


# -- Servers that are not nodes, and nodes that refuse the client.


def assert_problem(result: Result, *parts: str) -> None:
    """Assert that a ping failed with one line that has all ``parts``."""
    assert (1, "") == (result.exit_code, result.stdout)
    (line,) = result.stderr.splitlines()
    assert line.startswith("Error: ")
    assert all(part in line for part in parts)


@rows(
    ("handler", "parts"),
    [
        (listeners.speak_http, ["HTTP port", "11210", "11207 with TLS"]),
        (listeners.speak_text_memcached, ["memcached", "text protocol"]),
        (listeners.refuse_hello, ["does not know HELLO", "memcached:// instead"]),
        (listeners.hang_up, ["closed by the server", "HELLO", "with couchbases://"]),
        (listeners.stay_silent, ["within 0.5 s", "HELLO", "memcached://", "couchbases://"]),
    ],
)
async def test_a_server_that_is_not_a_node(handler: listeners.Handler, parts: list[str]) -> None:
    """The error describes the other server as precisely as possible and gives the next step."""
    async with listeners.listening(handler) as port:
        limit = SOON if handler is listeners.stay_silent else ()
        result = await ping(f"couchbase://127.0.0.1:{port}", *CREDENTIALS, *limit)

    assert_problem(result, *parts)
    assert result.stderr.startswith(f"Error: 127.0.0.1:{port}: ")


async def test_a_silent_server_behind_couchbases() -> None:
    """If a server is silent during the TLS handshake, the error suggests couchbase://."""
    async with listeners.listening(listeners.stay_silent) as port:
        result = await ping(f"couchbases://127.0.0.1:{port}", *CREDENTIALS, *SOON)

    assert_problem(
        result,
        f"127.0.0.1:{port}: within 0.5 s",
        "connect with couchbase://",
    )


async def test_the_port_of_the_web_console() -> None:
    """The error for port 8091 names it as a port of the web console, even if the host name does not resolve."""
    result = await ping("couchbase://a..b:8091", *CREDENTIALS)

    assert_problem(
        result,
        "host name not resolved",
        "8091 and 18091 are ports of the web console",
        "check the host name",
    )


async def test_an_address_is_reported_once() -> None:
    """If both addresses of a host refuse the connection, the error names the host once, with reason and next step."""
    async with listeners.listening(listeners.hang_up) as port:
        pass
    result = await ping(f"couchbase://localhost:{port}", *CREDENTIALS)

    expected = f"localhost:{port}: connection refused; nothing listens there; KV is on 11210, or 11207 with TLS"
    assert (1, f"Error: {expected}\n") == (result.exit_code, result.stderr)


async def test_a_wrong_password(fake: FakeCluster) -> None:
    """The error of a wrong password names the user and not the password."""
    result = await ping(fake.connection_string, "--username", "app", "--password", "nonsense")

    assert_problem(result, "'app'", "password")
    assert "nonsense" not in result.output


async def test_a_user_name_with_a_colon() -> None:
    """A user name with a colon is a wrong argument, and nothing is sent."""
    result = await ping("couchbase://localhost", "--username", "app:x", "--password", "secret")

    assert (2, "") == (result.exit_code, result.stdout)
    assert result.stderr.startswith("Error: the user name")


async def test_a_bucket_that_is_not_there(fake: FakeCluster) -> None:
    """A missing bucket is an error; the connection without a bucket is still reported."""
    result = await ping(fake.connection_string, *CREDENTIALS, "--bucket", "travel")

    assert 1 == result.exit_code
    assert "no bucket: ready in" in result.stdout
    assert result.stderr.endswith(f": bucket 'travel' does not exist, or user '{OPTIONS.username}' may not open it\n")


async def test_a_couchbase_node_behind_memcached_scheme(fake: FakeCluster) -> None:
    """A Couchbase node closes a memcached:// connection without HELLO, and the error suggests couchbase://."""
    result = await ping(fake.connection_string.replace("couchbase:", "memcached:"))

    assert_problem(result, "closed by the server", "connect with couchbase://")


# -- Wrong arguments.


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
    """A wrong argument exits with status 2 and one line, and nothing is sent."""
    result = CliRunner().invoke(main, ["ping", *arguments])

    assert (2, "") == (result.exit_code, result.stdout)
    (line,) = result.stderr.splitlines()
    assert line.startswith("Error: ")
    assert words in line
