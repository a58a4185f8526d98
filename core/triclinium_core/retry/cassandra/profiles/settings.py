"""A document of execution profiles: its shape as types, and what each profile means once it has inherited.

Source: the Cassandra Java driver, "Using multiple policies" and its configuration; decision A11.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

from triclinium_core.retry.cassandra.consistency import ConsistencyLevel
from triclinium_core.retry.cassandra.policies import DefaultRetryPolicy
from triclinium_core.retry.cassandra.policy import RetryPolicy
from triclinium_core.retry.cassandra.profiles.policy_settings import (
    PolicyChoices,
    PolicySettings,
    key_path,
    settle,
    wrong,
)
from triclinium_core.retry.cassandra.requests.request import check_timeout
from triclinium_core.retry.cassandra.requests.speculation import (
    ConstantSpeculativeExecutionPolicy,
    NoSpeculativeExecution,
    SpeculativeExecutionPolicy,
    require_speculation,
)
from triclinium_core.retry.checks import check_flag
from triclinium_core.shown import shown

DEFAULT_PROFILE = "default"
"""The name of the profile that the top level of a document describes."""
LEVELS: Sequence[ConsistencyLevel] = tuple(ConsistencyLevel)
SERIAL_LEVELS: Sequence[ConsistencyLevel] = tuple(level for level in ConsistencyLevel if level.is_serial)

SPECULATIVE_EXECUTION: PolicyChoices[SpeculativeExecutionPolicy] = PolicyChoices(
    {
        "none": NoSpeculativeExecution,
        "NoSpeculativeExecutionPolicy": NoSpeculativeExecution,
        "constant": ConstantSpeculativeExecutionPolicy,
        "ConstantSpeculativeExecutionPolicy": ConstantSpeculativeExecutionPolicy,
    },
    {},
    require_speculation,
)
"""The policies by name: a short one, and the one that the driver's configuration has."""


class ProfileDocument(TypedDict, total=False):
    """What one profile may say; it inherits whatever it leaves out."""

    default_idempotence: bool
    """Whether a statement is idempotent that does not say so itself."""
    request_timeout: float
    """Seconds for a whole request; ``inf`` for no limit."""
    consistency: str | ConsistencyLevel
    """A consistency level, or the name of one."""
    serial_consistency: str | ConsistencyLevel
    """SERIAL or LOCAL_SERIAL."""
    retry_policy: Mapping[str, object]
    """``class``: the name of a retry policy; all other keys are options of that class."""
    speculative_execution_policy: Mapping[str, object]
    """``class``: the name of such a policy; all other keys are options of that class."""


class ProfilesDocument(ProfileDocument, total=False):
    """The whole document: the default profile, and by name what the others have of their own."""

    profiles: Mapping[str, ProfileDocument]


ProfileSettings = Mapping[str, Any]
"""What a profile means, with all that it inherits, by the parameters of ``ExecutionProfile``. Those that no profile names are
missing, and its policies are not made yet: they are PolicySettings."""

_BUILT_IN: ProfileSettings = {
    "retry_policy": PolicySettings("retry_policy", "DefaultRetryPolicy", DefaultRetryPolicy, {}),
    "speculative_execution_policy": PolicySettings(
        "speculative_execution_policy", "NoSpeculativeExecutionPolicy", NoSpeculativeExecution, {}
    ),
}
"""Which policies hold where a document says nothing: the driver's own defaults."""

_PROFILES = "profiles"
OPTIONS: Sequence[str] = tuple(ProfileDocument.__annotations__)
"""What a profile may say."""


def read_profiles(document: object, retry: PolicyChoices[RetryPolicy]) -> Sequence[ProfileSettings]:
    """Return what each profile of ``document`` means, the default one first. No policy is made.

    Raises:
        ArgumentError: something in it is not known, of the wrong type or out of range. ``parameter`` is
            where it stands, such as ``profiles.slow.retry_policy.class``.
    """
    if not isinstance(document, Mapping):
        raise wrong("document", f"={shown(document)} must be a mapping of options, and of profiles")
    top = {option: value for option, value in document.items() if option != _PROFILES}
    found = [_read(top, "", DEFAULT_PROFILE, _BUILT_IN, retry)]
    for name, table in _require_table(_PROFILES, document.get(_PROFILES, {})).items():
        path = key_path(_PROFILES, name)
        if not isinstance(name, str) or not name:
            raise wrong(path, " has no name; a profile needs one, in quotes or without")
        if name == DEFAULT_PROFILE:
            raise wrong(path, " is a name that the top level has; move its options there, or give it another name")
        found.append(_read(_require_table(path, table), path, name, found[0], retry))
    return found


def _read(
    table: Mapping[str, object], path: str, name: str, base: ProfileSettings, retry: PolicyChoices[RetryPolicy]
) -> ProfileSettings:
    return {**base, "name": name} | {
        option: _read_option(option, value, key_path(path, option), base, retry) for option, value in table.items()
    }


def _read_option(
    option: str, value: object, path: str, base: ProfileSettings, retry: PolicyChoices[RetryPolicy]
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
            return settle(_require_table(path, value), path, retry, base[option])
        case "speculative_execution_policy":
            return settle(_require_table(path, value), path, SPECULATIVE_EXECUTION, base[option])
        case _:
            raise wrong(path, f" is not known; a profile has {', '.join(OPTIONS)}")


def _require_table(path: str, value: object) -> Mapping[str, object]:
    if not isinstance(value, Mapping):
        raise wrong(path, f"={shown(value)} must be a table")
    return value


def _named_level(value: object, path: str, choices: Sequence[ConsistencyLevel]) -> ConsistencyLevel:
    named = {level.name: level for level in choices}
    return named[value] if isinstance(value, str) and value in named else check_level(value, path, choices)


# -- Checks that a profile made by hand needs as well; ``path`` is then the name of the parameter.


def check_level(value: object, path: str, choices: Sequence[ConsistencyLevel]) -> ConsistencyLevel:
    """Return ``value``, or raise ArgumentError where it is not one of ``choices``."""
    if not isinstance(value, ConsistencyLevel) or value not in choices:
        raise wrong(path, f"={shown(value)} must be one of {', '.join(level.name for level in choices)}")
    return value
