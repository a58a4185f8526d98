"""Configuration profiles: named sets of options for an environment.

A profile replaces the options that it contains and keeps all others. Options that are set later, or profiles that are
applied later, replace those of the profile.

Source: SDK-RFC 0074 "New Configuration Profile Mechanism" and "Profiles".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TypeVar

from triclinium_core import errors
from triclinium_core.options import ClientOptions, TimeoutOptions
from triclinium_core.shown import shown

Options = TypeVar("Options", TimeoutOptions, ClientOptions)

WAN_DEVELOPMENT: Mapping[str, float] = {
    "connect": 20.0,
    "kv": 20.0,
    "kv_durable": 20.0,
    "views": 120.0,
    "query": 120.0,
    "analytics": 120.0,
    "search": 120.0,
    "management": 120.0,
}
"""Timeouts in seconds for a developer who reaches the cluster over a wide-area network (SDK-RFC 0074 "Profiles")."""

PROFILES: Mapping[str, Mapping[str, float]] = {"wan_development": WAN_DEVELOPMENT}
"""Timeouts of each profile, by name."""


def apply_profile(options: Options, name: str) -> Options:
    """Return a copy of ``options`` with the options of the profile ``name``.

    To override the profile, set options afterwards: ``dataclasses.replace(apply_profile(timeouts, name), kv=5.0)``.

    Args:
        options: ``TimeoutOptions``, or ``ClientOptions`` whose timeouts the profile replaces.
        name: ``wan_development``: 20 s to connect and for key-value operations other than scans, 120 s for requests to
            other services.

    Raises:
        InvalidArgumentException: no profile has this name, or ``options`` is neither ``TimeoutOptions`` nor
            ``ClientOptions``.

    Source: SDK-RFC 0074.
    """
    if not isinstance(name, str) or name not in PROFILES:
        raise errors.InvalidArgumentException(
            f"profile={shown(name)} must be one of {', '.join(PROFILES)}", parameter="profile"
        )
    if isinstance(options, ClientOptions):
        return replace(options, timeouts=apply_profile(options.timeouts, name))
    if isinstance(options, TimeoutOptions):
        return replace(options, **PROFILES[name])
    raise errors.InvalidArgumentException(
        f"options={shown(options)} must be a TimeoutOptions or a ClientOptions", parameter="options"
    )
