"""Tables of options: names and defaults come from the classes, values and meanings from this module.

The build fails if an option has no row here, or if a row has no option.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, fields
from inspect import Parameter, signature

from docs._ext.markdown import markdown
from triclinium_core import environment, options, profiles
from triclinium_core.environment import PROFILE, VARIABLES, EnvironmentVariable
from triclinium_core.kv.operation.durability import DURABLE_TIMEOUT_MIN
from triclinium_core.kv.topology import string_options
from triclinium_core.kv.topology.string_options import OPTIONS, StringOption
from triclinium_core.options import (
    SECONDS_MAX,
    CertificateAuthenticator,
    ClientOptions,
    JwtAuthenticator,
    PasswordAuthenticator,
    TimeoutOptions,
)
from triclinium_core.profiles import PROFILES
from triclinium_core.retry.couchbase import circuit_breaker
from triclinium_core.retry.couchbase.circuit_breaker import CircuitBreakerOptions
from triclinium_core.runtime.kv.connection.bootstrap import USER_AGENT_SIZE_MAX

Rows = Mapping[str, tuple[str, str]]
"""Permitted values and meaning of each option, by the option's name."""

_SECONDS = f"seconds or a `timedelta`, more than 0 and at most {SECONDS_MAX:,.0f}; `math.inf` for no limit"
_SECONDS_OR_NONE = "seconds or a `timedelta`, 0 or more"
_FLAG = "True, False"

AUTHENTICATOR: Rows = {
    "username": ("text without NUL, not empty", "who signs in"),
    "password": ("text without NUL", "proves it; the representation does not show it"),
    "allowed_sasl_mechanisms": (
        f"a tuple of one or more of {', '.join(f'`{name}`' for name in options.SASL_MECHANISMS)}, in order of preference",
        "None allows all over verified TLS, PLAIN first, and otherwise all but PLAIN, which you must name",
    ),
    "scram_iterations_min": (
        f"int, 1 to {options.SCRAM_ITERATIONS_MAX:,}",
        "minimum number of SCRAM iterations. The client sends no proof to a node that requests fewer",
    ),
}

TIMEOUTS: Rows = {
    "kv": (_SECONDS, "an operation from its submission to its end, including all retries"),
    "kv_durable": (
        _SECONDS,
        f"a durable write, including all retries; a value below {DURABLE_TIMEOUT_MIN:g} s counts as {DURABLE_TIMEOUT_MIN:g} s",
    ),
    "kv_scan": (_SECONDS, "each request of a range scan, including all retries; a scan makes many requests"),
    "connect": (_SECONDS, "an attempt to connect, from the opening of a stream to the end of its bootstrap"),
    "keep_alive_interval": (_SECONDS, "time without received bytes until the client sends a NOOP"),
    "keep_alive": (
        _SECONDS,
        "time for the response to that NOOP; then the client closes the connection and opens a new one",
    ),
    "config_poll_interval": (
        _SECONDS,
        "interval of polls for the cluster config, if a node sends no pushes: a shorter one detects a failover sooner",
    ),
    "query": (_SECONDS, "a request to the query service: the wait for its first rows, and for each further chunk"),
    "analytics": (_SECONDS, "the same for analytics"),
    "search": (_SECONDS, "the same for search"),
    "views": (_SECONDS, "the same for views"),
    "management": (_SECONDS, "a management request, or a call that makes several"),
    "idle_http_connection": (_SECONDS, "time after which the client closes an unused HTTP connection"),
    "config_poll_floor": (_SECONDS, "minimum interval between two config requests to one node"),
}

CIRCUIT_BREAKER: Rows = {
    "enabled": (_FLAG, "whether connections have a circuit breaker"),
    "volume_threshold": ("a number, 1 or more", "minimum number of operations in a window before the breaker can open"),
    "error_threshold_percentage": (
        "0 to 100",
        "share of operations whose deadline passed in flight at which the breaker opens",
    ),
    "sleep_window": (_SECONDS_OR_NONE, "time in the open state before the client sends the canary, a NOOP"),
    "rolling_window": (_SECONDS_OR_NONE, "length of the window in which operations are counted"),
    "canary_timeout": (_SECONDS_OR_NONE, "time for the response to the canary; then the breaker opens again"),
}

CLIENT: Rows = {
    "connection_string": ("text", "{doc}`/howto/connect`"),
    "authenticator": (
        "`PasswordAuthenticator`, `JwtAuthenticator`, `CertificateAuthenticator`, None",
        "None only over `memcached://`, a certificate only over `couchbases://`",
    ),
    "timeouts": ("`TimeoutOptions`", "upper limits of operations and requests"),
    "retry_strategy": ("a strategy of either kind", "{doc}`strategies`; a block or a call may have another one"),
    "circuit_breaker": ("`CircuitBreakerOptions`", "one for each connection"),
    "compression": (_FLAG, "whether to compress values with snappy if the server supports it"),
    "hello_after_auth": (_FLAG, "whether to send HELLO after authentication, for servers that refuse it before"),
    "renegotiate_on_corrupt_error_map": (
        _FLAG,
        "whether to reconnect without extended errors if a node's error map is corrupt; {doc}`/explanation/decisions`, C18",
    ),
    "user_agent": (
        f"text, of which {USER_AGENT_SIZE_MAX} characters are sent",
        "name of the client in HELLO and HTTP requests; `open_cluster` sends the default",
    ),
    "network": (
        "`auto`, `default`, `external`, or another name",
        "addresses of the nodes to use; {doc}`/howto/connect`",
    ),
    "max_http_connections": ("int", "maximum number of connections to each service of each node; 0 for no limit"),
    "enable_dns_srv": (_FLAG, "whether to look up a single host without a port as the name of a cluster in DNS"),
    "dns_srv_domains": (
        "a sequence of domain names",
        "accepts SRV targets at or below them, in addition to those at or below the host: see {doc}`/howto/connect`",
    ),
    "tls_is_verified": (
        _FLAG,
        "whether TLS verifies certificates and host names; `open_cluster` takes it from `ssl_context` or `connector`",
    ),
    "tracer": (
        "`ThresholdLoggingTracer`, None",
        "thresholds of the log of slow operations; None disables it. `open_cluster` also accepts a `RequestTracer`",
    ),
    "meter": (
        "`LoggingMeter`, None",
        "interval of the log of durations; None disables it. `open_cluster` also accepts a `Meter`",
    ),
    "orphans": ("`OrphanReporter`, None", "settings of the log of orphans; None disables it"),
}

TOKEN: Rows = {
    "token": ("text", "a JSON Web Token; the representation does not show it"),
    "allow_unencrypted": (
        _FLAG,
        "whether the token may be sent without TLS, or over TLS that does not verify the nodes",
    ),
}

CERTIFICATE: Rows = {
    "cert_path": ("the path of a file", "the certificate of the client"),
    "key_path": ("the path of a file", "the private key; None if it is in the file of the certificate"),
    "key_password": ("text", "password of an encrypted key; the representation does not show it"),
}

ROWS_OF: Mapping[type, Rows] = {
    PasswordAuthenticator: AUTHENTICATOR,
    JwtAuthenticator: TOKEN,
    CertificateAuthenticator: CERTIFICATE,
    TimeoutOptions: TIMEOUTS,
    CircuitBreakerOptions: CIRCUIT_BREAKER,
    ClientOptions: CLIENT,
}
"""Rows of the options of each class."""


def authenticator_options() -> str:
    """Return a table of the arguments of ``PasswordAuthenticator``."""
    return markdown(("option", "default", "takes", "meaning"), _rows(PasswordAuthenticator, AUTHENTICATOR))


def timeout_options() -> str:
    """Return a table of the fields of ``TimeoutOptions``."""
    return markdown(("option", "default", "takes", "limits"), _rows(TimeoutOptions, TIMEOUTS))


def circuit_breaker_options() -> str:
    """Return a table of the fields of ``CircuitBreakerOptions``."""
    return markdown(("option", "default", "takes", "meaning"), _rows(CircuitBreakerOptions, CIRCUIT_BREAKER))


def client_options() -> str:
    """Return a table of the fields of ``ClientOptions``."""
    return markdown(("option", "default", "takes", "meaning"), _rows(ClientOptions, CLIENT))


def connection_string_options() -> str:
    """Return a table of the options that a connection string can set."""
    return markdown(
        ("option", "sets", "takes", "meaning"),
        (
            (f"`{name}`", f"`{option.group.__name__}.{option.field}`", option.wanted, _meaning(option))
            for name, option in OPTIONS.items()
        ),
    )


def environment_variables() -> str:
    """Return a table of the environment variables that the client reads."""
    profile = (f"`{PROFILE}`", "options of a profile", f"`{'`, `'.join(PROFILES)}`", "overrides options of the program")
    return markdown(
        ("variable", "sets", "takes", "meaning"),
        (
            profile,
            *(
                # Use two short code spans, so that a line can break between them and the last columns fit the page.
                (f"`{name}`", f"`{each.field}` of `{each.group.__name__}`", each.wanted, _meaning(each))
                for name, each in VARIABLES.items()
            ),
        ),
    )


def profile_options() -> str:
    """Return a table of the values that each profile sets, next to the default values."""
    usual = TimeoutOptions()
    return markdown(
        ("option", "usual", *(f"`{name}`" for name in PROFILES)),
        (
            (f"`{field}`", f"{getattr(usual, field):g} s", *(f"{rows[field]:g} s" for rows in PROFILES.values()))
            for field in dict.fromkeys(field for rows in PROFILES.values() for field in rows)
        ),
    )


def _meaning(option: StringOption | EnvironmentVariable) -> str:
    return ROWS_OF[option.group][option.field][1]


def _rows(options_class: type, rows: Rows) -> list[tuple[str, str, str, str]]:
    found = fields(options_class)
    if others := {field.name for field in found} ^ set(rows):
        raise ValueError(f"{options_class.__name__}: a field without a row, or a row without a field: {sorted(others)}")
    parameters = signature(options_class).parameters
    return [(f"`{field.name}`", _default(field, parameters[field.name]), *rows[field.name]) for field in found]


def _default(field: Field[object], parameter: Parameter) -> str:
    if field.default_factory is not MISSING:
        return f"`{type(field.default_factory()).__name__}()`"
    return "" if parameter.default is Parameter.empty else f"`{parameter.default!r}`"


OPTION_TABLES: Mapping[str, Callable[[], str]] = {
    "authenticator_options": authenticator_options,
    "circuit_breaker_options": circuit_breaker_options,
    "client_options": client_options,
    "connection_string_options": connection_string_options,
    "environment_variables": environment_variables,
    "profile_options": profile_options,
    "timeout_options": timeout_options,
}
"""Tables of options for ``{generated}``."""

OPTION_SOURCES = (options, circuit_breaker, string_options, environment, profiles)
"""Modules whose changes affect these tables."""
