"""Profiles: named sets of options for an environment."""

from __future__ import annotations

from dataclasses import asdict, replace
from datetime import timedelta

import pytest

from triclinium_core import errors
from triclinium_core.options import ClientOptions, TimeoutOptions
from triclinium_core.profiles import PROFILES, apply_profile


def test_the_rows_are_those_of_the_rfc() -> None:
    """The profile lengthens eight timeouts and changes no other option."""
    usual, far = TimeoutOptions(), apply_profile(TimeoutOptions(), "wan_development")
    changed = {name: value for name, value in asdict(far).items() if value != getattr(usual, name)}

    assert {
        **dict.fromkeys(("connect", "kv", "kv_durable"), 20.0),
        **dict.fromkeys(("views", "query", "analytics", "search", "management"), 120.0),
    } == changed


def test_later_options_win() -> None:
    """A profile overrides options that were set before it, but not those that are set after it."""
    before = TimeoutOptions(kv=timedelta(seconds=1), kv_scan=5)
    applied = apply_profile(before, "wan_development")

    assert (20.0, 5.0) == (applied.kv, applied.kv_scan)
    assert (1.0, 20.0) == ((after := replace(applied, kv=1.0)).kv, after.connect)
    assert applied == apply_profile(applied, "wan_development")


def test_all_options_of_a_client() -> None:
    """If a profile is applied to client options, it replaces only their timeouts."""
    given = ClientOptions(connection_string="couchbase://h", compression=False)
    applied = apply_profile(given, "wan_development")

    assert replace(given, timeouts=apply_profile(given.timeouts, "wan_development")) == applied


@pytest.mark.parametrize("name", ["wan-development", "", None])
def test_an_unknown_profile(name: str) -> None:
    """An unknown profile raises an error that lists the profiles."""
    with pytest.raises(errors.InvalidArgumentException, match=", ".join(PROFILES)):
        apply_profile(TimeoutOptions(), name)


def test_a_class_instead_of_options() -> None:
    """A class in place of options is rejected."""
    with pytest.raises(errors.InvalidArgumentException, match="options"):
        apply_profile(TimeoutOptions, "wan_development")  # type: ignore[type-var]
