"""Options from environment variables, which the tests pass as a mapping."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest
from hypothesis import given, strategies as st

from tests.refusals import refusal_of
from tests.rows import rows
from triclinium_core import errors
from triclinium_core.environment import PREFIX, VARIABLES, read_environment
from triclinium_core.kv.topology.connection_string import parse_connection_string
from triclinium_core.kv.topology.string_options import OPTIONS
from triclinium_core.options import (
    Authenticator,
    CertificateAuthenticator,
    ClientOptions,
    JwtAuthenticator,
    PasswordAuthenticator,
    TimeoutOptions,
)
from triclinium_core.retry.couchbase import CircuitBreakerOptions
from triclinium_core.telemetry.defaults import LoggingMeter, OrphanReporter

STRING = "couchbase://10.0.0.5"
GIVEN = ClientOptions(
    connection_string="couchbase://elsewhere",
    authenticator=JwtAuthenticator("given"),
    timeouts=TimeoutOptions(kv=7, kv_scan=8),
)


def read(text: str = STRING, **variables: str) -> ClientOptions:
    """Return the options ``GIVEN``, overridden by these environment variables."""
    environ = {"TRICLINIUM_CONNECTION_STRING": text} | {f"TRICLINIUM_{name}": each for name, each in variables.items()}
    return read_environment({**environ, "PATH": "/bin", "NOT_TRICLINIUM_X": "1"}).over(GIVEN)


def test_every_option_has_a_variable() -> None:
    """All options for timeouts, circuit breaker, client and credentials that a variable can express have a variable."""
    for group in (
        TimeoutOptions,
        CircuitBreakerOptions,
        PasswordAuthenticator,
        JwtAuthenticator,
        CertificateAuthenticator,
    ):
        assert {each.name for each in fields(group)} == {
            variable.field for variable in VARIABLES.values() if variable.group is group
        }
    assert {
        "connection_string", "compression", "hello_after_auth", "renegotiate_on_corrupt_error_map",
        "max_http_connections", "network", "enable_dns_srv", "dns_srv_domains", "tracer", "meter", "orphans",
    } == {variable.field for variable in VARIABLES.values() if variable.group is ClientOptions}  # fmt: skip


def test_string_options_and_variables_share_names() -> None:
    """Each option of the connection string has a variable with the same name, field and parser."""
    for name, option in OPTIONS.items():
        variable = VARIABLES[f"{PREFIX}{name.upper()}"]

        assert (option.group, option.field, option.read) == (variable.group, variable.field, variable.read)


def test_nothing_but_the_address() -> None:
    """If only the connection string is set, the authenticator and the timeouts stay unchanged."""
    options = read()

    assert (STRING, GIVEN.authenticator, GIVEN.timeouts) == (
        options.connection_string,
        options.authenticator,
        options.timeouts,
    )


@rows(
    ("variables", "expected"),
    [
        ({"USERNAME": "ada", "PASSWORD": "secret"}, PasswordAuthenticator("ada", "secret")),
        (
            {"USERNAME": "ada", "PASSWORD": "", "ALLOWED_SASL_MECHANISMS": "PLAIN, SCRAM-SHA1"},
            PasswordAuthenticator("ada", "", ("PLAIN", "SCRAM-SHA1")),
        ),
        (
            {"USERNAME": "ada", "PASSWORD": "", "SCRAM_ITERATIONS_MIN": "1000"},
            PasswordAuthenticator("ada", "", scram_iterations_min=1000),
        ),
        ({"TOKEN": "a.b.c"}, JwtAuthenticator("a.b.c")),
        ({"TOKEN": "a", "ALLOW_UNENCRYPTED_TOKEN": "true"}, JwtAuthenticator("a", allow_unencrypted=True)),
        (
            {"CERT_PATH": "c.pem", "KEY_PATH": "k.pem", "KEY_PASSWORD": "x"},
            CertificateAuthenticator("c.pem", "k.pem", "x"),
        ),
    ],
)
def test_credentials(variables: dict[str, str], expected: Authenticator) -> None:
    """Variables for a kind of credentials replace the program's credentials."""
    assert expected == read(**variables).authenticator


def test_precedence_of_sources() -> None:
    """Each option is that of the connection string, else of its variable, else of the profile, else of the program."""
    variables = {"PROFILE": "wan_development", "KV_TIMEOUT": "5s", "QUERY_TIMEOUT": "1m30s", "COMPRESSION": "false"}
    options = read(f"{STRING}?kv_timeout=6s", **variables, CIRCUIT_BREAKER_VOLUME_THRESHOLD="3")
    effective = parse_connection_string(options.connection_string).over(options)

    assert (8.0, 20.0, 90.0, 6.0) == (
        effective.timeouts.kv_scan,
        effective.timeouts.connect,
        effective.timeouts.query,
        effective.timeouts.kv,
    )
    assert (False, 3) == (effective.compression, effective.circuit_breaker.volume_threshold)


def test_telemetry() -> None:
    """Each part of telemetry has its own variable; a part without a variable stays unchanged."""
    options = read(TRACER="false", METER="true")
    quiet = read_environment({"TRICLINIUM_CONNECTION_STRING": STRING, "TRICLINIUM_ORPHANS": "true"}).over(
        replace(GIVEN, tracer=None, meter=None, orphans=None)
    )

    assert (None, LoggingMeter(), GIVEN.orphans) == (options.tracer, options.meter, options.orphans)
    assert (None, None, OrphanReporter()) == (quiet.tracer, quiet.meter, quiet.orphans)


@rows(
    ("variables", "name"),
    [
        ({"KV_TIMOUT": "5s"}, "KV_TIMOUT"),
        ({"": "5s"}, ""),
        ({"KV_TIMEOUT": "5"}, "KV_TIMEOUT"),
        ({"KV_TIMEOUT": ""}, "KV_TIMEOUT"),
        ({"COMPRESSION": "yes"}, "COMPRESSION"),
        ({"TRACER": "off"}, "TRACER"),
        ({"NETWORK": ""}, "NETWORK"),
        ({"MAX_HTTP_CONNECTIONS": "-1"}, "MAX_HTTP_CONNECTIONS"),
        ({"MAX_HTTP_CONNECTIONS": "99999"}, "MAX_HTTP_CONNECTIONS"),
        ({"CONFIG_POLL_INTERVAL": "1ms"}, "CONFIG_POLL_INTERVAL"),
        ({"CIRCUIT_BREAKER_ERROR_THRESHOLD_PERCENTAGE": "many"}, "CIRCUIT_BREAKER_ERROR_THRESHOLD_PERCENTAGE"),
        ({"CIRCUIT_BREAKER_ERROR_THRESHOLD_PERCENTAGE": "101"}, "CIRCUIT_BREAKER_ERROR_THRESHOLD_PERCENTAGE"),
        ({"PROFILE": "wan-development"}, "PROFILE"),
        ({"USERNAME": "ada"}, "PASSWORD"),
        ({"ALLOW_UNENCRYPTED_TOKEN": "true"}, "TOKEN"),
        ({"USERNAME": "ada", "PASSWORD": "", "TOKEN": "a"}, "TOKEN"),
        ({"USERNAME": "ada", "PASSWORD": "", "ALLOWED_SASL_MECHANISMS": "MD5"}, "ALLOWED_SASL_MECHANISMS"),
        ({"KEY_PATH": "k.pem"}, "KEY_PATH"),
    ],
)
def test_an_invalid_variable(variables: dict[str, str], name: str) -> None:
    """An invalid variable raises an error that names the variable."""
    with refusal_of(f"TRICLINIUM_{name}", said=f"TRICLINIUM_{name}", kind=errors.InvalidArgumentException):
        read(**variables)


@pytest.mark.parametrize("environ", [{}, {"TRICLINIUM_CONNECTION_STRING": ""}])
def test_no_cluster(environ: dict[str, str]) -> None:
    """If the connection string is missing, the error names its variable."""
    with pytest.raises(errors.InvalidArgumentException, match="TRICLINIUM_CONNECTION_STRING is missing or empty"):
        read_environment(environ)


SECRET = "geheim wort\0"


@rows(
    "variables",
    [
        {"PASWORD": SECRET},
        {"PASSWORD": SECRET},
        {"USERNAME": "ada", "PASSWORD": SECRET},
        {"TOKEN": SECRET},
        {"KEY_PASSWORD": SECRET},
        {"PASSWORD": SECRET, "TOKEN": SECRET},
        {"CONNECTION_STRING": f"couchbase://ada:{SECRET}@10.0.0.5"},
        {"CONNECTION_STRING": f"ada:{SECRET}@10.0.0.5"},
        {"CONNECTION_STRING": f"couchbase:/ada:{SECRET}@10.0.0.5"},
    ],
)
def test_no_error_shows_a_secret(variables: dict[str, str]) -> None:
    """An error shows no secret in its message, repr or cause, not even for a misspelt variable."""
    with pytest.raises(errors.InvalidArgumentException) as caught:
        parse_connection_string(read(**{"text": STRING} | variables).connection_string)
    error: BaseException | None = caught.value
    while error is not None:
        assert "geheim" not in f"{error} {error!r}"
        error = error.__cause__


def test_no_representation_shows_a_secret() -> None:
    """The repr of the options does not contain the password."""
    found = read_environment(
        {"TRICLINIUM_CONNECTION_STRING": STRING, "TRICLINIUM_USERNAME": "ada", "TRICLINIUM_PASSWORD": "geheim"}
    )

    assert "geheim" not in repr(found)
    assert STRING in repr(found)


@given(st.dictionaries(st.sampled_from([*VARIABLES, "TRICLINIUM_PROFILE", "TRICLINIUM_X"]), st.text()))
def test_any_environment_is_read_or_refused(environ: dict[str, str]) -> None:
    """Any environment either yields options or raises an error that names a variable."""
    try:
        read_environment({"TRICLINIUM_CONNECTION_STRING": STRING, **environ}).over(GIVEN)
    except errors.InvalidArgumentException as error:
        assert (error.parameter or "").startswith(PREFIX)
