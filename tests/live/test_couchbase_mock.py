"""Bootstrap and documents with CouchbaseMock, the test server of Couchbase's own clients."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta

import pytest
import trio

import triclinium
from tests.live.couchbase_mock import CouchbaseMock
from tests.live.waiting import PATIENT, until
from tests.never_retry import NeverRetry
from triclinium import errors
from triclinium_core.kv.wire.constants import Opcode
from triclinium_core.retry.couchbase import Status

pytestmark = pytest.mark.live

HASTY = triclinium.TimeoutOptions(kv=1.0)
"""Timeouts for operations that can only time out."""
TASKS = 300


async def attempt(
    mock: CouchbaseMock,
    authenticator: triclinium.PasswordAuthenticator | None = None,
    *,
    bucket: str = "",
) -> triclinium.Cluster:
    """Write a document with a new client, and return the client after its end."""
    async with triclinium.open_cluster(
        mock.connection_string, authenticator or mock.authenticator, timeouts=PATIENT
    ) as cluster:
        await cluster.bucket(bucket or mock.bucket).default_collection().upsert("attempt", 1)
    return cluster


async def attempt_in_vain(mock: CouchbaseMock, text: str) -> None:
    """Write a document with a new client until the error contains ``text``; each write must time out.

    A client that connects slowly learns the reason only after its first operations have timed out.
    """
    async with mock.open_client(timeouts=HASTY) as (_, store):
        found = ""
        while text not in found:
            with pytest.raises(errors.UnambiguousTimeoutException) as caught:
                await store.upsert("attempt", 1)
            assert errors.UnambiguousTimeoutException is type(caught.value)
            found = str(caught.value)


def ready(cluster: triclinium.Cluster) -> list[triclinium.health.ConnectionStatistics]:
    """Return the connections that have completed their bootstrap. There must be at least one."""
    found = [connection for connection in cluster.statistics().connections if connection.state == "READY"]
    assert found
    return found


# -- Bootstrap.


async def test_the_bootstrap_is_negotiated(
    couchbase_mock: CouchbaseMock, cluster: triclinium.Cluster, store: triclinium.Collection
) -> None:
    """HELLO, SCRAM, error map, bucket and cluster map are negotiated, with one connection to each node at the end."""
    for number in range(TASKS):
        await store.upsert(f"negotiated{number}", number)
    connections = [found for found in cluster.statistics().connections if found.bucket == couchbase_mock.bucket]

    assert {f"127.0.0.1:{port}" for port in couchbase_mock.ports} == {found.node for found in connections}
    assert 3 == len(connections)
    for found in connections:
        assert "READY" == found.state
        assert ("MUTATION_SEQNO", "SELECT_BUCKET", "TRACING", "XATTR", "XERROR") == found.features
        assert ("SCRAM-SHA512", "SCRAM-SHA256", "SCRAM-SHA1", "PLAIN") == found.sasl_mechanisms
        assert "SCRAM-SHA512" == found.sasl_mechanism
        assert (1, 1) == (found.error_map_version, found.error_map_revision)
        assert found.config_revision is not None


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA512", "SCRAM-SHA256", "SCRAM-SHA1", "PLAIN"])
async def test_each_mechanism(safety_net: None, couchbase_mock: CouchbaseMock, mechanism: str) -> None:
    """Each mechanism accepts the correct password and refuses a wrong one."""
    mock = couchbase_mock
    right = triclinium.PasswordAuthenticator(mock.bucket, "secret", allowed_sasl_mechanisms=(mechanism,))
    wrong = triclinium.PasswordAuthenticator(mock.bucket, "secreT", allowed_sasl_mechanisms=(mechanism,))

    cluster = await attempt(mock, right)
    assert {mechanism} == {found.sasl_mechanism for found in ready(cluster)}
    with pytest.raises(errors.AuthenticationFailureException):
        await attempt(mock, wrong)


async def test_the_best_offered_mechanism_is_used(safety_net: None, couchbase_mock: CouchbaseMock) -> None:
    """The client uses the best offered mechanism; if only PLAIN is offered without TLS, the error names the option."""
    couchbase_mock.do("SET_SASL_MECHANISMS", mechs=["SCRAM-SHA1", "PLAIN"])
    cluster = await attempt(couchbase_mock)
    couchbase_mock.do("SET_SASL_MECHANISMS", mechs=["PLAIN"])
    with pytest.raises(errors.AuthenticationFailureException, match="allowed_sasl_mechanisms"):
        await attempt(couchbase_mock)

    assert {"SCRAM-SHA1"} == {found.sasl_mechanism for found in ready(cluster)}


async def test_a_missing_bucket(safety_net: None, couchbase_mock: CouchbaseMock) -> None:
    """A missing bucket raises BucketAccessException with its name."""
    with pytest.raises(errors.BucketAccessException, match="BUCKET_ACCESS_ERROR.*'other'"):
        await attempt(couchbase_mock, bucket="other")


REFUSED_STEPS: dict[str, tuple[Opcode, Status, type[errors.CouchbaseException], str]] = {
    "credentials": (Opcode.SASL_AUTH, Status.AUTH_ERROR, errors.AuthenticationFailureException, "AUTHENTICATION_ERROR"),
    "proof": (Opcode.SASL_STEP, Status.AUTH_ERROR, errors.AuthenticationFailureException, "AUTHENTICATION_ERROR"),
    "bucket": (Opcode.SELECT_BUCKET, Status.NO_ACCESS, errors.BucketAccessException, "BUCKET_ACCESS_ERROR"),
    "bucket elsewhere": (
        Opcode.SELECT_BUCKET,
        Status.KEY_NOT_FOUND,
        errors.UnambiguousTimeoutException,
        "not on this node",
    ),
    "config": (
        Opcode.GET_CLUSTER_CONFIG,
        Status.NOT_SUPPORTED,
        errors.UnambiguousTimeoutException,
        "no cluster config",
    ),
    "busy HELLO": (Opcode.HELLO, Status.TEMPORARY_FAILURE, errors.UnambiguousTimeoutException, "refused HELLO"),
    "unknown HELLO": (Opcode.HELLO, Status.UNKNOWN_COMMAND, errors.UnsupportedOperationException, "memcached://"),
}


@pytest.mark.parametrize("step", REFUSED_STEPS)
async def test_a_refused_step_of_the_bootstrap(safety_net: None, couchbase_mock: CouchbaseMock, step: str) -> None:
    """If nodes refuse a step of the bootstrap, operations raise its terminal error, or a timeout that names it."""
    opcode, status, error, text = REFUSED_STEPS[step]
    couchbase_mock.fail(status, opcode=opcode)

    if error is errors.UnambiguousTimeoutException:
        await attempt_in_vain(couchbase_mock, text)
        return
    with pytest.raises(error, match=text) as caught:
        await attempt(couchbase_mock)
    assert error is type(caught.value)


@pytest.mark.parametrize("step", ["bucket elsewhere", "config", "busy HELLO"])
async def test_a_step_that_is_refused_once(safety_net: None, couchbase_mock: CouchbaseMock, step: str) -> None:
    """After a step that is refused once, the client reconnects and the operation succeeds."""
    opcode, status, _, _ = REFUSED_STEPS[step]
    couchbase_mock.fail(status, opcode=opcode, count=1)

    await attempt(couchbase_mock)


async def test_without_an_error_map(safety_net: None, couchbase_mock: CouchbaseMock) -> None:
    """A node without an error map works."""
    couchbase_mock.fail(Status.NOT_SUPPORTED, opcode=Opcode.GET_ERROR_MAP)
    cluster = await attempt(couchbase_mock)

    assert {None} == {found.error_map_revision for found in ready(cluster)}


async def test_hello_after_authentication(safety_net: None, couchbase_mock: CouchbaseMock) -> None:
    """With ``hello_after_auth``, the client sends HELLO after the authentication, and gets the same features."""
    couchbase_mock.log_commands()
    async with couchbase_mock.open_client(hello_after_auth=True) as (cluster, store):
        await store.upsert("late", 1)
        features = {found.features for found in ready(cluster)}
    log = couchbase_mock.do("GET_CMDLOG", idx=0, bucket=couchbase_mock.bucket)
    sent = [entry["opcode"] for entry in log if entry["opcode"] in (Opcode.SASL_AUTH, Opcode.HELLO)]

    assert {("MUTATION_SEQNO", "SELECT_BUCKET", "TRACING", "XATTR", "XERROR")} == features
    assert (Opcode.SASL_AUTH, Opcode.HELLO) == (sent[0], sent[-1])


async def test_nodes_without_a_cluster_config(safety_net: None, couchbase_mock: CouchbaseMock) -> None:
    """Without a cluster config, no write is sent to the bucket, and the error gives the reason."""
    couchbase_mock.do("SET_CCCP", enabled=False)
    couchbase_mock.log_commands()
    await attempt_in_vain(couchbase_mock, "no cluster config")

    assert [0, 0, 0] == couchbase_mock.commands(Opcode.SET)


# -- Documents.


LOCKS: dict[str, Callable[[triclinium.Collection, str], Awaitable[object]]] = {
    "get_and_lock": lambda store, key: store.get_and_lock(key, timedelta(seconds=1)),
    "unlock": lambda store, key: store.unlock(key, triclinium.Cas(1)),
}


@pytest.mark.parametrize("operation", LOCKS)
async def test_locks_of_a_missing_document(store: triclinium.Collection, key: str, operation: str) -> None:
    """Operations on locks of a missing document raise and create no document."""
    with pytest.raises(errors.DocumentNotFoundException) as caught:
        await LOCKS[operation](store, key)

    assert (operation, 0) == (caught.value.context.operation, caught.value.context.retry_attempts)
    assert await store.get_or_none(key) is None


async def test_expiry(couchbase_mock: CouchbaseMock, store: triclinium.Collection, key: str) -> None:
    """A document expires at the expiry that was set last by a write or a touch."""
    keys = {name: f"{key}-{name}" for name in ("forever", "hour", "day", "touched", "read", "untouched")}
    await store.upsert(keys["forever"], 1)
    await store.upsert(keys["hour"], 1, expiry=timedelta(hours=1))
    await store.insert(keys["day"], 1, expiry=datetime.now(UTC) + timedelta(days=1))
    for name in ("touched", "read", "untouched"):
        await store.upsert(keys[name], 1, expiry=timedelta(hours=1))
    await store.touch(keys["touched"], timedelta(days=1))
    assert 1 == (await store.get_and_touch(keys["read"], None)).content
    couchbase_mock.travel(2 * 60 * 60)

    left = {name for name, name_key in keys.items() if await store.get_or_none(name_key) is not None}
    assert {"forever", "day", "touched", "read"} == left


async def test_a_lock_blocks_other_writers(
    couchbase_mock: CouchbaseMock, store: triclinium.Collection, key: str
) -> None:
    """A lock blocks other writers; its holder may unlock the document or write with the CAS, and the lock expires."""
    await store.upsert(key, 1)
    lock = await store.get_and_lock(key, timedelta(seconds=25))
    with pytest.raises(errors.DocumentLockedException):
        await store.upsert(key, 2, retry_strategy=NeverRetry())
    with pytest.raises(errors.DocumentLockedException):
        await store.remove(key, retry_strategy=NeverRetry())
    with pytest.raises(errors.DocumentLockedException):
        await store.touch(key, None, retry_strategy=NeverRetry())
    with pytest.raises(errors.TemporaryFailureException):
        # Expect the error of a temporary failure: this server does not respond with the protocol's status LOCKED.
        await store.get_and_lock(key, timedelta(seconds=1), retry_strategy=NeverRetry())
    await store.unlock(key, lock.cas)
    await store.upsert(key, 2)
    lock = await store.get_and_lock(key, timedelta(seconds=25))
    await store.replace(key, 3, cas=lock.cas)
    await store.get_and_lock(key, timedelta(seconds=25))
    couchbase_mock.travel(26)
    await store.upsert(key, 4)

    assert 4 == (await store.get(key)).content


async def test_a_writer_waits_for_the_lock(cluster: triclinium.Cluster, store: triclinium.Collection, key: str) -> None:
    """Under the default strategy, an operation on a locked document succeeds after the lock is released."""
    await store.upsert(key, 1)
    lock = await store.get_and_lock(key, timedelta(seconds=25))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(store.upsert, key, 2)
        await until(lambda: cluster.statistics().retries_by_reason)
        await store.unlock(key, lock.cas)

    assert 2 == (await store.get(key)).content
    assert {triclinium.retries.RetryReason.KV_LOCKED} == cluster.statistics().retries_by_reason.keys()


# -- Compression and concurrency.


@pytest.mark.parametrize("mode", ["disabled", "off", "passive"])
async def test_compression(couchbase_mock: CouchbaseMock, mode: str, safety_net: None) -> None:
    """A value is read back unchanged, whether or not the server supports compression."""
    couchbase_mock.do("SET_COMPRESSION", mode=mode)
    async with couchbase_mock.open_client() as (cluster, store):
        await store.upsert("long", "again and " * 1000)
        found = await store.get("long")
        features = {name for connection in cluster.statistics().connections for name in connection.features}

    assert "again and " * 1000 == found.content
    assert (mode != "disabled") == ("SNAPPY" in features)
    assert (mode == "passive") == couchbase_mock.stored("long")["Snappy"]


async def test_tasks_share_the_nodes(couchbase_mock: CouchbaseMock, store: triclinium.Collection, key: str) -> None:
    """Each of many tasks gets its own document, from the node of its vbucket."""
    found = dict[int, object]()
    couchbase_mock.log_commands()

    async def write_and_read(number: int) -> None:
        await store.upsert(f"{key}{number}", {"number": number})
        found[number] = (await store.get(f"{key}{number}")).content

    async with trio.open_nursery() as nursery:
        for number in range(TASKS):
            nursery.start_soon(write_and_read, number)
    owners = [couchbase_mock.owner_of(f"{key}{number}") for number in range(TASKS)]

    assert {number: {"number": number} for number in range(TASKS)} == found
    assert [owners.count(node) for node in couchbase_mock.nodes] == couchbase_mock.commands(Opcode.SET)
    assert all(owners.count(node) for node in couchbase_mock.nodes)


# -- Unsupported features.


async def test_unsupported_collections_are_refused(couchbase_mock: CouchbaseMock, cluster: triclinium.Cluster) -> None:
    """A write to a named collection raises before it is sent."""
    people = cluster.bucket(couchbase_mock.bucket).scope("inventory").collection("people")
    couchbase_mock.log_commands()
    with pytest.raises(errors.FeatureNotAvailableException, match="inventory.people"):
        await people.upsert("ada", 1)

    assert [0, 0, 0] == couchbase_mock.commands(Opcode.SET)


async def test_unsupported_options_are_refused(store: triclinium.Collection, key: str) -> None:
    """An option whose feature HELLO did not grant raises, and the server refuses an unknown command."""
    await store.upsert(key, 1)
    with pytest.raises(errors.FeatureNotAvailableException):
        await store.upsert(key, 2, preserve_expiry=True)
    with pytest.raises(errors.FeatureNotAvailableException):
        await store.upsert(key, 2, durability=triclinium.DurabilityLevel.MAJORITY)
    with pytest.raises(errors.UnsupportedOperationException, match="UNKNOWN_COMMAND"):
        await store.exists(key)

    assert 1 == (await store.get(key)).content
