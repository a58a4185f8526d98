"""Options from environment variables, such as ``TRICLINIUM_KV_TIMEOUT=5s``.

The caller passes the environment as a mapping; this module does not read ``os.environ``. Each option whose value one
string can express has a variable, except the options that only a driver sets. The fields of the option classes
determine the names of the variables. If a connection string can set the option too, the variable uses the option's name
in connection strings and the same parser. ``read_environment`` refuses any other variable with the prefix, because a
misspelt one would otherwise silently have no effect.

A later source in this list overrides the earlier ones: options of the program, the profile, the variables, the options
of the connection string.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields, replace
from difflib import get_close_matches
from typing import Any, TypeVar

from triclinium_core import errors
from triclinium_core.checks import check_type
from triclinium_core.kv.topology.string_options import A_DURATION, A_FLAG, OPTIONS, read_flag, read_seconds
from triclinium_core.options import AUTHENTICATORS, Authenticator, ClientOptions, JwtAuthenticator, TimeoutOptions
from triclinium_core.profiles import PROFILES, apply_profile
from triclinium_core.retry.couchbase import CircuitBreakerOptions
from triclinium_core.telemetry.defaults import LoggingMeter, OrphanReporter, ThresholdLoggingTracer

PREFIX = "TRICLINIUM_"
"""Prefix of every variable. Variables without it are ignored."""

CONNECTION_STRING = f"{PREFIX}CONNECTION_STRING"
PROFILE = f"{PREFIX}PROFILE"

TEXT_SHOWN_MAX = 60
"""Maximum number of characters of a value in an error."""

Group = type[TimeoutOptions | CircuitBreakerOptions | ClientOptions | Authenticator]


@dataclass(frozen=True, slots=True)
class EnvironmentVariable:
    """Environment variable that sets one option.

    Args:
        group: class of the option that the variable sets.
        field: name of the option.
        read: function that parses the value of the variable. It raises ValueError with the fault of an invalid value.
        wanted: description of the valid values.
        is_secret: whether errors hide the value.
    """

    group: Group
    field: str
    read: Callable[[str], object]
    wanted: str
    is_secret: bool = False


def _text(text: str) -> str:
    return text


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError as error:
        raise ValueError("is not a number") from error


def _integer(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) < 10):
        raise ValueError("is not a whole number from 0 to 999999999")
    return int(text)


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(","))


def _reporter_or_none(default: Callable[[], object]) -> Callable[[str], object]:
    """Return a function that parses a flag, and returns the default reporter for true and None for false."""
    return lambda text: default() if read_flag(text) else None


A_REPORTER = f"{A_FLAG}: report to the log with the default settings, or not at all"

READERS: Mapping[str, tuple[Callable[[str], object], str]] = {
    "bool": (read_flag, A_FLAG),
    "int": (_integer, "a whole number"),
    "float": (_number, "a number"),
    "str": (_text, "text"),
    "str | None": (_text, "text"),
    "tuple[str, ...] | None": (_names, "one or more names, separated by commas"),
    "ThresholdLoggingTracer | None": (_reporter_or_none(ThresholdLoggingTracer), A_REPORTER),
    "LoggingMeter | None": (_reporter_or_none(LoggingMeter), A_REPORTER),
    "OrphanReporter | None": (_reporter_or_none(OrphanReporter), A_REPORTER),
}
"""Parser of an option and description of its valid values, by type annotation. ``_reader`` handles durations."""

NAMES: Mapping[tuple[Group, str], str] = {
    **{(option.group, option.field): name for name, option in OPTIONS.items()},
    (JwtAuthenticator, "allow_unencrypted"): "allow_unencrypted_token",
    (ClientOptions, "connection_string"): "connection_string",
}
"""Names, without the prefix, of the variables whose name does not follow from the field name.

All options of a connection string are among them.
"""

LEFT_OUT = frozenset({"user_agent", "tls_is_verified"})
"""Fields of ``ClientOptions`` that have no variable, because only the driver sets them."""


def _name_of(group: Group, field: str) -> str:
    if (group, field) in NAMES:
        return NAMES[group, field]
    if group is CircuitBreakerOptions:
        return f"circuit_breaker_{field}"
    return field


def _reader(group: Group, field: Field[Any]) -> tuple[Callable[[str], object], str] | None:
    """Return the parser of an option and the description of its valid values; None if one string cannot express it."""
    if group is TimeoutOptions or (group is CircuitBreakerOptions and field.name.endswith(("_window", "_timeout"))):
        return read_seconds, A_DURATION
    in_string = next((each for each in OPTIONS.values() if (each.group, each.field) == (group, field.name)), None)
    return READERS.get(str(field.type)) if in_string is None else (in_string.read, in_string.wanted)


def _derived() -> Iterator[tuple[str, EnvironmentVariable]]:
    groups: tuple[Group, ...] = (ClientOptions, *AUTHENTICATORS, TimeoutOptions, CircuitBreakerOptions)
    for group in groups:
        for each in fields(group):
            reader = None if each.name in LEFT_OUT else _reader(group, each)
            if reader is None:
                continue
            # A connection string may contain a password. Fields with a secret are excluded from ``repr``.
            is_secret = not each.repr or each.name == "connection_string"
            name = f"{PREFIX}{_name_of(group, each.name).upper()}"
            yield name, EnvironmentVariable(group, each.name, *reader, is_secret)


VARIABLES: Mapping[str, EnvironmentVariable] = dict(_derived())
"""All variables except the profile, by name."""


@dataclass(frozen=True, slots=True)
class EnvironmentOptions:
    """Options that ``read_environment`` found. ``repr`` does not show secrets."""

    connection_string: str
    authenticator: Authenticator | None
    """Credentials of the client; None if the environment has none."""
    profile: str | None
    options: Mapping[Group, Mapping[str, Any]] = field(repr=False)
    """Values of the variables, by option class and field."""

    def over(self, given: ClientOptions) -> ClientOptions:
        """Return ``given`` after applying first the profile, then the variables.

        Raises:
            InvalidArgumentException: a value is out of range, or contradicts another value. The error names the
                variable of the option, if it has one.
        """
        given = given if self.profile is None else apply_profile(given, self.profile)
        return _laid_over(
            given,
            ClientOptions,
            {
                **self.options.get(ClientOptions, {}),
                "connection_string": self.connection_string,
                "authenticator": given.authenticator if self.authenticator is None else self.authenticator,
                "timeouts": _laid_over(given.timeouts, TimeoutOptions, self.options.get(TimeoutOptions, {})),
                "circuit_breaker": _laid_over(
                    given.circuit_breaker, CircuitBreakerOptions, self.options.get(CircuitBreakerOptions, {})
                ),
            },
        )


def read_environment(environ: Mapping[str, str]) -> EnvironmentOptions:
    """Return the options that variables in ``environ`` set. The variables are ``PROFILE`` and those in ``VARIABLES``.

    Raises:
        InvalidArgumentException: a variable is unknown or invalid, there are two kinds of credentials, or a variable
            that is needed is missing. The error names the variable and shows no secret.

    Source: SDK-RFC 0074 defines the profile. No RFC defines the variables.
    """
    check_type(environ, "environ", Mapping)
    options: dict[Group, dict[str, Any]] = {}
    for name, text in environ.items():
        if name.startswith(PREFIX) and name != PROFILE:
            variable = _known(name)
            try:
                options.setdefault(variable.group, {})[variable.field] = variable.read(text)
            except ValueError as error:
                setting = name if variable.is_secret else f"{name}={text[:TEXT_SHOWN_MAX]}"
                raise _wrong(name, f"{setting} {error}") from error
    connection_string = options.get(ClientOptions, {}).pop("connection_string", None)
    if not connection_string:
        raise _wrong(
            CONNECTION_STRING, f"{CONNECTION_STRING} is missing or empty; set it to couchbase://host, for example"
        )
    profile = environ.get(PROFILE)
    if profile is not None and profile not in PROFILES:
        raise _wrong(PROFILE, f"{PROFILE}={profile[:TEXT_SHOWN_MAX]} is not one of {', '.join(PROFILES)}")
    return EnvironmentOptions(connection_string, _authenticator(options), profile, options)


def _known(name: str) -> EnvironmentVariable:
    known = VARIABLES.get(name)
    if known is None:
        meant = get_close_matches(name, [*VARIABLES, PROFILE], n=1)
        hint = f"did you mean {meant[0]}?" if meant else f"known variables: {', '.join([*VARIABLES, PROFILE])}"
        # The error does not show the value: it may be a secret whose variable is misspelt.
        raise _wrong(name, f"the variable {name[:80]} is not known; {hint}")
    return known


def _authenticator(options: Mapping[Group, Mapping[str, Any]]) -> Authenticator | None:
    """Return the credentials that the variables set, or None if no variable sets credentials.

    Raises:
        InvalidArgumentException: there are two kinds of credentials, or a variable is missing or invalid.
    """
    groups: list[type[Authenticator]] = [group for group in AUTHENTICATORS if group in options]
    if not groups:
        return None
    names = [
        [name for name, each in VARIABLES.items() if each.group is group and each.field in options[group]]
        for group in groups
    ]
    if len(groups) > 1:
        raise _wrong(
            names[1][0],
            f"{' and '.join(found[0] for found in names)} set different kinds of credentials; keep one kind",
        )
    (group,) = groups
    for each in fields(group):
        is_needed = each.default is MISSING and each.default_factory is MISSING
        if is_needed and each.name not in options[group]:
            missing = _variable_of(group, each.name)
            raise _wrong(missing, f"{missing} is missing; {names[0][0]} needs it")
    try:
        return group(**options[group])
    except errors.InvalidArgumentException as error:
        raise _named(error, group) from error


Options = TypeVar("Options", TimeoutOptions, CircuitBreakerOptions, ClientOptions)


def _laid_over(given: Options, group: Group, values: Mapping[str, Any]) -> Options:
    try:
        return replace(given, **values)
    except errors.InvalidArgumentException as error:
        raise _named(error, group) from error


def _named(error: errors.InvalidArgumentException, group: Group) -> errors.InvalidArgumentException:
    """Return an error that names the variable of the option to which ``error`` refers.

    Return ``error`` itself if the option has no variable.
    """
    field = error.parameter
    if field is None or not any(each.group is group and each.field == field for each in VARIABLES.values()):
        return error
    name = _variable_of(group, field)
    return _wrong(name, f"{name}: {error.message}")


def _variable_of(group: Group, field: str) -> str:
    return f"{PREFIX}{_name_of(group, field).upper()}"


def _wrong(name: str, text: str) -> errors.InvalidArgumentException:
    return errors.InvalidArgumentException(text, parameter=name)
