"""Types of a document with execution profiles, and the function that reads the settings of each profile from it.

Source: the Cassandra Java driver, "Using multiple policies" and its configuration; decisions A11 and D72.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypedDict

from triclinium_core.checks import Duration
from triclinium_core.retry.cassandra.consistency import ConsistencyLevel
from triclinium_core.retry.cassandra.policies import DefaultRetryPolicy
from triclinium_core.retry.cassandra.policy import RetryPolicy
from triclinium_core.retry.cassandra.profiles import policy_settings
from triclinium_core.retry.cassandra.profiles.durations import read_duration
from triclinium_core.retry.cassandra.requests import speculation
from triclinium_core.retry.cassandra.requests.cassandra_request import check_timeout
from triclinium_core.retry.checks import check_flag
from triclinium_core.shown import shown

DEFAULT_PROFILE = "default"
"""Name of the profile at the top level of a document."""
LEVELS: Sequence[ConsistencyLevel] = tuple(ConsistencyLevel)
SERIAL_LEVELS: Sequence[ConsistencyLevel] = tuple(level for level in ConsistencyLevel if level.is_serial)

SPECULATIVE_EXECUTION: policy_settings.PolicyChoices[speculation.SpeculativeExecutionPolicy] = (
    policy_settings.PolicyChoices(
        {
            "none": speculation.NoSpeculativeExecution,
            "NoSpeculativeExecutionPolicy": speculation.NoSpeculativeExecution,
            "constant": speculation.ConstantSpeculativeExecutionPolicy,
            "ConstantSpeculativeExecutionPolicy": speculation.ConstantSpeculativeExecutionPolicy,
        },
        {},
        speculation.require_speculation,
    )
)
"""Speculative execution policies, by their short names and by their names in the driver's configuration."""


class DriverTables(TypedDict, total=False):
    """Tables of the driver's configuration with options of a profile, such as ``basic.request.timeout``."""

    basic: Mapping[str, object]
    """Table ``request``, with ``timeout``, ``consistency``, ``serial-consistency`` and ``default-idempotence``."""
    request: Mapping[str, object]
    """Table ``request`` outside ``basic``, as the driver's page on retries writes it."""
    advanced: Mapping[str, object]
    """Tables ``retry-policy`` and ``speculative-execution-policy``."""


class ProfileDocument(DriverTables, total=False):
    """Options of one profile. A profile inherits the options that it omits from the default profile."""

    default_idempotence: bool
    """Whether a statement is idempotent if it does not specify this itself."""
    request_timeout: Duration | str
    """Timeout of a complete request, in seconds or with a unit, such as ``"30 seconds"``; ``inf`` for no timeout."""
    consistency: str | ConsistencyLevel
    """Consistency level, or its name."""
    serial_consistency: str | ConsistencyLevel
    """SERIAL or LOCAL_SERIAL."""
    retry_policy: Mapping[str, object]
    """Table of a retry policy: ``class`` is its name, and all other keys are options of that class."""
    speculative_execution_policy: Mapping[str, object]
    """Table of a speculative execution policy: ``class`` is its name, and all other keys are options of that class. The
    option ``delay`` may have a unit."""


_DriverDocument = TypedDict("_DriverDocument", {"datastax-java-driver": Mapping[str, object]}, total=False)


class ProfilesDocument(ProfileDocument, _DriverDocument, total=False):
    """Complete document: the options of the default profile, and the other profiles by name.

    A table ``datastax-java-driver`` may contain all options and profiles, with the driver's option names.
    """

    profiles: Mapping[str, ProfileDocument]


ProfileSettings = Mapping[str, Any]
"""Settings of a profile, including inherited ones, by parameter of ``ExecutionProfile``. An option is missing if neither
the profile nor the default profile specifies it. The policies are never missing, and not created yet: each is a
PolicySettings."""

_BUILT_IN: ProfileSettings = {
    "retry_policy": policy_settings.PolicySettings("retry_policy", "DefaultRetryPolicy", DefaultRetryPolicy, {}),
    "speculative_execution_policy": policy_settings.PolicySettings(
        "speculative_execution_policy", "NoSpeculativeExecutionPolicy", speculation.NoSpeculativeExecution, {}
    ),
}
"""Policies that apply if the document specifies no policies: the driver's defaults."""

_PROFILES = "profiles"
OPTIONS: Sequence[str] = tuple(
    option for option in ProfileDocument.__annotations__ if option not in DriverTables.__annotations__
)
"""Names of the options of a profile, as this library writes them."""

DRIVER_ROOT = "datastax-java-driver"
"""Name of the table that contains a configuration of the driver."""
DRIVER_NAMES: Mapping[str, str] = {
    **{
        f"{group}.{name}": option
        for group in ("basic.request", "request")
        for name, option in (
            ("timeout", "request_timeout"),
            ("consistency", "consistency"),
            ("serial-consistency", "serial_consistency"),
            ("default-idempotence", "default_idempotence"),
        )
    },
    "advanced.retry-policy": "retry_policy",
    "advanced.speculative-execution-policy": "speculative_execution_policy",
}
"""Options by their names in the driver's configuration. The driver's page on retries omits ``basic``."""

_PROFILE_NAMES: Mapping[str, str] = {**{option: option for option in OPTIONS}, **DRIVER_NAMES}
_TOP_NAMES: Mapping[str, str] = {
    **_PROFILE_NAMES,
    _PROFILES: _PROFILES,
    **{f"{DRIVER_ROOT}.{name}": option for name, option in {**DRIVER_NAMES, _PROFILES: _PROFILES}.items()},
}

_DELAY = "delay"
"""Name of the option of ``ConstantSpeculativeExecutionPolicy`` that is a duration."""

_MERGE_DEPTH_MAX = 2
"""Maximum depth at which tables are merged: the table of profiles, and in it the options of one profile."""


class _Found(NamedTuple):
    """Value that was found in a document, with its path."""

    path: str
    value: object


def read_profiles(document: object, retry: policy_settings.PolicyChoices[RetryPolicy]) -> Sequence[ProfileSettings]:
    """Return the settings of each profile in ``document``, the default profile first. Create no policy.

    Raises:
        ArgumentError: a key or name is unknown, an option is given twice, or a value is of the wrong type or out of
            range. ``parameter`` is the path, such as ``profiles.slow.retry_policy.class``.
    """
    if not isinstance(document, Mapping):
        raise policy_settings.wrong("document", f"={shown(document)} must be a mapping with options and profiles")
    top = _find_options(document, "", _TOP_NAMES)
    profiles = top.pop(_PROFILES, _Found(_PROFILES, {}))
    settings = [_read(top, DEFAULT_PROFILE, _BUILT_IN, retry)]
    for name, table in _require_table(*profiles).items():
        path = policy_settings.key_path(profiles.path, name)
        if not isinstance(name, str) or not name:
            raise policy_settings.wrong(path, " is not the name of a profile; a name must be a non-empty string")
        if name == DEFAULT_PROFILE:
            raise policy_settings.wrong(
                path, " is the name of the top level; move its options there, or rename the profile"
            )
        options = _find_options(_require_table(path, table), path, _PROFILE_NAMES)
        settings.append(_read(options, name, settings[0], retry))
    return settings


def _find_options(table: Mapping[str, object], path: str, names: Mapping[str, str]) -> dict[str, _Found]:
    """Return the options in a table by this library's names. As in HOCON, a dotted key is a path in nested tables."""
    found: dict[str, _Found] = {}
    tables = [(table, path, "")]
    while tables:
        table, path, prefix = tables.pop()
        for key, value in table.items():
            where, name = policy_settings.key_path(path, key), f"{prefix}{key}" if isinstance(key, str) else ""
            if name not in names and any(known.startswith(f"{name}.") for known in names):
                tables.append((_require_table(where, value), where, f"{name}."))
                continue
            known = _known_name(name, names, where)
            option = names[known]
            inside = _nested(option, name.removeprefix(known).removeprefix("."), value)
            one = _Found(where, _with_seconds(option, inside, where, needs_unit=known not in OPTIONS))
            found[option] = _merged(found[option], one) if option in found else one
    return found


def _known_name(name: str, names: Mapping[str, str], path: str) -> str:
    """Return the known option name that is equal to ``name`` or is the beginning of its path."""
    for known in names:
        if f"{name}.".startswith(f"{known}."):
            return known
    raise policy_settings.wrong(
        path,
        f" is not known; a profile has {', '.join(OPTIONS)}, or the driver's names, such as basic.request.timeout",
    )


def _nested(option: str, rest: str, value: object) -> object:
    """Return ``value`` inside the nested tables that ``rest``, the rest of a dotted key, names."""
    if not rest:
        return value
    name, _, inside = rest.partition(".")
    return {name: {inside: value}} if option == _PROFILES and inside else {rest: value}


def _merged(first: _Found, second: _Found, depth: int = _MERGE_DEPTH_MAX) -> _Found:
    if not depth or not isinstance(first.value, Mapping) or not isinstance(second.value, Mapping):
        raise policy_settings.wrong(second.path, f" is given twice, also as {first.path}; keep one of them")
    merged = dict(first.value)
    for key, value in second.value.items():
        one = _Found(policy_settings.key_path(second.path, key), value)
        if key in merged:
            one = _merged(_Found(policy_settings.key_path(first.path, key), merged[key]), one, depth - 1)
        merged[key] = one.value
    return _Found(first.path, merged)


def _with_seconds(option: str, value: object, path: str, *, needs_unit: bool) -> object:
    """Return the value of an option, with all durations in it converted to seconds."""
    if option == "request_timeout":
        return read_duration(value, path, needs_unit=needs_unit)
    if option == "speculative_execution_policy" and isinstance(value, Mapping) and _DELAY in value:
        delay = read_duration(value[_DELAY], policy_settings.key_path(path, _DELAY), needs_unit=needs_unit)
        return {**value, _DELAY: delay}
    return value


def _read(
    options: Mapping[str, _Found], name: str, base: ProfileSettings, retry: policy_settings.PolicyChoices[RetryPolicy]
) -> ProfileSettings:
    return {**base, "name": name} | {
        option: _read_option(option, found.value, found.path, base, retry) for option, found in options.items()
    }


def _read_option(
    option: str, value: object, path: str, base: ProfileSettings, retry: policy_settings.PolicyChoices[RetryPolicy]
) -> object:
    match option:
        case "default_idempotence":
            return check_flag(value, path)
        case "request_timeout":
            return check_timeout(value, path)
        case "consistency":
            return _named_level(value, path, LEVELS)
        case "serial_consistency":
            return _named_level(value, path, SERIAL_LEVELS)
        case "retry_policy":
            return policy_settings.settle(_require_table(path, value), path, retry, base[option])
        case _:
            return policy_settings.settle(_require_table(path, value), path, SPECULATIVE_EXECUTION, base[option])


def _require_table(path: str, value: object) -> Mapping[str, object]:
    if not isinstance(value, Mapping):
        raise policy_settings.wrong(path, f"={shown(value)} must be a table")
    return value


def _named_level(value: object, path: str, choices: Sequence[ConsistencyLevel]) -> ConsistencyLevel:
    named = {level.name: level for level in choices}
    return named[value] if isinstance(value, str) and value in named else check_level(value, path, choices)


# -- A check that ``ExecutionProfile`` uses as well. It passes the name of a parameter as ``path``.


def check_level(value: object, path: str, choices: Sequence[ConsistencyLevel]) -> ConsistencyLevel:
    """Return ``value``, or raise ArgumentError if it is not one of ``choices``."""
    if not isinstance(value, ConsistencyLevel) or value not in choices:
        raise policy_settings.wrong(
            path, f"={shown(value)} must be one of {', '.join(level.name for level in choices)}"
        )
    return value
