"""Policies of profiles: how they are created, and when profiles share a policy."""

from __future__ import annotations

import math

import pytest

from tests.core.retry.cassandra.policies_for_tests import Always
from tests.core.retry.cassandra.profiles.profile_cases import OWN, Custom, Other
from tests.refusals import refusal_of
from tests.rows import rows
from triclinium_core.argument_error import ArgumentError
from triclinium_core.retry.cassandra import ConsistencyDowngradingRetryPolicy, ExecutionProfiles


class Text(str):
    """Subclass of ``str``."""

    __slots__ = ()


SHARED: list[tuple[dict[str, object], dict[str, object], bool]] = [
    ({}, {}, True),
    ({"class": "default"}, {"class": "DefaultRetryPolicy"}, True),
    ({"class": "default"}, {"class": "default", "rethrow_cas_write_unknown": False}, True),
    ({"class": "default"}, {"class": "default", "rethrow_cas_write_unknown": True}, False),
    ({"class": "default"}, {"class": "downgrading"}, False),
    ({"class": "Own", "a": 1, "b": "x"}, {"class": "Own", "b": "x", "a": 1}, True),
    ({"class": "Own", "a": {"b": [1], "c": 2}}, {"class": "Own", "a": {"c": 2, "b": [1]}}, True),
    ({"class": "Own", "a": 1}, {"class": "Own"}, False),
    ({"class": "Own", "a": 1}, {"class": "Own", "a": 2}, False),
    ({"class": "Own", "a": 1}, {"class": "Own", "a": True}, False),
    ({"class": "Own", "a": 1}, {"class": "Own", "a": 1.0}, False),
    ({"class": "Own", "a": [1]}, {"class": "Own", "a": [True]}, False),
    ({"class": "Own", "a": "x"}, {"class": "Own", "a": Text("x")}, False),
    ({"class": "Own", "a": math.nan}, {"class": "Own", "a": float("nan")}, True),
    ({"class": "Own"}, {"class": "Other"}, False),
    ({"class": "Own", "a": Custom}, {"class": "Own", "a": Custom}, True),
    ({"class": "Own", "a": [Custom]}, {"class": "Own", "a": [Always]}, False),
]


@rows(("first", "second", "shared"), SHARED)
def test_one_policy_for_one_configuration(first: dict[str, object], second: dict[str, object], shared: bool) -> None:
    """Two profiles share a policy if and only if its class, and its options by type and value, are equal in both."""
    profiles = ExecutionProfiles.from_mapping(
        {"profiles": {"first": {"retry_policy": first}, "second": {"retry_policy": second}}},
        policies={"Own": Custom, "Other": Other},
    )

    assert shared is (profiles.find("first").retry_policy is profiles.find("second").retry_policy)


def test_speculative_policies_are_shared_as_well() -> None:
    """Each kind of policy is shared separately, so two profiles may share one kind and differ in another."""
    profiles = ExecutionProfiles.from_toml(
        """
        profiles.a.speculative_execution_policy = { class = "constant", max_executions = 2, delay = 0.5 }
        profiles.b.speculative_execution_policy = { class = "constant", max_executions = 2, delay = 0.5 }
        profiles.c.speculative_execution_policy = { class = "constant", max_executions = 2, delay = 0.25 }
        """
    )
    a, b, c = (profiles.find(name) for name in "abc")

    assert a.speculative_execution_policy is b.speculative_execution_policy
    assert a.speculative_execution_policy is not c.speculative_execution_policy
    assert a.retry_policy is c.retry_policy


def test_options_go_with_their_class() -> None:
    """A profile that sets another policy class does not inherit the options of the default class (decision A11)."""
    profiles = ExecutionProfiles.from_toml(
        """
        retry_policy = { class = "default", rethrow_cas_write_unknown = true }
        profiles.own.retry_policy = { class = "Own", limit = 3 }
        profiles.same.retry_policy = { class = "DefaultRetryPolicy" }
        profiles.downgrading.retry_policy = { class = "downgrading" }
        """,
        policies={"Own": Custom},
    )
    own = profiles.find("own").retry_policy

    assert isinstance(own, Custom)
    assert {"limit": 3} == own.options
    assert profiles.default.retry_policy is profiles.find("same").retry_policy
    assert ConsistencyDowngradingRetryPolicy() == profiles.find("downgrading").retry_policy


def test_a_custom_policy_is_created_once() -> None:
    """Profiles with equal options share one custom policy, which is created with the options as keyword arguments."""
    made: list[dict[str, object]] = []

    def make(*, limit: int, patience: float = 1.0) -> Custom:
        made.append({"limit": limit, "patience": patience})
        return Custom()

    profiles = ExecutionProfiles.from_toml(
        """
        retry_policy = { class = "Own", limit = 3 }
        profiles.same.retry_policy = { class = "Own", limit = 3, patience = 1.0 }
        profiles.heir.consistency = "ALL"
        profiles.other.retry_policy.limit = 4
        """,
        policies={"Own": make},
    )

    assert [{"limit": 3, "patience": 1.0}, {"limit": 4, "patience": 1.0}] == made
    assert 2 == len({id(profiles.find(name).retry_policy) for name in profiles.names})


@pytest.mark.native
def test_options_that_are_nested_too_deeply() -> None:
    """Options that are nested too deeply are refused, although TOML can express them; in WebAssembly they end Python."""
    with pytest.raises(ArgumentError) as caught:
        ExecutionProfiles.from_toml(
            "retry_policy" + ".a" * 3000 + " = 1\nretry_policy.class = 'Own'", policies={"Own": Custom}
        )

    assert "retry_policy has an option that is nested too deeply" == str(caught.value)


@rows(
    "mistake",
    [
        "consistancy = 'ONE'",
        "request_timeout = -1",
        "retry_policy.class = 'Unknown'",
        "retry_policy = { class = 'default', rethrow_cas_write_unknown = 1 }",
        "retry_policy = { class = 'Counts', limit = 1 }",
        "speculative_execution_policy = { class = 'constant', max_executions = 2, delay = -1 }",
    ],
)
def test_validation_precedes_creation(mistake: str) -> None:
    """If the last profile is invalid, no policy of any profile is created."""
    made: list[str] = []

    def counts() -> Custom:
        made.append("one")
        return Custom()

    good = "retry_policy.class = 'Counts'\nprofiles.first.consistency = 'ONE'\n"
    ExecutionProfiles.from_toml(good, policies={"Counts": counts})
    assert ["one"] == made

    with pytest.raises(ArgumentError):
        ExecutionProfiles.from_toml(f"{good}profiles.last.{mistake}", policies={"Counts": counts})

    assert ["one"] == made


def positional(limit: int, /) -> Custom:
    """Return a policy; its option cannot be passed as a keyword."""
    return Custom(limit=limit)


@rows(
    ("tree", "path", "message"),
    [
        (
            "class = 'Positional'\nlimit = 1",
            "retry_policy.limit",
            "retry_policy.limit is not an option of Positional; it has",
        ),
        ("class = 'Positional'", "retry_policy", "retry_policy: Positional"),
        ("class = 'Refuses'\na = 1", "retry_policy.a", "retry_policy.a: these do not go together"),
        ("class = 'Refuses'", "retry_policy", "retry_policy: these do not go together"),
    ],
)
def test_options_that_the_class_refuses(tree: str, path: str, message: str) -> None:
    """If a policy class refuses its options, the error has their path and the reason."""
    with refusal_of(path) as caught:
        ExecutionProfiles.from_toml(
            f"[retry_policy]\n{tree}", policies={**OWN, "Positional": positional, "Refuses": refuses}
        )

    assert str(caught.value).startswith(message)


def refuses(**options: object) -> Custom:
    """Raise an ArgumentError about an option."""
    raise ArgumentError("these do not go together", parameter="a")
