"""Cluster that environment variables configure, and the log of its options."""

from __future__ import annotations

import logging

import pytest
import trio
from trio.testing import MockClock

from tests.trio_client.recorded_telemetry import RecordingMeter, RecordingTracer
from triclinium import PasswordAuthenticator, TimeoutOptions, errors, open_cluster, open_cluster_from_environment
from triclinium.testing import Opcode, delay, drop_response, open_fake_cluster


async def test_variables_override_arguments(autojump_clock: MockClock) -> None:
    """An environment variable overrides its argument; arguments without a variable, such as the connector, apply."""
    async with open_fake_cluster() as fake:
        environ = {
            "TRICLINIUM_CONNECTION_STRING": fake.connection_string,
            "TRICLINIUM_USERNAME": fake.authenticator.username,
            "TRICLINIUM_PASSWORD": fake.authenticator.password,
            "TRICLINIUM_KV_TIMEOUT": "4s",
            "HOME": "/",
        }
        async with open_cluster_from_environment(
            environ, timeouts=TimeoutOptions(kv=1, kv_durable=9), connector=fake.connector
        ) as cluster:
            people = cluster.bucket("default").default_collection()
            await people.upsert("ada", 1)
            fake.node.faults.always(Opcode.GET, drop_response())
            began = trio.current_time()
            with pytest.raises(errors.UnambiguousTimeoutException):
                await people.get("ada")

    assert 4.0 == pytest.approx(trio.current_time() - began)


async def test_credentials_may_be_arguments(autojump_clock: MockClock) -> None:
    """Without variables for them, credentials are arguments; a profile overrides the program's timeouts."""
    async with open_fake_cluster() as fake:
        environ = {"TRICLINIUM_CONNECTION_STRING": fake.connection_string, "TRICLINIUM_PROFILE": "wan_development"}
        async with open_cluster_from_environment(
            environ, fake.authenticator, timeouts=TimeoutOptions(kv=1), connector=fake.connector
        ) as cluster:
            fake.node.faults.always(Opcode.GET, drop_response())
            with pytest.raises(errors.UnambiguousTimeoutException):
                await cluster.bucket("default").default_collection().get("ada")

    assert 20.0 == pytest.approx(trio.current_time(), abs=1)


@pytest.mark.parametrize(("variables", "is_reported"), [({}, True), ({"TRICLINIUM_TRACER": "false"}, False)])
async def test_telemetry_can_be_turned_off(
    variables: dict[str, str], is_reported: bool, autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    """The program's tracer applies unless a variable turns it off; meter and orphans are independent of it."""
    tracer, meter = RecordingTracer(), RecordingMeter()
    async with open_fake_cluster() as fake:
        environ = {"TRICLINIUM_CONNECTION_STRING": fake.connection_string, "TRICLINIUM_ORPHANS": "false"}
        async with open_cluster_from_environment(
            environ | variables, fake.authenticator, connector=fake.connector, tracer=tracer, meter=meter
        ) as cluster:
            people = cluster.bucket("default").default_collection()
            await people.upsert("ada", 1)
            fake.node.faults.next(Opcode.GET, delay(2))
            with trio.move_on_after(1):
                await people.get("ada")
            await trio.sleep(20)

    assert (is_reported, 2) == (bool(tracer.spans), len(meter.values))
    assert not [record for record in caplog.records if record.name in ("triclinium.orphan", "triclinium.threshold")]


def test_a_wrong_variable_is_refused() -> None:
    """An unknown variable raises before the block begins."""
    with pytest.raises(errors.InvalidArgumentException, match="TRICLINIUM_KV_TIMOUT"):
        open_cluster_from_environment({"TRICLINIUM_CONNECTION_STRING": "couchbase://h", "TRICLINIUM_KV_TIMOUT": "1s"})


async def test_open_cluster_ignores_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """``open_cluster`` does not read the environment."""
    monkeypatch.setenv("TRICLINIUM_CONNECTION_STRING", "nonsense")
    monkeypatch.setenv("TRICLINIUM_NONSENSE", "1")
    async with (
        open_fake_cluster() as fake,
        open_cluster(fake.connection_string, fake.authenticator, connector=fake.connector) as cluster,
    ):
        await cluster.bucket("default").default_collection().upsert("ada", 1)


async def test_options_can_be_logged(caplog: pytest.LogCaptureFixture) -> None:
    """The effective options are logged at DEBUG, without the password."""
    with caplog.at_level(logging.DEBUG, logger="triclinium.connection"):
        async with open_cluster("couchbase://127.0.0.1?kv_timeout=3s", PasswordAuthenticator("ada", "geheim")):
            pass

    (reported,) = [record.getMessage() for record in caplog.records if "kv=" in record.getMessage()]
    assert "kv=3.0" in reported
    assert "ada" in reported
    assert "geheim" not in reported
