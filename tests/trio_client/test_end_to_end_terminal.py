"""Errors that a retry does not fix; by default they are immediate and specific, not timeouts."""

from __future__ import annotations

import logging
from collections import Counter

import pytest
import trio
from trio.testing import MockClock

import triclinium
from tests.rows import rows
from triclinium import errors
from triclinium.testing import FakeCluster, FakeNodeOptions, Fault, Opcode, open_fake_cluster, status
from triclinium_core.retry.couchbase import Status

WRONG_PASSWORD = triclinium.PasswordAuthenticator("Administrator", "wrong")
WRONG_TOKEN = triclinium.JwtAuthenticator("wrong.e30.AAAA", allow_unencrypted=True)
TOKENS = FakeNodeOptions(tokens=("right.e30.AAAA",))
ROUND_TRIPS = {
    WRONG_PASSWORD: [Opcode.HELLO, Opcode.GET_ERROR_MAP, Opcode.SASL_LIST_MECHS, Opcode.SASL_AUTH, Opcode.SASL_STEP],
    WRONG_TOKEN: [Opcode.HELLO, Opcode.GET_ERROR_MAP, Opcode.SASL_LIST_MECHS, Opcode.SASL_AUTH],
}
"""Commands on a connection up to the one whose response refuses the credentials."""


def asked(fake: FakeCluster) -> Counter[Opcode | int]:
    """Return the number of commands on all nodes, by opcode."""
    return Counter(command.opcode for node in fake.nodes for command in node.command_log)


@pytest.mark.parametrize("authenticator", [WRONG_PASSWORD, WRONG_TOKEN], ids=["password", "token"])
async def test_wrong_credentials(autojump_clock: MockClock, authenticator: triclinium.Authenticator) -> None:
    """Wrong credentials fail immediately with the node's response, and connections send no further command."""
    began = trio.current_time()
    async with open_fake_cluster(nodes=3, options=TOKENS) as fake:
        async with fake.open_client(authenticator=authenticator) as cluster:
            with pytest.raises(errors.AuthenticationFailureException) as caught:
                await cluster.bucket("default").default_collection().upsert("ada", 1)

        assert began == trio.current_time()
        said: dict[tuple[int, int], list[Opcode | int]] = {}
        for place, node in enumerate(fake.nodes):
            for command in node.command_log:
                said.setdefault((place, command.connection), []).append(command.opcode)

    assert {tuple(ROUND_TRIPS[authenticator])} == {tuple(each) for each in said.values()}
    assert ("AUTHENTICATION_ERROR", 0) == (caught.value.context.refused_reason, caught.value.context.retry_attempts)
    assert ("'Administrator'" if authenticator is WRONG_PASSWORD else "the user of the token") in str(caught.value)
    assert "wrong" not in repr(caught.value) + str(caught.value) + caught.value.context.to_json()


async def test_no_secret_is_logged(autojump_clock: MockClock, caplog: pytest.LogCaptureFixture) -> None:
    """Neither a refused token nor the password after it appears in the log."""
    caplog.set_level(logging.DEBUG)
    async with (
        open_fake_cluster(nodes=3, options=TOKENS) as fake,
        fake.open_client(authenticator=WRONG_TOKEN) as cluster,
    ):
        people = cluster.bucket("default").default_collection()
        with pytest.raises(errors.AuthenticationFailureException):
            await people.upsert("ada", 1)
        cluster.set_authenticator(fake.authenticator)
        await people.upsert("ada", 1)

    assert "refused the credentials of the user of the token" in caplog.text
    assert not any(secret in caplog.text for secret in ("wrong", "e30.AAAA", fake.authenticator.password))


async def test_set_authenticator_after_the_block(autojump_clock: MockClock) -> None:
    """Setting an authenticator after the block raises ClosedResourceError."""
    async with open_fake_cluster() as fake:
        async with fake.open_client() as cluster:
            pass

        with pytest.raises(trio.ClosedResourceError, match="the authenticator was not set; use it inside its block"):
            cluster.set_authenticator(fake.authenticator)


@rows("wrong", [None, "secret", ("app", "secret"), triclinium.PasswordAuthenticator, object()])
async def test_an_invalid_authenticator(autojump_clock: MockClock, wrong: triclinium.Authenticator) -> None:
    """An invalid authenticator raises with the name of the parameter, and changes nothing."""
    async with open_fake_cluster() as fake, fake.open_client() as cluster:
        with pytest.raises(errors.InvalidArgumentException) as caught:
            cluster.set_authenticator(wrong)
        await cluster.bucket("default").default_collection().upsert("ada", 1)

    assert "authenticator" == caught.value.parameter
    assert asked(fake)[Opcode.HELLO] == asked(fake)[Opcode.SASL_AUTH]


async def test_a_strategy_may_set_credentials(autojump_clock: MockClock) -> None:
    """A strategy may set new credentials, with which the retry of its operation soon succeeds."""
    async with open_fake_cluster(nodes=3) as fake, fake.open_client(authenticator=WRONG_PASSWORD) as cluster:

        class Correcting(triclinium.BestEffortRetryStrategy):
            def retry_after(
                self, request: triclinium.retries.RetryRequest, reason: triclinium.retries.RetryReason
            ) -> triclinium.retries.RetryAction:
                """Set the correct credentials."""
                cluster.set_authenticator(fake.authenticator)
                return super().retry_after(request, reason)

        began = trio.current_time()
        await cluster.bucket("default").default_collection().upsert("ada", 1, retry_strategy=Correcting())

        assert 0.1 > trio.current_time() - began


async def test_a_new_bucket_without_configs(autojump_clock: MockClock) -> None:
    """Operations and waits on a new bucket are retried until its nodes have a config."""
    async with open_fake_cluster(nodes=3) as fake, fake.open_client() as cluster, trio.open_nursery() as nursery:
        for node in fake.nodes:
            node.faults.always(Opcode.GET_CLUSTER_CONFIG, status(Status.KEY_NOT_FOUND))
        bucket = cluster.bucket("default")
        nursery.start_soon(bucket.default_collection().upsert, "ada", 1)
        nursery.start_soon(bucket.wait_until_ready)
        await trio.sleep(0.9)
        for node in fake.nodes:
            node.faults.clear()


REFUSED, NO_SIGNATURE = status(Status.AUTH_ERROR), status(Status.SUCCESS, body=b"v=QQ==")


@pytest.mark.parametrize("answer", [REFUSED, NO_SIGNATURE], ids=["refused", "wrong signature"])
async def test_one_node_without_the_password(autojump_clock: MockClock, answer: Fault) -> None:
    """If one node refuses the password or does not know it, only operations on it fail, with the reason (C6)."""
    async with open_fake_cluster(nodes=3) as fake:
        fake.nodes[2].faults.always(Opcode.SASL_STEP, answer)
        keys = {fake.nodes.owner_of(key): key for key in (f"k{number}" for number in range(99))}
        began = trio.current_time()
        async with fake.open_client() as cluster:
            people = cluster.bucket("default").default_collection()
            await people.upsert(keys[0], 1)
            await people.upsert(keys[1], 1)
            with pytest.raises(errors.AuthenticationFailureException) as caught:
                await people.upsert(keys[2], 1)
            with pytest.raises(errors.AuthenticationFailureException) as of_wait:
                await cluster.wait_until_ready()
            if answer is NO_SIGNATURE:
                await cluster.wait_until_ready(desired_state=triclinium.health.ClusterState.DEGRADED)

        assert began == trio.current_time()
        for error in (caught.value, of_wait.value):
            assert f":{fake.nodes[2].options.port}" in (error.context.last_dispatch_error or "")
            assert answer is REFUSED or "SCRAM-SHA512: " in (error.context.last_dispatch_error or "")
        fake.nodes[2].faults.clear()
        async with fake.open_client() as cluster:
            await cluster.bucket("default").default_collection().upsert(keys[2], 1)


async def test_no_node_has_the_password(autojump_clock: MockClock) -> None:
    """If no node sends the right signature, statements and waits fail with the reason."""
    async with open_fake_cluster(nodes=2) as fake:
        for node in fake.nodes:
            node.faults.always(Opcode.SASL_STEP, NO_SIGNATURE)
        async with fake.open_client() as cluster:
            with pytest.raises(errors.AuthenticationFailureException, match="wrong server signature"):
                await cluster.wait_until_ready(desired_state=triclinium.health.ClusterState.DEGRADED)
            with pytest.raises(errors.AuthenticationFailureException, match="wrong server signature"):
                async with cluster.query("SELECT 1") as result:
                    await result.rows()


@pytest.mark.parametrize("answer", [REFUSED, NO_SIGNATURE], ids=["refused", "wrong signature"])
async def test_best_effort_waits_for_an_honest_node(autojump_clock: MockClock, answer: Fault) -> None:
    """Under best effort, an operation on nodes without the password is retried until its deadline."""
    async with (
        open_fake_cluster(nodes=3) as fake,
        fake.open_client(retry_strategy=triclinium.BestEffortRetryStrategy()) as cluster,
    ):
        people = cluster.bucket("default").default_collection()
        for node in fake.nodes:
            node.faults.always(Opcode.SASL_STEP, answer)
        with pytest.raises(errors.UnambiguousTimeoutException) as caught:
            await people.upsert("ada", 1)
        for node in fake.nodes:
            node.faults.clear()
        await people.upsert("ada", 1)

    assert "AUTHENTICATION_ERROR" in caught.value.context.retry_reasons
