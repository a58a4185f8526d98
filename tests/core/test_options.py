"""Options: an invalid value raises an error that names the parameter, and no text contains a password."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import FrozenInstanceError, fields, replace
from datetime import timedelta
from functools import partial
from typing import cast

import pytest
from hypothesis import given, strategies as st

from tests.refusals import refusal_of
from tests.rows import rows
from triclinium_core import errors
from triclinium_core.options import (
    SASL_MECHANISMS,
    SCRAM_ITERATIONS_MAX,
    CertificateAuthenticator,
    ClientOptions,
    JwtAuthenticator,
    PasswordAuthenticator,
    TimeoutOptions,
)
from triclinium_core.retry import couchbase

TIMEOUTS = ("kv", "kv_durable", "kv_scan", "connect", "keep_alive_interval", "keep_alive")
CONNECTION_STRING = "couchbase://127.0.0.1"

PASSWORD = partial(PasswordAuthenticator, username="ada", password="")
make_timeouts = cast("Callable[..., TimeoutOptions]", TimeoutOptions)
make_options = cast("Callable[..., ClientOptions]", ClientOptions)


def test_defaults_are_those_of_the_rfc() -> None:
    """The timeouts default to those of SDK-RFC 0059 "Configuration", and the strategy to that of decision C1."""
    options = ClientOptions(connection_string=CONNECTION_STRING)

    assert (2.5, 10.0, 10.0) == (options.timeouts.kv, options.timeouts.kv_durable, options.timeouts.connect)
    assert 75.0 == options.timeouts.kv_scan
    assert {75.0} == {
        options.timeouts.of_service(service) for service in couchbase.Service if service is not couchbase.Service.KV
    }
    assert 1.0 == options.timeouts.idle_http_connection
    assert couchbase.FastFailOnTerminalErrorRetryStrategy is type(options.retry_strategy)
    assert (20, 50.0, 5.0, 60.0) == (
        options.circuit_breaker.volume_threshold,
        options.circuit_breaker.error_threshold_percentage,
        options.circuit_breaker.sleep_window,
        options.circuit_breaker.rolling_window,
    )
    assert (True, False, False) == (
        options.compression,
        options.hello_after_auth,
        options.renegotiate_on_corrupt_error_map,
    )


@given(password=st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=8))
def test_password_is_never_shown(password: str) -> None:
    """The repr of the options does not contain the password."""
    options = ClientOptions(connection_string=CONNECTION_STRING, authenticator=PasswordAuthenticator("ada", password))

    assert "PasswordAuthenticator(username='ada', allowed_sasl_mechanisms=None, scram_iterations_min=4000)" == repr(
        options.authenticator
    )
    assert repr(replace(options, authenticator=PasswordAuthenticator("ada", ""))) == repr(options)


@pytest.mark.parametrize("token", ["a", "eyJ.e30.x-_~+/", "e30=", "e30=="])
def test_a_token_is_never_shown(token: str) -> None:
    """The repr of the options does not contain the token."""
    options = ClientOptions(connection_string=CONNECTION_STRING, authenticator=JwtAuthenticator(token))

    assert "JwtAuthenticator(allow_unencrypted=False)" == repr(options.authenticator)
    assert f"{token}'" not in repr(options)


def test_the_password_of_a_key_is_never_shown() -> None:
    """The repr of a certificate has its paths but not the password of the key."""
    authenticator = CertificateAuthenticator("ada.pem", "ada.key", "secret")

    assert "CertificateAuthenticator(cert_path='ada.pem', key_path='ada.key')" == repr(authenticator)


NO_MECHANISMS: list[object] = [
    *((), "PLAIN", ["PLAIN"], {"PLAIN"}, ("PLAIN", "EXTERNAL"), ("plain",), (b"PLAIN",), (["PLAIN"],), (None,), 5),
    (name for name in ("PLAIN",)),
]


@rows(
    ("make", "parameter", "arguments"),
    [
        *((PASSWORD, "username", {"username": value}) for value in ("", None, b"ada", 5, ("ada",), "a\0a", "a\ud800a")),
        *(
            (PASSWORD, "password", {"password": value})
            for value in (None, b"secret", 5, "secret\0", "secret\ud800", "\udfff")
        ),
        *((PASSWORD, "allowed_sasl_mechanisms", {"allowed_sasl_mechanisms": value}) for value in NO_MECHANISMS),
        *(
            (PASSWORD, "scram_iterations_min", {"scram_iterations_min": value})
            for value in (0, -1, SCRAM_ITERATIONS_MAX + 1, True, 4000.0, "4000", None, 10**5000)
        ),
        *(
            (JwtAuthenticator, "token", {"token": value})
            for value in ("", "=", None, b"secret", 5, *(f"secret{sign}a" for sign in " \x01\0\n=é,"), "secret\n")
        ),
        *(
            (JwtAuthenticator, "allow_unencrypted", {"token": "a.b.c", "allow_unencrypted": value})
            for value in (None, 1, "yes")
        ),
        *((CertificateAuthenticator, "cert_path", {"cert_path": value}) for value in ("", b"ada.pem", "a\0da.pem", 7)),
        (CertificateAuthenticator, "key_path", {"cert_path": "ada.pem", "key_path": ""}),
        (CertificateAuthenticator, "key_path", {"cert_path": "ada.pem", "key_path": ["ada.key"]}),
        (CertificateAuthenticator, "key_path", {"key_path": "ada.key"}),
        (CertificateAuthenticator, "key_password", {"cert_path": "ada.pem", "key_password": b"secret"}),
        (CertificateAuthenticator, "key_password", {"key_password": "secret"}),
    ],
)
def test_wrong_credentials(make: Callable[..., object], parameter: str, arguments: dict[str, object]) -> None:
    """An invalid argument of an authenticator raises an error that names it and contains no password or token."""
    with refusal_of(parameter, kind=errors.InvalidArgumentException) as caught:
        make(**arguments)

    assert "secret" not in str(caught.value)
    if parameter == "allowed_sasl_mechanisms":
        assert all(mechanism in str(caught.value) for mechanism in SASL_MECHANISMS)


def test_an_unencrypted_token_is_a_keyword() -> None:
    """A token authenticator takes ``allow_unencrypted`` by keyword only."""
    with pytest.raises(TypeError):
        JwtAuthenticator("a.b.c", True)  # type: ignore[call-arg]


@pytest.mark.parametrize("mechanism", SASL_MECHANISMS)
def test_every_mechanism_can_be_named(mechanism: str) -> None:
    """Each implemented mechanism is accepted in ``allowed_sasl_mechanisms``."""
    assert (mechanism,) == PasswordAuthenticator("ada", "", (mechanism,)).allowed_sasl_mechanisms


@rows("name", [field.name for field in fields(TimeoutOptions)])
@rows("value", [0, 0.0, timedelta(0), 1e18, None, [2.5]])
def test_wrong_timeout(name: str, value: object) -> None:
    """A timeout of zero, above the maximum or of another type raises an error that names the timeout."""
    with refusal_of(name, said=name, kind=errors.InvalidArgumentException):
        make_timeouts(**{name: value})


@rows("name", TIMEOUTS)
@rows("value", [1, 0.001, 5e-324, 86_400.0, math.inf])
def test_right_timeout(name: str, value: float) -> None:
    """A timeout may be an integer; infinity means no limit."""
    assert value == getattr(make_timeouts(**{name: value}), name)


@pytest.mark.parametrize(("interval", "floor"), [(2.5, 0.05), (0.05, 0.05), (math.inf, math.inf), (math.inf, 1.0)])
def test_polls(interval: float, floor: float) -> None:
    """The poll interval may be infinite, and may equal the minimum interval."""
    options = TimeoutOptions(config_poll_interval=interval, config_poll_floor=floor)

    assert (interval, floor) == (options.config_poll_interval, options.config_poll_floor)
    assert (2.5, 0.05) == (TimeoutOptions().config_poll_interval, TimeoutOptions().config_poll_floor)


@pytest.mark.parametrize(("interval", "floor"), [(0.01, 0.05), (2.5, 3.0), (1.0, math.inf)])
def test_polls_below_the_floor(interval: float, floor: float) -> None:
    """A poll interval below the minimum interval is rejected."""
    with refusal_of("config_poll_interval", "config_poll_floor", kind=errors.InvalidArgumentException):
        TimeoutOptions(config_poll_interval=interval, config_poll_floor=floor)


def test_timeouts_are_keyword_only() -> None:
    """Positional timeouts raise ``TypeError``."""
    with pytest.raises(TypeError):
        make_timeouts(2.5)


class NoStrategy:
    """Object whose ``retry_after`` attribute is not callable."""

    retry_after = 5


WRONG_OPTIONS: dict[str, list[object]] = {
    "connection_string": [None, b"couchbase://h"],
    "authenticator": [("ada", "secret"), "ada:secret"],
    "timeouts": [None, 2.5, {"kv": 2.5}],
    "retry_strategy": [None, couchbase.BestEffortRetryStrategy, NoStrategy(), lambda request, reason: None],
    "circuit_breaker": [None, False],
    "compression": [None, 1, "snappy"],
    "hello_after_auth": [0],
    "renegotiate_on_corrupt_error_map": ["no"],
    "network": ["", None],
    "enable_dns_srv": ["yes"],
    "dns_srv_domains": [
        *(None, 5, "nodes.example", {"nodes.example"}, (b"nodes.example",)),
        *((name,) for name in ("", ".", "*", "*.example", ".nodes.example", "nodes..example", "nodes.example:11210")),
        *((name,) for name in ("nodes.example\n", "a" * 256, ":", "1:2:3:4:5:6:7:8:9")),
    ],
    "tls_is_verified": [None],
    "user_agent": [None, b"mine/1.0"],
}


@rows(("name", "value"), [(name, value) for name, values in WRONG_OPTIONS.items() for value in values])
def test_wrong_option(name: str, value: object) -> None:
    """The constructor rejects an invalid option, before any connection is opened."""
    with refusal_of(name, kind=errors.InvalidArgumentException, said=name):
        make_options(**{"connection_string": CONNECTION_STRING, name: value})


def test_wrong_authenticator_is_not_quoted() -> None:
    """A tuple in place of an authenticator raises an error that does not contain its password."""
    with pytest.raises(errors.InvalidArgumentException) as caught:
        make_options(connection_string=CONNECTION_STRING, authenticator=("ada", "secret"))

    assert "secret" not in str(caught.value)


def test_options_are_immutable() -> None:
    """Setting an option raises ``FrozenInstanceError``."""
    options = make_options(connection_string=CONNECTION_STRING)

    with pytest.raises(FrozenInstanceError):
        options.compression = False  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError):
        options.timeouts.kv = 1.0  # type: ignore[misc]
