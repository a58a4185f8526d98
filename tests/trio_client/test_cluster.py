"""Opening and leaving a cluster: arguments, the end of the connections, and operations that need no bucket."""

from __future__ import annotations

import inspect
import random
import ssl

import pytest
import trio
import trio.testing

from tests.rows import rows
from tests.trio_client import doubles
from triclinium import (
    CertificateAuthenticator,
    ClusterArguments,
    JwtAuthenticator,
    PasswordAuthenticator,
    errors,
    open_cluster,
)
from triclinium._cluster import running
from triclinium._cluster_driver.cluster_driver import ClusterDriver
from triclinium._cluster_driver.log import Log
from triclinium._open_cluster import make_driver
from triclinium_core.contract.neutral import TimePassed
from triclinium_core.kv.operation.document_operations import Keyspace, Noop
from triclinium_core.options import ClientOptions
from triclinium_core.testing.driver_laws import ScriptedClusterMachine, on

AUTHENTICATOR = PasswordAuthenticator("app", "secret")
UNREACHABLE = doubles.connector_that_raises(ConnectionRefusedError())
TLS = "couchbases://10.0.0.5"


# -- Entering and leaving the block.


async def test_entering_and_leaving_are_checkpoints() -> None:
    """Entering and leaving the block are checkpoints."""
    block = doubles.open_scripted(ScriptedClusterMachine())
    with trio.testing.assert_checkpoints():
        await block.__aenter__()
    with trio.testing.assert_checkpoints():
        await block.__aexit__(None, None, None)


async def test_leaving_closes_connections_immediately() -> None:
    """When the block has been left, its open connection has been closed."""
    stream = doubles.HalfDeafStream()
    async with doubles.open_driver(
        ScriptedClusterMachine(on(TimePassed, doubles.OPEN_STREAM)), doubles.connector_to(stream)
    ):
        await trio.testing.wait_all_tasks_blocked()
        before = stream.is_closed

    assert not before
    assert stream.is_closed


async def test_closing_is_protected_from_keyboard_interrupt() -> None:
    """Closing is protected from KeyboardInterrupt, which could otherwise leave a background task running."""
    protected: list[bool] = []

    class Noting(ClusterDriver):
        def close(self) -> None:
            protected.append(trio.lowlevel.currently_ki_protected())
            super().close()

    driver = Noting(ScriptedClusterMachine(), connector=UNREACHABLE, log=Log())
    async with running(driver, "couchbase://a"):
        unprotected = trio.lowlevel.currently_ki_protected()

    assert not unprotected
    assert protected
    assert all(protected)


# -- NOOPs and statistics.


async def test_a_noop_needs_no_bucket() -> None:
    """A NOOP is submitted for a bucket, or without a bucket."""
    machine = ScriptedClusterMachine(doubles.settle)
    async with doubles.open_scripted(machine) as cluster:
        await cluster._noop()
        await cluster._noop("travel")

    assert [Noop(Keyspace(None)), Noop(Keyspace("travel"))] == [event.operation for event in machine.submitted]


async def test_statistics_outlive_the_cluster() -> None:
    """After its block, a cluster still returns its last statistics."""
    async with doubles.open_scripted(ScriptedClusterMachine()) as cluster:
        pass

    assert 42 == cluster.statistics().open_operations


# -- ``open_cluster`` and ``run_cluster``.


async def test_opening_does_not_wait() -> None:
    """Opening and leaving a cluster do not wait for the network, which may be unreachable."""
    async with open_cluster("couchbase://10.0.0.5", AUTHENTICATOR, connector=UNREACHABLE) as cluster:
        bucket = cluster.bucket("travel")

    assert "travel" == bucket.name


def test_open_and_run_take_the_same_arguments() -> None:
    """``open_cluster`` and ``run_cluster`` take the same keyword arguments."""
    by_name = {
        name for name, found in inspect.signature(open_cluster).parameters.items() if found.kind is found.KEYWORD_ONLY
    }

    assert by_name == ClusterArguments.__optional_keys__


class ByeConnector:
    """Object that is not a connector, because it has no method ``connect``."""


@rows(
    ("parameter", "arguments"),
    [
        ("connection_string", {"connection_string": "10.0.0.5"}),
        ("connection_string", {"connection_string": 5}),
        ("authenticator", {"authenticator": None}),
        ("authenticator", {"authenticator": ("app", "secret")}),
        ("timeouts", {"timeouts": 2.5}),
        ("retry_strategy", {"retry_strategy": "best effort"}),
        ("circuit_breaker", {"circuit_breaker": False}),
        ("ssl_context", {"ssl_context": "system"}),
        ("ssl_context", {"ssl_context": ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), "connector": UNREACHABLE}),
        ("ssl_context", {"ssl_context": ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)}),
        ("authenticator", {"authenticator": "app:secret"}),
        ("authenticator", {"authenticator": PasswordAuthenticator}),
        ("authenticator", {"authenticator": JwtAuthenticator("a.b.c")}),
        ("authenticator", {"authenticator": CertificateAuthenticator("ada.pem")}),
        ("authenticator", {"connection_string": TLS, "authenticator": CertificateAuthenticator()}),
        ("authenticator", {"connection_string": TLS, "authenticator": CertificateAuthenticator("nowhere.pem")}),
        ("authenticator", {"connection_string": TLS, "authenticator": CertificateAuthenticator(__file__)}),
        ("authenticator", {"connection_string": TLS, "authenticator": CertificateAuthenticator(__file__, __file__)}),
        (
            "authenticator",
            {"connection_string": TLS, "authenticator": CertificateAuthenticator("a.pem"), "connector": UNREACHABLE},
        ),
        ("connector", {"connector": ByeConnector()}),
        ("connector", {"connector": type(UNREACHABLE)}),
        ("hello_after_auth", {"hello_after_auth": "yes"}),
        ("renegotiate_on_corrupt_error_map", {"renegotiate_on_corrupt_error_map": 1}),
        ("compression", {"compression": None}),
        ("network", {"network": None}),
        ("enable_dns_srv", {"enable_dns_srv": 1}),
        ("dns_srv_domains", {"dns_srv_domains": "nodes.example"}),
        ("resolver", {"resolver": ByeConnector()}),
        ("resolver", {"resolver": type(UNREACHABLE)}),
        ("network", {"network": ""}),
        ("redact_logs", {"redact_logs": "no"}),
        ("max_http_connections", {"max_http_connections": -1}),
    ],
)
def test_a_wrong_argument_is_refused_immediately(parameter: str, arguments: dict[str, object]) -> None:
    """A wrong argument is refused when it is passed, and the error names the parameter without showing the password."""
    given: dict[str, object] = {"connection_string": "couchbase://10.0.0.5", "authenticator": AUTHENTICATOR}
    with pytest.raises(errors.InvalidArgumentException) as caught:
        open_cluster(**{**given, **arguments})  # type: ignore[arg-type]

    assert parameter == caught.value.parameter
    assert "secret" not in str(caught.value)


async def first_bytes(seed: int) -> bytes:
    """Return the first bytes of a client whose random generator has this seed."""
    ours, theirs = trio.testing.memory_stream_pair()
    options = ClientOptions(connection_string="couchbase://10.0.0.5", authenticator=AUTHENTICATOR)
    driver = make_driver(
        options, connector=doubles.connector_to(ours), rng=random.Random(seed), make_nonce=lambda: "a nonce"
    )
    async with running(driver, "couchbase://10.0.0.5") as cluster, trio.open_nursery() as nursery:
        nursery.start_soon(cluster.bucket("travel").default_collection().get, "ada")
        received = bytes(await theirs.receive_some())
        nursery.cancel_scope.cancel()
    return received


async def test_random_numbers_come_from_the_given_generator() -> None:
    """The client draws random numbers, such as its id, from the given generator, so that a seed repeats them."""
    assert await first_bytes(7) == await first_bytes(7) != await first_bytes(8)
