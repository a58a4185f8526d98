"""Execution profiles: lookup by name, documents, profiles created in code, and the requests of a profile."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.core.retry.cassandra.profiles.profile_cases import Custom
from tests.refusals import refusal_of
from tests.rows import rows
from triclinium_core.argument_error import ArgumentError
from triclinium_core.retry import cassandra

PAGE = """
[retry_policy]
class = "DefaultRetryPolicy"

[profiles.custom-retries.retry_policy]
class = "CustomRetryPolicy"

[profiles.slow]
request_timeout = 30.0
"""
"""Example from the driver's page, with triclinium's option names."""


AS_PRINTED = """
[datastax-java-driver]
advanced.retry-policy.class = "DefaultRetryPolicy"
profiles.custom-retries.advanced.retry-policy.class = "com.example.CustomRetryPolicy"
profiles.slow.request.timeout = "30 seconds"
"""
"""Example from the driver's page, with the page's option names, its duration and a qualified class name."""


@rows(("text", "policy"), [(PAGE, "CustomRetryPolicy"), (AS_PRINTED, "com.example.CustomRetryPolicy")])
def test_the_example_of_the_page(text: str, policy: str) -> None:
    """In the page's example, with either kind of names, one profile has its own policy, and the other its timeout."""
    profiles = cassandra.ExecutionProfiles.from_toml(text, policies={policy: Custom})

    assert ("default", "custom-retries", "slow") == profiles.names
    assert isinstance(profiles.find("custom-retries").retry_policy, Custom)
    assert isinstance(profiles.default.retry_policy, cassandra.DefaultRetryPolicy)
    assert profiles.find("slow").retry_policy is profiles.default.retry_policy
    assert [2.0, 2.0, 30.0] == [profiles.find(name).request_timeout for name in profiles.names]


def test_an_empty_document() -> None:
    """An empty document gives the default profile, with the driver's defaults."""
    expected = cassandra.ExecutionProfile(
        name="default",
        retry_policy=cassandra.DefaultRetryPolicy(),
        speculative_execution_policy=cassandra.NoSpeculativeExecution(),
        default_idempotence=False,
        request_timeout=2.0,
        consistency=cassandra.ConsistencyLevel.LOCAL_ONE,
        serial_consistency=cassandra.ConsistencyLevel.SERIAL,
    )

    assert expected == cassandra.ExecutionProfiles.from_toml("").default
    assert expected == cassandra.ExecutionProfiles.from_mapping({}).find()
    assert expected == cassandra.ExecutionProfiles().find("default")
    assert expected == cassandra.ExecutionProfile()


@rows("name", ["none", "Default", "", None, 1, ["slow"]])
def test_an_unknown_profile(name: Any) -> None:
    """A lookup of an unknown profile raises an error with its name and the known names."""
    profiles = cassandra.ExecutionProfiles.from_toml(PAGE, policies={"CustomRetryPolicy": Custom})

    with refusal_of("name") as caught:
        profiles.find(name)

    assert str(caught.value).startswith(f"name={name!r} ")
    assert str(caught.value).endswith("default, custom-retries, slow")


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("= 1", id="no key"),
        pytest.param("request_timeout = 1\nrequest_timeout = 2", id="twice"),
        pytest.param("x = 1" + "0" * 5000, id="an endless number"),
        pytest.param("x = " + "[" * 20_000, id="a deep nesting"),
    ],
)
def test_invalid_toml(text: str) -> None:
    """Any error of the TOML parser raises an ArgumentError whose cause is the parser's error."""
    with refusal_of("text", "^text is not TOML: ") as caught:
        cassandra.ExecutionProfiles.from_toml(text)

    assert caught.value.__cause__ is not None


def test_bytes_are_refused() -> None:
    """``from_toml`` refuses bytes, and the error suggests decoding them first."""
    with pytest.raises(ArgumentError, match=r"^text=b'' must be a string; decode bytes first$"):
        cassandra.ExecutionProfiles.from_toml(b"")  # type: ignore[arg-type]


async def made_later() -> Custom:
    """Return a policy, asynchronously."""
    return Custom()


@rows(
    ("policies", "message"),
    [
        ({"default": Custom}, "policies: 'default' "),
        ({"": Custom}, "policies: '' "),
        ({7: Custom}, "policies: 7 "),
        ({"Own": Custom()}, "policies: 'Own' is Custom("),
        ([Custom], "policies=["),
        ({"Own": made_later}, "policies: 'Own' is an `async def`"),
    ],
)
def test_invalid_custom_policies(policies: Any, message: str) -> None:
    """Custom policies with a reserved name, a policy instance or an async factory are refused; so is a non-mapping."""
    with refusal_of("policies") as caught:
        cassandra.ExecutionProfiles.from_toml("", policies=policies)

    assert str(caught.value).startswith(message)


@rows(
    ("arguments", "message"),
    [
        ({"name": ""}, "name=''"),
        ({"name": None}, "name=None"),
        ({"retry_policy": "default"}, "retry_policy='default' has no method on_read_timeout"),
        ({"retry_policy": cassandra.DefaultRetryPolicy}, "DefaultRetryPolicy()"),
        ({"speculative_execution_policy": 2}, "speculative_execution_policy=2 must be an object with next_execution"),
        ({"default_idempotence": "yes"}, "default_idempotence='yes' must be True or False"),
        ({"request_timeout": 0}, "request_timeout=0 must be a number of seconds or a timedelta: more than 0"),
        ({"consistency": "ONE"}, "consistency='ONE' must be one of ANY, ONE"),
        ({"serial_consistency": cassandra.ConsistencyLevel.ONE}, "must be one of SERIAL, LOCAL_SERIAL"),
    ],
)
def test_an_invalid_profile(arguments: Any, message: str) -> None:
    """An invalid argument of a profile that is created in code raises an error that names the argument."""
    with refusal_of(next(iter(arguments)), said=message):
        cassandra.ExecutionProfile(**arguments)


def test_profiles_created_in_code() -> None:
    """Profiles can be combined; the default profile is added if it is missing."""
    slow = cassandra.ExecutionProfile(name="slow", request_timeout=30.0)

    assert ("default", "slow") == cassandra.ExecutionProfiles(slow).names
    assert slow is cassandra.ExecutionProfiles(slow).find("slow")
    assert (
        7.0
        == cassandra.ExecutionProfiles(slow, cassandra.ExecutionProfile(request_timeout=7.0)).default.request_timeout
    )
    assert "<ExecutionProfiles default, slow>" == repr(cassandra.ExecutionProfiles(slow))


def test_invalid_collections_of_profiles() -> None:
    """Two profiles with the same name raise an error, and so does an object that is not a profile."""
    with pytest.raises(ArgumentError, match="^profiles: .*'slow'"):
        cassandra.ExecutionProfiles(cassandra.ExecutionProfile(name="slow"), cassandra.ExecutionProfile(name="slow"))
    with pytest.raises(ArgumentError, match="^profiles: 'slow' is not an ExecutionProfile$"):
        cassandra.ExecutionProfiles("slow")  # type: ignore[arg-type]


def test_derived() -> None:
    """A derived profile keeps the name and the policies of the original, and changes the given options."""
    base = cassandra.ExecutionProfile(
        name="slow", retry_policy=Custom(), request_timeout=30.0, default_idempotence=True
    )

    changes: Any = {
        "request_timeout": 60.0,
        "consistency": cassandra.ConsistencyLevel.ALL,
        "default_idempotence": False,
    }
    derived = base.derived(**changes)

    assert replace(base, **changes) == derived
    assert base.retry_policy is derived.retry_policy
    assert base.speculative_execution_policy is derived.speculative_execution_policy
    assert base == base.derived()
    with pytest.raises(ArgumentError, match="^request_timeout=-1 must be"):
        base.derived(request_timeout=-1)


def test_requests() -> None:
    """A request has the statement's options, or else the profile's; a PREPARE has no consistency level."""
    policy, speculation = Custom(), cassandra.ConstantSpeculativeExecutionPolicy(max_executions=2, delay=0.1)
    profile = cassandra.ExecutionProfile(
        retry_policy=policy,
        speculative_execution_policy=speculation,
        default_idempotence=True,
        request_timeout=7.0,
        consistency=cassandra.ConsistencyLevel.TWO,
        serial_consistency=cassandra.ConsistencyLevel.LOCAL_SERIAL,
    )
    expected = cassandra.CassandraRequest(
        policy=policy,
        idempotent=True,
        consistency=cassandra.ConsistencyLevel.TWO,
        serial_consistency=cassandra.ConsistencyLevel.LOCAL_SERIAL,
        timeout=7.0,
        speculation=speculation,
    )
    changes: Any = {
        "idempotent": False,
        "consistency": cassandra.ConsistencyLevel.ONE,
        "serial_consistency": cassandra.ConsistencyLevel.SERIAL,
        "timeout": 1.0,
    }
    prepare = profile.request(kind=cassandra.RequestKind.PREPARE)

    assert expected == profile.request()
    assert replace(expected, **changes) == profile.request(**changes)
    assert (None, None) == (prepare.consistency, prepare.serial_consistency)
